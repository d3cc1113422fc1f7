"""What a program is: its launches, the tensors they take, and the kernels with their families."""

from __future__ import annotations

from functools import lru_cache

from attrs import frozen

from evokernel_core.compiler.family import Family
from evokernel_core.compiler.fusion.partition import Group, Piece
from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.domain.kernel import Setting, Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.device import Device

PROGRAM = "program"
"""The family of a strategy with several kernels."""
ONE_LAUNCH = "one_launch"
"""The setting of a program whose kernels are parts of one launch."""


@frozen
class Place:
    """Where a tensor is: the task's tensor ``index``, or the slot ``index`` of the workspace."""

    in_workspace: bool
    index: int


@frozen
class Stage:
    """One launch. Stages of one ``kind`` are the same kernel on other tensors."""

    piece: Piece
    kind: int
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


@frozen
class Slot:
    """A part of the workspace: large enough for each of ``values`` (name, bytes an element, elements)."""

    values: tuple[tuple[str, int, Extent], ...]

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that its size depends on."""
        return frozenset().union(*(size.symbols for _, _, size in self.values))


@frozen
class Program:
    """``kinds`` are the different kernels, each by the task of its first stage, with its family."""

    groups: tuple[Group, ...]
    stages: tuple[Stage, ...]
    kinds: tuple[tuple[KernelTask, Family], ...]
    slots: tuple[Slot, ...]

    def launches(self, kind: int) -> int:
        return sum(stage.kind == kind for stage in self.stages)


def kind_us(program: Program, kind: int, strategy: Strategy, device: Device) -> float:
    """Modelled microseconds of one launch of a kind of kernel, all images at once."""
    task, family = program.kinds[kind]
    return _kernel_us(ById(task), family, strategy.family, strategy.settings, device)


@lru_cache(maxsize=4096)
def _kernel_us(
    key: ById, family: Family, name: str, settings: tuple[tuple[str, Setting], ...], device: Device
) -> float:
    return family.estimate_us(key.task, Strategy(name, settings), device)
