"""Follows a sample's recipe in a scratch copy: its build on the twin, its scripts, its program."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from attrs import Factory, define, frozen

from asc_samples.cmake import Build, CMakeError, Evaluator, Target
from asc_samples.readme import ARCHITECTURE, Readme, Step, recipe, steps
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.verdict import Hazard, Severity
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.program import BuiltProgram, build_program, run_program
from evokernel_core.twin.run import GIB, ExitStatus, Limits, Mode, RunResult
from evokernel_core.twin.sources import ProgramSource

_OWN_PACKAGES = frozenset(("ASC", "Python3", "Python", "Threads"))
_OUTSIDE_LIBRARIES: Mapping[str, str] = {
    "acl_op_executor": "operators compiled by atc",
    "acl_mdl": "models compiled by atc",
    "cust_opapi": "an installed custom operator package",
    "nnopbase": "an installed custom operator package",
    "ge_runner": "the graph engine",
    "acl_rtc": "run-time compilation by the toolkit's compiler",
    "profapi": "the toolkit's profiler",
}
"""Libraries that stand for something outside of a program with its own main."""
_STAND_INS = Path(__file__).parent / "stand_ins"
_WRAPPERS = ("msopprof", "mssanitizer", "gdb")
"""Tools that start a program to watch it; the twin starts the program itself."""


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_A2 = "not-A2"
    NEEDS = "needs"


class _Stop(Exception):
    """The recipe ends here: why, and which outcome that is."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome, self.reason = outcome, reason


@frozen
class Run:
    """What came of one scenario of a sample."""

    outcome: Outcome
    reason: str
    stage: str
    seconds: float
    program_seconds: float = 0.0


@define
class _State:
    folder: Path
    cwd: Path
    limit_s: float
    printed: list[str] = Factory(list)
    build: Build | None = None
    targets: dict[Path, Target] = Factory(dict)
    programs: dict[Path, BuiltProgram] = Factory(dict)
    stage: str = "read"
    program_seconds: float = 0.0
    shown: str = ""  # what the README shows as output


def run_recipe(folder: Path, readme: Readme, overrides: Mapping[str, str], limit_s: float) -> Run:
    """Runs a sample's own commands in ``folder``, a copy of it."""
    state = _State(folder, folder, limit_s, shown="\n".join(readme.blocks))
    started = time.monotonic()
    try:
        _follow(state, readme, overrides)
        outcome, reason = Outcome.PASS, ""
    except _Stop as stop:
        outcome, reason = stop.outcome, stop.reason
    return Run(outcome, reason, state.stage, time.monotonic() - started, state.program_seconds)


def _follow(state: _State, readme: Readme, overrides: Mapping[str, str]) -> None:
    lines = recipe(readme)
    if not lines:
        raise _Stop(Outcome.NEEDS, "its README starts no program")
    for step in steps(lines, overrides):
        _step(state, step, overrides)
    expected = readme.success_words()
    printed = "\n".join(state.printed)
    if expected and not any(word in printed for word in expected):
        raise _Stop(Outcome.FAIL, f"does not print {expected[0]!r}: {_last_line(printed)}")


def _step(state: _State, step: Step, overrides: Mapping[str, str]) -> None:
    words = [word for word in step.words if word not in ("2>&1",)]
    if words[0] in _WRAPPERS:
        words = words[next((i for i, word in enumerate(words) if word.startswith("./")), 0) :]
    match words:
        case ["mkdir", *names]:
            for name in names:
                if not name.startswith("-"):
                    (state.cwd / name).mkdir(parents=True, exist_ok=True)
        case ["cd", name]:
            state.cwd = (state.cwd / name).resolve()
        case ["rm", *_]:
            pass
        case ["cmake", "--build", *_] | ["make", *_]:
            _build(state)
        case ["cmake", *arguments]:
            _configure(state, arguments, overrides)
        case ["python3" | "python", "-m", "pip", *_] | ["pip3" | "pip", *_]:
            pass  # what is installed here is what the scripts get
        case ["python3" | "python", *arguments]:
            _script(state, arguments, step.output)
        case [program, *arguments] if program.startswith("./"):
            _program(state, program, arguments, step.output)
        case _:
            raise _Stop(Outcome.NEEDS, words[0])


def _configure(state: _State, arguments: Sequence[str], overrides: Mapping[str, str]) -> None:
    state.stage = "cmake"
    options = {}
    for word in arguments:
        match = re.fullmatch(r"-D(\w+)(?::\w+)?=(.*)", word)
        if match:
            options[match[1]] = match[2]
    options = {"CMAKE_ASC_ARCHITECTURES": ARCHITECTURE, **options, **overrides}
    plain = [word for word in arguments if not word.startswith("-")]
    source = (state.cwd / (plain[0] if plain else ".")).resolve()
    evaluator = Evaluator(source, state.cwd, options)
    try:
        state.build = evaluator.folder(source)
    except CMakeError as error:
        _need_packages(evaluator.build)
        other = "dav-" in str(error) and "3510" in str(error)
        raise _Stop(Outcome.NOT_A2 if other else Outcome.FAIL, f"CMake: {error}") from error
    _need_packages(state.build)
    state.targets = {state.cwd / target.name: target for target in state.build.executables()}


def _need_packages(build: Build) -> None:
    """Stops where the build asks for something outside of a compiler and its interface."""
    outside = [name for name in build.packages if name not in _OWN_PACKAGES]
    if outside:
        raise _Stop(Outcome.NEEDS, outside[0])
    operators = [name for name in build.unknown if name.startswith("npu_op") or "vendor" in name]
    if operators or "externalproject_add" in build.unknown:
        raise _Stop(Outcome.NEEDS, f"the toolkit's operator packages ({(operators or build.unknown)[0]})")


def _build(state: _State) -> None:
    state.stage = "build"
    if state.build is None:
        raise _Stop(Outcome.FAIL, "its README builds before it configures")
    for path, target in state.targets.items():
        if path in state.programs:
            continue
        for library in target.libraries:
            if library in _OUTSIDE_LIBRARIES:
                raise _Stop(Outcome.NEEDS, _OUTSIDE_LIBRARIES[library])
        source = ProgramSource(
            tuple(target.sources), tuple(filter(Path.is_dir, target.includes)), tuple(target.defines)
        )
        try:
            state.programs[path] = build_program(source)
        except CandidateError as error:
            raise _Stop(Outcome.FAIL, f"{error.code}: {error.feedback}") from error
        except EvoKernelError as error:
            raise _Stop(Outcome.FAIL, str(error)) from error


def _script(state: _State, arguments: Sequence[str], output: str) -> None:
    state.stage = Path(arguments[0]).name if arguments else "python"
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=state.cwd,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=state.limit_s,
            check=False,
            env=_script_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise _Stop(Outcome.FAIL, f"{state.stage} takes more than {state.limit_s:.0f} s") from error
    text = done.stdout + done.stderr
    _keep(state, text, output)
    missing = re.search(r"No module named '([\w.]+)'", text) or _beyond_stand_in(text)
    if done.returncode and missing:
        raise _Stop(Outcome.NEEDS, f"Python's {missing[1]}")
    if done.returncode:
        raise _Stop(Outcome.FAIL, f"{state.stage}: {_last_line(text)}")


def _beyond_stand_in(text: str) -> re.Match[str] | None:
    """A script's failure for want of what a stand-in leaves out of its package."""
    match = re.search(r"module '(\w+)' has no attribute", text)
    return match if match and (_STAND_INS / match[1]).is_dir() else None


def _script_environment() -> dict[str, str]:
    """Packages that scripts take a dtype from are stood in for where they are not installed."""
    missing = [path for path in _STAND_INS.iterdir() if importlib.util.find_spec(path.name) is None]
    folders = [os.environ.get("PYTHONPATH", ""), *([str(_STAND_INS)] if missing else [])]
    return {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
    }


def _program(state: _State, name: str, arguments: Sequence[str], output: str) -> None:
    state.stage = "run"
    program = state.programs.get((state.cwd / name).resolve())
    if program is None:
        raise _Stop(Outcome.FAIL, f"{name} is not built by its CMakeLists.txt")
    limits = Limits(wall_s=state.limit_s, address_space=16 * GIB)
    result = run_program(program, arguments, state.cwd, (Mode.CHECK, load_chip(), None), limits)
    state.program_seconds += result.seconds
    _keep(state, result.output, output)
    _judge(result, state.shown)


def _judge(result: RunResult, shown: str) -> None:
    """Stops where a run of the program itself shows that something is wrong; an assertion that the
    README shows failing is the point of its sample."""
    errors = [
        hazard
        for hazard in result.hazards
        if hazard.severity is Severity.ERROR and not _is_shown(hazard, shown)
    ]
    if errors:
        first = errors[0]
        raise _Stop(Outcome.FAIL, f"{first.code} at {Path(first.file).name}:{first.line}: {first.message}")
    if result.status is not ExitStatus.OK:
        raise _Stop(Outcome.FAIL, result.message)
    if result.exit_code:
        raise _Stop(Outcome.FAIL, f"exit status {result.exit_code}: {_last_line(result.output)}")


def _is_shown(hazard: Hazard, shown: str) -> bool:
    asserted = re.search(r"`(.+)'", hazard.message)
    return hazard.code == "assert" and asserted is not None and f"Assertion `{asserted[1]}' failed" in shown


def _keep(state: _State, text: str, output: str) -> None:
    state.printed.append(text)
    if output:
        (state.cwd / output).write_text(text)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing was printed"
