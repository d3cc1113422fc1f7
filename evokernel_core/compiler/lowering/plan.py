"""Plan: a task's graph in the iteration space of one family."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import groupby

from attrs import evolve, frozen

from evokernel_core.compiler.lowering.checks import check_task
from evokernel_core.compiler.lowering.graph import GraphLowering, Output
from evokernel_core.compiler.lowering.stripes import SLICE
from evokernel_core.compiler.lowering.values import (
    WHOLE,
    Builder,
    Domain,
    Load,
    Operand,
    Stripe,
    Value,
    needed,
)
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.compiler.shapes.space import Refine, Space
from evokernel_core.compiler.shapes.views import VIEWS
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.device import Device


@frozen
class PlanInput:
    """One way in which a tensor input is read: ``value`` is its load.

    ``outer`` says for each outer loop whether the input has that dimension; ``mid`` and ``inner``
    whether it differs from row to row and from column to column. ``stripe``: which of the input's rows, as
    long as the plan's, those are.
    """

    name: str
    source: str
    dtype: str
    value: Value
    outer: tuple[bool, ...]
    mid: bool
    inner: bool
    stripe: Stripe = WHOLE

    @property
    def domain(self) -> Domain:
        return self.value.domain


@frozen
class PlanOutput:
    """One output: ``domain`` FULL for a value at every point, ROW for one value a row."""

    name: str
    dtype: str
    value: Operand
    domain: Domain


@frozen
class Plan:
    """``outer`` loops x ``mid`` rows of ``inner`` columns. ``tensors`` are the kernel's tensor
    inputs (name, dtype) in order; ``scalars`` the names of the run-time numbers in order.

    In the family ``columnwise`` the ``mid`` steps are what reductions reduce, and ``inner`` are lanes
    side by side; a value after a reduction is one number a lane. In the family ``piecewise`` a row is
    in pieces of ``inner`` columns: ``leading`` of them in front of the outer loops in memory, times
    ``mid`` behind them."""

    family: str
    outer: tuple[Extent, ...]
    mid: Extent
    inner: Extent
    inputs: tuple[PlanInput, ...]
    outputs: tuple[PlanOutput, ...]
    tensors: tuple[tuple[str, str], ...]
    scalars: tuple[str, ...]
    symbols: tuple[str, ...]
    leading: Extent = ONE

    @property
    def rows(self) -> Extent:
        """What the outer loops and ``mid`` count; without the pieces, in that family."""
        return product(self.outer if self.family == "piecewise" else (*self.outer, self.mid))

    def values(self) -> tuple[Value, ...]:
        """Every value that an output needs, operands first."""
        return needed(output.value for output in self.outputs)

    @property
    def rounds(self) -> bool:
        """Whether PyTorch, op by op, rounds intermediate results to a 16-bit type."""
        return any(value.op == "rounded" for value in self.values())

    @property
    def has_stripes(self) -> bool:
        """Whether an input is read in parts of its rows."""
        return any(operand.stripe != WHOLE for operand in self.inputs)

    @cached_property
    def reductions(self) -> tuple[Value, ...]:
        return tuple(value for value in self.values() if value.op.startswith("reduce_"))


def plan(task: KernelTask, device: Device, in_stripes: bool = False) -> Plan:
    """Choose the family and lower the graph. ``in_stripes``: whether rows and parts of rows may be read of
    slices where they lie. Raises PlanError with the reason where none fits."""
    check_task(task, device.memory_bytes)
    return _planned(task, in_stripes)


def _planned(task: KernelTask, in_stripes: bool) -> Plan:
    moves_alone = all(node.op in VIEWS or node.op == SLICE for node in task.graph.nodes)
    lowering = GraphLowering(task.graph, in_stripes and not moves_alone)
    splits = lowering.reductions()
    if not splits:
        return _lower(task, lowering, "pointwise", Space.of((), _largest_output(task)))
    split = max(splits, key=lambda split: _numel(task, split.everything))
    if split.lanes:
        return _lower(task, lowering, "columnwise", Space.around(split.front, split.gone, split.lanes))
    result = _lower(task, lowering, "rowwise", Space.of(split.front, split.gone, split.leading))
    if any(value.op == "reduce_prod" for value in result.reductions):
        raise PlanError("The vector unit multiplies numbers side by side, not the numbers of one row.")
    return result


def plan_matrix(task: KernelTask, rows: tuple[Dim, ...], columns: tuple[Dim, ...], device: Device) -> Plan:
    """An element-wise task over a matrix of given rows and columns, whose tiles another kernel cuts.
    Raises PlanError where it is anything else."""
    check_task(task, device.memory_bytes)
    lowering = GraphLowering(task.graph)
    if lowering.reductions():
        raise PlanError("A reduction of the result needs more than one tile of it.")
    space, builder = _refined(lowering, Space.of(rows, columns))
    loads = tuple(builder.loads.values())
    if len({_presence(atom, loads) for atom in space.columns}) > 1:
        raise PlanError("An input is broadcast inside the columns of a result.")
    groups = [tuple(group) for _, group in groupby(space.rows, lambda atom: _presence(atom, loads))]
    space = evolve(space, outer_atoms=sum(map(len, groups[:-1])))
    builder, outputs = lowering.lower(space)
    if any(domain is not Domain.FULL for _, domain in outputs):
        raise PlanError("An output has fewer elements than the result.")
    return _assemble(task, "pointwise", space, builder, outputs, ())


def plan_channels(
    task: KernelTask, outer: tuple[Dim, ...], steps: tuple[Dim, ...], lanes: tuple[Dim, ...], device: Device
) -> Plan:
    """A task over a value of outer x steps x lanes that reduces it over all its steps and nothing else, in
    the terms of the family columnwise. Raises PlanError where it is anything else."""
    check_task(task, device.memory_bytes)
    lowering = GraphLowering(task.graph)
    whole = [_extent(part) for part in (outer, steps, lanes)]
    splits = lowering.reductions()
    if not splits:
        raise PlanError("Nothing reduces the channels of the result.")
    for split in splits:
        if split.leading or [_extent(part) for part in (split.front, split.gone, split.lanes)] != whole:
            raise PlanError("The result is reduced over something else than its channels.")
    return _lower(task, lowering, "columnwise", Space.around(outer, steps, lanes))


def _extent(dims: tuple[Dim, ...]) -> Extent:
    return product(map(extent, dims))


def _largest_output(task: KernelTask) -> tuple[Dim, ...]:
    specs = task.graph.output_specs()
    return max((spec.shape for spec in specs), key=lambda shape: _numel(task, shape))


def _numel(task: KernelTask, dims: tuple[Dim, ...]) -> int:
    return math.prod(extent(dim).evaluate(task.sizes) for dim in dims)


def _lower(task: KernelTask, lowering: GraphLowering, family: str, space: Space) -> Plan:
    """Lower until no atom needs a split, then once more with the loops of the collapsed space."""
    space, builder = _refined(lowering, space)
    loads = tuple(builder.loads.values())
    pieces = _pieces(space, loads) if family == "rowwise" else ()
    if pieces:
        family = "piecewise"
    else:
        space = _with_loops(space, loads, family)
    builder, outputs = lowering.lower(space)
    if family == "pointwise" and any(domain is not Domain.FULL for _, domain in outputs):
        # every core would write it
        raise PlanError("A single number beside a whole result needs a kernel of its own.")
    return _assemble(task, family, space, builder, outputs, pieces)


def _refined(lowering: GraphLowering, space: Space) -> tuple[Space, Builder]:
    """The space with every atom split that the graph cuts, and the graph lowered into it."""
    while True:
        try:
            builder, _ = lowering.lower(space)
        except Refine as refine:
            space = space.split(refine)
        else:
            return space, builder


def _presence(atom: int, loads: tuple[Load, ...]) -> tuple[int, ...]:
    return tuple(load.treats(atom) for load in loads if load.atoms)


def _pieces(space: Space, loads: tuple[Load, ...]) -> tuple[int, ...]:
    """The reduced atoms that number the pieces of a row, where a row is not one run of memory that
    every input treats alike; else none."""
    lanes = _presence(space.columns[-1], loads) if space.columns else ()
    behind = [atom for atom in space.columns if atom >= space.leading_atoms]
    apart = [atom for atom in behind if _presence(atom, loads) != lanes]
    pieces = (*range(space.leading_atoms), *(atom for atom in behind if apart and atom <= apart[-1]))
    if len({_presence(atom, loads) for atom in pieces}) > 1:
        raise PlanError("An input is broadcast inside the reduced dimensions in two ways.")
    return pieces


def _with_loops(space: Space, loads: tuple[Load, ...], family: str) -> Space:
    """Merge neighbouring atoms that every input treats alike into outer loops, rows and columns."""

    def presence(atom: int) -> tuple[int, ...]:
        return _presence(atom, loads)

    if family == "columnwise":
        for atoms in (space.columns, space.lanes):
            if len({presence(atom) for atom in atoms}) > 1:
                raise PlanError("An input is broadcast inside the reduced or the kept dimensions.")
        return space
    if family == "pointwise":
        groups = [tuple(group) for _, group in groupby(space.everything, presence)]
        inner = len(groups[-1]) if groups else 0
        space = evolve(space, row_atoms=len(space.atoms) - inner)
    rows = [tuple(group) for _, group in groupby(space.rows, presence)]
    return evolve(space, outer_atoms=sum(map(len, rows[:-1])))


def _assemble(
    task: KernelTask,
    family: str,
    space: Space,
    builder: Builder,
    outputs: list[Output],
    pieces: tuple[int, ...],
) -> Plan:
    outermost = space.row_atoms if pieces else space.outer_atoms
    loops = _loops(space, outermost, tuple(builder.loads.values()))
    steps, lanes = _steps_and_lanes(space, pieces)
    if any(load.columns not in ((), lanes) for load in builder.loads.values()) or (
        family not in ("pointwise", "rowwise") and any(load.columns for load in builder.loads.values())
    ):
        raise PlanError("A slice whose rows are not those of the kernel is copied first.")
    behind = [atom for atom in steps if not (pieces and atom < space.leading_atoms)]
    used = {value.index for value in needed(value for value, _ in outputs)}
    dtypes = {operand.name: operand.spec.dtype for operand in task.graph.inputs}
    inputs = [
        _input(loops, steps, lanes, builder.values[index], load, dtypes[load.source])
        for index, load in builder.loads.items()
        if index in used
    ]
    return Plan(
        family=family,
        outer=tuple(product(space.atoms[atom] for atom in loop) for loop in loops),
        mid=product(space.atoms[atom] for atom in behind),
        inner=product(space.atoms[atom] for atom in lanes),
        inputs=_unique_names(inputs),
        outputs=_outputs(task, outputs, builder),
        tensors=tuple(
            (operand.name, operand.spec.dtype)
            for operand in task.graph.inputs
            if operand.kind is not InputKind.SCALAR
        ),
        scalars=tuple(operand.name for operand in task.graph.inputs if operand.kind is InputKind.SCALAR),
        symbols=tuple(symbol.name for symbol in task.symbols),
        leading=product(space.atoms[atom] for atom in range(space.leading_atoms)),
    )


def _steps_and_lanes(space: Space, pieces: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The atoms of what the plan calls ``mid`` (and leading), and of what it calls ``inner``."""
    if pieces:
        return pieces, tuple(atom for atom in space.columns if atom not in pieces)
    if space.lane_atoms:
        return space.columns, space.lanes
    return space.rows[space.outer_atoms :], space.columns


def _loops(space: Space, count: int, loads: tuple[Load, ...]) -> list[tuple[int, ...]]:
    """The first ``count`` atoms of the rows, neighbours that every input treats alike together."""
    outer = space.rows[:count]
    return [
        tuple(group)
        for _, group in groupby(outer, lambda atom: tuple(atom in load.atoms for load in loads if load.atoms))
    ]


def _input(
    loops: list[tuple[int, ...]],
    steps: tuple[int, ...],
    lanes: tuple[int, ...],
    value: Value,
    load: Load,
    dtype: str,
) -> PlanInput:
    return PlanInput(
        name=load.source,
        source=load.source,
        dtype=dtype,
        value=value,
        outer=tuple(loop[0] in load.atoms for loop in loops),
        mid=any(atom in steps for atom in load.atoms),
        inner=any(atom in lanes for atom in load.atoms),
        stripe=load.stripe,
    )


def _unique_names(inputs: list[PlanInput]) -> tuple[PlanInput, ...]:
    """A tensor that is read in two ways gets a second name, such as ``x_rows``."""
    suffix = {Domain.FULL: "full", Domain.ROW: "rows", Domain.COLUMN: "columns", Domain.SCALAR: "single"}
    result: list[PlanInput] = []
    for operand in inputs:
        name, count = operand.source, 2
        if any(other.name == name for other in result):
            name = f"{operand.source}_{suffix[operand.domain]}"
        while any(other.name == name for other in result):
            name, count = f"{operand.source}_{suffix[operand.domain]}{count}", count + 1
        result.append(evolve(operand, name=name))
    return tuple(result)


def _outputs(task: KernelTask, outputs: list[Output], builder: Builder) -> tuple[PlanOutput, ...]:
    taken = {operand.name for operand in task.graph.inputs}
    stem = next(name for name in ("output", "result", "outcome", "computed") if name not in taken)
    names = [stem] if len(outputs) == 1 else [f"{stem}_{i}" for i in range(len(outputs))]
    return tuple(
        PlanOutput(name, spec.dtype, _at_least(builder, value, domain), domain)
        for name, spec, (value, domain) in zip(names, task.graph.output_specs(), outputs, strict=True)
    )


def _at_least(builder: Builder, value: Operand, domain: Domain) -> Value:
    """The output's number, present at every point of its domain."""
    while isinstance(value, Value) and value.op == "rounded":
        value = value.args[0]  # storing rounds anyway
    number = builder.as_number(value)
    if isinstance(number, Value) and number.domain is domain:
        return number
    if isinstance(number, Value) and number.domain is not Domain.SCALAR:
        return builder.emit("widen", number, domain=domain)
    return builder.emit("fill", number, domain=domain)
