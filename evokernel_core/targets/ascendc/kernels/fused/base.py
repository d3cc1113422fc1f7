"""What every family shares: the class around a tile program, its buffers and its constants."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from textwrap import indent

from attrs import define, field

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain, Kind
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.kernels.fused import access, helpers
from evokernel_core.targets.ascendc.kernels.fused.banks import SHIFT_BYTES
from evokernel_core.targets.ascendc.kernels.fused.buffers import (
    FLOATS_PER_BLOCK,
    Layout,
    capacity,
    fold,
    layout,
    times,
)
from evokernel_core.targets.ascendc.kernels.fused.programs import (
    TileProgram,
    column_tensors,
    kept_tiles,
    row_tensors,
)
from evokernel_core.targets.ascendc.kernels.fused.settings import IN_LANES, IN_PIECES, Form, Schedule
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE, ONE_BYTE, STAGES, words_of
from evokernel_core.targets.ascendc.lowering.program import camel

SINGLE_ROW_FLOATS = 64
"""Floats of a row tensor in the forms with one row a tile: one repeat, which Compare needs."""


@define
class Kernel:
    """One kernel class under construction."""

    plan: Plan
    schedule: Schedule
    programs: tuple[TileProgram, ...]
    accumulators: int = 0
    methods: list[str] = field(factory=list)
    process: list[str] = field(factory=list)
    handed: str = ""
    """The tensor whose tiles lie in the unified buffer already, put there by another class."""
    public: list[str] = field(factory=list)
    """Methods that another class calls, instead of ``Process``."""
    layout: Layout = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.layout = layout(self)

    # -- facts --------------------------------------------------------------------------------

    @property
    def form(self) -> Form:
        return self.schedule.form

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
    def casts_rows(self) -> bool:
        return self.schedule.packed and any(
            instruction.op in ("cast_in", "cast_out") and instruction.domain is Domain.FULL
            for program in self.programs
            for instruction in program.instructions
        )

    @property
    def folds_over_rows(self) -> bool:
        return bool(self.reduction_names) and self.schedule.packed and self.schedule.reduction == "fold"

    @property
    def work_names(self) -> list[str]:
        return [f"work{i}" for i in range(self.work)]

    @property
    def accumulator_names(self) -> list[str]:
        return [f"accumulator{i}" for i in range(self.accumulators)]

    @property
    def register_names(self) -> list[str]:
        """Every tile-sized float32 tensor outside the queues."""
        return [*self.work_names, *self.accumulator_names, *kept_tiles(self.programs)]

    @property
    def narrow_ops(self) -> list[str]:
        """Operations with one value a row or a column, such as ``MulRows``."""
        result = (instruction.op for program in self.programs for instruction in program.instructions)
        return sorted({op for op in result if op.endswith(("Rows", "Columns"))})

    @property
    def broadcasts_rows(self) -> bool:
        return self.calls("expand_rows") or any(op.endswith("Rows") for op in self.narrow_ops)

    # -- text ---------------------------------------------------------------------------------

    def text(self, name: str) -> str:
        """The constants, the class and the global function ``<name>_kernel``."""
        class_name = "".join(part.capitalize() for part in name.split("_") if part) + "Kernel"
        tensors = [camel(tensor) for tensor, _ in self.plan.tensors] + [
            camel(o.name) for o in self.plan.outputs
        ]
        arguments = ", ".join(f"GM_ADDR {tensor}" for tensor in tensors)
        used = ", ".join(self.used_tensors)
        kind = "__mix__(0, 1)" if self.exchanged else "__vector__"  # cores meet in a mixed launch only
        scratch = ", workspace" if self.exchanged else ""
        return f"""\
{self.constants()}
{self.class_text(class_name)}
extern "C" __global__ {kind} void {name}_kernel({arguments}, GM_ADDR workspace, OpTiling tiling)
{{
    TPipe pipe;
    {class_name} op;
    op.Init({used}{scratch}, tiling, &pipe);
    op.Process();
}}
"""

    def class_text(self, class_name: str) -> str:
        """The class, with ``Init(tensors, tiling, pipe)`` and ``Process()``."""
        return f"""\
class {class_name} {{
public:
    __aicore__ inline {class_name}() {{}}
{indent(self._init(), "    ")}
{indent(chr(10).join(self.public) or self._process(), "    ")}
private:
{indent(chr(10).join(self.methods + self._helpers()), "    ")}
{indent(self._members(), "    ")}}};
"""

    @property
    def used_tensors(self) -> tuple[str, ...]:
        """The tensors that the class takes, in order."""
        names = [tensor.source if isinstance(tensor, PlanInput) else tensor.name for tensor in self.tensors]
        return tuple(dict.fromkeys(map(camel, names)))

    def constants(self, others: Collection[str] = ()) -> str:
        """The constants of the class that tiling.h does not have, nor what stands beside the class, which has
        the ``others``."""
        lines = [
            f"constexpr int32_t BUFFER_NUM = {self.schedule.buffers};{_buffer_comment(self.schedule.buffers)}"
        ]
        text = "\n".join([*self.methods, *self._helpers(), self._init(), *self.process])
        known = {
            "BLOCK_BYTES": "uint32_t BLOCK_BYTES = 32;",
            "LANES": f"uint32_t LANES = {LANES}; // float32 elements of one repeat",
            "FLOATS_PER_BLOCK": f"uint32_t FLOATS_PER_BLOCK = {FLOATS_PER_BLOCK};",
            "BLOCKS_PER_REPEAT": "uint8_t BLOCKS_PER_REPEAT = 8;",
            "MASK_BYTES": "uint32_t MASK_BYTES = TILE_ELEMENTS / 8; // one bit an element",
            "ROW_MASK_BYTES": f"uint32_t ROW_MASK_BYTES = {self.row_mask_bytes};",
            "MASK_BITS_PER_WORD": "uint32_t MASK_BITS_PER_WORD = 16;",
            "FOLD_EVEN": f"uint32_t FOLD_EVEN = {fold(self.schedule.tile, 8)};",
            "FOLD_ODD": f"uint32_t FOLD_ODD = {fold(self.schedule.tile, 64)};",
            "BANK_SHIFT_BYTES": f"uint32_t BANK_SHIFT_BYTES = {SHIFT_BYTES};",
            "ALIGNED_ELEMENTS": "uint64_t ALIGNED_ELEMENTS = 128;",
            "INFINITE": "float INFINITE = __builtin_inff();",
        }
        if self.schedule.packed:
            del known["FLOATS_PER_BLOCK"]  # tiling.h has it
        wanted = words_of(text) - set(others)
        lines.extend(f"constexpr {known[key]}" for key in known if key in wanted)
        return "\n".join(lines) + "\n"

    def _init(self) -> str:
        arguments = ", ".join(f"GM_ADDR {tensor}" for tensor in self.used_tensors)
        arguments += ", GM_ADDR workspace" if self.exchanged else ""
        body = ["tiling_ = tiling;", *self._globals(), *self._init_buffers(), *self._locals()]
        return f"""\
__aicore__ inline void Init({arguments}, const OpTiling &tiling, TPipe *pipe)
{{
{indent(chr(10).join(body), "    ")}
}}
"""

    def _globals(self) -> list[str]:
        lines = []
        for tensor in self.tensors:
            source = tensor.source if isinstance(tensor, PlanInput) else tensor.name
            cpp_type, name = CPP_TYPE[tensor.dtype], camel(tensor.name)
            lines.append(
                f"{name}Global.SetGlobalBuffer(reinterpret_cast<__gm__ {cpp_type} *>({camel(source)}));"
            )
        if self.exchanged:
            lines.append("exchangeGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(workspace));")
        if self.schedule.bypass_l2:
            lines.append("// Every element is used once: keep it out of the shared L2 cache.")
            lines += [
                f"{camel(queue_owner.name)}Global.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);"
                for queue_owner in self.queue_owners
                if queue_owner.domain is Domain.FULL
            ]
        return lines

    def _init_buffers(self) -> list[str]:
        lines = []
        for buffer in self.layout.buffers:
            if buffer.name == "bankShift":
                lines.append("// What follows lies half a turn of the bank groups further.")
            size = f"({buffer.elements})" if " + " in buffer.elements else buffer.elements
            if buffer.cpp_type != "uint8_t":
                size += f" * sizeof({buffer.cpp_type})"
            number = "BUFFER_NUM" if buffer.number == self.schedule.buffers else str(buffer.number)
            lines.append(f"pipe->InitBuffer({buffer.name}, {f'{number}, ' if buffer.queue else ''}{size});")
        return lines

    def _register_groups(self) -> list[tuple[str, list[str]]]:
        names = self.register_names
        groups = [
            ("workBuffer", [name for name in names if name not in self.layout.shifted]),
            ("shiftedBuffer", [name for name in names if name in self.layout.shifted]),
        ]
        return [(buffer, members) for buffer, members in groups if members]

    def _locals(self) -> list[str]:
        """Names for the registers inside the buffers."""
        lines: list[str] = []
        for buffer, names in self._register_groups():
            lines += _parts(buffer, names, "float", "TILE_ELEMENTS")
        lines += _parts("maskBuffer", [f"mask{i}" for i in range(self.masks)], "uint8_t", "MASK_BYTES")
        lines += [f"{stage} = {stage}Buffer.Get<{kind}>();" for stage, kind in self.stages.items()]
        lines += _parts("rowBuffer", self.row_names, "float", "ROW_CAPACITY")
        lines += _parts("rowMaskBuffer", self.row_masks, "uint8_t", "ROW_MASK_BYTES")
        lines += ["exchanged = exchangeBuffer.Get<float>();"] if self.exchanged else []
        lines += ["blocks = blockBuffer.Get<float>();"] if self.broadcasts_rows else []
        if self.folds_over_rows:
            lines.append("fold = foldBuffer.Get<float>();")
        elif self.reduction_names:
            lines += ["foldEven = foldBuffer.Get<float>();", "foldOdd = foldEven[FOLD_EVEN];"]
        lines += [f"{name} = {name}Buffer.Get<float>();" for name in column_tensors(self.programs)]
        return lines + self._zeroing()

    def _zeroing(self) -> list[str]:
        lines: list[str] = []
        if self.compares and self.work:
            lines.append("// Compare reads whole repeats: lanes behind a short tile must be defined.")
            for _, names in self._register_groups():
                lines.append(f"Duplicate({names[0]}, 0.0f, {times(len(names), 'TILE_ELEMENTS')});")
        if self.row_names and (self.compares or self.broadcasts_rows):
            size = times(len(self.row_names), "ROW_CAPACITY")
            lines.append("// Row tensors are read in whole blocks and repeats.")
            lines.append(f"Duplicate({self.row_names[0]}, 0.0f, {size});")
        if self.compares:
            text, _ = capacity(self, Domain.COLUMN)
            lines += [f"Duplicate({name}, 0.0f, {text});" for name in column_tensors(self.programs)]
        return lines

    def _process(self) -> str:
        return "__aicore__ inline void Process()\n{\n" + indent("\n".join(self.process), "    ") + "\n}\n"

    def _helpers(self) -> list[str]:
        result: list[str] = []
        calls = "\n".join(self.methods)
        for name in self.reduction_names:
            if self.schedule.packed:
                result.append(helpers.reduce_rows(name, self.schedule))
            if not self.schedule.packed or self.schedule.reduction == "block":
                result.append(helpers.reduce_row(name))
        if self.calls("expand_rows"):
            result.append(helpers.spread_rows(self.schedule))
        result += [helpers.narrow(op, self.schedule) for op in self.narrow_ops]
        if self.calls("expand_columns"):
            result.append(helpers.repeat_columns(self.schedule))
        if self.casts_rows:
            result += [helpers.row_pitch(), helpers.cast_rows()]
        if "RowCopy<" in calls:
            result.append(helpers.copy_params())
        if "WholeRepeats(" in calls:
            result.append(helpers.whole_repeats())
        return result

    def _members(self) -> str:
        lines = ["OpTiling tiling_;"]
        for queued in (*self.queued, *self.invariants):
            depth = "BUFFER_NUM" if self.buffers_of(queued) > 1 else "1"
            lines.append(f"TQue<TPosition::VECIN, {depth}> {camel(queued.name)}Queue;")
        lines += [f"TQue<TPosition::VECOUT, 1> {camel(output.name)}Queue;" for output in self.plan.outputs]
        scratch = [buffer.name for buffer in self.layout.buffers if not buffer.queue]
        lines += [f"TBuf<TPosition::VECCALC> {name};" for name in scratch]
        for tensor in self.tensors:
            lines.append(f"GlobalTensor<{CPP_TYPE[tensor.dtype]}> {camel(tensor.name)}Global;")
        if self.exchanged:
            lines.append("GlobalTensor<float> exchangeGlobal;")
            lines += [
                f"uint64_t {name};" for name in ("member", "share", "firstTile", "endTile", "exchanges")
            ]
        if self.form is Form.CHANNELS:
            lines += ["uint64_t outer;", "uint64_t column;", "uint32_t lanes;", "uint32_t pitch;"]
        lines += self._local_members()
        lines += [f"float {name};" for name in self._number_members()]
        lines += [f"bool {name}Known;" for name in self._shifts()]
        return "\n".join(lines) + "\n"

    def _shifts(self) -> list[str]:
        """The numbers that a row's first tile gives."""
        items = (statement for program in self.programs for statement in program.body)
        return [item.scalar.cpp() for item in items if item.op == "shift" and item.scalar is not None]

    def _number_members(self) -> list[str]:
        names = [f"{camel(number.name)}Value" for number in self.numbers]
        if self.form in IN_PIECES:  # numbers of a row outlive the pass that made them
            items = [instruction for program in self.programs for instruction in program.instructions]
            read = [item.scalar for item in items if item.op in ("get_value", "shift")]
            names += [number.cpp() for number in read if number is not None]
        return names

    def _local_members(self) -> list[str]:
        names = [*self.register_names]
        names += self.row_names + column_tensors(self.programs)
        names += ["blocks"] if self.broadcasts_rows else []
        names += ["exchanged"] if self.exchanged else []
        if self.folds_over_rows:
            names.append("fold")
        elif self.reduction_names:
            names += ["foldEven", "foldOdd"]
        lines = [f"LocalTensor<float> {name};" for name in names]
        lines += [
            f"LocalTensor<{CPP_TYPE[part.dtype]}> {camel(part.name)}Local;"
            for part in (*self.invariants, *self.held)
        ]
        lines += [f"LocalTensor<uint8_t> mask{i};" for i in range(self.masks)]
        lines += [f"LocalTensor<uint8_t> {name};" for name in self.row_masks]
        return lines + [f"LocalTensor<{kind}> {stage};" for stage, kind in self.stages.items()]


def _buffer_comment(buffers: int) -> str:
    return " // the next tile is copied while this one is computed" if buffers == 2 else ""


def _parts(buffer: str, names: Sequence[str], cpp_type: str, size: str) -> list[str]:
    lines = []
    for position, name in enumerate(names):
        start = f"[{times(position, size)}]" if position else ""
        base = f"{buffer}.Get<{cpp_type}>()" if position == 0 else names[0]
        lines.append(f"{name} = {base}{start};")
    return lines
