"""Author: a task becomes a strategy, a strategy the two files of a kernel, in one launch or several."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from attrs import evolve, frozen

from evokernel_core.ascendc.bounds import KernelBound, bound_us
from evokernel_core.ascendc.fusion import micro_batch_choice as chunking
from evokernel_core.ascendc.fusion.cuts import recuts, with_moments_apart
from evokernel_core.ascendc.fusion.later_epilogues import with_later_epilogues
from evokernel_core.ascendc.fusion.launches import together_us
from evokernel_core.ascendc.fusion.micro_batch_choice import Cut
from evokernel_core.ascendc.fusion.program import (
    ONE_LAUNCH,
    PROGRAM,
    Program,
    described,
    draft,
    family_of_task,
    joined,
    kind_us,
    parted,
    plan_program,
    program_of,
)
from evokernel_core.ascendc.kernels.family import Cores, Family, KernelFacts, Move, StageText
from evokernel_core.ascendc.kernels.registry import family_for, legalised
from evokernel_core.ascendc.print import files
from evokernel_core.ascendc.print.sharing import Part, owners
from evokernel_core.ascendc.print.stage import text_of
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import ById, KernelTask, numbered_task
from evokernel_core.twin.chip import Chip

_OTHER_CUT = 0.95
"""The share of the usual estimate that another cut may take at most: estimates differ by less than that
where both are about as good, and the usual one has fewer kernels."""
_MOVES_PER_KIND = 24
"""Refinement steps offered for one kernel of a program."""


def check(task: KernelTask, chip: Chip) -> None:
    """Raises PlanError with the reason where the task cannot be computed by kernels of the families."""
    task = legalised(task, chip)
    if family_of_task(task, chip) is None:
        plan_program(task, chip)


def initial(task: KernelTask, chip: Chip) -> Strategy:
    """The strategy of the lowest estimate. Raises PlanError where the task cannot be planned."""
    task = legalised(task, chip)
    family = family_of_task(task, chip)
    if family is not None:
        return draft(ById(task), family, chip)
    return _best_program(ById(task), chip)


@lru_cache(maxsize=64)
def _best_program(key: ById, chip: Chip) -> Strategy:
    """The strategy of the lowest estimate for a legalised task of several kernels, found once."""
    task = key.task
    program = plan_program(task, chip)
    costs = {item: _program_us(task, item, chip) for item in _drafts(task, program, chip)}
    for other in _other_programs(task, program, chip):
        costs |= {
            item: _program_us(task, item, chip) / _OTHER_CUT
            for item in _drafts(task, other, chip)
            if item not in costs
        }
    best = min(costs, key=costs.__getitem__)
    return described(program_of(task, best, chip), best, chip)


def _drafts(task: KernelTask, program: Program, chip: Chip) -> Iterator[Strategy]:
    """A program with all images at once, and with its images in chunks."""
    yield _at_once(task, program, chip)
    yield from chunking.in_chunks(task, program, _facts(task, chip), chip)


def _at_once(task: KernelTask, program: Program, chip: Chip, move: str = "") -> Strategy:
    """A program whose kernels, drafted one by one, take all images at once."""
    drafts = tuple(draft(ById(part), family, chip) for part, family in program.kinds)
    return joined(task, program, drafts, move)


def _other_programs(task: KernelTask, program: Program, chip: Chip) -> Iterator[Program]:
    """Other cuts of a task that are often faster than those that fuse the most."""
    later = with_later_epilogues(task, program, chip)
    for found in (program, later):
        apart = None if found is None else with_moments_apart(task, found, chip)
        yield from (item for item in (found, apart) if item is not None and item != program)


def moves(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
    """The named steps from a strategy; those of a program's most expensive kernels come first."""
    task = legalised(task, chip)
    if strategy.family != PROGRAM:
        return family_for(task, chip).moves(task, strategy, chip)
    return tuple(
        evolve(move, strategy=described(program, move.strategy, chip))
        for program, move in _program_moves(task, strategy, chip)
    )


def _program_moves(task: KernelTask, strategy: Strategy, chip: Chip) -> Iterator[tuple[Program, Move]]:
    """The steps, each with the program that it leads to."""
    program, parts = program_of(task, strategy, chip), parted(strategy)
    one_launch, cut = bool(strategy.setting(ONE_LAUNCH, False)), Cut.of(strategy)
    tasks = chunking.tasks_of(task, program, cut)

    def cost(kind: int) -> float:
        return program.launches(kind) * program.kinds[kind][1].estimate_us(tasks[kind], parts[kind], chip)

    yield from ((program, move) for move in _other_chunks(task, program, parts, cut, chip))
    for kind in sorted(range(len(parts)), key=cost, reverse=True):
        family = program.kinds[kind][1]
        for move in family.moves(tasks[kind], parts[kind], chip)[:_MOVES_PER_KIND]:
            changed = (*parts[:kind], move.strategy, *parts[kind + 1 :])
            if cut.chunks and not chunking.is_legal(task, program, _facts(task, chip)(program, changed), cut):
                continue
            whole = joined(
                task, program, changed, move.name, one_launch=one_launch, chunks=cut.chunks, cut=cut.stages
            )
            yield program, Move(move.name, whole, move.family, kind)
    for recut in recuts(task, program, chip):
        whole = _at_once(task, recut.program, chip)
        drafts = (whole, *chunking.alike(task, recut.program, _facts(task, chip), chip, cut))
        best = min(drafts, key=lambda item: _program_us(task, item, chip))
        yield recut.program, Move(recut.name, evolve(best, move=recut.name), PROGRAM)
    if cut.chunks:
        return
    name = Sentence("a launch for each kernel") if one_launch else Sentence("kernels in one launch")
    yield program, Move(name, joined(task, program, parts, name, one_launch=not one_launch), PROGRAM)


def _other_chunks(
    task: KernelTask, program: Program, parts: Sequence[Strategy], cut: Cut, chip: Chip
) -> Iterator[Move]:
    """The program with its images in other chunks, or all at once."""
    if cut.chunks:
        batch = chunking.chunked(task, program, _facts(task, chip)(program, parts), cut).batch
        for name, other in chunking.steps(cut, batch):
            if other.chunks > 1 and other != cut:
                again = joined(task, program, tuple(parts), name, chunks=other.chunks, cut=other.stages)
                yield Move(name, again, PROGRAM)
        name = Sentence("all images at once")
        yield Move(name, _at_once(task, program, chip, name), PROGRAM)
    for found in chunking.in_chunks(task, program, _facts(task, chip), chip):
        if Cut.of(found).stages != cut.stages:
            found_cut = Cut.of(found)
            name = Sentence(
                "images of {kernels} kernels in chunks, about {chunks}",
                kernels=found_cut.stages,
                chunks=found_cut.chunks,
            )
            yield Move(name, evolve(found, move=name), PROGRAM)


def adapt(task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
    """Another task's strategy cut to fit this one, None where a rule refuses it or another version wrote
    what this one cannot read. Raises PlanError where the task cannot be planned."""
    task = legalised(task, chip)
    family = family_of_task(task, chip)
    if family is None or strategy.family not in family.strategies:
        return None
    try:
        return family.adapt(task, strategy, chip)
    except StrategyError:
        return None


def require_legal(task: KernelTask, strategy: Strategy, chip: Chip) -> None:
    """Raises StrategyError where a stored strategy is not one of this task and chip, and PlanError where the
    task cannot be planned. Strategies of other origin than this module go through here before anything else
    is asked of them."""
    task = legalised(task, chip)
    if strategy.family != PROGRAM:
        _require_legal(family_for(task, chip), task, strategy, chip)
        return
    program, cut = program_of(task, strategy, chip), Cut.of(strategy)
    tasks = chunking.tasks_of(task, program, cut)
    for part, (_, family), chosen in zip(tasks, program.kinds, parted(strategy), strict=True):
        _require_legal(family, part, chosen, chip)
    if cut.chunks and not chunking.is_legal(
        task, program, _facts(task, chip)(program, parted(strategy)), cut
    ):
        raise StrategyError("The kernels do not take images in the strategy's chunks; draft it anew.")


def _require_legal(family: Family, task: KernelTask, strategy: Strategy, chip: Chip) -> None:
    if strategy.family not in family.strategies:
        raise StrategyError(
            "The strategy is for {family} kernels, the task for {wanted}.",
            family=strategy.family,
            wanted=family.name,
        )
    reason = family.why_illegal(task, strategy, chip)
    if reason is not None:
        raise StrategyError("The strategy does not fit the task: {reason}", reason=reason)


def estimate_us(task: KernelTask, strategy: Strategy, chip: Chip) -> float:
    """Modelled microseconds of a strategy, all launches included."""
    task = legalised(task, chip)
    if strategy.family != PROGRAM:
        return family_for(task, chip).estimate_us(task, strategy, chip)
    return _program_us(task, strategy, chip)


def _program_us(task: KernelTask, strategy: Strategy, chip: Chip) -> float:
    """Modelled microseconds of a program of a legalised task."""
    program, cut = program_of(task, strategy, chip), Cut.of(strategy)
    if cut.chunks:
        chosen = parted(strategy)
        found = chunking.chunked(task, program, _facts(task, chip)(program, chosen), cut)
        return chunking.estimate_us(found, chosen, chip)
    kinds = [kind_us(program, kind, chosen, chip) for kind, chosen in enumerate(parted(strategy))]
    stages = [kinds[stage.kind] for stage in program.stages]
    return together_us(stages, chip) if strategy.setting(ONE_LAUNCH, False) else math.fsum(stages)


@frozen
class Launched:
    """A kernel of a strategy: the family of its schedule, the cores that it runs on, and the modelled
    microseconds of all its launches."""

    family: str
    cores: Cores
    us: float


def launched(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Launched, ...]:
    """The different kernels of a strategy, by what their families declare of them."""
    task = legalised(task, chip)
    if strategy.family != PROGRAM:
        family = family_for(task, chip)
        facts = _text(ById(task), _bare(strategy), identifier(task.name), family, chip).facts
        return (Launched(strategy.family, facts.cores, family.estimate_us(task, strategy, chip)),)
    program, chosen = program_of(task, strategy, chip), parted(strategy)
    facts_of_parts = _facts(task, chip)(program, chosen)
    return tuple(
        Launched(item.family, facts.cores, program.launches(kind) * family.estimate_us(part, item, chip))
        for kind, ((part, family), item, facts) in enumerate(
            zip(program.kinds, chosen, facts_of_parts, strict=True)
        )
    )


def kernels(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[KernelBound, ...]:
    """The kernels of a strategy with their estimates and bounds, all images at once."""
    task = legalised(task, chip)
    if strategy.family != PROGRAM:
        return (_kernel(task, family_for(task, chip), strategy, 1, chip),)
    program = program_of(task, strategy, chip)
    return tuple(
        _kernel(part, family, chosen, program.launches(kind), chip)
        for kind, ((part, family), chosen) in enumerate(zip(program.kinds, parted(strategy), strict=True))
    )


def _kernel(task: KernelTask, family: Family, strategy: Strategy, launches: int, chip: Chip) -> KernelBound:
    ops = tuple(node.op for node in task.graph.nodes)
    us = family.estimate_us(task, strategy, chip)
    return KernelBound(family.name, ops, launches, us, bound_us(task, chip))


def write(task: KernelTask, strategy: Strategy, chip: Chip) -> KernelSource:
    """tiling.h and op_kernel.cpp. Raises PlanError where the task cannot be planned."""
    name, task = identifier(task.name), legalised(task, chip)
    if strategy.family != PROGRAM:
        stage = text_of(family_for(task, chip), task, strategy, chip, name)
        tensors = sum(item.kind is not InputKind.SCALAR for item in task.graph.inputs)
        return KernelSource(*files.single(stage, tensors + len(task.graph.outputs)), strategy)
    program, cut = program_of(task, strategy, chip), Cut.of(strategy)
    parts = _parts(program, parted(strategy), name, chip)
    if cut.chunks:
        found = chunking.chunked(task, program, [part.facts for part in parts], cut)
        return KernelSource(*files.in_chunks(found, parts, name), strategy)
    one_launch = bool(strategy.setting(ONE_LAUNCH, False))
    text = files.program(task, program, parts, name, one_launch=one_launch)
    return KernelSource(*text, strategy)


def lines_of_kernels(task: KernelTask, source: KernelSource, chip: Chip) -> tuple[range, ...]:
    """The lines of op_kernel.cpp, from 1, in which the class of each kernel of a program stands, in their
    order; kernels that share one have the same. Empty for one kernel alone, and for a text that this author
    does not write from its strategy. Raises PlanError and StrategyError as ``write`` does."""
    strategy = source.strategy
    if strategy.family != PROGRAM or write(task, strategy, chip).op_kernel_cpp != source.op_kernel_cpp:
        return ()
    program = program_of(legalised(task, chip), strategy, chip)
    parts = _parts(program, parted(strategy), identifier(task.name), chip)
    one_launch = bool(Cut.of(strategy).chunks or strategy.setting(ONE_LAUNCH, False))
    return files.lines_of_classes(parts, one_launch=one_launch)


def _parts(program: Program, strategies: Sequence[Strategy], name: str, chip: Chip) -> tuple[Part, ...]:
    """The kernels of a program, with a strategy for each; those that share a class have numbers for names."""

    def text(kind: int, owner: int, *, named: bool) -> StageText:
        part, family = program.kinds[kind]
        given = part if named else numbered_task(part)
        return _text(ById(given), _bare(strategies[kind]), f"{name}_stage{owner}", family, chip)

    alike = [(item.family, item.settings) for item in strategies]
    found = owners(alike, lambda kind: text(kind, 0, named=False))
    return tuple(
        Part(kind, owner, text(kind, owner, named=found.count(owner) == 1))
        for kind, owner in enumerate(found)
    )


def _facts(task: KernelTask, chip: Chip) -> chunking.Facts:
    """What the kernels of a task's program are."""
    name = identifier(task.name)

    def read(program: Program, strategies: Sequence[Strategy]) -> Sequence[KernelFacts]:
        return [
            _text(ById(part), _bare(chosen), f"{name}_stage{kind}", family, chip).facts
            for kind, ((part, family), chosen) in enumerate(zip(program.kinds, strategies, strict=True))
        ]

    return read


def _bare(strategy: Strategy) -> Strategy:
    """What of a strategy its text depends on."""
    return evolve(strategy, notes=(), move="")


@lru_cache(maxsize=1024)
def _text(key: ById, strategy: Strategy, name: str, family: Family, chip: Chip) -> StageText:
    """A kernel of a program, made once."""
    return text_of(family, key.task, strategy, chip, name)


def identifier(name: str) -> str:
    """A C++ identifier in snake case, of the ASCII letters and digits of a name alone: the audit takes no
    others. ``kernel`` where there are none."""
    cleaned = re.sub(r"_*[^a-z0-9_][^a-z0-9]*", "_", name.lower()).strip("_") or "kernel"
    return cleaned if cleaned[0].isalpha() else f"op_{cleaned}"
