"""Whole programs on the twin: a source with its own ``main`` (aclrt calls and ``<<<>>>``)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attrs import frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import UsageError
from evokernel_core.hardware.ascend.chip import Chip, runner_text
from evokernel_core.twin import kernel_cache
from evokernel_core.twin.build import (
    CandidateError,
    Twin,
    check_callees,
    header_flags,
    kernel_flags,
    preparation_hash,
    prepare,
    publish,
    run_tool,
)
from evokernel_core.twin.compiler import feedback, project_diagnostics
from evokernel_core.twin.depfiles import depfile_flags, read_known_files
from evokernel_core.twin.images import device_units, image_flags, kernels_of, launch_headers, needs_cube_image
from evokernel_core.twin.kernels import DeclaredKernel
from evokernel_core.twin.preprocess import LaunchSyntaxError, rewrite_launches
from evokernel_core.twin.run import Limits, Mode, RunResult, limited, read_result, run_process
from evokernel_core.twin.sources import ProgramSource, mirrored, read_sources, write_tree


@frozen
class BuiltProgram:
    """A built program and how long building took, 0 where it came from the cache."""

    executable: Path
    twin: Twin
    compile_s: float


def rewritten(
    source: ProgramSource, texts: Mapping[Path, str], kernels: Mapping[str, DeclaredKernel]
) -> dict[Path, str]:
    """The files with their launches rewritten, each line still at its number.

    Raises CandidateError for a launch that cannot be read.
    """
    files: dict[Path, str] = {}
    for path, text in texts.items():
        shown = source.shown(path)
        try:
            files[path] = f'#line 1 "{shown}"\n{rewrite_launches(text, kernels, str(path))}\n'
        except LaunchSyntaxError as error:
            raise CandidateError("compile", "{file}: {error}", file=shown, error=error) from error
    return files


def define_flags(defines: Sequence[str]) -> tuple[str, ...]:
    """``-D`` options. Raises UsageError for what is not NAME or NAME=VALUE."""
    for define in defines:
        if not re.fullmatch(r"[A-Za-z_]\w*(=.*)?", define, re.DOTALL):
            raise UsageError("-D {define} is not NAME or NAME=VALUE.", define=repr(define))
    return tuple(f"-D{define}" for define in defines)


def build_program(source: ProgramSource) -> BuiltProgram:
    """Compiles and links a program, from the cache where its text was built before.

    Raises CandidateError with the compiler's errors at the program's lines.
    """
    twin = prepare()
    texts = read_sources(source)
    flags = define_flags(source.defines)
    places = [source.shown(path) for path in (*source.files, *source.includes)]
    named = [(source.shown(path), text) for path, text in texts.items()]
    folder = kernel_cache.folder_of(twin.folder, preparation_hash(), "program", places, named, flags)
    if kernel_cache.has(folder, "program"):
        return BuiltProgram(folder / "program", twin, 0.0)
    started = time.monotonic()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary.folder_in(folder.parent, "building") as work:
        kernels = kernels_of(source, texts)
        for unit in device_units(source, texts):
            shown = {source.shown(path): tokens for path, tokens in unit.items()}
            check_callees(shown, constexpr_on_device=True)
        write_tree(rewritten(source, texts, kernels), work)
        for header, text in launch_headers(texts.values(), kernels).items():
            (work / header).write_text(text)
        names = tuple(Path(source.shown(path)).name for path in texts)
        objects = _build(_Job(twin, source, work, flags, names), needs_cube_image(texts.values(), kernels))
        if not read_known_files(objects, twin.compiler, texts, (work, twin.folder)):
            folder = kernel_cache.folder_of_one_build(twin.folder)
        publish(work / "result", folder)
    kernel_cache.added(folder)
    return BuiltProgram(folder / "program", twin, time.monotonic() - started)


@frozen
class _Job:
    """A build: where the rewritten files lie, the options, and the files' names."""

    twin: Twin
    source: ProgramSource
    work: Path
    flags: tuple[str, ...]
    names: tuple[str, ...]

    def command(self, unit: Path, output: Path, image: Sequence[str]) -> list[str]:
        """Compiles one translation unit. Images of their own do without the precompiled header."""
        folders = [folder.resolve() for folder in (self.source.home, *self.source.includes)]
        shadow = [f"-I{place}" for folder in folders for place in (mirrored(folder, self.work), folder)]
        headers = (f"-I{self.twin.include}",) if image else header_flags(self.twin)
        own = (*kernel_flags(self.twin.compiler), *headers, f"-I{self.work}", *shadow, *self.flags, *image)
        made = ("-x", "c++", "-c", str(unit), "-o", str(output), *depfile_flags(output))
        return [*self.twin.compiler.argv, *own, *made]

    def link(self, objects: Sequence[Path], output: str, more: Sequence[str]) -> None:
        """Links an image. Raises CandidateError."""
        (self.work / "result").mkdir(exist_ok=True)
        libraries = (str(self.twin.library), f"-Wl,-rpath,{self.twin.folder}", "-lpthread", "-ldl")
        files = [str(path) for path in objects]
        argv = [*self.twin.compiler.argv, "-o", f"result/{output}", *files, *more, *libraries]
        status, text = run_tool(self.twin, argv, self.work)
        if status:
            raise CandidateError("link", _undefined_or(text))


def _build(job: _Job, two_images: bool) -> list[Path]:
    """Compiles the translation units side by side, for each image, and links them; returns their objects."""
    units = [mirrored(file, job.work) for file in job.source.files]
    images = ((image_flags(False), "host"), (image_flags(True), "cube")) if two_images else (((), "host"),)
    work = [
        (job.command(unit, job.work / f"{name}{index}.o", flags), job.work / f"{name}{index}.o", name)
        for flags, name in images
        for index, unit in enumerate(units)
    ]
    with ThreadPoolExecutor(max_workers=min(len(work), os.cpu_count() or 1)) as pool:
        for status, output in pool.map(lambda entry: run_tool(job.twin, entry[0], job.work), work):
            if status:
                result = project_diagnostics(output, job.names, job.twin.include)
                raise CandidateError("compile", feedback(result, output))
    more: tuple[str, ...] = ()
    if two_images:
        cube = [path for _, path, name in work if name == "cube"]
        job.link(cube, "program.cube.so", ("-shared", "-Wl,-Bsymbolic", "-Wl,-soname,program.cube.so"))
        more = ("-Wl,--no-as-needed", "result/program.cube.so", "-Wl,-rpath,$ORIGIN")
    job.link([path for _, path, name in work if name == "host"], "program", more)
    return [path for _, path, _ in work]


def _undefined_or(output: str) -> str:
    names: Iterator[str] = iter(sorted(set(re.findall(r"undefined reference to [`'‘]([^'’]+)['’]", output))))
    missing = ", ".join(names)
    return f"nothing defines {missing}." if missing else output


def soc_name(chip: Chip) -> str:
    """The chip as host programs know it: Ascend910B1."""
    family, _, number = chip.name.partition("910")
    return f"{family.capitalize()}910{number.upper()}" if number else chip.name


def run_program(
    program: BuiltProgram,
    arguments: Sequence[str],
    cwd: Path,
    how: tuple[Mode, Chip, Path | None],
    limits: Limits | None = None,
    *,
    auto_sync: bool = True,
) -> RunResult:
    """Runs a program in ``cwd``. ``how``: mode, chip, and where its timeline goes.

    Without ``auto_sync`` the compiler is taken to insert no barriers (``--cce-auto-sync=off``).
    """
    mode, chip, trace = how
    bounds = limits or Limits(wall_s=600.0, address_space=16 * 1024**3)
    with temporary.folder("program") as name:
        folder = Path(name)
        (folder / "chip.txt").write_text(runner_text(chip))
        environment = {
            **os.environ,
            "EVOKERNEL_TWIN_RESULT": str(folder / "result.json"),
            "EVOKERNEL_TWIN_CHIP": str(folder / "chip.txt"),
            "EVOKERNEL_TWIN_MODE": str(mode),
            "EVOKERNEL_TWIN_SOC": soc_name(chip),
            "EVOKERNEL_TWIN_AUTO_SYNC": "on" if auto_sync else "off",
            **({"EVOKERNEL_TWIN_TRACE": str(trace.resolve())} if trace else {}),
        }
        command = [*limited(program.twin, bounds), str(program.executable), *arguments]
        finished = run_process(command, cwd, bounds.wall_s, environment)
        return read_result(folder / "result.json", finished, bounds, chip)
