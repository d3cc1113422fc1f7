"""Runs on the twin that write nothing of a person's: in a folder of their own, with inputs made or read.

What a launch names is looked for in one folder, and every file that is read lies below the given roots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evokernel_core import temporary
from evokernel_core.domain.errors import UsageError
from evokernel_core.foreign import read_foreign
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.chip_files import DEFAULT_CHIP, chip_names
from evokernel_core.twin.expected import elements_of, outputs_of
from evokernel_core.twin.job import Job, as_data, run_job
from evokernel_core.twin.operators.folder import project_of
from evokernel_core.twin.operators.report import compiled_operators, ran_case
from evokernel_core.twin.run import GIB, Limits, Mode
from evokernel_core.twin.sources import ProgramSource, read_sources

_LONGEST_NAME = 1024
SHOWN = 8
"""First elements of an output that are told of."""


def run_source(params: Mapping[str, Any], chip: str) -> dict[str, Any]:
    """``{source | text, roots, folder, mode, includes, defines, limit_s, auto_sync}`` and either ``{entry,
    launch}`` for a bare kernel or ``{arguments}`` for a program with its own ``main``.

    ``chip``: another device than one of the twin's stands for the default chip.
    The answer is that of ``job.as_data``, with ``outputs``: shape, range and first elements of each output of
    a bare kernel, and ``output``: what a program printed. Raises UsageError for a path outside the roots.
    """
    roots, chip = tuple(map(Path, params["roots"])), _chip(chip)
    with temporary.folder("agent") as name:
        work = Path(name)
        source = Path(params["source"]) if params.get("source") else _written(work, params["text"])
        includes = tuple(map(Path, params["includes"]))
        _check_includes(
            ProgramSource((source,), includes, tuple(params["defines"])), (*roots, work.resolve())
        )
        job = Job(
            source=source,
            chip=chip,
            mode=Mode(params["mode"]),
            entry=params.get("entry", ""),
            launch=_launch(params, roots, work) if params.get("launch") else None,
            includes=includes,
            defines=tuple(params["defines"]),
            cwd=work if params.get("launch") else Path(params["folder"]),
            limit=params["limit_s"],
            auto_sync=params["auto_sync"],
            arguments=tuple(params.get("arguments", ())),
        )
        outcome = run_job(job)
        outputs = list(_outputs(params["launch"], work)) if params.get("launch") else []
        return as_data(outcome) | {"outputs": outputs, "output": outcome.result.output}


def run_operator(params: Mapping[str, Any], chip: str) -> dict[str, Any]:
    """``{folder, roots, case, mode, limit_s, auto_sync}``: an operator compiled, or a case of it run, on a
    chip as ``run_source`` has it.

    Raises UsageError for a case that names a file outside of the roots.
    """
    folder, roots = Path(params["folder"]), tuple(map(Path, params["roots"]))
    project = project_of(folder).resolve()
    if not _is_below(project, roots):  # headers are looked for below a project, and no further than the roots
        project = max(
            (root for root in roots if folder.is_relative_to(root)), key=lambda root: len(root.parts)
        )
    if not params.get("case"):
        return compiled_operators(folder, project, load_chip(_chip(chip)))
    _check_case(Path(params["case"]), roots)
    how = (Mode(params["mode"]), Limits(params["limit_s"], address_space=16 * GIB), params["auto_sync"])
    return ran_case(folder, project, load_chip(_chip(chip)), Path(params["case"]), how)


def _chip(device: str) -> str:
    """The chip that the twin stands for: AscendC is run by it where kernels are written for GPUs, too."""
    return device if device in chip_names() else DEFAULT_CHIP


def _check_case(case: Path, roots: Sequence[Path]) -> None:
    for name in _strings(json.loads(read_foreign(case))):
        path = case.parent / name
        if path.is_absolute() and path.exists() and not _is_below(path, roots):
            raise UsageError(f"The case names {name}, which is outside of the allowed folders.")


def _strings(data: Any) -> Iterator[str]:
    """All texts in a JSON value that may name a file."""
    if isinstance(data, str) and len(data) < _LONGEST_NAME and "\0" not in data:
        yield data
    elif isinstance(data, Mapping | list):
        for element in data.values() if isinstance(data, Mapping) else data:
            yield from _strings(element)


def _written(work: Path, text: str) -> Path:
    source = work / "kernel.cpp"
    source.write_text(text, encoding="utf-8")
    return source


def _is_below(path: Path, roots: Sequence[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(root) for root in roots)


def _check_includes(program: ProgramSource, roots: Sequence[Path]) -> None:
    for path in read_sources(program):
        if not _is_below(path, roots):
            raise UsageError(f"The source includes {path}, which is outside of the allowed folders.")


def _launch(params: Mapping[str, Any], roots: Sequence[Path], work: Path) -> Path:
    """LAUNCH.json in the folder of the run, with inputs as absolute paths and outputs as names in it."""
    launch = dict(params["launch"])
    place = _Place(Path(params["folder"]), roots)
    launch["args"] = [place.argument(arg) for arg in launch["args"]]
    launch["expect"] = {name: place.read(file) for name, file in launch.get("expect", {}).items()}
    path = work / "launch.json"
    path.write_text(json.dumps(launch), encoding="utf-8")
    return path


class _Place:
    """Where a launch's files are: inputs below ``folder``, and nothing outside of ``roots``."""

    def __init__(self, folder: Path, roots: Sequence[Path]) -> None:
        self._folder, self._roots = folder, roots

    def argument(self, arg: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arg)
        for name in ("in", "bytes", "from"):
            if isinstance(given.get(name), str):
                given[name] = self.read(given[name])
        if "list" in given:
            given["list"] = [self.argument(each) for each in given["list"]]
        if "out" in given and Path(given["out"]).name != given["out"]:
            raise UsageError(
                f"The output {given['out']!r} is no plain file name; nothing is written elsewhere."
            )
        return given

    def read(self, file: str) -> str:
        """The absolute path of a file that is read. Raises UsageError."""
        path = (self._folder / file).resolve()
        if not _is_below(path, self._roots):
            raise UsageError(f"{file} of the launch is outside of the allowed folders.")
        if not path.is_file():
            raise UsageError(
                f"{path} of the launch does not exist; paths are relative to the source's folder."
            )
        return str(path)


def _outputs(launch: Mapping[str, Any], work: Path) -> Iterator[dict[str, Any]]:
    """What each output holds; none where the run did not get so far, as in timing mode."""
    for output in outputs_of(launch["args"]):
        if (work / output["out"]).is_file():
            yield {"name": output["out"], **_summary(work / output["out"], output["dtype"])}


def _summary(path: Path, dtype: str) -> dict[str, Any]:
    numbers = elements_of(path, dtype).ravel()
    finite = numbers[np.isfinite(numbers)]
    return {
        "elements": int(numbers.size),
        "min": float(finite.min()) if finite.size else None,
        "max": float(finite.max()) if finite.size else None,
        "not_finite": int(numbers.size - finite.size),
        "first": [float(value) if np.isfinite(value) else str(value) for value in numbers[:SHOWN]],
    }
