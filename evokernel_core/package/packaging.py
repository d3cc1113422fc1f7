"""What a target says of its kernels to whoever writes their packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from attrs import field, frozen

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask


@frozen
class DeviceWords:
    """How texts of packages speak of the devices of a target.

    type: of torch's devices, as ``cuda``.
    one: the device in a sentence, as ``GPU``.
    kernel: a kernel for it, as ``a Triton kernel for GPUs``.
    absent: when no kernel runs there, behind "where", as ``no GPU is present``.
    is_there: the expression over ``guards`` that says whether it is there.
    only: why a test of the kernel is skipped elsewhere.
    ready: what must be so of the package before its kernel runs.
    """

    type: str
    one: str
    kernel: str
    absent: str
    is_there: str
    only: str
    ready: Sentence


@frozen
class KernelGuard:
    """A condition on a call that a kernel asks for beside those of its task: an expression of ``call.py``,
    and the same for the person who reviews it."""

    text: str
    words: Sentence


@frozen
class PackagedKernel:
    """What a kernel brings into its package beside its own ``files``.

    host: whether a module ``host.py`` launches it; otherwise a library does, which is built from the files.
    """

    files: Mapping[str, str]
    guards: tuple[KernelGuard, ...] = ()
    host: bool = field(default=False)


class Packaging(Protocol):
    """Of one target."""

    @property
    def words(self) -> DeviceWords: ...

    @property
    def names(self) -> tuple[str, ...]:
        """The files of its kernels."""

    def packaged(
        self, name: str, task: KernelTask, source: KernelSource, beside: Iterable[str]
    ) -> PackagedKernel:
        """Of a kernel whose operator has that name; ``beside`` are files of a kernel of another target in the
        same package. Raises UsageError for a source that is none of the target's."""

    def guards(self, task: KernelTask, source: KernelSource) -> tuple[KernelGuard, ...]:
        """Those of ``PackagedKernel``. Raises UsageError as well."""
