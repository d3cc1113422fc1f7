"""The report of a first run: one JSON file and the same as text, without anything private.

Left out are secrets of the environment, the home folder (``~`` stands for it) and the names of the user and
of the machine.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import asdict

from evokernel_core import __version__
from evokernel_core.domain.first_run import RunStep, StepState

FORMAT = 1
_SECRET_NAMES = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6
"""Shorter values of such variables are words like ``off`` that occur by themselves."""


def report(steps: Sequence[RunStep]) -> dict[str, Any]:
    """The report's data. ``ok`` where no step failed."""
    clean = cleaner(os.environ)
    data = {
        "format": FORMAT,
        "evokernel": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "system": platform.system(),
            "release": platform.release(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
        },
        "ok": not any(step.state is StepState.FAILED for step in steps),
        "steps": [{**asdict(step), "state": step.state.value} for step in steps],
    }
    cleaned: dict[str, Any] = _map(data, clean)
    return cleaned


def text(data: Mapping[str, Any]) -> str:
    """The report as a person reads it."""
    machine = data["machine"]
    lines = [
        f"EvoKernel {data['evokernel']}, first run on an NPU, {data['date']}",
        f"{machine['system']} {machine['release']} on {machine['architecture']}, Python {machine['python']}",
        "",
    ]
    for step in data["steps"]:
        lines += _lines(step)
        output = str(step["details"].get("output", ""))
        lines += [f"{'':10}{line}" for line in output.splitlines()]
    counts = [f"{sum(step['state'] == state for step in data['steps'])} {state}" for state in StepState]
    return "\n".join([*lines, "", ", ".join(counts)]) + "\n"


def lines_of(step: RunStep) -> str:
    """A step as it is shown while the others run."""
    return "\n".join(_lines(_map(asdict(step), cleaner(os.environ))))


def _lines(step: Mapping[str, Any]) -> list[str]:
    advice = [f"{'':8}→ {step['advice']}"] if step["advice"] else []
    return [f"{step['state']:8}{step['name']}: {step['found']}", *advice]


def write(data: Mapping[str, Any], path: Path) -> tuple[Path, Path]:
    """Writes ``path`` (JSON) and the text beside it; returns both. What stood there, a link too, is replaced
    and never written through. Raises OSError."""
    readable = path.with_suffix(".txt")
    _replace(path, json.dumps(data, indent=2) + "\n")
    _replace(readable, text(data))
    return path, readable


def _replace(path: Path, words: str) -> None:
    handle, staged = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(words)
        Path(staged).replace(path)
    except BaseException:
        Path(staged).unlink(missing_ok=True)
        raise


def cleaner(environment: Mapping[str, str]) -> Callable[[str], str]:
    """What takes everything private out of a text."""
    secrets = [
        value
        for name, value in environment.items()
        if _SECRET_NAMES.search(name) and len(value) >= _SHORTEST_SECRET
    ]
    homes = {str(Path.home()), str(Path.home().resolve()), environment.get("HOME", "")} - {"", "/"}
    names = [re.escape(name) for name in {_user(), socket.gethostname()} if len(name) > 2]
    person = re.compile(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])") if names else None

    def clean(words: str) -> str:
        for secret in sorted(secrets, key=len, reverse=True):
            words = words.replace(secret, "***")
        for home in sorted(homes, key=len, reverse=True):
            words = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", words)
        return person.sub("***", words) if person else words

    return clean


def _user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
    return "" if name == "root" else name  # a word of documentation, and nobody's name


def _map(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {str(key): _map(member, clean) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map(element, clean) for element in value]
    return value
