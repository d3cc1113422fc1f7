"""AscendC as a target: its rewrites and families, and what becomes of a planned task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.family import Family, Move
from evokernel_core.compiler.fusion import program as programs_of
from evokernel_core.compiler.fusion.cuts import with_moments_apart
from evokernel_core.compiler.fusion.program import whole_batch
from evokernel_core.compiler.fusion.records import Program
from evokernel_core.compiler.planned_task import PlannedTask
from evokernel_core.compiler.rewrites.recurrent import rewrites_with
from evokernel_core.compiler.target import Passes
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Baseline, GateResult
from evokernel_core.hardware.accuracy import eager_spread
from evokernel_core.hardware.ascend import eager
from evokernel_core.hardware.ascend.chip import Chip, chip_of, load_chip
from evokernel_core.hardware.ascend.measured import measured_eager
from evokernel_core.hardware.device import Device
from evokernel_core.targets.ascendc import neighbours, programs
from evokernel_core.targets.ascendc.fusion import micro_batch_choice as chunking
from evokernel_core.targets.ascendc.fusion.later_epilogues import with_later_epilogues
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_schedule import layers_together
from evokernel_core.targets.ascendc.kernels.registry import FAMILIES
from evokernel_core.targets.ascendc.rewrites import gather, matmul
from evokernel_core.targets.ascendc.rewrites.half_operands import half_operands
from evokernel_core.targets.ascendc.rewrites.integer_reductions import integer_reductions
from evokernel_core.targets.ascendc.rewrites.integers import integers_in_float32

_PASSES = Passes(
    (integers_in_float32, integer_reductions),
    (half_operands,),
    {**matmul.REWRITES, **gather.REWRITES, **rewrites_with(layers_together)},
)


@frozen
class AscendC:
    """Kernels for Ascend NPUs, in C++ with CANN's AscendC API. Its devices are ``Chip``s."""

    name: str = "ascendc"

    def device(self, name: str) -> Chip:
        return load_chip(name)

    def passes(self) -> Passes:
        return _PASSES

    def families(self) -> Sequence[Family]:
        return FAMILIES

    def drafts(self, name: str, task: KernelTask, program: Program, device: Device) -> Iterator[Strategy]:
        """A program with all images at once, and with its images in chunks."""
        chip = chip_of(device)
        yield whole_batch(task, program, chip)
        yield from chunking.in_chunks(task, program, programs.facts_reader(name, chip), chip)

    def other_programs(self, task: KernelTask, program: Program, device: Device) -> Iterator[Program]:
        later = with_later_epilogues(task, program, device, self)
        for other in (program, later):
            apart = None if other is None else with_moments_apart(task, other, device, self)
            yield from (choice for choice in (other, apart) if choice is not None and choice != program)

    def described(self, program: Program, strategy: Strategy, device: Device) -> Strategy:
        return programs_of.described(program, strategy, device)

    def require_legal(self, planned: PlannedTask) -> None:
        programs.require_legal(planned)

    def estimate_us(self, planned: PlannedTask) -> float:
        return programs.estimate_us(planned)

    def moves(self, planned: PlannedTask) -> tuple[Move, ...]:
        return neighbours.moves(planned, self)

    def write(self, planned: PlannedTask) -> KernelSource:
        return programs.write(planned)

    def lines_of_kernels(self, planned: PlannedTask, source: KernelSource) -> tuple[range, ...]:
        return programs.lines_of_kernels(planned, source)

    def audit(self, task: KernelTask, source: KernelSource) -> GateResult:
        from evokernel_core.targets.ascendc.audit import audit  # the twin's headers and libclang with it

        return audit(task, source)

    def baseline(self, task: KernelTask, device: Device) -> Baseline:
        row = measured_eager(task, chip_of(device))
        if row is not None:
            return Baseline(row.us, row.us, row.us, row.source)
        us = eager.eager_us(task, chip_of(device))
        low, high = eager_spread(task.op_category)
        return Baseline(us, low * us, high * us)

    def reachable_us(self, task: KernelTask, device: Device) -> float:
        return eager.reachable_us(task, chip_of(device))


ASCENDC = AscendC()


def ascendc(chip: Chip) -> KernelAuthor:
    """The author of AscendC for a chip, which may be of none of our files."""
    return KernelAuthor(ASCENDC, chip)
