"""A program: the kernels that together compute a task, and where the values between them lie.

A value that one kernel hands to another lives in a slot of the workspace; slots are used again as
soon as their value has had its last reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from attrs import evolve

from evokernel_core.compiler.coverage import family_for, view_ops
from evokernel_core.compiler.family import Family
from evokernel_core.compiler.fusion.partition import Group, Piece, base_of, partition, pieces
from evokernel_core.compiler.fusion.records import ONE_LAUNCH, PROGRAM, Place, Program, Slot, Stage, kind_us
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.compiler.strategies import require_known
from evokernel_core.compiler.target import Target
from evokernel_core.domain.canonical import node_order
from evokernel_core.domain.descriptor import Stages
from evokernel_core.domain.errors import PlanError, StrategyError
from evokernel_core.domain.graph import InputKind, ValueRef
from evokernel_core.domain.kernel import KernelSchedule, Setting, Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.device import Device

CHUNKS, CUT = "chunks", "cut"
"""Settings of a program: about how many chunks images come in, and how many of the stages that depend on
their number take chunks; without them all come at once."""
_CANONICAL_ORDER = 2
"""The version of strategies that numbers nodes in an order which is that of the task's identity."""
MOST_KERNELS = 500
_FOREIGN = Sentence("The strategy is not one of this region; draft it anew.")
_MOST_TRIES = 12


def plan_program(task: KernelTask, device: Device, target: Target) -> Program:
    """Cuts a task into kernels. Raises PlanError with the reason where a part is covered by no family."""
    return _plan_program(ById(task), device, target)


@lru_cache(maxsize=64)
def _plan_program(key: ById, device: Device, target: Target) -> Program:
    task, refused = key.task, frozenset[Group]()
    for _ in range(_MOST_TRIES):
        groups = partition(task, lambda part: _check(part, device, target), view_ops(target), refused)
        unfit = _without_schedule(task, groups, device, target)
        if not unfit:
            return assemble(task, groups, device, target)
        refused |= unfit
    raise PlanError("The operations could not be cut into kernels that fit the unified buffer.")


@lru_cache(maxsize=512)
def draft(key: ById, family: Family, device: Device) -> Strategy:
    """The first strategy of one kernel, found once. Raises PlanError where there is none."""
    return family.initial(key.task, device)


def _check(part: KernelTask, device: Device, target: Target) -> None:
    family_for(part, device, target)


def _without_schedule(
    task: KernelTask, groups: tuple[Group, ...], device: Device, target: Target
) -> frozenset[Group]:
    """Groups that a family covers but has no legal schedule for. Raises PlanError where one is a
    single operation, which cannot be cut further."""
    unfit = set()
    fit: set[str] = set()
    for group, part in zip(groups, pieces(task, groups, view_ops(target)), strict=True):
        form = part.task.task_id
        if form in fit:
            continue
        try:
            draft(ById(part.task), family_for(part.task, device, target), device)
        except PlanError:
            if len(group) == 1:
                raise
            unfit.add(group)
        else:
            fit.add(form)
    return frozenset(unfit)


def has_schedules(task: KernelTask, groups: tuple[Group, ...], device: Device, target: Target) -> bool:
    """Whether there is a kernel for each group. Raises PlanError where a family covers none of them."""
    return not _without_schedule(task, groups, device, target)


def assemble(task: KernelTask, groups: tuple[Group, ...], device: Device, target: Target) -> Program:
    """The program of given groups. Raises PlanError where it cannot be laid out, StrategyError where one
    reads what none makes."""
    if len(groups) > MOST_KERNELS:
        raise PlanError(
            "The region takes {count} kernels, more than the {most} of a program.",
            count=len(groups),
            most=MOST_KERNELS,
        )
    parts = pieces(task, groups, view_ops(target))
    places, slots = _places(task, groups, parts)
    kinds: dict[str, int] = {}
    first: list[tuple[KernelTask, Family]] = []
    stages = []
    for part in parts:
        form = part.task.task_id
        if form not in kinds:
            kinds[form] = len(first)
            first.append((part.task, family_for(part.task, device, target)))
        if not places.keys() >= set(part.inputs):
            raise StrategyError(_FOREIGN)
        inputs = tuple(places[ref] for ref in part.inputs)
        outputs = tuple(places[ref] for ref in part.outputs)
        stages.append(Stage(part, kinds[form], inputs, outputs))
    return Program(groups, tuple(stages), tuple(first), slots)


def lone(task: KernelTask, family: Family) -> Program:
    """The program of one kernel that computes the whole task."""
    tensors = tuple(
        ValueRef(operand.name) for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR
    )
    results = task.graph.outputs
    inputs = tuple(Place(False, index) for index in range(len(tensors)))
    outputs = tuple(Place(False, len(tensors) + index) for index in range(len(results)))
    stage = Stage(Piece(task, tensors, results), 0, inputs, outputs)
    group = frozenset(node.name for node in task.graph.nodes)
    return Program((group,), (stage,), ((task, family),), ())


def _places(
    task: KernelTask, groups: tuple[Group, ...], parts: tuple[Piece, ...]
) -> tuple[Mapping[ValueRef, Place], tuple[Slot, ...]]:
    tensors = [operand.name for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR]
    places = {ValueRef(name): Place(False, index) for index, name in enumerate(tensors)}
    held = frozenset().union(*groups)
    for number, ref in enumerate(task.graph.outputs):
        base = base_of(task.graph, ref, held)
        if base in places:
            raise PlanError(
                "The region returns {input} twice or unchanged, which no kernel writes.", input=base.name
            )
        places[base] = Place(False, len(tensors) + number)
    last = {ref: index for index, part in enumerate(parts) for ref in part.inputs}
    slots: list[list[tuple[str, int, Extent]]] = []
    free_after: list[int] = []
    for index, part in enumerate(parts):
        for ref in part.outputs:
            if ref in places:
                continue
            spec = task.graph.spec(ref)
            value = (ref.name, ITEM_SIZE[spec.dtype], product(map(extent, spec.shape)))
            slot = _free_slot(slots, free_after, index, value, task)
            slots[slot].append(value)
            free_after[slot] = last.get(ref, index)
            places[ref] = Place(True, slot)
    return places, tuple(Slot(tuple(values)) for values in slots)


def _free_slot(
    slots: list[list[tuple[str, int, Extent]]],
    free_after: list[int],
    index: int,
    value: tuple[str, int, Extent],
    task: KernelTask,
) -> int:
    """The free slot nearest in size, else a new one."""

    def size(item: tuple[str, int, Extent]) -> int:
        return item[1] * item[2].evaluate(task.sizes)

    free = [slot for slot, after in enumerate(free_after) if after < index]
    if free:
        return min(free, key=lambda slot: abs(max(map(size, slots[slot])) - size(value)))
    slots.append([])
    free_after.append(-1)
    return len(slots) - 1


# -- strategies -----------------------------------------------------------------------------------


def joined(
    task: KernelTask,
    program: Program,
    strategies: tuple[Strategy, ...],
    move: str,
    *,
    one_launch: bool = True,
    chunks: int = 0,
    cut: int = 0,
) -> Strategy:
    """The strategy of a program: the schedule of each kind, the cut, whether the kernels are parts of one
    launch, and the chunks in which the first ``cut`` take images (0: all at once). It has no cell yet."""
    order = {name: index for index, name in enumerate(_node_names(task))}
    groups = tuple(tuple(sorted(order[name] for name in group)) for group in program.groups)
    settings: dict[str, Setting] = {ONE_LAUNCH: one_launch}
    if chunks:
        settings |= {CHUNKS: chunks, CUT: cut}
    kernels = tuple(KernelSchedule(strategy.family, strategy.settings) for strategy in strategies)
    notes = _notes(program, strategies, one_launch=one_launch)
    if chunks:
        notes = (
            Sentence(
                "Images come in about {chunks} chunks, so that L2 keeps what lies between kernels.",
                chunks=chunks,
            ),
            *notes,
        )
    return Strategy(PROGRAM, settings, notes, move=move, groups=groups, kernels=kernels)


def whole_batch(task: KernelTask, program: Program, device: Device, move: str = "") -> Strategy:
    """A program whose kernels, drafted one by one, take all images at once."""
    drafts = tuple(draft(ById(part), family, device) for part, family in program.kinds)
    return joined(task, program, drafts, move)


def described(program: Program, strategy: Strategy, device: Device) -> Strategy:
    """The strategy with its archive cell: that of the kernel which takes the largest part of the time, all
    images at once, with the number of launches and how they follow each other."""
    parts = parted(strategy)
    dearest = max(
        range(len(parts)),
        key=lambda kind: program.launches(kind) * kind_us(program, kind, parts[kind], device),
    )
    task, family = program.kinds[dearest]
    cell = family.descriptor(task, parts[dearest], device)
    together = Stages.ONE_LAUNCH if strategy.setting(ONE_LAUNCH, False) else Stages.LAUNCHES
    stages = Stages.CHUNKED if strategy.setting(CHUNKS, 0) else together
    return evolve(strategy, descriptor=evolve(cell, stages=stages, kernels=len(program.stages)))


def parted(strategy: Strategy) -> tuple[Strategy, ...]:
    """The strategies of a program's kinds. Raises StrategyError where one has no family."""
    require_known(strategy)
    if not all(kernel.family for kernel in strategy.kernels):
        raise StrategyError("A program's strategy has a kernel of no family; draft it anew.")
    return tuple(
        Strategy(kernel.family, kernel.settings, version=strategy.version) for kernel in strategy.kernels
    )


def program_of(task: KernelTask, strategy: Strategy, device: Device, target: Target) -> Program:
    """The program that a strategy describes. Raises PlanError where it is not one of this task."""
    families = [item.family for item in parted(strategy)]
    program = assemble(task, _groups(task, strategy), device, target)
    fitting = [name in family.strategies for name, (_, family) in zip(families, program.kinds, strict=False)]
    if len(families) != len(program.kinds) or not all(fitting):
        raise StrategyError(_FOREIGN)
    return program


def is_cut_alike(one: Strategy, other: Strategy) -> bool:
    """Whether two strategies have the same kernels, both with images in chunks or both with all at once."""
    return one.groups == other.groups and bool(one.setting(CHUNKS, 0)) == bool(other.setting(CHUNKS, 0))


def _groups(task: KernelTask, strategy: Strategy) -> tuple[Group, ...]:
    """The nodes of each kernel. Raises StrategyError where the task lacks one, or one comes twice."""
    if strategy.version < _CANONICAL_ORDER:
        raise StrategyError(_FOREIGN)
    names, groups = _node_names(task), strategy.groups
    if not groups or not all(groups):
        raise StrategyError(_FOREIGN)
    indices = [index for group in groups for index in group]
    if len(set(indices)) < len(indices) or not all(0 <= index < len(names) for index in indices):
        raise StrategyError(_FOREIGN)
    return tuple(frozenset(names[index] for index in group) for group in groups)


def _node_names(task: KernelTask) -> tuple[str, ...]:
    """In the order that a strategy numbers nodes in, which is the same for all tasks of one identity."""
    live = dict.fromkeys(node.name for node in node_order(task.graph))
    return tuple(live | dict.fromkeys(node.name for node in task.graph.nodes))


def _notes(program: Program, strategies: tuple[Strategy, ...], *, one_launch: bool) -> tuple[Sentence, ...]:
    runs, kinds = len(program.stages), len(program.kinds)
    told = {"runs": runs, "kinds": kinds}
    first = Sentence("{runs} launches of {kinds} kernels", **told)
    if one_launch:
        first = Sentence("{runs} runs of {kinds} kernels together, with barriers between them", **told)
    notes = [
        Sentence(
            "{first}; values between them take {count} part(s) of the workspace.",
            first=first,
            count=len(program.slots),
        )
    ]
    for kind, ((task, family), strategy) in enumerate(zip(program.kinds, strategies, strict=True)):
        ops = ", ".join(dict.fromkeys(node.op.split(".")[1] for node in task.graph.nodes))
        first = strategy.notes[0] if strategy.notes else Sentence()
        stage = Sentence(
            "Stage {number} ({family}, {launches}x): {ops}.",
            number=kind,
            family=family.name,
            launches=program.launches(kind),
            ops=ops,
        )
        notes.append(Sentence("{stage} {note}", stage=stage, note=first) if first else stage)
    return tuple(notes)
