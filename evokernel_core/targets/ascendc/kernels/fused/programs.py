"""Tile programs: the instructions of one tile or pass with their registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain, Kind, Value, needed
from evokernel_core.targets.ascendc.ir.floats import Literal
from evokernel_core.targets.ascendc.kernels.fused.access import invariant_columns
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.lowering.program import Instruction, Lowerer, Virtual, used_inputs
from evokernel_core.targets.ascendc.lowering.registers import Registers, Target, assign


@frozen
class TileProgram:
    """``prologue`` runs once a row before the tiles (streaming only), ``body`` once a tile."""

    inputs: tuple[PlanInput, ...]
    prologue: tuple[Instruction, ...]
    body: tuple[Instruction, ...]
    registers: Registers

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return self.prologue + self.body


def virtuals(instructions: Iterable[Instruction]) -> list[Virtual]:
    """Every tensor that the instructions touch, once, in order."""
    result: dict[int, Virtual] = {}
    for instruction in instructions:
        for virtual in (*instruction.sources, *([instruction.target] if instruction.target else [])):
            result.setdefault(virtual.index, virtual)
    return list(result.values())


def row_tensors(programs: Sequence[TileProgram], kind: Kind) -> list[str]:
    """The names of the row tensors that need their own memory."""
    return list(
        dict.fromkeys(
            virtual.name
            for program in programs
            for virtual in virtuals(program.instructions)
            if virtual.domain is Domain.ROW and virtual.kind is kind and not virtual.home
        )
    )


def rows_read_whole(programs: Sequence[TileProgram]) -> list[str]:
    """The names of the row tensors that instructions read in whole repeats or blocks."""
    result: dict[str, None] = {}
    for program in programs:
        for instruction in program.instructions:
            if instruction.op in ("Compare", "CompareScalar", "expand_rows") or instruction.op.endswith(
                "Rows"
            ):
                rows = (
                    source
                    for source in instruction.sources
                    if source.domain is Domain.ROW and not source.home
                )
                result.update(dict.fromkeys(row.name for row in rows if row.kind is Kind.NUMBER))
    return list(result)


def column_tensors(programs: Sequence[TileProgram]) -> list[str]:
    """The names of column tensors converted to float32."""
    return list(
        dict.fromkeys(
            virtual.name
            for program in programs
            for virtual in virtuals(program.instructions)
            if virtual.domain is Domain.COLUMN and not virtual.home
        )
    )


def kept_tiles(programs: Sequence[TileProgram]) -> list[str]:
    """The names of column inputs repeated over a tile's rows for the whole kernel."""
    return list(
        dict.fromkeys(
            instruction.target.name
            for program in programs
            for instruction in program.instructions
            if instruction.op == "expand_columns"
            and instruction.target is not None
            and instruction.target.name
        )
    )


def whole_program(plan: Plan, schedule: Schedule) -> TileProgram:
    """All of the plan as one program: load, compute, store."""
    kept = frozenset(
        invariant_column.name
        for invariant_column in invariant_columns(plan, schedule.form)
        if schedule.keep_columns
    )
    lowerer = Lowerer(plan, schedule.packed, schedule.eager_rounding, kept, schedule.dtype)
    roots = [output.value for output in plan.outputs]
    lowerer.lower(roots)
    return finish(lowerer, used_inputs(plan, needed(roots)), plan.outputs)


def finish(
    lowerer: Lowerer, inputs: tuple[PlanInput, ...], outputs: Sequence[PlanOutput], split: bool = False
) -> TileProgram:
    """Append the stores and assign registers; ``split`` moves row work before the tiles."""
    targets: list[Target] = []
    for output in outputs:
        _store(lowerer, output, targets)
    instructions = tuple(lowerer.instructions)
    prologue = tuple(
        instruction for instruction in instructions if split and instruction.domain is Domain.ROW
    )
    body = tuple(
        instruction for instruction in instructions if not (split and instruction.domain is Domain.ROW)
    )
    reusable = {
        operand.name for operand in inputs if operand.dtype == lowerer.dtype and operand.domain is Domain.FULL
    }
    registers = assign((*prologue, *body), reusable, lowerer.initialised, targets)
    return TileProgram(inputs, prologue, body, registers)


def _store(lowerer: Lowerer, output: PlanOutput, targets: list[Target]) -> None:
    assert isinstance(output.value, Value)
    value = lowerer.at(output.value, output.domain)
    taken = any(target.value is value for target in targets)
    direct = not value.home and not value.name and not taken and value.index not in lowerer.initialised
    if output.dtype == lowerer.dtype and output.domain is Domain.FULL and direct:
        targets.append(Target(output.name, value))
        return
    place = lowerer.virtual(output.domain, home=output.name)
    lowerer.origin = ""
    if output.dtype == lowerer.dtype:
        lowerer.emit("Adds", place, value, scalar=Literal(0.0))
    else:
        lowerer.emit("cast_out", place, value, detail=output.dtype)
