"""Author: a task becomes a strategy, a strategy the two files of a kernel, in one launch or several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from attrs import evolve

from evokernel_core.ascendc.emit import files, together
from evokernel_core.ascendc.families.family import Family, Move, StageText
from evokernel_core.ascendc.families.registry import family_for
from evokernel_core.ascendc.program import (
    ONE_LAUNCH,
    PROGRAM,
    family_of_task,
    joined,
    parted,
    plan_program,
    program_of,
)
from evokernel_core.ascendc.rewrites.registry import legalised
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.twin.chip import Chip

_MOVES_PER_KIND = 24
"""Refinement steps offered for one kernel of a program."""


def check(task: KernelTask, chip: Chip) -> None:
    """Raises PlanError with the reason where the task cannot be computed by kernels of the families."""
    task = legalised(task)
    if family_of_task(task, chip) is None:
        plan_program(task, chip)


def initial(task: KernelTask, chip: Chip) -> Strategy:
    """The strategy of the lowest estimate. Raises PlanError where the task cannot be planned."""
    task = legalised(task)
    family = family_of_task(task, chip)
    if family is not None:
        return family.initial(task, chip)
    program = plan_program(task, chip)
    return joined(task, program, tuple(family.initial(part, chip) for part, family in program.kinds), "")


def moves(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
    """The named steps from a strategy; those of a program's most expensive kernels come first."""
    task = legalised(task)
    if strategy.family != PROGRAM:
        return family_for(task, chip).moves(task, strategy, chip)
    return tuple(_program_moves(task, strategy, chip))


def _program_moves(task: KernelTask, strategy: Strategy, chip: Chip) -> Iterator[Move]:
    program, parts = program_of(task, strategy, chip), parted(strategy)
    one_launch = bool(strategy.setting(ONE_LAUNCH, False))

    def cost(kind: int) -> float:
        part, family = program.kinds[kind]
        return program.launches(kind) * family.estimate_us(part, parts[kind], chip)

    for kind in sorted(range(len(parts)), key=cost, reverse=True):
        part, family = program.kinds[kind]
        for move in family.moves(part, parts[kind], chip)[:_MOVES_PER_KIND]:
            changed = (*parts[:kind], move.strategy, *parts[kind + 1 :])
            whole = joined(task, program, changed, move.name, one_launch=one_launch)
            yield Move(move.name, whole, move.family)
    name = "a launch for each kernel" if one_launch else "kernels in one launch"
    yield Move(name, joined(task, program, parts, name, one_launch=not one_launch), PROGRAM)


def adapt(task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
    """Another task's strategy cut to fit this one, None where a rule refuses it. Raises PlanError
    where the task cannot be planned."""
    task = legalised(task)
    family = family_of_task(task, chip)
    if family is None or strategy.family not in family.strategies:
        return None
    return family.adapt(task, strategy, chip)


def estimate_us(task: KernelTask, strategy: Strategy, chip: Chip) -> float:
    """Modelled microseconds of a strategy, all launches included."""
    task = legalised(task)
    if strategy.family != PROGRAM:
        return family_for(task, chip).estimate_us(task, strategy, chip)
    program = program_of(task, strategy, chip)
    kernels = sum(
        program.launches(kind) * family.estimate_us(part, chosen, chip)
        for kind, ((part, family), chosen) in enumerate(zip(program.kinds, parted(strategy), strict=True))
    )
    return kernels - (together.saved_us(program, chip) if strategy.setting(ONE_LAUNCH, False) else 0.0)


def write(task: KernelTask, strategy: Strategy, chip: Chip) -> KernelSource:
    """tiling.h and op_kernel.cpp. Raises PlanError where the task cannot be planned."""
    name, task = _identifier(task.name), legalised(task)
    if strategy.family != PROGRAM:
        stage = family_for(task, chip).text(task, strategy, chip, name)
        tensors = sum(item.kind is not InputKind.SCALAR for item in task.graph.inputs)
        return KernelSource(*files.single(stage, tensors + len(task.graph.outputs)), strategy)
    program = program_of(task, strategy, chip)
    stages = [
        _text(ById(part), evolve(chosen, notes=(), move=""), f"{name}_stage{kind}", family, chip)
        for kind, ((part, family), chosen) in enumerate(zip(program.kinds, parted(strategy), strict=True))
    ]
    one_launch = bool(strategy.setting(ONE_LAUNCH, False))
    text = files.program(task, program, stages, name, one_launch=one_launch)
    return KernelSource(*text, strategy)


@lru_cache(maxsize=512)
def _text(key: ById, strategy: Strategy, name: str, family: Family, chip: Chip) -> StageText:
    """A kernel of a program, made once."""
    return family.text(key.task, strategy, chip, name)


def _identifier(name: str) -> str:
    """A C++ identifier in snake case."""
    cleaned = re.sub(r"\W+", "_", name).strip("_").lower() or "fused"
    return cleaned if cleaned[0].isalpha() else f"op_{cleaned}"
