"""What tries and times kernels in Triton on a machine: its interpreter anywhere, CUDA where a GPU is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.check import Check
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.first_run import RunStep
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask


def _interpreter(author: KernelAuthor, python: str) -> Any:
    from evokernel_core.targets.triton.backends.interpreter import InterpreterBackend

    return InterpreterBackend(author, python)


def _cuda(author: KernelAuthor, python: str) -> Any:
    from evokernel_core.targets.triton.backends.cuda import open_cuda

    return open_cuda(author, python)


def _compile(author: KernelAuthor, python: str) -> Any:
    from evokernel_core.hardware.gpu.gpu import gpu_of

    if gpu_of(author.device).backend == NPU:
        from evokernel_core.targets.triton.backends.ascend_front import open_front

        return open_front(author)
    from evokernel_core.targets.triton.backends.compile_only import open_compiler

    return open_compiler(author, python)


NPU = "npu"
"""The device type of chips that triton-ascend compiles for."""
BACKENDS: Mapping[str, Callable[[KernelAuthor, str], Any]] = {
    "interpreter": _interpreter,
    "compile": _compile,
    "cuda": _cuda,
}


@frozen
class TritonToolchain:
    """``compiler.toolchain.Toolchain``; what it needs is imported when it is asked for."""

    def backends(self) -> Mapping[str, Callable[[KernelAuthor, str], Any]]:
        return BACKENDS

    def signature(self, backend: str) -> str:
        return ""

    def prepare(self) -> None:
        """Builds the launcher that confines candidates."""
        from evokernel_core.twin.launcher import prepare_launcher

        prepare_launcher()

    def checks(self, python: str, *, asked: bool) -> Iterator[Check]:
        from evokernel_core.targets.triton.checks import checks

        return checks(python, asked=asked)

    def first_run(self, python: str) -> Iterator[RunStep]:
        raise UsageError("A first run on a GPU is `evokernel verify KERNEL_DIR --backend cuda`.")

    def write_timeline(
        self, author: KernelAuthor, task: KernelTask, source: KernelSource, request: Any, page: Path
    ) -> Any:
        raise UsageError("There is no timeline of kernels in Triton; profile them on the GPU.")
