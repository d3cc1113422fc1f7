"""The families of Triton: what writes a schedule, and what a task's kernel is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from evokernel_core.compiler.scheduled_family import P, S, ScheduledFamily, Sizes
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.text import TritonKernel


def _legal(problem: object, schedule: object, sizes: Sizes, gpu: Gpu) -> str | None:
    return None


def _no_tiles(problem: object, schedule: object, sizes: Sizes) -> int:
    return 0


def _any_cost(task: KernelTask, problem: object, us: float, gpu: Gpu) -> None:
    """Nothing else computes the task."""


_TOO_LARGE = Sentence("No tile of the kernel fits a multiprocessor.")


@frozen(kw_only=True)
class GpuFamily(ScheduledFamily[P, S]):
    """A family whose kernels are text.

    ``live_bytes``: of all tiles of a program at once, where one buffer holds them.
    ``text_of``: the kernel of a schedule, under a name in snake case.
    ``compare``: raises PlanError where so many microseconds are too many for a task.
    """

    refusal: Callable[[P, S, Sizes, Gpu], str | None] = _legal
    live_bytes: Callable[[P, S, Sizes], int] = _no_tiles
    text_of: Callable[[P, S, KernelTask, str], TritonKernel]
    compare: Callable[[KernelTask, P, float, Gpu], None] = _any_cost
    too_large: Sentence = _TOO_LARGE
    ranks: bool = True

    def check(self, task: KernelTask, device: Gpu) -> None:
        problem = self.read(task, device)
        if self.compare is not _any_cost:
            best = self.best_start(problem, task.sizes, device)
            self.compare(task, problem, self.cost_us(problem, best, task.sizes, device), device)

    def text(self, task: KernelTask, strategy: Strategy, device: Gpu, name: str) -> TritonKernel:
        return self.text_of(self.read(task, device), self.schedule_of(strategy), task, name)

    def broken_rule(self, problem: P, schedule: S, sizes: Sizes, device: Gpu) -> str | None:
        """What its ranges refuse, or else what the family does, or else too many tiles for the
        device."""
        refused = super().broken_rule(problem, schedule, sizes, device)
        if refused is None and 0 < device.live_bytes < self.live_bytes(problem, schedule, sizes):
            return Sentence(
                "The tiles of a program take more than the {bytes} bytes that there are.",
                bytes=device.live_bytes,
            )
        return refused


def on_any_gpu(read: Callable[[KernelTask], P]) -> Callable[[KernelTask, Gpu], P]:
    """A ``read`` for which the GPU makes no difference."""
    return lambda task, gpu: read(task)


def always(value: Any) -> Callable[[object, object], Any]:
    """``notes``, or a ``cell``, that are the same for every schedule."""
    return lambda problem, schedule: value
