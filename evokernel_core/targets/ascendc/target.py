"""AscendC as a target: its rewrites and families, and what becomes of a planned task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.family import Family, Move
from evokernel_core.compiler.fusion.cuts import recuts, with_moments_apart
from evokernel_core.compiler.fusion.program import joined, whole_batch
from evokernel_core.compiler.fusion.records import PROGRAM, Program
from evokernel_core.compiler.planned import of_legalised
from evokernel_core.compiler.planned_task import PlannedTask
from evokernel_core.compiler.rewrites.recurrent import rewrites_with
from evokernel_core.compiler.target import Passes, Target
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Baseline, GateResult
from evokernel_core.hardware.ascend import eager
from evokernel_core.hardware.ascend.baseline import eager_baseline
from evokernel_core.hardware.ascend.chip import Chip, chip_of, load_chip
from evokernel_core.hardware.device import Device
from evokernel_core.targets.ascendc import programs
from evokernel_core.targets.ascendc.fusion import micro_batch_choice as chunking
from evokernel_core.targets.ascendc.fusion.later_epilogues import with_later_epilogues
from evokernel_core.targets.ascendc.fusion.micro_batch_choice import Cut
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_schedule import layers_together
from evokernel_core.targets.ascendc.kernels.registry import FAMILIES
from evokernel_core.targets.ascendc.programs import cut_of, facts, facts_of_kernels, facts_reader
from evokernel_core.targets.ascendc.rewrites import gather, matmul
from evokernel_core.targets.ascendc.rewrites.half_operands import half_operands
from evokernel_core.targets.ascendc.rewrites.integer_reductions import integer_reductions
from evokernel_core.targets.ascendc.rewrites.integers import integers_in_float32

_MOVES_PER_KIND = 24
"""Refinement steps offered for one kernel of a program."""


def program_moves(planned: PlannedTask, target: Target) -> Iterator[tuple[Program, Move]]:
    """``Target.program_moves``: those of the most expensive kernels come first."""
    program = planned.program
    yield from ((program, move) for move in _other_chunks(planned))
    yield from ((program, move) for move in _kernel_moves(planned))
    yield from _other_cuts(planned, target)
    if cut_of(planned).chunks:
        return
    one_launch = planned.one_launch
    name = Sentence("a launch for each kernel") if one_launch else Sentence("kernels in one launch")
    other = joined(planned.task, program, planned.schedules, name, one_launch=not one_launch)
    yield program, Move(name, other, PROGRAM)


def _kernel_moves(planned: PlannedTask) -> Iterator[Move]:
    """The steps of each kernel, those of the kernel that takes longest first."""
    task, program, parts, cut = planned.task, planned.program, planned.schedules, cut_of(planned)
    tasks = chunking.tasks_of(task, program, cut)

    def cost(kind: int) -> float:
        us = program.kinds[kind][1].estimate_us(tasks[kind], parts[kind], chip_of(planned.device))
        return program.launches(kind) * us

    for kind in sorted(range(len(parts)), key=cost, reverse=True):
        family = program.kinds[kind][1]
        for move in family.moves(tasks[kind], parts[kind], chip_of(planned.device))[:_MOVES_PER_KIND]:
            changed = (*parts[:kind], move.strategy, *parts[kind + 1 :])
            if cut.chunks:
                declared = facts_of_kernels(program, changed, planned.name, chip_of(planned.device))
                if not chunking.is_legal(task, program, declared, cut):
                    continue
            whole = joined(
                task,
                program,
                changed,
                move.name,
                one_launch=planned.one_launch,
                chunks=cut.chunks,
                cut=cut.stages,
            )
            yield Move(move.name, whole, move.family, kind)


def _other_cuts(planned: PlannedTask, target: Target) -> Iterator[tuple[Program, Move]]:
    """The task cut into kernels otherwise, each cut in its fastest draft."""
    task, chip = planned.task, chip_of(planned.device)
    for recut in recuts(task, planned.program, chip, target):
        chunked = chunking.alike(task, recut.program, facts_reader(planned.name, chip), chip, cut_of(planned))
        drafts = (whole_batch(task, recut.program, chip), *chunked)
        best = min(
            drafts,
            key=lambda draft: of_legalised(planned.name, task, draft, chip, target).estimate_us(),
        )
        yield recut.program, Move(recut.name, evolve(best, move=recut.name), PROGRAM)


def _other_chunks(planned: PlannedTask) -> Iterator[Move]:
    """The program with its images in other chunks, or all at once."""
    task, program, cut, chip = planned.task, planned.program, cut_of(planned), chip_of(planned.device)
    if cut.chunks:
        batch = chunking.chunked(task, program, facts(planned), cut).batch
        for name, other in chunking.steps(cut, batch):
            if other.chunks > 1 and other != cut:
                again = joined(task, program, planned.schedules, name, chunks=other.chunks, cut=other.stages)
                yield Move(name, again, PROGRAM)
        name = Sentence("all images at once")
        yield Move(name, whole_batch(task, program, chip, name), PROGRAM)
    for chunked in chunking.in_chunks(task, program, facts_reader(planned.name, chip), chip):
        other = Cut.of(chunked)
        if other.stages != cut.stages:
            name = Sentence(
                "images of {kernels} kernels in chunks, about {chunks}",
                kernels=other.stages,
                chunks=other.chunks,
            )
            yield Move(name, evolve(chunked, move=name), PROGRAM)


_PASSES = Passes(
    (integers_in_float32, integer_reductions),
    (half_operands,),
    {**matmul.REWRITES, **gather.REWRITES, **rewrites_with(layers_together)},
)


@frozen(eq=False)
class AscendC:
    """Kernels for Ascend NPUs, in C++ with CANN's AscendC API. Its devices are ``Chip``s."""

    name: str = "ascendc"
    require_legal = staticmethod(programs.require_legal)
    estimate_us = staticmethod(programs.estimate_us)
    write = staticmethod(programs.write)
    lines_of_kernels = staticmethod(programs.lines_of_kernels)

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

    def program_moves(self, planned: PlannedTask) -> Iterator[tuple[Program, Move]]:
        return program_moves(planned, self)

    def audit(self, task: KernelTask, source: KernelSource) -> GateResult:
        from evokernel_core.targets.ascendc.audit import audit  # the twin's headers and libclang with it

        return audit(task, source)

    def baseline(self, task: KernelTask, device: Device) -> Baseline:
        return eager_baseline(task, chip_of(device))

    def reachable_us(self, task: KernelTask, device: Device) -> float:
        return eager.reachable_us(task, chip_of(device))


ASCENDC = AscendC()


def ascendc(chip: Chip) -> KernelAuthor:
    """The author of AscendC for a chip, which may be of none of our files."""
    return KernelAuthor(ASCENDC, chip)
