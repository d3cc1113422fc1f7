"""The files of which a kernel of each target consists."""

from __future__ import annotations

from collections.abc import Iterable

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.kernel_files import KernelFiles
from evokernel_core.domain.language import Language
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets import KERNEL_FILES, TARGETS, files_of_device

DEFAULT = TARGETS[0]
"""Of what names no target."""
FILES = {name: files.names for name, files in KERNEL_FILES.items()}
"""By the target's name, in the order in which they are read."""
MAIN_FILES = frozenset(files.main for files in KERNEL_FILES.values())
"""Those with the device code, which people read first."""


def files_of(target: str) -> tuple[str, ...]:
    """The names of the files of a target's kernels. Raises UsageError for a target that is not known."""
    return _known(target).names


def language_of(target: str) -> Language:
    """How the texts of a target's kernels are read. Raises UsageError for a target that is not known."""
    return _known(target).language()


def main_file(target: str) -> str:
    """The one with the device code. Raises UsageError for a target that is not known."""
    return _known(target).main


def _known(target: str) -> KernelFiles:
    if target not in KERNEL_FILES:
        raise UsageError(
            "The target {target} is not known here; update EvoKernel, or use one of: {known}.",
            target=repr(target[:60]),
            known=", ".join(KERNEL_FILES),
        )
    return KERNEL_FILES[target]


def workers_of(device: str) -> Sentence:
    """What runs side by side in a launch on a device; of one that is not known here, blocks."""
    files = files_of_device(device)
    return files.workers if files is not None else Sentence("blocks")


def main_first(names: Iterable[str]) -> tuple[str, ...]:
    """Names of a kernel's files as people read them."""
    return tuple(sorted(names, key=lambda name: name not in MAIN_FILES))


def require_known(source: KernelSource) -> None:
    """Raises UsageError for a kernel of an unknown target, or with other files than its target's."""
    names = files_of(source.target)
    if source.files.keys() != set(names):
        raise UsageError(
            "A kernel for {target} has the files {names}, and this one has {given}; give exactly those.",
            target=source.target,
            names=" and ".join(names),
            given=" and ".join(source.files),
        )
