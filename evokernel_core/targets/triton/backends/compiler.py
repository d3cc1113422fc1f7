"""Triton's compiler: jit functions to cubins, in a process of the person's interpreter, without a GPU."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from attrs import field, fields_dict, frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.backends.compile_sandbox import (
    compile_command,
    compile_environment,
    compile_level,
    limits,
)
from evokernel_core.targets.triton.backends.compiled import (
    CompiledCall,
    CompiledLaunch,
    Operands,
    operands_of,
    require_fits,
    wanted,
)
from evokernel_core.targets.triton.launch import LaunchRecord, read_launches
from evokernel_core.targets.triton.source import KERNEL, LAUNCH
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.run import run_process

WALL_SECONDS = 120.0
"""For all launches of a call; one takes 0.3 to 2 s, a product in many stages 10."""


@frozen
class BuiltTriton:
    """A kernel in a folder of its own, which is removed with it, and what was compiled of it by the launches'
    arguments."""

    task: KernelTask
    record: LaunchRecord
    folder: tempfile.TemporaryDirectory[str]
    known: dict[str, CompiledCall] = field(factory=dict, eq=False, repr=False)

    @property
    def path(self) -> Path:
        return Path(self.folder.name)


class TritonCompiler:
    """Compiles for one GPU with the Triton of an interpreter."""

    def __init__(self, gpu: Gpu, python: str = "") -> None:
        """``python``: the person's interpreter, "" for the one that runs this."""
        self.gpu, self.python = gpu, python or sys.executable

    @property
    def confinement(self) -> str:
        """How far the process that reads a candidate is confined on this machine."""
        return str(compile_level(self.python))

    def build(self, task: KernelTask, source: KernelSource) -> BuiltTriton:
        """The kernel compiled at the task's own sizes. Raises CandidateError for a text that Triton refuses
        or that wants more shared memory than the GPU has, UsageError for a record that is none,
        VerifierUnavailable."""
        built = self.placed(task, source)
        sizes = tuple(symbol.size for symbol in task.symbols)
        if not built.record.takes(dict(zip(built.record.symbols, sizes, strict=True))):
            raise CandidateError(
                "declined", "launch.json requires sizes that the task's own are not; widen what it requires."
            )
        self.compiled(built, [operands_of(task, built.record, sizes, (0.0,) * len(built.record.scalars))])
        return built

    def placed(self, task: KernelTask, source: KernelSource) -> BuiltTriton:
        """The kernel in a folder, with nothing compiled of it yet. Raises UsageError."""
        record, folder = read_launches(source.files[LAUNCH]), temporary.folder("triton")
        (Path(folder.name) / KERNEL).write_text(source.files[KERNEL])
        return BuiltTriton(task, record, folder)

    def compiled(self, built: BuiltTriton, calls: Sequence[Operands]) -> list[CompiledCall]:
        """The launches at the sizes of each call, in one process for those that are not known yet. Raises
        CandidateError, UsageError, VerifierUnavailable."""
        launches = [[wanted(launch, one) for launch in built.record.kernels] for one in calls]
        keys = [json.dumps(one, sort_keys=True) for one in launches]
        new = {key: one for key, one in zip(keys, launches, strict=True) if key not in built.known}
        if new:
            done = iter(self._run(built, [launch for one in new.values() for launch in one]))
            version = next(done)
            for key, one in new.items():
                call = CompiledCall(str(version), tuple(_launch(built, next(done)) for _ in one))
                require_fits(built.record, call, self.gpu)
                built.known[key] = call
        return [built.known[key] for key in keys]

    def _run(self, built: BuiltTriton, launches: Sequence[Mapping[str, Any]]) -> Iterable[Any]:
        """Triton's version, then what each launch came to."""
        request = {
            "file": str(built.path / KERNEL),
            "architecture": self.gpu.compute_capability,
            "threads_per_warp": self.gpu.threads_per_warp,
            "folder": str(built.path),
            "launches": launches,
        }
        result = answered(self.python, built.path, request)
        return [result["triton"], *result["launches"]]


def answered(python: str, folder: Path, request: Mapping[str, Any], verb: str = "compile") -> dict[str, Any]:
    """What a child makes of a request's launches in the folder of their text. Raises CandidateError,
    VerifierUnavailable."""
    (folder / "request.json").write_text(json.dumps({**request, "limits": limits()}))
    (folder / "result.json").unlink(missing_ok=True)
    command = compile_command(python, folder / "request.json", verb)
    finished = run_process(command, folder, WALL_SECONDS, compile_environment(folder))
    if finished.timed_out:
        raise CandidateError(
            "compile-timeout", "Triton needs more than {seconds} s.", seconds=f"{WALL_SECONDS:.0f}"
        )
    result = _result(folder / "result.json", finished.stderr)
    if "error" in result:
        raise CandidateError("compile", _said(result, str(folder)))
    if len(result["launches"]) != len(request["launches"]):
        raise CandidateError("compile", "kernel.py ended Triton's compiler; write jit functions only.")
    return result


def _result(path: Path, stderr: str) -> dict[str, Any]:
    """What the child left. Raises CandidateError where it died, VerifierUnavailable without Triton."""
    if not path.exists():
        last = (stderr.strip().splitlines() or ["it said nothing"])[-1][:300]
        raise CandidateError("compile", "Triton's compiler ended: {said}", said=last)
    result: dict[str, Any] = json.loads(path.read_text())
    if "missing" in result:
        raise VerifierUnavailable(
            "The interpreter has no Triton ({said}); install it with `pip install triton`, or name an "
            "interpreter that has it.",
            said=result["missing"],
        )
    if "unavailable" in result:
        raise VerifierUnavailable(
            "Triton {version} is not one that kernels are compiled with here; install triton 3.6.",
            version=result["unavailable"],
        )
    return result


def _said(result: Mapping[str, Any], folder: str) -> Sentence:
    return Sentence(
        "Triton does not compile {kernel}:\n{said}",
        kernel=result["kernel"] or KERNEL,
        said=result["error"].replace(folder + "/", ""),
    )


def _launch(built: BuiltTriton, data: Mapping[str, Any]) -> CompiledLaunch:
    told = {name: data[name] for name in fields_dict(CompiledLaunch)}
    told |= {name: tuple(data[name]) for name in ("types", "kept")}
    return CompiledLaunch(**{**told, "cubin": built.path / data["cubin"]})


@cache
def triton_version(python: str) -> str:
    """The version of an interpreter's Triton, "" where it has none."""
    code = "from importlib.metadata import version; print(version('triton'))"
    if shutil.which(python) is None:
        return ""
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
