"""Triton for Ascend as the vendor's own compiler reads it: its front, and the tiles that are alive at once.

Triton-ascend has Triton's name, so it stands in an environment of its own (``make ascend-triton``). Its front
needs neither CANN nor an NPU; what follows it, down to the machine's instructions, does.
"""

from __future__ import annotations

import os
from pathlib import Path

from attrs import frozen

from evokernel_core import temporary
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu, gpu_of
from evokernel_core.paths import data_path
from evokernel_core.targets.triton.backends.compile_only import RunsNothing
from evokernel_core.targets.triton.backends.compile_sandbox import compile_level
from evokernel_core.targets.triton.backends.compiled import operands_of, wanted
from evokernel_core.targets.triton.backends.compiler import answered, triton_version
from evokernel_core.targets.triton.backends.live_tiles import live_bytes
from evokernel_core.targets.triton.launch import read_launches
from evokernel_core.targets.triton.source import KERNEL, LAUNCH
from evokernel_core.twin.build import CandidateError

VARIABLE = "EVOKERNEL_ASCEND_TRITON"
"""Names the interpreter that has triton-ascend."""
LONGEST_NAME = 49
"""Characters of a kernel's name that the runtime takes."""


def front_python() -> str:
    """The interpreter that has triton-ascend, "" where there is none."""
    python = os.environ.get(VARIABLE) or str(data_path() / "ascend-triton" / "bin" / "python")
    return python if Path(python).exists() else ""


@frozen
class FrontLaunch:
    """A launch that the front takes, and the bytes of tiles that it has alive at once."""

    kernel: str
    live_bytes: int


@frozen
class FrontBuild:
    """What the front made of a kernel's launches."""

    triton: str
    launches: tuple[FrontLaunch, ...]


@frozen
class AscendFront:
    """The front in an interpreter, for one chip."""

    gpu: Gpu
    python: str

    @property
    def confinement(self) -> str:
        """How far the process that compiles is confined."""
        return str(compile_level(self.python))

    def build(self, task: KernelTask, source: KernelSource) -> FrontBuild:
        """The kernel at the task's own sizes. Raises CandidateError for a text that the front refuses and for
        tiles that the chip does not hold, UsageError for a record that is none, VerifierUnavailable."""
        record = read_launches(source.files[LAUNCH])
        sizes = tuple(symbol.size for symbol in task.symbols)
        operands = operands_of(task, record, sizes, (0.0,) * len(record.scalars))
        launches = [wanted(launch, operands) for launch in record.kernels]
        long = [launch["kernel"] for launch in launches if len(launch["kernel"]) > LONGEST_NAME]
        if long:
            raise CandidateError(
                "kernel-name",
                "{kernel} has more than {most} characters; the runtime takes no more.",
                kernel=long[0],
                most=LONGEST_NAME,
            )
        if not self.python:
            raise VerifierUnavailable(
                "There is no triton-ascend here; install it with `make ascend-triton`, or name its "
                "interpreter in {variable}.",
                variable=VARIABLE,
            )
        with temporary.folder("ascend") as name:
            return self._built(Path(name), source, launches)

    def _built(self, folder: Path, source: KernelSource, launches: list[dict[str, object]]) -> FrontBuild:
        (folder / KERNEL).write_text(source.files[KERNEL])
        request = {"file": str(folder / KERNEL), "chip": self.gpu.name, "folder": str(folder)}
        result = answered(self.python, folder, {**request, "launches": launches}, "ascend")
        taken = tuple(
            FrontLaunch(str(launch["kernel"]), live_bytes((folder / done["linalg"]).read_text()))
            for launch, done in zip(launches, result["launches"], strict=True)
        )
        for one in taken:
            if one.live_bytes > self.gpu.live_bytes:
                raise CandidateError(
                    "live-tiles",
                    "{kernel} has {bytes} bytes of tiles alive at once, and {chip} holds {most}: use smaller "
                    "blocks.",
                    kernel=one.kernel,
                    bytes=one.live_bytes,
                    chip=self.gpu.title,
                    most=self.gpu.live_bytes,
                )
        return FrontBuild(str(result["triton"]), taken)


class FrontBackend(RunsNothing):
    """With an ``AscendFront``, for a chip."""

    def facts(self, built: FrontBuild) -> Sentence:
        """What each launch takes of a core."""
        return joined(
            (
                Sentence("{name}: {bytes} bytes of tiles at once", name=one.kernel, bytes=one.live_bytes)
                for one in built.launches
            ),
            "; ",
        )


def open_front(author: KernelAuthor) -> FrontBackend:
    """The backend with the triton-ascend of this machine."""
    gpu, python = gpu_of(author.device), front_python()
    version = triton_version(python) if python else ""
    return FrontBackend(
        author, AscendFront(gpu, python), f"triton-ascend {version or 'front'} for {gpu.name}"
    )
