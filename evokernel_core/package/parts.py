"""The kernels of a package, one for each target, and how the files that they share speak of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from evokernel_core.domain.task import KernelTask
from evokernel_core.package.packaging import DeviceWords, PackagedKernel, Packaging
from evokernel_core.package.verified import VerifiedKernel

_WIDTH = 110


@frozen
class KernelPart:
    """A kernel as its target packages it."""

    words: DeviceWords
    packaged: PackagedKernel


def parts_of(
    name: str, task: KernelTask, kernels: Sequence[VerifiedKernel], packaging: Callable[[str], Packaging]
) -> tuple[KernelPart, ...]:
    """Those of kernels, in their order. Raises UsageError for a source that is none of its target's."""
    sources = [kernel.source for kernel in kernels]
    targets = [packaging(source.target) for source in sources]
    alone = [target.packaged(name, task, source, ()) for target, source in zip(targets, sources, strict=True)]
    own = [{*source.files, *part.files} for source, part in zip(sources, alone, strict=True)]
    every = frozenset().union(*own)
    return tuple(
        KernelPart(target.words, target.packaged(name, task, source, every - names))
        for target, source, names in zip(targets, sources, own, strict=True)
    )


def asks_device(parts: Sequence[KernelPart]) -> bool:
    """Whether a call asks which device its kernel is for. In packages of a library alone, which once were the
    only ones, it is an NPU."""
    return any(part.packaged.host for part in parts)


def conditions(parts: Sequence[KernelPart]) -> list[str]:
    """What kernels ask of a call, as ``call.py`` says it: of several kernels each where its device is."""
    several = len(parts) > 1
    return [
        f'(DEVICE != "{part.words.type}" or {guard.text})' if several else guard.text
        for part in parts
        for guard in part.packaged.guards
    ]


def registration(parts: Sequence[KernelPart]) -> Mapping[str, Any]:
    """The variables of init.py.jinja that are of the kernels."""
    absent = (
        parts[0].words.absent if len(parts) == 1 else "neither device is present with what its kernel needs"
    )
    text = (
        "``holds`` says whether the kernel may stand for the original code in a call, and ``run`` calls it. "
        f"Where {absent} ``holds`` is False, and the original code runs."
    )
    return {
        "kernel": " and ".join(part.words.kernel for part in parts),
        "paragraph": textwrap.fill(text, _WIDTH),
        "host": any(part.packaged.host for part in parts),
    }


def trial_device(name: str, parts: Sequence[KernelPart]) -> Mapping[str, str]:
    """The variables of test_op.py.jinja that are of the device."""
    if len(parts) == 1:
        words = parts[0].words
        return {"is_there": words.is_there, "only": words.only, "device": f'"{words.type}"'}
    return {
        "is_there": f"({' or '.join(part.words.is_there for part in parts)})",
        "only": " or ".join(part.words.only for part in parts),
        "device": f'guards.device("{name}")',
    }
