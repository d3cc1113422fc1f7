"""Which kernels of a program share a launch, and which of them wait for which.

A launch costs a few microseconds that a barrier between cores does not. Kernels that do not touch each
other's values run at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum

from attrs import define, field, frozen

from evokernel_core.compiler.fusion.records import Place, Program, Stage
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.family import KernelFacts

MOST_TOGETHER = 12
"""Kernels of one launch: their code is part of it each time that they run."""


def runs(planned: Program, facts: Sequence[KernelFacts]) -> Iterator[tuple[Stage, ...]]:
    """The stages of each launch, in order; ``facts`` has one entry a kind."""
    waiting: list[Stage] = []
    for stage in planned.stages:
        alone = facts[stage.kind].waits_for_all
        if waiting and (alone or len(waiting) == MOST_TOGETHER):
            yield tuple(waiting)
            waiting = []
        if alone:
            yield (stage,)
        else:
            waiting.append(stage)
    if waiting:
        yield tuple(waiting)


def is_mixed(facts: Sequence[KernelFacts]) -> bool:
    """Whether launches that kernels share have cube cores beside vector cores."""
    return any(fact.on_cube and not fact.waits_for_all for fact in facts)


def together_us(estimates: Sequence[float], chip: Chip) -> float:
    """Modelled microseconds of kernels that share launches, from those of each in a launch of its own: a
    barrier takes the place of each launch but the first of ``MOST_TOGETHER``."""
    barrier = 2 * chip.sync.sync_all_cycles / chip.mhz
    launch = max(chip.launch_us, barrier)
    return math.fsum(
        # One of few cores was charged less for its launch, and is left with nothing then.
        us if index % MOST_TOGETHER == 0 else max(0.0, us - launch) + barrier
        for index, us in enumerate(estimates)
    )


class Barrier(Enum):
    """The cores that wait for each other between two kernels of a launch."""

    VECTORS = "vector cores"
    ALL = "all cores"


_SCRATCH = Place(True, -1)


@frozen
class _Run:
    """A kernel that has run since the last barrier of all cores: what it touched."""

    on_cube: bool
    read: frozenset[Place]
    written: frozenset[Place]

    def meets(self, other: _Run) -> bool:
        """Whether one writes what the other touches."""
        return bool(self.written & (other.read | other.written) or other.written & self.read)


@define
class Order:
    """Which barriers a sequence of kernels takes."""

    unordered: list[_Run] = field(factory=list)
    behind_vectors: list[_Run] = field(factory=list)

    def barrier_before(self, stage: Stage, facts: KernelFacts) -> Barrier | None:
        """What makes the kernels so far come before the next one, where it must wait for one."""
        scratch = frozenset({_SCRATCH} if facts.uses_workspace else ())
        run = _Run(facts.on_cube, frozenset(stage.inputs), frozenset(stage.outputs) | scratch)
        waits = [other for other in self.unordered if other.meets(run)]
        # A barrier of the vector cores says nothing to cube cores.
        waits += [other for other in self.behind_vectors if run.on_cube and other.meets(run)]
        barrier: Barrier | None = None
        if any(other.on_cube or run.on_cube for other in waits):
            self.unordered.clear()
            self.behind_vectors.clear()
            barrier = Barrier.ALL
        elif waits:
            self.behind_vectors += [other for other in self.unordered if not other.on_cube]
            self.unordered = [other for other in self.unordered if other.on_cube]
            barrier = Barrier.VECTORS
        self.unordered.append(run)
        return barrier
