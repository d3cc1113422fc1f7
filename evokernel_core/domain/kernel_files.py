"""The files of which the kernels of a target consist."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen


@frozen
class KernelFiles:
    """``target``: as settings and packages say it. ``names``: in the order in which they are read. ``main``:
    the one with the device code, which people read first. ``devices`` gives the names of the target's
    devices."""

    target: str
    names: tuple[str, ...]
    main: str
    devices: Callable[[], tuple[str, ...]]
