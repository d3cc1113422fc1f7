"""What a target is to the compiler: a language in which kernels of a planned task are written.

A target is one folder below ``targets``. It takes the ``Plan`` of element-wise and row-wise work and
the records of ``compiler.problems`` for all other, and gives families of schedules, texts, estimates
and moves (``compiler.family``). What it tells in words, to a model or a coding agent, is its
``compiler.knowledge.Knowledge``; what judges its kernels on a machine its ``compiler.toolchain.Toolchain``.
What it need not say stands in ``compiler``: which operations there are, how a graph is rewritten
and cut, how a strategy is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from evokernel_core.compiler.family import Family, Move
from evokernel_core.compiler.fusion.records import Program
from evokernel_core.compiler.planned_task import PlannedTask
from evokernel_core.compiler.rewrites.writer import Rewrite
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Baseline, GateResult
from evokernel_core.hardware.device import Device

Pass = Callable[[KernelTask, Any], KernelTask]
"""A rewrite of a whole graph for a device."""


@frozen
class Passes:
    """What a target rewrites beside the common rules: ``dtypes`` behind what parts complex numbers and before
    patterns are looked for, ``operands`` behind those; ``rewrites`` of single nodes, over the common ones."""

    dtypes: tuple[Pass, ...] = ()
    operands: tuple[Pass, ...] = ()
    rewrites: Mapping[str, Rewrite] = field(factory=dict)


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

    def require_legal(self, planned: PlannedTask) -> None:
        """Raises StrategyError where a schedule makes no kernel for its part of the task."""

    def estimate_us(self, planned: PlannedTask) -> float:
        """Modelled microseconds, all launches included."""

    def program_moves(self, planned: PlannedTask) -> Iterator[tuple[Program, Move]]:
        """The named steps from a planned program, each with the program that it leads to."""

    def write(self, planned: PlannedTask) -> KernelSource:
        """The files that the target asks for."""

    def lines_of_kernels(self, planned: PlannedTask, source: KernelSource) -> tuple[range, ...]:
        """The lines, from 1, of the file that holds the kernels in which each kernel of a program stands, in
        their order; kernels that share a text have the same. Empty for a lone kernel, and for a text that is
        not what is written here."""

    def audit(self, task: KernelTask, source: KernelSource) -> GateResult:
        """Rules that a candidate must keep before anything of it is compiled or run. Raises BuildError where
        tools that read it fail."""

    def baseline(self, task: KernelTask, device: Device) -> Baseline:
        """The same graph op by op, as PyTorch runs it on the device, measured where that is known."""

    def reachable_us(self, task: KernelTask, device: Device) -> float:
        """Modelled microseconds of a kernel without any waste: what refining can reach."""
