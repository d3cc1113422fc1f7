"""A wheel in an environment of its own, away from the checkout: does what people do first work?"""

from __future__ import annotations

import json
import os
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

from release.patient import run, say

MODEL = """\
import torch


# evokernel: x=f32[1024,1000]
def attend(x):
    return torch.softmax(x * 0.125, dim=-1)
"""


@frozen
class Done:
    """One step, the seconds that it took, and what it showed."""

    step: str
    seconds: float
    shown: str


@frozen
class Clean:
    """A virtual environment in ``folder`` with a wheel, and nothing of this machine's settings."""

    folder: Path

    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PIP_INDEX_URL") if name in os.environ}
        places = {"HOME": home, "EVOKERNEL_HOME": home / "data", "XDG_CACHE_HOME": home / "cache"}
        return kept | {name: str(path) for name, path in places.items()}

    def run(self, *command: str, stdin: bytes = b"") -> bytes:
        """Runs a program of the environment. Raises AssertionError where it fails or hangs."""
        argv = (str(self.folder / "bin" / command[0]), *command[1:])
        return run(" ".join(command[:4]), argv, cwd=self.folder, env=self.environment(), stdin=stdin)


def smoke(wheel: Path, interpreter: Path) -> Iterator[Done]:
    """Each step as it ends. ``interpreter`` is a Python with torch. Raises AssertionError."""
    with tempfile.TemporaryDirectory(prefix="evokernel-smoke-") as folder:
        clean = Clean(Path(folder) / "env")
        steps = {
            "environment": lambda: _make(clean),
            "light install": lambda: _install(clean, str(wheel)),
            "evokernel --version": lambda: clean.run("evokernel", "--version").decode(),
            "evokernel doctor --prepare": lambda: _doctor(clean, interpreter),
            "evokernel lsp": lambda: _initialize(clean),
            "evokernel synth": lambda: _synth(clean, interpreter),
            "install of [all]": lambda: _install(clean, f"{wheel}[all]"),
            "everything imports": lambda: _import_all(clean),
        }
        for step, work in steps.items():
            say(f"         {step} …")
            began = time.monotonic()
            shown = work().strip()
            yield Done(step, time.monotonic() - began, shown)


def _make(clean: Clean) -> str:
    venv.create(clean.folder, with_pip=True)
    (clean.folder / "home").mkdir()
    return str(clean.folder)


def _install(clean: Clean, what: str) -> str:
    pip = ("python", "-m", "pip", "--disable-pip-version-check")
    clean.run(*pip, "install", "--quiet", what)
    listed = json.loads(clean.run(*pip, "list", "--format", "json"))
    (packages,) = clean.folder.glob("lib/python3*/site-packages")
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
    return f"{len(listed)} packages, pip and setuptools among them; {size / 1e6:.0f} MB"


def _doctor(clean: Clean, interpreter: Path) -> str:
    report = json.loads(
        clean.run("evokernel", "doctor", "--prepare", "--json", "--interpreter", str(interpreter))
    )
    assert report["ok"], report
    return "; ".join(f"{check['name']}: {check['found']}" for check in report["checks"])


def _initialize(clean: Clean) -> str:
    """The server's answer to the first message, and its end after the last."""
    messages = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]
    answer = clean.run("evokernel", "lsp", stdin=b"".join(map(framed, messages)))
    _, _, body = answer.partition(b"\r\n\r\n")
    result = json.JSONDecoder().raw_decode(body.decode())[0]["result"]
    assert "codeActionProvider" in result["capabilities"], result
    return f"{result['serverInfo']['name']} {result['serverInfo'].get('version', '')}"


def framed(message: Mapping[str, object]) -> bytes:
    """A message as the protocol sends it."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _synth(clean: Clean, interpreter: Path) -> str:
    """A kernel is written, verified and put in place; the twin is built from what the wheel holds."""
    model = clean.folder / "model.py"
    model.write_text(MODEL, "utf-8")
    said = clean.run(
        "evokernel", "synth", str(model), "--apply", "--budget", "2", "--interpreter", str(interpreter)
    )
    assert ".run(" in model.read_text("utf-8"), said.decode()
    return said.decode().strip().splitlines()[-1]


def _import_all(clean: Clean) -> str:
    script = (
        "import evokernel_core.verifier.service, evokernel_core.synthesis.proposers.llm, sklearn, keyring;"
        "print(evokernel_core.__file__)"
    )
    path = clean.run("python", "-c", script).decode().strip()
    assert path.startswith(str(clean.folder)), f"{path} is not the installed package"
    return path
