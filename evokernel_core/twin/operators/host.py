"""The host code of an operator as a program: it tells what it defines, tiles calls and infers shapes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.hardware.ascend.chip import Chip, runner_text
from evokernel_core.twin import kernel_cache
from evokernel_core.twin.build import (
    OPERATOR_FLAGS,
    SOURCES,
    CandidateError,
    Twin,
    preparation_hash,
    prepare,
    publish,
    run_tool,
)
from evokernel_core.twin.compiler import feedback, project_diagnostics
from evokernel_core.twin.depfiles import depfile_flags, read_known_files
from evokernel_core.twin.operators.definition import Description, read_description
from evokernel_core.twin.operators.folder import OperatorFolder
from evokernel_core.twin.operators.includes import companions, include_folders
from evokernel_core.twin.operators.missing import definitions, undefined
from evokernel_core.twin.run import Limits, clean_environment, limited, run_process
from evokernel_core.twin.sources import ProgramSource, read_sources

_NAMES = ('-DOPS_UTILS_LOG_SUB_MOD_NAME="OP_TILING"', '-DOPS_UTILS_LOG_PACKAGE_TYPE=""')
"""What the build of an operator package defines for the macros that write its log."""
_LIMITS = Limits(wall_s=30.0, cpu_s=20.0)


class TilingError(EvoKernelError):
    """The operator's own host code refused a call, or ended; the message says how."""


@frozen
class HostProgram:
    """A built host program, and the sources that do not compile: ``(file, feedback)``."""

    executable: Path
    twin: Twin
    left_out: tuple[tuple[str, str], ...]

    def describe(self, chip: Chip) -> Description:
        """Raises TilingError where the program ends otherwise."""
        return read_description(self._asked(chip, ("describe",)))

    def tile(self, request: str, chip: Chip) -> Mapping[str, Any]:
        """Tiling key, blocks, workspaces in bytes, tiling data as hexadecimal digits. Raises TilingError."""
        return self._asked_of("tile", request, chip)

    def shapes(self, request: str, chip: Chip) -> Sequence[Sequence[Sequence[int]]]:
        """The sizes of each output's tensors as the shape function says; one that it leaves open is negative.

        Raises TilingError where there is no shape function, or it refuses the call.
        """
        result: list[list[list[int]]] = self._asked_of("shapes", request, chip)["outputs"]
        return result

    def _asked_of(self, task: str, request: str, chip: Chip) -> Mapping[str, Any]:
        with temporary.folder("call") as name:
            file = Path(name) / "request.txt"
            file.write_text(request)
            return self._asked(chip, (task, str(file)))

    def _asked(self, chip: Chip, words: Sequence[str]) -> Mapping[str, Any]:
        with temporary.folder("host") as name:
            flat = Path(name) / "chip.txt"
            flat.write_text(runner_text(chip))
            command = (*limited(self.twin, _LIMITS), str(self.executable), str(flat), *words)
            done = run_process(command, Path(name), _LIMITS.wall_s, clean_environment())
        lines = done.stdout.strip().splitlines()
        try:
            answer: dict[str, Any] = json.loads(lines[-1])
        except (IndexError, ValueError):
            raise TilingError(
                f"The host code ended with {done.exit_code} and no answer: {done.stderr[-300:]}"
            ) from None
        if "error" in answer:
            said = "; ".join(line.strip("; ") for line in done.stderr.splitlines()[-3:])
            raise TilingError(f"{answer['error']} {said}".strip())
        return answer


def build_host(folder: OperatorFolder) -> HostProgram:
    """Compiles what of the host code compiles, and links it with the program that asks it.

    Raises CandidateError where nothing compiles or the rest does not link.
    """
    twin = prepare()
    files = (*folder.host, *companions(folder))
    source = ProgramSource(files, include_folders(files, folder))
    texts = read_sources(source)
    places = [source.shown(path) for path in (*source.files, *source.includes)]
    named = [(source.shown(path), text) for path, text in texts.items()]
    target = kernel_cache.folder_of(twin.folder, preparation_hash(), "operator", places, named)
    if not kernel_cache.has(target, "built.json"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.folder_in(target.parent, "building") as work:
            (work / "result").mkdir()
            left_out, is_known = _build(twin, source, texts, work)
            (work / "result" / "built.json").write_text(json.dumps(left_out))
            if not is_known:
                target = kernel_cache.folder_of_one_build(twin.folder)
            publish(work / "result", target)
        kernel_cache.added(target)
    left_out = json.loads((target / "built.json").read_text())
    return HostProgram(target / "program", twin, tuple(map(tuple, left_out)))


def _build(
    twin: Twin, source: ProgramSource, texts: Iterable[Path], work: Path
) -> tuple[list[tuple[str, str]], bool]:
    """Writes ``result/program`` into ``work``; returns the sources that are left out of it, and whether
    nothing but ``texts`` was read."""
    # Messages of one project's program are those of another's with the same text.
    mapped = f"-ffile-prefix-map={os.path.commonpath([path.parent for path in texts])}/="
    own = [*twin.compiler.argv, *OPERATOR_FLAGS, *_NAMES, mapped]
    own += [f"-I{folder}" for folder in (*source.includes, twin.include, SOURCES)]
    units = [(path, work / f"{index}.o") for index, path in enumerate(source.files)]

    def compiled(unit: tuple[Path, Path]) -> tuple[int, str]:
        path, output = unit
        rule = depfile_flags(output)
        status, said = run_tool(twin, [*own, "-c", str(path), "-o", str(output), *rule], work)
        if status:  # without an object there is no rule but by the preprocessor
            run_tool(twin, [*own, "-M", "-MG", str(path), *rule[1:]], work)
        return status, said

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        results = list(zip(units, pool.map(compiled, units), strict=True))
    own_names = [path.name for path in texts]
    failed = [
        (source.shown(path), feedback(project_diagnostics(output, own_names, twin.include), output))
        for (path, _), (status, output) in results
        if status
    ]
    if len(failed) == len(source.files):
        raise CandidateError("compile", failed[0][1])
    objects = [str(twin.operator_host), *(str(place) for (_, place), (status, _) in results if not status)]
    places = (work, twin.folder, SOURCES)
    is_known = read_known_files((place for _, place in units), twin.compiler, texts, places)
    return [*failed, *_link(twin, objects, work)], is_known


def _link(twin: Twin, objects: Sequence[str], work: Path) -> list[tuple[str, str]]:
    """Writes ``result/program``; tells what nothing defines, whose use ends the program.

    Raises CandidateError.
    """
    # A package's libraries for tiling and for shapes may each have what a header of theirs defines.
    own = (str(twin.library), f"-Wl,-rpath,{twin.folder}", "-lpthread", "-ldl")
    libraries = ("-Wl,--allow-multiple-definition", *own)
    command = [*twin.compiler.argv, "-o", str(work / "result" / "program"), *objects]
    status, output = run_tool(twin, [*command, *libraries], work)
    if not status:
        return []
    missing = undefined(output)
    _, mangled = run_tool(twin, [*command, *libraries, "-Wl,--no-demangle"], work)
    stand_ins = work / "missing.cpp"
    stand_ins.write_text(definitions(undefined(mangled)))
    status, output = run_tool(twin, [*command, str(stand_ins), *libraries], work)
    if status or not missing:
        raise CandidateError("link", output[-500:])
    return [("host", "Undefined: " + ", ".join(missing))]
