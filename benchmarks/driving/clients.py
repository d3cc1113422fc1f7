"""The coding agents of docs/mcp.md that run without a person: packages, configurations, commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

INSTALL_S = 600
_SNIPPET = re.compile(r"^\*\*(?P<client>[^*]+)\*\*[^\n]*\n```\w+\n(?P<text>.*?)^```", re.M | re.S)
_ACCOUNTS = re.compile(r"(ANTHROPIC|CLAUDE|OPENAI|CODEX|GEMINI|GOOGLE|OPENCODE|MCP|XDG)_|CLAUDECODE")
"""Variables by which an agent would find a person's account or settings."""


class NotInstalled(Exception):
    """An agent that cannot be had here; its text says why."""


@frozen
class Client:
    """One agent. ``config`` is where its documented configuration goes, below the project or, with ~, the
    home; ``led`` writes into the home what leads it to the model at an address, and gives variables."""

    name: str
    package: str
    program: str
    config: str
    led: Callable[[Path, str], Mapping[str, str]]
    words: tuple[str, ...]

    def installed(self, folder: Path) -> Path:
        """Its program, installed below the folder where it is not there yet. Raises NotInstalled."""
        place = folder / self.program
        program = place / "node_modules" / ".bin" / self.program
        if not program.exists():
            place.mkdir(parents=True, exist_ok=True)
            npm = shutil.which("npm")
            if npm is None:
                raise NotInstalled("npm is missing: install Node 20 or newer")
            command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(place)]
            try:
                done = subprocess.run(
                    [*command, f"{self.package}@latest"],
                    capture_output=True, text=True, check=False, timeout=INSTALL_S, cwd=place,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise NotInstalled(f"npm took more than {INSTALL_S} s") from error
            if done.returncode or not program.exists():
                lines = [line.removeprefix("npm error ") for line in done.stderr.splitlines()]
                raise NotInstalled(f"npm said {'; '.join(lines[:2]) or 'nothing, and there is no program'}")
        return program

    def configured(self, project: Path, home: Path, url: str, page: str) -> dict[str, str]:
        """Puts the documented configuration in its place; gives the variables that the agent runs with."""
        variables = self.led(home, url)
        where = home / self.config[2:] if self.config.startswith("~/") else project / self.config
        where.parent.mkdir(parents=True, exist_ok=True)
        with where.open("a") as file:
            file.write(documented(page)[self.name])
        kept = {name: value for name, value in os.environ.items() if not _ACCOUNTS.match(name)}
        return {**kept, "HOME": str(home), **variables}


def documented(page: str) -> dict[str, str]:
    """The configurations of docs/mcp.md by their client's name, as they stand there."""
    return {found["client"]: found["text"] for found in _SNIPPET.finditer(page)}


def _claude(_: Path, url: str) -> dict[str, str]:
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING")
    switches = dict.fromkeys((*quiet, "DISABLE_AUTOUPDATER"), "1")
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "mock", **switches}


def _codex(home: Path, url: str) -> dict[str, str]:
    _written(
        home / ".codex" / "config.toml",
        f'model = "mock"\nmodel_provider = "mock"\n[analytics]\nenabled = false\n[model_providers.mock]\n'
        f'name = "mock"\nbase_url = "{url}/v1"\nwire_api = "responses"\n',
    )
    return {}


def _gemini(home: Path, url: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
    }
    _written(home / ".gemini" / "settings.json", json.dumps(settings))
    trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return {"GEMINI_API_KEY": "mock", "GOOGLE_GEMINI_BASE_URL": url, **trusted}


def _opencode(home: Path, url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "mock",
        "options": {"baseURL": f"{url}/v1", "apiKey": "mock"},
        "models": {"mock": {"name": "mock", "tool_call": True}},
    }
    settings = {
        "model": "mock/mock", "share": "disabled", "autoupdate": False, "provider": {"mock": provider}
    }  # fmt: skip
    _written(home / ".config" / "opencode" / "opencode.json", json.dumps(settings))
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {f"OPENCODE_DISABLE_{name}": "1" for name in switches}


def _written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


_PROMPT = "Plan model.py."
CLIENTS = (
    Client("Claude Code", "@anthropic-ai/claude-code", "claude", ".mcp.json", _claude,
           ("-p", _PROMPT, "--allowedTools", "mcp__evokernel")),
    Client("Codex CLI", "@openai/codex", "codex", "~/.codex/config.toml", _codex,
           ("exec", "--skip-git-repo-check", _PROMPT)),
    Client("Gemini CLI", "@google/gemini-cli", "gemini", ".gemini/settings.json", _gemini,
           ("-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", _PROMPT)),
    Client("opencode", "opencode-ai", "opencode", "opencode.json", _opencode, ("run", _PROMPT)),
)  # fmt: skip
