"""The text of a class whose tiles another kernel hands it, behind a product or a convolution."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from textwrap import indent

from attrs import define, field

from evokernel_core.compiler.lowering.plan import PlanInput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.kernels.conv_transpose import piece_helpers as helpers
from evokernel_core.targets.ascendc.kernels.conv_transpose.piece_instructions import words_of
from evokernel_core.targets.ascendc.kernels.fused.banks import SHIFT_BYTES
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import FLOATS_PER_BLOCK, capacity, layout, times
from evokernel_core.targets.ascendc.kernels.fused.programs import column_tensors
from evokernel_core.targets.ascendc.kernels.fused.settings import Form
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.lowering.program import camel


@define
class ClassKernel(Kernel):
    """One class under construction. ``public``: methods that another class calls."""

    methods: list[str] = field(factory=list)
    public: list[str] = field(factory=list)

    @property
    def casts_rows(self) -> bool:
        return self.schedule.packed and any(
            instruction.op in ("cast_in", "cast_out") and instruction.domain is Domain.FULL
            for program in self.programs
            for instruction in program.instructions
        )

    def class_text(self, class_name: str) -> str:
        """The class, with ``Init(tensors, tiling, pipe)`` and what another class calls."""
        return f"""\
class {class_name} {{
public:
    __aicore__ inline {class_name}() {{}}
{indent(self._init(), "    ")}
{indent(chr(10).join(self.public), "    ")}
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
        text = "\n".join([*self.methods, *self._helpers(), self._init()])
        known = {
            "BLOCK_BYTES": "uint32_t BLOCK_BYTES = 32;",
            "LANES": f"uint32_t LANES = {LANES}; // float32 elements of one repeat",
            "FLOATS_PER_BLOCK": f"uint32_t FLOATS_PER_BLOCK = {FLOATS_PER_BLOCK};",
            "BLOCKS_PER_REPEAT": "uint8_t BLOCKS_PER_REPEAT = 8;",
            "MASK_BYTES": "uint32_t MASK_BYTES = TILE_ELEMENTS / 8; // one bit an element",
            "ROW_MASK_BYTES": f"uint32_t ROW_MASK_BYTES = {self.row_mask_bytes};",
            "MASK_BITS_PER_WORD": "uint32_t MASK_BITS_PER_WORD = 16;",
            "BANK_SHIFT_BYTES": f"uint32_t BANK_SHIFT_BYTES = {SHIFT_BYTES};",
            "INFINITE": "float INFINITE = __builtin_inff();",
        }
        if self.schedule.packed:
            del known["FLOATS_PER_BLOCK"]  # tiling.h has it
        wanted = words_of(text) - set(others)
        lines.extend(f"constexpr {known[key]}" for key in known if key in wanted)
        return "\n".join(lines) + "\n"

    def _init(self) -> str:
        arguments = ", ".join(f"GM_ADDR {tensor}" for tensor in self.used_tensors)
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
        return lines

    def _init_buffers(self) -> list[str]:
        lines = []
        for buffer in layout(self).buffers:
            if buffer.name == "bankShift":
                lines.append("// What follows lies half a turn of the bank groups further.")
            size = f"({buffer.elements})" if " + " in buffer.elements else buffer.elements
            if buffer.cpp_type != "uint8_t":
                size += f" * sizeof({buffer.cpp_type})"
            number = "BUFFER_NUM" if buffer.number == self.schedule.buffers else str(buffer.number)
            lines.append(f"pipe->InitBuffer({buffer.name}, {f'{number}, ' if buffer.queue else ''}{size});")
        return lines

    def _register_groups(self) -> list[tuple[str, list[str]]]:
        names, shifted = self.register_names, layout(self).shifted
        groups = [
            ("workBuffer", [name for name in names if name not in shifted]),
            ("shiftedBuffer", [name for name in names if name in shifted]),
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
        lines += ["blocks = blockBuffer.Get<float>();"] if self.broadcasts_rows else []
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

    def _helpers(self) -> list[str]:
        result: list[str] = []
        calls = "\n".join(self.methods)
        if self.calls("expand_rows"):
            result.append(helpers.spread_rows(self.schedule))
        result += [helpers.narrow(op, self.schedule) for op in self.narrow_ops]
        if self.calls("expand_columns"):
            result.append(helpers.repeat_columns(self.schedule))
        if self.casts_rows:
            result += [helpers.row_pitch(), helpers.cast_rows()]
        if "WholeRepeats(" in calls:
            result.append(helpers.whole_repeats())
        return result

    def _members(self) -> str:
        lines = ["OpTiling tiling_;"]
        for queued in self.queued:
            depth = "BUFFER_NUM" if self.buffers_of(queued) > 1 else "1"
            lines.append(f"TQue<TPosition::VECIN, {depth}> {camel(queued.name)}Queue;")
        lines += [f"TQue<TPosition::VECOUT, 1> {camel(output.name)}Queue;" for output in self.plan.outputs]
        scratch = [buffer.name for buffer in layout(self).buffers if not buffer.queue]
        lines += [f"TBuf<TPosition::VECCALC> {name};" for name in scratch]
        for tensor in self.tensors:
            lines.append(f"GlobalTensor<{CPP_TYPE[tensor.dtype]}> {camel(tensor.name)}Global;")
        if self.form is Form.CHANNELS:
            lines += ["uint64_t outer;", "uint64_t column;", "uint32_t lanes;", "uint32_t pitch;"]
        lines += self._local_members()
        lines += [f"float {camel(number.name)}Value;" for number in self.numbers]
        return "\n".join(lines) + "\n"

    def _local_members(self) -> list[str]:
        names = [*self.register_names]
        names += self.row_names + column_tensors(self.programs)
        names += ["blocks"] if self.broadcasts_rows else []
        lines = [f"LocalTensor<float> {name};" for name in names]
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
