"""What families of Triton share: strategies of schedules that describe themselves, and their named moves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from attrs import Factory, evolve, field, frozen

from evokernel_core.compiler.family import Move
from evokernel_core.compiler.schedule import Schedule
from evokernel_core.domain.descriptor import Descriptor, Overlap
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.text import TritonKernel

P = TypeVar("P", bound=Hashable)
"""What a task asks for, in the family's own words."""
S = TypeVar("S", bound=Schedule)
Sizes = Mapping[str, int]
"""Of the symbols, in the user's file."""


def _neighbours(problem: object, schedule: S, sizes: Sizes, gpu: Gpu) -> Iterable[tuple[str, S]]:
    return schedule.neighbours()


def _legal(problem: object, schedule: Schedule, sizes: Sizes, gpu: Gpu) -> str | None:
    return None


def _no_tiles(problem: object, schedule: Schedule, sizes: Sizes) -> int:
    return 0


def _any_cost(task: KernelTask, problem: object, us: float, gpu: Gpu) -> None:
    """Nothing else computes the task."""


@frozen(kw_only=True)
class GpuFamily(Generic[P, S]):
    """A Family (see there) made of what is its own. Schedules are hashable and equal where texts are.

    ``read``: what a task asks for, on a GPU; raises PlanError where the family does not cover it.
    ``starts``: the schedules to choose the first one from, by their estimates, legal or not.
    ``steps``: the named changes of a schedule, legal or not; of two names for one change the first counts.
    ``refusal``: why a schedule whose fields are in their ranges makes no kernel; None where it does.
    ``cost_us``: estimated microseconds of a legal schedule, its launches included.
    ``live_bytes``: of all tiles of a program at once, where one buffer holds them.
    ``notes``: a schedule in words; fields stand in them by their words.
    ``cell``: its archive cell; where that leaves the overlap open, the schedule's stages say it.
    ``text_of``: the kernel of a schedule, under a name in snake case.
    ``compare``: raises PlanError where so many microseconds are too many for a task.
    """

    name: str
    ops: Mapping[str, str] = field(eq=False)
    read: Callable[[KernelTask, Gpu], P]
    schedule_of: Callable[[Strategy], S]
    starts: Callable[[P, Sizes, Gpu], Iterable[S]]
    steps: Callable[[P, S, Sizes, Gpu], Iterable[tuple[str, S]]] = _neighbours
    refusal: Callable[[P, S, Sizes, Gpu], str | None] = _legal
    cost_us: Callable[[P, S, Sizes, Gpu], float]
    live_bytes: Callable[[P, S, Sizes], int] = _no_tiles
    notes: Callable[[P, S], Iterable[str]]
    cell: Callable[[P, S], Descriptor]
    text_of: Callable[[P, S, KernelTask, str], TritonKernel]
    compare: Callable[[KernelTask, P, float, Gpu], None] = _any_cost
    strategies: frozenset[str] = Factory(lambda self: frozenset({self.name}), takes_self=True)

    def check(self, task: KernelTask, device: Gpu) -> None:
        problem = self.read(task, device)
        if self.compare is not _any_cost:
            best = self._first(problem, task.sizes, device)
            self.compare(task, problem, self.cost_us(problem, best, task.sizes, device), device)

    def strategy_of(self, problem: P, schedule: S, move: str = "") -> Strategy:
        """A schedule in settings and words; ``move`` led to it."""
        cell = self.cell(problem, schedule)
        if cell.overlap is Overlap.UNKNOWN:
            cell = evolve(cell, overlap=schedule.overlap)
        notes = tuple(map(schedule.told, self.notes(problem, schedule)))
        return Strategy(schedule.family or self.name, schedule.settings(), notes, cell, move)

    def initial(self, task: KernelTask, device: Gpu) -> Strategy:
        problem = self.read(task, device)
        return self.strategy_of(problem, self._first(problem, task.sizes, device))

    def _first(self, problem: P, sizes: Sizes, gpu: Gpu) -> S:
        """The legal start of the lowest estimate."""
        legal = (
            start
            for start in self.starts(problem, sizes, gpu)
            if self._why_illegal(problem, start, sizes, gpu) is None
        )
        best = min(legal, key=lambda start: self.cost_us(problem, start, sizes, gpu), default=None)
        if best is None:
            raise PlanError(Sentence("No tile of the kernel fits a multiprocessor."))
        return best

    def moves(self, task: KernelTask, strategy: Strategy, device: Gpu) -> tuple[Move, ...]:
        problem, here, sizes = self.read(task, device), self.schedule_of(strategy), task.sizes
        names: dict[S, str] = {}
        for name, schedule in self.steps(problem, here, sizes, device):
            known = schedule == here or schedule in names
            if not known and self._why_illegal(problem, schedule, sizes, device) is None:
                names[schedule] = name
        ranked = sorted(names, key=lambda schedule: self.cost_us(problem, schedule, sizes, device))
        return tuple(
            Move(names[schedule], self.strategy_of(problem, schedule, names[schedule]), self.name)
            for schedule in ranked
        )

    def why_illegal(self, task: KernelTask, strategy: Strategy, device: Gpu) -> str | None:
        return self._why_illegal(self.read(task, device), self.schedule_of(strategy), task.sizes, device)

    def adapt(self, task: KernelTask, strategy: Strategy, device: Gpu) -> Strategy | None:
        if self.why_illegal(task, strategy, device) is not None:
            return None
        return self.strategy_of(self.read(task, device), self.schedule_of(strategy))

    def descriptor(self, task: KernelTask, strategy: Strategy, device: Gpu) -> Descriptor:
        return self.strategy_of(self.read(task, device), self.schedule_of(strategy)).descriptor

    def estimate_us(self, task: KernelTask, strategy: Strategy, device: Gpu) -> float:
        return self.cost_us(self.read(task, device), self.schedule_of(strategy), task.sizes, device)

    def text(self, task: KernelTask, strategy: Strategy, device: Gpu, name: str) -> TritonKernel:
        return self.text_of(self.read(task, device), self.schedule_of(strategy), task, name)

    def _why_illegal(self, problem: P, schedule: S, sizes: Sizes, gpu: Gpu) -> str | None:
        """What its ranges refuse, or else what the family does."""
        refused = schedule.why_out_of_range() or self.refusal(problem, schedule, sizes, gpu)
        if refused is None and gpu.live_bytes < self.live_bytes(problem, schedule, sizes) and gpu.live_bytes:
            return f"The tiles of a program take more than the {gpu.live_bytes} bytes that there are."
        return refused


def on_any_gpu(read: Callable[[KernelTask], P]) -> Callable[[KernelTask, Gpu], P]:
    """A ``read`` for which the GPU makes no difference."""
    return lambda task, gpu: read(task)


def always(value: Any) -> Callable[[object, object], Any]:
    """``notes``, or a ``cell``, that are the same for every schedule."""
    return lambda problem, schedule: value
