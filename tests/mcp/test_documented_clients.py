"""docs/mcp.md: its configurations parse, have their client's shape, and their command starts a server."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from evokernel_mcp.app import TOOLS, WRITING_TOOLS
from mcp import Client, StdioServerParameters

from evokernel_core.cli.main import cli
from tests import warm

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()
_SNIPPET = re.compile(
    r"^\*\*(?P<client>[^*]+)\*\*[^\n]*\n```(?P<kind>json|toml)\n(?P<text>.*?)^```", re.M | re.S
)
SNIPPETS = {
    found["client"]: (tomllib.loads if found["kind"] == "toml" else json.loads)(found["text"])
    for found in _SNIPPET.finditer(PAGE)
}


def _of(*keys: str) -> Callable[[Mapping[str, Any]], list[str]]:
    def words(given: Mapping[str, Any]) -> list[str]:
        for key in keys:
            given = given[key]
        return [given["command"], *given["args"]]

    return words


SHAPES: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "Claude Code": _of("mcpServers", "evokernel"),
    "Codex CLI": _of("mcp_servers", "evokernel"),
    "Cursor": _of("mcpServers", "evokernel"),
    "VS Code": _of("servers", "evokernel"),
    "Gemini CLI": _of("mcpServers", "evokernel"),
    "opencode": lambda given: list(given["mcp"]["evokernel"]["command"]),
}
"""Where each client looks for a server's command line, as its own documentation says."""


def test_each_client_is_documented() -> None:
    assert SNIPPETS.keys() == SHAPES.keys()
    assert SNIPPETS["VS Code"]["servers"]["evokernel"]["type"] == "stdio"
    assert SNIPPETS["opencode"]["mcp"]["evokernel"]["type"] == "local"


def test_agents_wait_for_the_server() -> None:
    """Without these, Claude Code and Codex may ask their model before our tools are there."""
    assert SNIPPETS["Claude Code"]["mcpServers"]["evokernel"]["alwaysLoad"] is True
    assert SNIPPETS["Codex CLI"]["mcp_servers"]["evokernel"]["required"] is True


COMMANDS = sorted({tuple(SHAPES[client](SNIPPETS[client])) for client in SHAPES})


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_the_documented_command_starts(command: tuple[str, ...], tmp_path: Path) -> None:
    words = [word.replace("${workspaceFolder}", str(tmp_path)) for word in command]
    assert words[0] == "evokernel"
    environment = {**os.environ, "EVOKERNEL_HOME": str(tmp_path / "home")}
    started = StdioServerParameters(
        command=sys.executable, args=["-c", warm.MAIN, *words[1:]], env=environment, cwd=str(tmp_path)
    )
    (tmp_path / "model.py").write_text("def f(x):\n    return x\n")
    async with Client(started) as found:
        told = await found.call_tool("explain", {"code": "missing-sync"})
        assert not told.is_error


def test_the_command_for_claude_is_one_that_starts() -> None:
    (line,) = re.findall(r"`claude mcp add evokernel -- (evokernel [^`]+)`", PAGE)
    done = CliRunner().invoke(cli, [*shlex.split(line)[1:], "--help"])
    assert done.exit_code == 0, done.output


def test_each_tool_is_documented() -> None:
    rows = [
        line.split("|")[1] for line in PAGE.partition("## Tools")[2].splitlines() if line.startswith("| `")
    ]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented == {tool.__name__ for tool, _ in (*TOOLS, *WRITING_TOOLS)}
