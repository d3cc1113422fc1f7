"""Whole programs on the twin: a source with its own ``main`` (aclrt calls and ``<<<>>>``)."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from evokernel_core.twin.sources import ProgramSource, mirrored, read_sources, write_tree


@frozen
class Program:
    """A built program and how long building took, 0 where it came from the cache."""

    executable: Path
    twin: Twin
    compile_s: float


def rewritten(source: ProgramSource, texts: Mapping[Path, str]) -> dict[Path, str]:
    """The files with their launches rewritten, each line still at its number.

    Raises CandidateError for a launch that cannot be read.
    """
    files: dict[Path, str] = {}
    for path, text in texts.items():
        shown = source.shown(path)
        try:
            files[path] = f'#line 1 "{shown}"\n{rewrite_launches(text)}\n'
        except LaunchSyntaxError as error:
            raise CandidateError("compile", f"{shown}: {error}") from error
    return files


def define_flags(defines: Sequence[str]) -> tuple[str, ...]:
    """``-D`` options. Raises UsageError for what is not NAME or NAME=VALUE."""
    for define in defines:
        if not re.fullmatch(r"[A-Za-z_]\w*(=.*)?", define, re.DOTALL):
            raise UsageError(f"-D {define!r} is not NAME or NAME=VALUE.")
    return tuple(f"-D{define}" for define in defines)


def build_program(source: ProgramSource) -> Program:
    """Compiles and links a program, from the cache where its text was built before.

    Raises CandidateError with the compiler's errors at the program's lines.
    """
    twin = prepare()
    texts = read_sources(source)
    flags = define_flags(source.defines)
    key = hashlib.sha256(
        repr(([*map(str, source.files)], [*map(str, source.includes)], sorted(texts.items()), flags)).encode(
            "utf-8", "replace"
        )
    )
    executable = cache_dir() / "programs" / twin.folder.name / key.hexdigest()[:24] / "program"
    if executable.exists():
        return Program(executable, twin, 0.0)
    started = time.monotonic()
    executable.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=executable.parent) as name:
        work = Path(name)
        write_tree(rewritten(source, texts), work)
        names = tuple(Path(source.shown(path)).name for path in texts)
        _compile(twin, source, work, flags, names)
        (work / "program").replace(executable)
    return Program(executable, twin, time.monotonic() - started)


def _compile(
    twin: Twin, source: ProgramSource, work: Path, flags: tuple[str, ...], names: Sequence[str]
) -> None:
    """Compiles the translation units side by side and links them."""
    folders = [folder.resolve() for folder in (source.home, *source.includes)]
    shadow = [f"-I{place}" for folder in folders for place in (mirrored(folder, work), folder)]
    options = [*twin.compiler.argv, *kernel_flags(twin.compiler), *header_flags(twin), *shadow, *flags]
    units = [mirrored(file, work) for file in source.files]
    objects = [work / f"unit{index}.o" for index in range(len(units))]
    with ThreadPoolExecutor(max_workers=min(len(units), os.cpu_count() or 1)) as pool:
        commands = [
            [*options, "-x", "c++", "-c", str(unit), "-o", str(target)]
            for unit, target in zip(units, objects, strict=True)
        ]
        for status, output in pool.map(lambda command: run_tool(command, work), commands):
            if status:
                raise CandidateError("compile", feedback(diagnostics(output, names), output))
    libraries = (str(twin.library), f"-Wl,-rpath,{twin.folder}", "-lpthread", "-ldl")
    status, output = run_tool(
        [*twin.compiler.argv, "-o", "program", *(str(path) for path in objects), *libraries], work
    )
    if status:
        raise CandidateError("link", _undefined_or(output))


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
