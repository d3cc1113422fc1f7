"""What a target is to the compiler: a language in which kernels of a planned task are written.

A target is one folder below ``targets``. It takes the ``Plan`` of element-wise and row-wise work and
the records of ``compiler.problems`` for all other, and gives families of schedules, texts, estimates
and moves. What it tells in words, to a model or a coding agent, is its ``compiler.knowledge.Knowledge``.
What it need not say stands in ``compiler``: which operations there are, how a graph is rewritten
and cut, how a strategy is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen

from evokernel_core.compiler.rewrites.writer import Rewrite
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateResult
from evokernel_core.hardware.device import Device

if TYPE_CHECKING:
    from evokernel_core.compiler.author import KernelAuthor
    from evokernel_core.compiler.fusion.program import Program
    from evokernel_core.compiler.planned import Planned

Pass = Callable[[KernelTask, Any], KernelTask]
"""A rewrite of a whole graph for a device."""


@frozen
class Passes:
    """What a target rewrites beside the common rules: ``dtypes`` behind what parts complex numbers and before
    patterns are looked for; ``rewrites`` of single nodes, over the common ones."""

    dtypes: tuple[Pass, ...] = ()
    rewrites: Mapping[str, Rewrite] = field(factory=dict)


@frozen
class Move:
    """One named refinement step. ``family`` is that of the kernel which the step changes, ``kernel`` its
    place among those of the strategy, None where the step changes how the task is cut or launched."""

    name: str
    strategy: Strategy
    family: str
    kernel: int | None = None


class Family(Protocol):
    """A way to compute some tasks with one kernel. Every method raises PlanError, with the reason in
    one sentence, for a task that the family does not cover. The device is one of its target's."""

    @property
    def name(self) -> str:
        """The word for the family in notes."""

    @property
    def strategies(self) -> frozenset[str]:
        """The ``family`` of the strategies that are this family's."""

    @property
    def ops(self) -> Mapping[str, str]:
        """ATen names that this family's kernels may hold: ``pointwise``, ``reduction``, ``kernel`` for
        any other work, or ``view`` for what only renames elements."""

    def __hash__(self) -> int: ...

    def check(self, task: KernelTask, device: Any, /) -> None:
        """Returns where the task is covered."""

    def initial(self, task: KernelTask, device: Any, /) -> Strategy:
        """The legal schedule of the lowest estimate."""

    def moves(self, task: KernelTask, strategy: Strategy, device: Any, /) -> tuple[Move, ...]:
        """Every legal schedule that is one named step away and gives another text."""

    def why_illegal(self, task: KernelTask, strategy: Strategy, device: Any, /) -> str | None:
        """Why a strategy of this family makes no kernel for the task; None where it makes one. Raises
        StrategyError where it cannot be read."""

    def adapt(self, task: KernelTask, strategy: Strategy, device: Any, /) -> Strategy | None:
        """Another task's schedule, cut to fit this one; None where a rule refuses it."""

    def descriptor(self, task: KernelTask, strategy: Strategy, device: Any, /) -> Descriptor:
        """The archive cell of a legal strategy, from its settings alone."""

    def estimate_us(self, task: KernelTask, strategy: Strategy, device: Any, /) -> float:
        """Modelled microseconds of the schedule, its launch included."""

    def text(self, task: KernelTask, strategy: Strategy, device: Any, name: str, /) -> Any:
        """The kernel in the target's own form; ``name`` is an identifier in snake case."""


class Target(Protocol):
    """A language that kernels are written in, and how fast they are on its devices. Methods raise PlanError
    where a task cannot be planned, StrategyError where a strategy is not the task's."""

    @property
    def name(self) -> str:
        """As settings and packages say it: ``ascendc``."""

    def __hash__(self) -> int: ...

    def device(self, name: str) -> Device:
        """One of its devices. Raises UsageError for a name that none has."""

    def passes(self) -> Passes:
        """Its own rewrites."""

    def families(self) -> Sequence[Family]:
        """In the order in which they are asked."""

    def drafts(self, name: str, task: KernelTask, program: Program, device: Device) -> Iterator[Strategy]:
        """Strategies for a program of several kernels, each with its kernels' first schedules. ``name`` is an
        identifier in snake case."""

    def other_programs(self, task: KernelTask, program: Program, device: Device) -> Iterator[Program]:
        """Other cuts of a task that are often faster than those that fuse the most."""

    def described(self, program: Program, strategy: Strategy, device: Device) -> Strategy:
        """The strategy of a program with its archive cell."""

    def require_legal(self, planned: Planned) -> None:
        """Raises StrategyError where a schedule makes no kernel for its part of the task."""

    def estimate_us(self, planned: Planned) -> float:
        """Modelled microseconds, all launches included."""

    def moves(self, planned: Planned) -> tuple[Move, ...]:
        """The named steps from a planned task; those of a program's most expensive kernels come first."""

    def write(self, planned: Planned) -> KernelSource:
        """The files that the target asks for."""

    def lines_of_kernels(self, planned: Planned, source: KernelSource) -> tuple[range, ...]:
        """The lines, from 1, of the file that holds the kernels in which each kernel of a program stands, in
        their order; kernels that share a text have the same. Empty for a lone kernel, and for a text that is
        not what is written here."""

    def audit(self, task: KernelTask, source: KernelSource) -> GateResult:
        """Rules that a candidate must keep before anything of it is compiled or run. Raises BuildError where
        tools that read it fail."""

    def backends(self) -> Mapping[str, Callable[[KernelAuthor, str], Any]]:
        """What judges its kernels, by name: opens a ``verifier.base.Backend`` for an author's device, given
        the Python that runs on it ("" where none is known). Raises VerifierUnavailable where the machine
        lacks tools."""

    def signature(self, backend: str) -> str:
        """What verdicts of a backend on this machine are signed with beside its name and version."""

    def eager_us(self, task: KernelTask, device: Device) -> float:
        """Modelled microseconds of the same graph op by op, as PyTorch runs it on the device."""

    def reachable_us(self, task: KernelTask, device: Device) -> float:
        """Modelled microseconds of a kernel without any waste: what refining can reach."""
