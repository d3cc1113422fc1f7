"""Schedules one named step away from a planned task."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from evokernel_core.compiler.family import Move
from evokernel_core.compiler.fusion.cuts import recuts
from evokernel_core.compiler.fusion.program import described, joined, whole_batch
from evokernel_core.compiler.fusion.records import PROGRAM, Program
from evokernel_core.compiler.planned import of_legalised
from evokernel_core.compiler.planned_task import PlannedTask
from evokernel_core.compiler.target import Target
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.chip import chip_of
from evokernel_core.targets.ascendc.fusion import micro_batch_choice as chunking
from evokernel_core.targets.ascendc.fusion.micro_batch_choice import Cut
from evokernel_core.targets.ascendc.programs import cut_of, facts, facts_of_kernels, facts_reader

_MOVES_PER_KIND = 24
"""Refinement steps offered for one kernel of a program."""


def moves(planned: PlannedTask, target: Target) -> tuple[Move, ...]:
    """The named steps from a planned task; those of a program's most expensive kernels come first."""
    if planned.is_lone:
        ((task, family),), (schedule,) = planned.program.kinds, planned.schedules
        return family.moves(task, schedule, chip_of(planned.device))
    return tuple(
        evolve(move, strategy=described(program, move.strategy, chip_of(planned.device)))
        for program, move in _program_moves(planned, target)
    )


def _program_moves(planned: PlannedTask, target: Target) -> Iterator[tuple[Program, Move]]:
    """The steps, each with the program that it leads to."""
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
