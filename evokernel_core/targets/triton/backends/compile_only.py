"""Triton's compiler as a backend that runs nothing: whether a kernel becomes a cubin, and what that takes."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from attrs import frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.hardware.gpu.gpu import gpu_of
from evokernel_core.targets.triton.backends.compiled import CompiledLaunch
from evokernel_core.targets.triton.backends.compiler import BuiltTriton, TritonCompiler, triton_version


@frozen
class RunsNothing:
    """What backends have in common that are ``verifier.base.CompilesOnly``, for the author's device."""

    author: KernelAuthor
    compiler: Any
    name: str
    latency_source: LatencySource = LatencySource.MODELLED
    samples: bool = False

    @property
    def confinement(self) -> str:
        """How far the process that compiles is confined."""
        return str(self.compiler.confinement)

    def build(self, task: KernelTask, source: KernelSource) -> Any:
        """As the compiler's ``build``."""
        return self.compiler.build(task, source)

    def execute(self, built: object, case: object) -> NoReturn:
        raise VerifierError("The backend compile runs nothing; verify with interpreter or cuda.")

    def measure(self, built: object, request: object) -> NoReturn:
        raise VerifierError("The backend compile times nothing; verify with cuda.")


class CompileBackend(RunsNothing):
    """With a ``TritonCompiler``."""

    def facts(self, built: BuiltTriton) -> Sentence:
        """What each launch takes of a multiprocessor."""
        (call,) = built.known.values()
        return joined(map(_fact, call.launches), "; ")


def _fact(launch: CompiledLaunch) -> Sentence:
    return Sentence(
        "{name}: {registers} registers a thread, {spilled} bytes of them spilled, {shared} bytes of shared "
        "memory",
        name=launch.function,
        registers=launch.registers,
        spilled=launch.local_bytes,
        shared=launch.shared_bytes,
    )


def open_compiler(author: KernelAuthor, python: str) -> CompileBackend:
    """The backend with the Triton of an interpreter, "" for the one that runs this; one that has none is said
    when the first kernel is compiled."""
    gpu, version = gpu_of(author.device), triton_version(python or sys.executable)
    name = f"triton {version or 'compiler'} for {gpu.name}"
    return CompileBackend(author, TritonCompiler(gpu, python), name)
