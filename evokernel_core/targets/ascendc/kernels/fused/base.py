"""What a kernel of tiles takes: the inputs by how they are read, registers, and buffers."""

from __future__ import annotations

from attrs import define

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain, Kind
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, REPEAT_BYTES
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.programs import (
    TileProgram,
    kept_tiles,
    row_tensors,
)
from evokernel_core.targets.ascendc.kernels.fused.settings import IN_LANES, Form, Schedule
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE, ONE_BYTE, STAGES

SINGLE_ROW_FLOATS = 64
"""Floats of a row tensor in the forms with one row a tile: one repeat, which Compare needs."""


@define
class Kernel:
    """What one kernel works on: its tile programs, registers and buffers."""

    plan: Plan
    schedule: Schedule
    programs: tuple[TileProgram, ...]
    accumulators: int = 0
    handed: str = ""
    """The tensor whose tiles lie in the unified buffer already, put there by another class."""

    @property
    def form(self) -> Form:
        return self.schedule.form

    @property
    def number(self) -> tuple[str, int]:
        """The C++ type that numbers of a tile are computed in, and its bytes."""
        return CPP_TYPE[self.schedule.dtype], ITEM_SIZE[self.schedule.dtype]

    @property
    def lanes(self) -> int:
        """Numbers of a tile in one repeat."""
        return REPEAT_BYTES // self.number[1]

    @property
    def work(self) -> int:
        return max(program.registers.work for program in self.programs)

    @property
    def masks(self) -> int:
        return max(program.registers.masks for program in self.programs)

    @property
    def row_names(self) -> list[str]:
        return row_tensors(self.programs, Kind.NUMBER)

    @property
    def row_masks(self) -> list[str]:
        return row_tensors(self.programs, Kind.MASK)

    @property
    def numbers(self) -> tuple[PlanInput, ...]:
        return access.as_numbers(self.plan, self.form)

    @property
    def invariants(self) -> tuple[PlanInput, ...]:
        return access.invariant_columns(self.plan, self.form)

    @property
    def queued(self) -> tuple[PlanInput, ...]:
        """Inputs that are loaded tile by tile."""
        others = {part.name for part in (*self.numbers, *self.invariants)}
        return tuple(
            operand
            for operand in self.plan.inputs
            if operand.name not in others and operand.source != self.handed
        )

    @property
    def held(self) -> tuple[PlanInput, ...]:
        """Inputs with one number a lane, which stay loaded while a unit's steps pass."""
        if self.form not in IN_LANES or self.schedule.whole:
            return ()
        return tuple(tensor for tensor in self.queued if tensor.domain is Domain.ROW)

    def buffers_of(self, tensor: PlanInput | PlanOutput) -> int:
        """Buffers of a tensor's queue: one where it is not fetched ahead, since it stays for a whole unit
        or kernel."""
        stays = self.form in IN_LANES and tensor.domain is Domain.ROW and not self.schedule.whole
        once = tensor in self.invariants or stays
        return 1 if once else self.schedule.buffers

    @property
    def tensors(self) -> tuple[PlanInput | PlanOutput, ...]:
        """Every tensor in device memory, inputs first."""
        return (
            *(operand for operand in self.plan.inputs if operand.source != self.handed),
            *self.plan.outputs,
        )

    @property
    def queue_owners(self) -> tuple[PlanInput | PlanOutput, ...]:
        """Every tensor that passes through a queue."""
        return (*self.queued, *self.plan.outputs, *self.invariants)

    @property
    def exchanged(self) -> int:
        """The most numbers that the cores of a row tell each other after a pass."""
        if self.form is not Form.SHARED:
            return 0
        shifts = (sum(statement.op == "shift" for statement in program.body) for program in self.programs)
        return self.accumulators + max(shifts)

    @property
    def row_mask_bytes(self) -> int:
        """A bit for each row, in whole blocks: masks lie one behind the other."""
        return -(-self.row_capacity // (8 * BLOCK_BYTES)) * BLOCK_BYTES

    @property
    def row_capacity(self) -> int:
        if self.form is Form.LANES:
            return self.schedule.tile
        if self.form in (Form.STEPS, Form.CHANNELS):
            return self.schedule.columns
        return self.schedule.rows if self.schedule.packed else SINGLE_ROW_FLOATS

    def calls(self, op: str) -> bool:
        return any(instruction.op == op for program in self.programs for instruction in program.instructions)

    @property
    def compares(self) -> bool:
        return self.calls("Compare") or self.calls("CompareScalar")

    @property
    def passes_bytes(self) -> bool:
        return any(
            instruction.detail in ONE_BYTE and instruction.op in ("cast_in", "cast_out")
            for program in self.programs
            for instruction in program.instructions
        )

    @property
    def stages(self) -> dict[str, str]:
        """The 16-bit tiles by name, with their type."""
        used = ["bool"] if self.passes_bytes else []
        for program in self.programs:
            used += [
                instruction.detail for instruction in program.instructions if instruction.op == "rounded"
            ]
        types = {"halfStage": "half", "bfloat16Stage": "bfloat16_t"}
        return {STAGES[dtype]: types[STAGES[dtype]] for dtype in used}

    @property
    def reduction_names(self) -> list[str]:
        if self.form in IN_LANES:  # lanes are never combined
            return []
        names = {"reduce_sum": "Sum", "reduce_max": "Max", "reduce_min": "Min"}
        return [name for op, name in names.items() if any(value.op == op for value in self.plan.reductions)]

    @property
    def folds_over_rows(self) -> bool:
        """Whether a reduction leaves a repeat of each row in a buffer of its own."""
        has_rows = bool(self.reduction_names) and self.schedule.packed
        return has_rows and self.schedule.reduction in ("fold", "standing")

    @property
    def work_names(self) -> list[str]:
        return [f"work{i}" for i in range(self.work)]

    @property
    def accumulator_names(self) -> list[str]:
        return [f"accumulator{i}" for i in range(self.accumulators)]

    @property
    def register_names(self) -> list[str]:
        """Every tile-sized tensor of numbers outside the queues."""
        return [*self.work_names, *self.accumulator_names, *kept_tiles(self.programs)]

    @property
    def narrow_ops(self) -> list[str]:
        """Operations with one value a row or a column, such as ``MulRows``."""
        result = (instruction.op for program in self.programs for instruction in program.instructions)
        return sorted({op for op in result if op.endswith(("Rows", "Columns"))})

    @property
    def broadcasts_rows(self) -> bool:
        return self.calls("expand_rows") or any(op.endswith("Rows") for op in self.narrow_ops)
