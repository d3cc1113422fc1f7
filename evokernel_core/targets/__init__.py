"""Target languages, a folder each. This module alone knows them by name; it imports what is heavy of one when
it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import evolve

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel_files import KernelFiles
from evokernel_core.targets.ascendc.source import KERNEL_FILES as ASCENDC
from evokernel_core.targets.triton.source import KERNEL_FILES as TRITON

if TYPE_CHECKING:
    from evokernel_core.compiler.author import KernelAuthor
    from evokernel_core.compiler.knowledge import Knowledge
    from evokernel_core.compiler.target import Target
    from evokernel_core.compiler.toolchain import Lessons, Toolchain
    from evokernel_core.domain.settings import Settings
    from evokernel_core.package.packaging import Packaging

AUTO = "auto"
"""In settings: the target that has the device."""
KERNEL_FILES: Mapping[str, KernelFiles] = MappingProxyType(
    {files.target: files for files in (ASCENDC, TRITON)}
)
"""The files of each target's kernels by its name, the target of what names none first."""
TARGETS = tuple(KERNEL_FILES)


def load_target(name: str) -> Target:
    """The target of that name. Raises UsageError for an unknown one."""
    if name == ASCENDC.target:
        from evokernel_core.targets.ascendc import target

        return target.ASCENDC
    if name == TRITON.target:
        from evokernel_core.targets.triton import target as triton

        return triton.TRITON
    raise _unknown(name)


def load_knowledge(name: str) -> Knowledge:
    """What the target of that name tells in words. Raises UsageError for an unknown one."""
    if name == ASCENDC.target:
        from evokernel_core.targets.ascendc.knowledge.prompting import AscendCKnowledge

        return AscendCKnowledge()
    if name == TRITON.target:
        from evokernel_core.targets.triton.knowledge.prompting import TritonKnowledge

        return TritonKnowledge()
    raise _unknown(name)


def load_lessons(name: str) -> Lessons:
    """What failed kernels of the target of that name teach. Raises UsageError for an unknown one."""
    if name == ASCENDC.target:
        from evokernel_core.targets.ascendc.lessons import AscendCLessons

        return AscendCLessons()
    if name == TRITON.target:
        from evokernel_core.targets.triton.lessons import TritonLessons

        return TritonLessons()
    raise _unknown(name)


def load_packaging(name: str) -> Packaging:
    """What the target of that name has packages of its kernels hold. Raises UsageError for an unknown one."""
    if name == ASCENDC.target:
        from evokernel_core.targets.ascendc.package.packaging import AscendCPackaging

        return AscendCPackaging()
    if name == TRITON.target:
        from evokernel_core.targets.triton.package.packaging import TritonPackaging

        return TritonPackaging()
    raise _unknown(name)


def load_toolchain(name: str) -> Toolchain:
    """What builds and times kernels of the target of that name here. Raises UsageError for an unknown one."""
    if name == ASCENDC.target:
        from evokernel_core.targets.ascendc.toolchain import AscendCToolchain

        return AscendCToolchain()
    if name == TRITON.target:
        from evokernel_core.targets.triton.toolchain import TritonToolchain

        return TritonToolchain()
    raise _unknown(name)


def require_target(name: str) -> None:
    """Raises UsageError for what is neither ``AUTO`` nor the name of a target."""
    if name not in (AUTO, *TARGETS):
        raise _unknown(name)


def target_for(device: str, target: str = AUTO) -> str:
    """The name of the target that settings ask for: a name of one, or ``AUTO`` for the one that has the
    device. Raises UsageError for an unknown target, and for a device that the target does not have."""
    require_target(target)
    asked = TARGETS if target == AUTO else (target,)
    devices = {name: KERNEL_FILES[name].devices() for name in asked}
    for name, known in devices.items():
        if device in known:
            return name
    choices = ", ".join(name for known in devices.values() for name in known)
    other = files_of_device(device)
    if other is not None:
        raise UsageError(
            "Kernels for {device} in {target} are not supported yet; choose one of: {known}, or the target "
            "{other}.",
            device=device,
            target=KERNEL_FILES[target].title,
            known=choices,
            other=other.target,
        )
    raise UsageError(
        "There is no chip called {name}; choose one of: {known}.", name=repr(device), known=choices
    )


def _unknown(name: str) -> UsageError:
    return UsageError(
        "There is no target called {name}; choose one of: {known}.",
        name=repr(name),
        known=", ".join((AUTO, *TARGETS)),
    )


def files_of_device(device: str) -> KernelFiles | None:
    """Those of the target that has a device, None where none has."""
    return next((files for files in KERNEL_FILES.values() if device in files.devices()), None)


def present_targets() -> tuple[KernelFiles, ...]:
    """Those of the targets for which a driver is installed here; nothing of it is loaded."""
    return tuple(files for files in KERNEL_FILES.values() if files.is_present())


def default_device(target: str) -> str:
    """The device of a target that is taken where none is named; of ``AUTO`` that of the first target. Raises
    UsageError for an unknown target."""
    require_target(target)
    return KERNEL_FILES[TARGETS[0] if target == AUTO else target].devices()[0]


def with_device(settings: Settings) -> Settings:
    """The settings with the device of their target where they name none. Raises UsageError for an unknown
    target, and for a device that the target does not have."""
    settings = evolve(settings, chip=settings.chip or default_device(settings.target))
    target_for(settings.chip, settings.target)
    return settings


def author_for(device: str, target: str = AUTO, *, half: bool = False) -> KernelAuthor:
    """The author of kernels for a device, by its name, in the target that settings ask for, who proposes
    arithmetic in ``half`` or does not. Raises UsageError for an unknown device or target."""
    from evokernel_core.compiler.author import KernelAuthor

    written = load_target(target_for(device, target))
    return KernelAuthor(written, written.device(device), half)
