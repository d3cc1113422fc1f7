"""Which Python runs the user's code: the first one with torch of those that may be meant."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from attrs import define, field

from evokernel_core.capture.environments import Interpreter, interpreters
from evokernel_core.domain.errors import InterpreterUnavailable
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.programs import program_on_path

_RAN = 86
"""The exit status of a probe that ran, which a program that is no Python does not give by chance."""
_HAS_TORCH = f"import importlib.util as u, sys; sys.exit({_RAN} if u.find_spec('torch') else 1)"
_STARTS = f"import sys; sys.exit({_RAN})"
_PROBE_SECONDS = 10.0
_SEARCH_SECONDS = 30.0
"""All probes of one search together; what is not asked by then is passed over, and said to be."""
_NO_LASTS_SECONDS = 60.0
"""A no is asked again after this long, since torch may be installed meanwhile; a yes stays."""
_MOST_NAMED = 6
HOW_TO_SET = Sentence("--interpreter, EVOKERNEL_INTERPRETER or the setting evokernel.interpreter")


@define
class _Answers:
    """What interpreters answered, and which one was found near which folders."""

    torch: dict[str, tuple[bool, float]] = field(factory=dict)
    nearest: dict[tuple[Path, ...], Interpreter] = field(factory=dict)


_answers = _Answers()


def find_interpreter(setting: str, *near: Path) -> Interpreter:
    """The setting if there is one, else the first with torch of those found from the folders ``near``
    upwards. The answer is remembered.

    Raises InterpreterUnavailable if there is none, or if the one in the setting has no torch.
    """
    folders = tuple(dict.fromkeys(folder.absolute() for folder in near))
    if setting:
        return _from_setting(setting, folders)
    known = _answers.nearest.get(folders)
    if known is None or not Path(known.path).is_file():
        known = _answers.nearest[folders] = _search(folders)
    return known


def _from_setting(setting: str, near: Sequence[Path]) -> Interpreter:
    path = _resolve(setting, near)
    if path is None or not _starts(path):
        raise InterpreterUnavailable(
            "The interpreter {path} does not run Python: set one that does ({how}).",
            path=setting,
            how=HOW_TO_SET,
        )
    if not _has_torch(path, _PROBE_SECONDS):
        raise InterpreterUnavailable(
            "The interpreter {path} has no torch: install torch in it or set another one ({how}).",
            path=path,
            how=HOW_TO_SET,
        )
    return Interpreter(path, Sentence("setting"))


def _search(near: tuple[Path, ...]) -> Interpreter:
    end = time.monotonic() + _SEARCH_SECONDS
    tried: list[Sentence] = []
    for candidate in interpreters(*near):
        left = end - time.monotonic()
        if left > 0 and _has_torch(candidate.path, min(left, _PROBE_SECONDS)):
            return candidate
        late = "" if left > 0 else Sentence(", not asked for lack of time")
        tried.append(Sentence("{path} [{how}{late}]", path=candidate.path, how=candidate.how, late=late))
    names, more = joined(tried[:_MOST_NAMED], ", "), len(tried) - _MOST_NAMED
    if more > 0:
        names = Sentence("{names} and {count} more", names=names, count=more)
    where = Sentence(" for {folder}", folder=near[0]) if near else ""
    raise InterpreterUnavailable(
        "No Python with torch was found{where} (tried {names}): install torch in one of them, or "
        "name another one with {how}.",
        where=where,
        names=names,
        how=HOW_TO_SET,
    )


def _resolve(setting: str, near: Sequence[Path]) -> str | None:
    path = Path(setting).expanduser()
    if path.is_absolute():
        return str(path) if path.is_file() else None
    if os.sep in setting:  # ./python has one part too, and is no program of PATH
        return next((str(folder / path) for folder in near if (folder / path).is_file()), None)
    return program_on_path(setting)


def _has_torch(path: str, seconds: float) -> bool:
    answer, asked = _answers.torch.get(path, (False, float("-inf")))
    if not answer and time.monotonic() - asked > _NO_LASTS_SECONDS:
        answer = _status(path, _HAS_TORCH, seconds) == _RAN
        _answers.torch[path] = answer, time.monotonic()
    return answer


def _starts(path: str) -> bool:
    return _status(path, _STARTS, _PROBE_SECONDS) == _RAN


def _status(path: str, code: str, seconds: float) -> int:
    """The exit status of the code, -1 where the interpreter cannot run it."""
    try:
        done = subprocess.run(
            [path, "-c", code],
            capture_output=True,
            timeout=seconds,
            check=False,
            cwd=Path(path).anchor or None,
        )
    except (OSError, subprocess.TimeoutExpired):
        return -1
    return done.returncode


def forget() -> None:
    """Look again at the next call, as after an installation."""
    _answers.torch.clear()
    _answers.nearest.clear()
