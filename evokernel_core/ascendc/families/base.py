"""What every family shares: the class around a tile program, its buffers and its constants."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from attrs import define, field

from evokernel_core.ascendc.families import access, helpers
from evokernel_core.ascendc.families.programs import TileProgram, column_tensors, row_tensors
from evokernel_core.ascendc.families.text import CPP_TYPE, STAGES
from evokernel_core.ascendc.lowering import Domain, Kind
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.ascendc.plan import Plan, PlanInput, PlanOutput
from evokernel_core.ascendc.schedule_settings import Form, Schedule
from evokernel_core.domain.tensor import ITEM_SIZE

LANES = 64
"""float32 elements of one repeat."""
SINGLE_ROW_FLOATS = 64
"""Floats of a row tensor in the forms with one row a tile: one repeat, which Compare needs."""


@define
class Buffers:
    """The unified buffer in order of allocation: name, number of buffers, elements, C++ type, bytes."""

    entries: list[tuple[str, int, str, str, int]] = field(factory=list)

    def add(self, name: str, number: int, elements: str, cpp_type: str, size: int) -> None:
        self.entries.append((name, number, elements, cpp_type, -(-size // 32) * 32))

    @property
    def total(self) -> int:
        return sum(number * size for _, number, _, _, size in self.entries)


@define
class Kernel:
    """One kernel class under construction."""

    plan: Plan
    schedule: Schedule
    programs: tuple[TileProgram, ...]
    accumulators: int = 0
    buffers: Buffers = field(factory=Buffers)
    methods: list[str] = field(factory=list)
    process: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self._allocate()

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
        others = {item.name for item in (*self.numbers, *self.invariants)}
        return tuple(item for item in self.plan.inputs if item.name not in others)

    @property
    def tensors(self) -> tuple[PlanInput | PlanOutput, ...]:
        """Every tensor in device memory, inputs first."""
        return (*self.plan.inputs, *self.plan.outputs)

    @property
    def row_capacity(self) -> int:
        return self.schedule.rows if self.schedule.packed else SINGLE_ROW_FLOATS

    def calls(self, op: str) -> bool:
        return any(item.op == op for program in self.programs for item in program.instructions)

    @property
    def compares(self) -> bool:
        return self.calls("Compare") or self.calls("CompareScalar")

    @property
    def bools(self) -> bool:
        return any(
            item.detail == "bool" and item.op in ("cast_in", "cast_out")
            for program in self.programs
            for item in program.instructions
        )

    @property
    def stages(self) -> dict[str, str]:
        """The 16-bit tiles by name, with their type."""
        used = ["bool"] if self.bools else []
        for program in self.programs:
            used += [item.detail for item in program.instructions if item.op == "rounded"]
        types = {"halfStage": "half", "bfloat16Stage": "bfloat16_t"}
        return {STAGES[dtype]: types[STAGES[dtype]] for dtype in used}

    @property
    def reduction_names(self) -> list[str]:
        names = {"reduce_sum": "Sum", "reduce_max": "Max", "reduce_min": "Min"}
        return [name for op, name in names.items() if any(value.op == op for value in self.plan.reductions)]

    @property
    def casts_rows(self) -> bool:
        return self.schedule.packed and any(
            item.op in ("cast_in", "cast_out") and item.domain is Domain.FULL
            for program in self.programs
            for item in program.instructions
        )

    # -- unified buffer -----------------------------------------------------------------------

    def _capacity(self, domain: Domain) -> tuple[str, int]:
        if domain is Domain.ROW:
            return "ROW_CAPACITY", self.row_capacity
        if domain is Domain.COLUMN and self.form is Form.PACKED:
            return "COLUMN_CAPACITY", self.schedule.columns
        return "TILE_ELEMENTS", self.schedule.tile

    def _allocate(self) -> None:
        tile, add = self.schedule.tile, self.buffers.add
        for item in self.queued:
            self._add_queue(item, self.schedule.buffers)
        for output in self.plan.outputs:
            self._add_queue(output, self.schedule.buffers)
        for item in self.invariants:
            self._add_queue(item, 1)
        registers = self.work + self.accumulators
        if registers:
            add("workBuffer", 1, _times(registers, "TILE_ELEMENTS"), "float", registers * tile * 4)
        if self.masks:
            add("maskBuffer", 1, _times(self.masks, "MASK_BYTES"), "uint8_t", self.masks * tile // 8)
        for stage, cpp_type in self.stages.items():
            add(f"{stage}Buffer", 1, "TILE_ELEMENTS", cpp_type, tile * 2)
        self._allocate_rows()
        for name in column_tensors(self.programs):
            text, elements = self._capacity(Domain.COLUMN)
            add(f"{name}Buffer", 1, text, "float", elements * 4)

    def _allocate_rows(self) -> None:
        add, rows = self.buffers.add, self.row_capacity
        if self.row_names:
            add(
                "rowBuffer",
                1,
                _times(len(self.row_names), "ROW_CAPACITY"),
                "float",
                len(self.row_names) * rows * 4,
            )
        if self.row_masks:
            add(
                "rowMaskBuffer",
                1,
                _times(len(self.row_masks), "ROW_MASK_BYTES"),
                "uint8_t",
                len(self.row_masks) * 32,
            )
        if self.calls("expand_rows"):
            add("blockBuffer", 1, "ROW_CAPACITY * FLOATS_PER_BLOCK", "float", rows * 32)
        if self.reduction_names and self.folds_over_rows:
            add("foldBuffer", 1, "ROW_CAPACITY * LANES", "float", rows * LANES * 4)
        elif self.reduction_names:
            tile = self.schedule.tile
            add("foldBuffer", 1, "FOLD_EVEN + FOLD_ODD", "float", (_fold(tile, 8) + _fold(tile, 64)) * 4)

    @property
    def folds_over_rows(self) -> bool:
        return self.schedule.packed and self.schedule.reduction == "fold"

    def _add_queue(self, item: PlanInput | PlanOutput, buffers: int) -> None:
        text, elements = self._capacity(item.domain)
        size = elements * ITEM_SIZE[item.dtype]
        self.buffers.add(f"{camel(item.name)}Queue", buffers, text, CPP_TYPE[item.dtype], size)

    # -- text ---------------------------------------------------------------------------------

    def source(self, name: str) -> str:
        """op_kernel.cpp."""
        class_name = "".join(part.capitalize() for part in name.split("_") if part) + "Kernel"
        tensors = [camel(tensor) for tensor, _ in self.plan.tensors] + [
            camel(o.name) for o in self.plan.outputs
        ]
        arguments = ", ".join(f"GM_ADDR {tensor}" for tensor in tensors)
        passed = ", ".join(f"tensors[{i}]" for i in range(len(tensors)))
        used = ", ".join(dict.fromkeys(self._used_tensors()))
        return f"""\
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

{self._constants()}
class {class_name} {{
public:
    __aicore__ inline {class_name}() {{}}
{indent(self._init(), "    ")}
{indent(self._process(), "    ")}
private:
{indent(chr(10).join(self.methods + self._helpers()), "    ")}
{indent(self._members(), "    ")}}};

extern "C" __global__ __vector__ void {name}_kernel({arguments}, GM_ADDR workspace, OpTiling tiling)
{{
    TPipe pipe;
    {class_name} op;
    op.Init({used}, tiling, &pipe);
    op.Process();
}}

extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{{
    {name}_kernel<<<tiling.blockDim, nullptr, stream>>>({passed}, workspace, tiling);
}}
"""

    def _used_tensors(self) -> list[str]:
        return [camel(item.source) for item in self.plan.inputs] + [camel(o.name) for o in self.plan.outputs]

    def _constants(self) -> str:
        lines = [
            f"constexpr int32_t BUFFER_NUM = {self.schedule.buffers};{_buffer_comment(self.schedule.buffers)}"
        ]
        text = "\n".join([*self.methods, *self._helpers(), self._init(), *self.process])
        known = {
            "BLOCK_BYTES": "uint32_t BLOCK_BYTES = 32;",
            "LANES": "uint32_t LANES = 64; // float32 elements of one repeat",
            "FLOATS_PER_BLOCK": "uint32_t FLOATS_PER_BLOCK = 8;",
            "BLOCKS_PER_REPEAT": "uint8_t BLOCKS_PER_REPEAT = 8;",
            "MASK_BYTES": "uint32_t MASK_BYTES = TILE_ELEMENTS / 8; // one bit an element",
            "ROW_MASK_BYTES": "uint32_t ROW_MASK_BYTES = 32;",
            "MASK_BITS_PER_WORD": "uint32_t MASK_BITS_PER_WORD = 16;",
            "FOLD_EVEN": f"uint32_t FOLD_EVEN = {_fold(self.schedule.tile, 8)};",
            "FOLD_ODD": f"uint32_t FOLD_ODD = {_fold(self.schedule.tile, 64)};",
            "INFINITE": "float INFINITE = __builtin_inff();",
        }
        if self.schedule.packed:
            del known["FLOATS_PER_BLOCK"]  # tiling.h has it
        lines.extend(f"constexpr {known[key]}" for key in known if _mentions(text, key))
        return "\n".join(lines) + "\n"

    def _init(self) -> str:
        tensors = list(dict.fromkeys(self._used_tensors()))
        arguments = ", ".join(f"GM_ADDR {tensor}" for tensor in tensors)
        body = ["tiling_ = tiling;", *self._globals(), *self._init_buffers(), *self._locals()]
        return f"""\
__aicore__ inline void Init({arguments}, const OpTiling &tiling, TPipe *pipe)
{{
{indent(chr(10).join(body), "    ")}
}}
"""

    def _globals(self) -> list[str]:
        lines = []
        for item in self.tensors:
            source = item.source if isinstance(item, PlanInput) else item.name
            cpp_type, name = CPP_TYPE[item.dtype], camel(item.name)
            lines.append(
                f"{name}Global.SetGlobalBuffer(reinterpret_cast<__gm__ {cpp_type} *>({camel(source)}));"
            )
        if self.schedule.bypass_l2:
            lines.append("// Every element is used once: keep it out of the shared L2 cache.")
            lines += [
                f"{camel(item.name)}Global.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);"
                for item in self._queue_owners()
                if item.domain is Domain.FULL
            ]
        return lines

    def _init_buffers(self) -> list[str]:
        queues = {f"{camel(item.name)}Queue": item for item in self._queue_owners()}
        lines = []
        for name, number, elements, cpp_type, _ in self.buffers.entries:
            size = (
                f"{elements} * sizeof({cpp_type})"
                if " + " not in elements
                else f"({elements}) * sizeof({cpp_type})"
            )
            count = "BUFFER_NUM, " if number == self.schedule.buffers else f"{number}, "
            lines.append(f"pipe->InitBuffer({name}, {count if name in queues else ''}{size});")
        return lines

    def _queue_owners(self) -> tuple[PlanInput | PlanOutput, ...]:
        return (*self.queued, *self.plan.outputs, *self.invariants)

    def _locals(self) -> list[str]:
        """Names for the registers inside the buffers."""
        lines: list[str] = []
        names = [f"work{i}" for i in range(self.work)] + [f"accumulator{i}" for i in range(self.accumulators)]
        lines += _parts("workBuffer", names, "float", "TILE_ELEMENTS")
        lines += _parts("maskBuffer", [f"mask{i}" for i in range(self.masks)], "uint8_t", "MASK_BYTES")
        lines += [f"{stage} = {stage}Buffer.Get<{kind}>();" for stage, kind in self.stages.items()]
        lines += _parts("rowBuffer", self.row_names, "float", "ROW_CAPACITY")
        lines += _parts("rowMaskBuffer", self.row_masks, "uint8_t", "ROW_MASK_BYTES")
        lines += ["blocks = blockBuffer.Get<float>();"] if self.calls("expand_rows") else []
        if self.reduction_names:
            lines += (
                ["fold = foldBuffer.Get<float>();"]
                if self.folds_over_rows
                else ["foldEven = foldBuffer.Get<float>();", "foldOdd = foldEven[FOLD_EVEN];"]
            )
        lines += [f"{name} = {name}Buffer.Get<float>();" for name in column_tensors(self.programs)]
        return lines + self._zeroing()

    def _zeroing(self) -> list[str]:
        lines: list[str] = []
        if self.compares and self.work:
            lines.append(
                "// Compare reads whole repeats: lanes behind a short tile must hold defined numbers."
            )
            lines.append(f"Duplicate(work0, 0.0f, {_times(self.work, 'TILE_ELEMENTS')});")
        if self.row_names and (self.compares or self.calls("expand_rows")):
            lines.append("// Row tensors are read in whole blocks and repeats.")
            lines.append(
                f"Duplicate({self.row_names[0]}, 0.0f, {_times(len(self.row_names), 'ROW_CAPACITY')});"
            )
        if self.compares:
            text, _ = self._capacity(Domain.COLUMN)
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
            if not self.folds_over_rows:
                result.append(helpers.reduce_row(name))
        if self.calls("expand_rows"):
            result.append(helpers.spread_rows(self.schedule))
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
        loaded = (*self.queued, *self.invariants)
        lines += [f"TQue<TPosition::VECIN, 1> {camel(item.name)}Queue;" for item in loaded]
        lines += [f"TQue<TPosition::VECOUT, 1> {camel(item.name)}Queue;" for item in self.plan.outputs]
        queues = len(self.queued) + len(self.invariants) + len(self.plan.outputs)
        lines += [f"TBuf<TPosition::VECCALC> {name};" for name, *_ in self.buffers.entries[queues:]]
        for item in self.tensors:
            lines.append(f"GlobalTensor<{CPP_TYPE[item.dtype]}> {camel(item.name)}Global;")
        lines += self._local_members()
        lines += [f"float {name};" for name in self._number_members()]
        return "\n".join(lines) + "\n"

    def _number_members(self) -> list[str]:
        names = [f"{camel(item.name)}Value" for item in self.numbers]
        if self.form is Form.STREAM:  # numbers of a row outlive the pass that made them
            items = [item for program in self.programs for item in program.instructions]
            names += [item.scalar for item in items if item.op == "get_value"]
        return names

    def _local_members(self) -> list[str]:
        names = [f"work{i}" for i in range(self.work)] + [f"accumulator{i}" for i in range(self.accumulators)]
        names += self.row_names + column_tensors(self.programs)
        names += ["blocks"] if self.calls("expand_rows") else []
        if self.reduction_names:
            names += ["fold"] if self.folds_over_rows else ["foldEven", "foldOdd"]
        lines = [f"LocalTensor<float> {name};" for name in names]
        lines += [f"LocalTensor<{CPP_TYPE[item.dtype]}> {camel(item.name)}Local;" for item in self.invariants]
        lines += [f"LocalTensor<uint8_t> mask{i};" for i in range(self.masks)]
        lines += [f"LocalTensor<uint8_t> {name};" for name in self.row_masks]
        return lines + [f"LocalTensor<{kind}> {stage};" for stage, kind in self.stages.items()]

    # -- steps that the forms share -----------------------------------------------------------

    def read_numbers(self) -> tuple[list[str], list[str]]:
        """Statements that read single numbers: those read once, and those read for each row."""
        once: list[str] = []
        each: list[str] = []
        for item in self.numbers:
            line = f"{camel(item.name)}Value = {access.read_number(self.plan, item)};"
            (each if "row" in access.row_index(self.plan, item) else once).append(line)
        return once, each

    def load_invariants(self) -> list[str]:
        """Statements that load the column tensors which stay for the whole kernel."""
        lines: list[str] = []
        for item in self.invariants:
            name, cpp_type = camel(item.name), CPP_TYPE[item.dtype]
            lines += [
                f"{name}Local = {name}Queue.AllocTensor<{cpp_type}>();",
                *copy_call(f"{name}Local", f"{name}Global", _piece("tiling_.columns", cpp_type), cpp_type),
                f"{name}Queue.EnQue({name}Local);",
                f"{name}Local = {name}Queue.DeQue<{cpp_type}>();",
            ]
        return lines

    def free_invariants(self) -> list[str]:
        return [f"{camel(item.name)}Queue.FreeTensor({camel(item.name)}Local);" for item in self.invariants]

    def copy_in(self, name: str, inputs: Sequence[PlanInput], parameters: str) -> str:
        lines: list[str] = []
        for item in inputs:
            stem, cpp_type = camel(item.name), CPP_TYPE[item.dtype]
            start = access.offset(self.plan, item, self.form)
            lines += [
                f"LocalTensor<{cpp_type}> {stem}Local = {stem}Queue.AllocTensor<{cpp_type}>();",
                *copy_call(f"{stem}Local", f"{stem}Global[{start}]", self._copy(item), cpp_type),
                f"{stem}Queue.EnQue({stem}Local);",
            ]
        return method(name, parameters, lines)

    def copy_out(self, parameters: str, outputs: Sequence[PlanOutput], name: str = "CopyOut") -> str:
        lines: list[str] = []
        for item in outputs:
            stem, cpp_type = camel(item.name), CPP_TYPE[item.dtype]
            start = access.output_offset(item, self.form)
            lines += [
                f"LocalTensor<{cpp_type}> {stem}Local = {stem}Queue.DeQue<{cpp_type}>();",
                *copy_call(f"{stem}Global[{start}]", f"{stem}Local", self._copy(item)),
                f"{stem}Queue.FreeTensor({stem}Local);",
            ]
        return method(name, parameters, lines)

    def _copy(self, item: PlanInput | PlanOutput) -> str:
        cpp_type = CPP_TYPE[item.dtype]
        if self.schedule.packed and item.domain is Domain.FULL:
            return f"RowCopy<{cpp_type}>(rows)"
        elements = "count"
        if item.domain is Domain.ROW:
            elements = "rows" if self.schedule.packed else "1"
        elif self.schedule.packed:
            elements = "tiling_.columns"
        return _piece(elements, cpp_type)

    def receive(self, inputs: Sequence[PlanInput]) -> list[str]:
        return [
            f"LocalTensor<{CPP_TYPE[item.dtype]}> {camel(item.name)}Local = "
            f"{camel(item.name)}Queue.DeQue<{CPP_TYPE[item.dtype]}>();"
            for item in inputs
        ]

    def release(self, inputs: Sequence[PlanInput]) -> list[str]:
        return [f"{camel(item.name)}Queue.FreeTensor({camel(item.name)}Local);" for item in inputs]

    def allocate_outputs(self, outputs: Sequence[PlanOutput]) -> list[str]:
        return [
            f"LocalTensor<{CPP_TYPE[item.dtype]}> {camel(item.name)}Local = "
            f"{camel(item.name)}Queue.AllocTensor<{CPP_TYPE[item.dtype]}>();"
            for item in outputs
        ]

    def send(self, outputs: Sequence[PlanOutput]) -> list[str]:
        return [f"{camel(item.name)}Queue.EnQue({camel(item.name)}Local);" for item in outputs]


def method(name: str, parameters: str, lines: Sequence[str]) -> str:
    body = indent("\n".join(lines), "    ")
    return f"__aicore__ inline void {name}({parameters})\n{{\n{body}\n}}\n"


def _piece(elements: str, cpp_type: str) -> str:
    """The parameters of a copy of one piece."""
    if elements == "1":
        return f"DataCopyExtParams{{1, sizeof({cpp_type}), 0, 0, 0}}"
    return f"DataCopyExtParams{{1, static_cast<uint32_t>({elements} * sizeof({cpp_type})), 0, 0, 0}}"


def copy_call(target: str, source: str, shape: str, padded: str = "") -> list[str]:
    """A DataCopyPad, broken where it is long; ``padded`` is the type of a copy into the core."""
    tail = f", DataCopyPadExtParams<{padded}>{{false, 0, 0, 0}});" if padded else ");"
    return [f"DataCopyPad({target}, {source},", f"    {shape}{tail}"]


def _mentions(text: str, name: str) -> bool:
    padded = "".join(char if char.isalnum() or char == "_" else " " for char in text)
    return name in padded.split()


def _buffer_comment(buffers: int) -> str:
    return " // the next tile is copied while this one is computed" if buffers == 2 else ""


def _times(number: int, name: str) -> str:
    return name if number == 1 else f"{number} * {name}"


def _parts(buffer: str, names: Sequence[str], cpp_type: str, size: str) -> list[str]:
    lines = []
    for position, name in enumerate(names):
        start = f"[{_times(position, size)}]" if position else ""
        base = f"{buffer}.Get<{cpp_type}>()" if position == 0 else names[0]
        lines.append(f"{name} = {base}{start};")
    return lines


def _fold(tile: int, ratio: int) -> int:
    """Floats of one fold level, a multiple of a block."""
    return -(-tile // ratio // 8) * 8
