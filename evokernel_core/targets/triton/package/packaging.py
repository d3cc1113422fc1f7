"""Packages of kernels in Triton: host code beside them, and what they ask of PyTorch's settings."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.package.packaging import DeviceWords, KernelGuard, PackagedKernel
from evokernel_core.targets.triton.launch import read_launches
from evokernel_core.targets.triton.package.host_text import host_text
from evokernel_core.targets.triton.package.kernel_guards import kernel_guards
from evokernel_core.targets.triton.source import FILES, KERNEL, LAUNCH

HOST = "host.py"
WORDS = DeviceWords(
    "cuda",
    one="GPU",
    kernel="a Triton kernel for GPUs",
    absent="no GPU or no triton is present",
    is_there="guards.has_gpu()",
    only="the kernel runs on a GPU with triton only",
    ready=Sentence(
        "triton is installed and the package's files are the ones that were verified; until then your own "
        "code runs."
    ),
)


@frozen
class TritonPackaging:
    """``package.packaging.Packaging``."""

    words: DeviceWords = WORDS
    names: tuple[str, ...] = FILES

    def packaged(
        self, name: str, task: KernelTask, source: KernelSource, beside: Iterable[str]
    ) -> PackagedKernel:
        text = host_text(name, task, read_launches(source.files[LAUNCH]))
        return PackagedKernel({HOST: text}, self.guards(task, source), host=True)

    def guards(self, task: KernelTask, source: KernelSource) -> tuple[KernelGuard, ...]:
        try:
            return kernel_guards(source.files[KERNEL], read_launches(source.files[LAUNCH]), task)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise UsageError("kernel.py is no Python; make the kernel again.") from error
