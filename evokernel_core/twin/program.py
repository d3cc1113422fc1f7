"""Whole programs on the twin: a source with its own ``main`` (aclrt calls and ``<<<>>>``)."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.paths import cache_dir
from evokernel_core.twin.build import (
    CandidateError,
    Twin,
    header_flags,
    kernel_flags,
    prepare,
    run_tool,
)
from evokernel_core.twin.chip import Chip, runner_text
from evokernel_core.twin.compiler import diagnostics, feedback
from evokernel_core.twin.preprocess import LaunchSyntaxError, rewrite_launches
from evokernel_core.twin.run import Limits, Mode, RunResult, limited, read_result, run_process

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@frozen
class Program:
    """A built program and how long building took, 0 where it came from the cache."""

    executable: Path
    twin: Twin
    compile_s: float


def local_sources(source: Path) -> dict[str, str]:
    """The text of a file and of every file beside it that it includes in quotes, by relative path.

    The first entry is the file itself. Raises UsageError where it cannot be read.
    """
    found: dict[str, str] = {}
    _collect(source.name, source.parent, found)
    return found


def _collect(name: str, folder: Path, found: dict[str, str]) -> None:
    path = folder / name
    try:
        found[name] = path.read_text(errors="surrogateescape")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); name an AscendC source file.") from error
    for included in _INCLUDE.findall(found[name]):
        relative = os.path.normpath(Path(name).parent / included)
        if relative not in found and (folder / relative).is_file():
            _collect(relative, folder, found)


def write_rewritten(sources: Mapping[str, str], target: Path) -> None:
    """Writes files with their launches rewritten; files above the folder are left where they are.

    Raises CandidateError for a launch that cannot be read.
    """
    for name, text in sources.items():
        if name.startswith(".."):
            continue
        try:
            rewritten = rewrite_launches(text)
        except LaunchSyntaxError as error:
            raise CandidateError("compile", f"{name}: {error}") from error
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#line 1 "{name}"\n{rewritten}\n', errors="surrogateescape")


def define_flags(defines: Sequence[str]) -> tuple[str, ...]:
    """``-D`` options. Raises UsageError for what is not NAME or NAME=VALUE."""
    for define in defines:
        if not re.fullmatch(r"[A-Za-z_]\w*(=.*)?", define, re.DOTALL):
            raise UsageError(f"-D {define!r} is not NAME or NAME=VALUE.")
    return tuple(f"-D{define}" for define in defines)


def build_program(source: Path, defines: Sequence[str] = ()) -> Program:
    """Compiles and links a program, from the cache where its text was built before.

    Raises CandidateError with the compiler's errors at the program's lines.
    """
    twin = prepare()
    sources = local_sources(source)
    flags = define_flags(defines)
    key = hashlib.sha256(
        repr((str(source.parent), sorted(sources.items()), flags)).encode("utf-8", "replace")
    )
    executable = cache_dir() / "programs" / twin.folder.name / key.hexdigest()[:24] / "program"
    if executable.exists():
        return Program(executable, twin, 0.0)
    started = time.monotonic()
    executable.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=executable.parent) as name:
        work = Path(name)
        write_rewritten(sources, work)
        _compile(twin, source, work, flags, tuple(sources))
        (work / "program").replace(executable)
    return Program(executable, twin, time.monotonic() - started)


def _compile(twin: Twin, source: Path, work: Path, flags: tuple[str, ...], names: Sequence[str]) -> None:
    shadow = (f"-I{work}", f"-I{source.parent.resolve()}")
    options = (*kernel_flags(twin.compiler), *header_flags(twin), *shadow, *flags)
    libraries = (str(twin.library), f"-Wl,-rpath,{twin.folder}", "-lpthread")
    argv = [
        *twin.compiler.argv,
        *options,
        "-x",
        "c++",
        source.name,
        "-x",
        "none",
        "-o",
        "program",
        *libraries,
    ]
    status, output = run_tool(argv, work)
    if status:
        known = [Path(name).name for name in names]
        found = diagnostics(output, known)
        raise CandidateError("compile", feedback(found, _undefined_or(output)))


def _undefined_or(output: str) -> str:
    names: Iterator[str] = iter(sorted(set(re.findall(r"undefined reference to [`'‘]([^'’]+)['’]", output))))
    missing = ", ".join(names)
    return f"nothing defines {missing}." if missing else output


def run_program(
    program: Program,
    arguments: Sequence[str],
    cwd: Path,
    how: tuple[Mode, Chip, Path | None],
    limits: Limits | None = None,
) -> RunResult:
    """Runs a program in ``cwd``. ``how``: mode, chip, and where its timeline goes."""
    mode, chip, trace = how
    bounds = limits or Limits(wall_s=600.0, address_space=16 * 1024**3)
    with tempfile.TemporaryDirectory(prefix="evokernel-program-") as name:
        folder = Path(name)
        (folder / "chip.txt").write_text(runner_text(chip))
        environment = {
            **os.environ,
            "EVOKERNEL_TWIN_RESULT": str(folder / "result.json"),
            "EVOKERNEL_TWIN_CHIP": str(folder / "chip.txt"),
            "EVOKERNEL_TWIN_MODE": str(mode),
            **({"EVOKERNEL_TWIN_TRACE": str(trace.resolve())} if trace else {}),
        }
        command = [*limited(program.twin, bounds), str(program.executable), *arguments]
        finished = run_process(command, cwd, bounds.wall_s, environment)
        return read_result(folder / "result.json", finished, bounds)
