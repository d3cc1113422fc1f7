"""The files of which the kernels of a target consist."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from evokernel_core.domain.language import Language


@frozen
class KernelFiles:
    """``target``: as settings and packages say it, and ``title`` as people write it. ``names``: in the order
    in which they are read. ``main``: the one with the device code, which people read first. ``devices`` gives
    the names of the target's devices, and ``language`` how its texts are read."""

    target: str
    names: tuple[str, ...]
    main: str
    devices: Callable[[], tuple[str, ...]]
    title: str
    language: Callable[[], Language]
