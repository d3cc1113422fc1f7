"""The files of which the kernels of a target consist."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from evokernel_core.domain.language import Language
from evokernel_core.domain.sentence import Sentence


@frozen
class KernelFiles:
    """``target``: as settings and packages say it, and ``title`` as people write it. ``names``: in the order
    in which they are read. ``main``: the one with the device code, which people read first. ``devices`` gives
    the names of the target's devices, and ``language`` how its texts are read. ``kind``: what its kernels are
    called beside those of others, as in "Generate NPU kernel"; ``workers``: what runs side by side in a
    launch; ``judge``: the backend that judges on any machine. ``is_present`` says
    whether a driver of the target's devices is installed, without asking it; ``has_timelines`` whether a
    launch can be shown as one; ``has_time_model`` whether a model runs whole kernels where no device is."""

    target: str
    names: tuple[str, ...]
    main: str
    devices: Callable[[], tuple[str, ...]]
    title: str
    language: Callable[[], Language]
    kind: str
    workers: Sentence
    judge: str
    is_present: Callable[[], bool]
    has_timelines: bool = False
    has_time_model: bool = False
