"""From the instructions of a tile program to those of the IR: registers are slices, operations table rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import define, field

from evokernel_core.compiler.lowering.integers import INTEGERS
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.hardware.ascend.isa import LANES, REPEAT_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, read_as
from evokernel_core.targets.ascendc.ir.expr import Constant, Expr, State, Var, ceil_div, round_up
from evokernel_core.targets.ascendc.ir.floats import HALF
from evokernel_core.targets.ascendc.ir.nodes import Converted, Enumerator, Operand, Slice
from evokernel_core.targets.ascendc.kernels.text import ONE_BYTE, STAGES
from evokernel_core.targets.ascendc.lowering.program import Instruction
from evokernel_core.targets.ascendc.lowering.registers import Registers

PLAIN = frozenset(("Add", "Sub", "Mul", "Div", "Max", "Min", "Adds", "Muls", "Maxs", "Mins", "LeakyRelu")) | {
    "Exp",
    "Ln",
    "Sqrt",
    "Abs",
    "Relu",
    "Duplicate",
}
"""Operations that are an instruction on tensors and, behind them, the number."""
_TENSORS = Enumerator("SELMODE::VSEL_TENSOR_TENSOR_MODE")
_NUMBER = Enumerator("SELMODE::VSEL_TENSOR_SCALAR_MODE")
_WORD_BITS = 16
WIDTH = Constant("LANES", LANES, "float32 elements of one repeat")
HALF_WIDTH = Constant("HALF_LANES", 2 * LANES, "float16 elements of one repeat")


def rounding(mode: str) -> Enumerator:
    """How a cast rounds."""
    return Enumerator(f"RoundMode::{mode}")


@define
class Selector:
    """Writes the instructions of tile programs. ``places``: where registers lie; ``counts``: the elements of
    a tensor of each domain; ``special``: what writes the operations that depend on how rows lie."""

    k: Builder
    places: Mapping[str, Slice]
    counts: Mapping[Domain, Expr]
    special: Mapping[str, Callable[[Instruction, list[Slice]], None]] = field(factory=dict)
    _origin: str = ""

    def write(self, items: Iterable[Instruction], registers: Registers) -> None:
        """Every instruction, with a note where another node of the graph begins."""
        for item in items:
            if item.origin and item.origin != self._origin:
                self._origin = item.origin
                self.k.remark(item.origin)
            tensors = [item.target, *item.sources] if item.target is not None else list(item.sources)
            self._write(item, [self.places[registers.name(tensor)] for tensor in tensors])
        self._origin = ""

    def _write(self, instruction: Instruction, slices: list[Slice]) -> None:
        if instruction.op in self.special:
            self.special[instruction.op](instruction, slices)
        elif instruction.op in PLAIN:
            number = [typed(number, slices[0]) for number in _number(instruction)]
            self.call(instruction.op, *slices, *number, count=self._count(instruction))
        else:
            _WRITERS[instruction.op](self, instruction, slices)

    def _count(self, instruction: Instruction) -> Expr:
        return self.counts[instruction.domain]

    def call(self, key: str, target: Slice, *operands: Operand, count: Expr, former: str = "") -> None:
        """An instruction on so many elements."""
        width = max(_width(one) for one in (target, *operands) if isinstance(one, Slice))
        repeats = ceil_div(count, REPEAT_BYTES // width)
        self.k.call(key, target, *operands, count, repeats=repeats, former=former)

    # -- operations that are not one instruction, or take more than tensors and a number ---------

    def _round(self, instruction: Instruction, slices: list[Slice]) -> None:
        self.call("Cast", *slices, rounding(instruction.detail), count=self._count(instruction))

    def _compare(self, instruction: Instruction, slices: list[Slice]) -> None:
        """Comparisons work on whole repeats."""
        mode, count = Enumerator(f"CMPMODE::{instruction.detail}"), round_up(self._count(instruction), WIDTH)
        if instruction.op == "Compare":
            self.call("Compare", *slices, mode, count=count)
        else:
            self.call("Compares", *slices, *_number(instruction), mode, count=count, former="CompareScalar")

    def _select(self, instruction: Instruction, slices: list[Slice]) -> None:
        mode = _TENSORS if instruction.op == "Select" else _NUMBER
        self.call("Select", *slices, *_number(instruction), mode, count=self._count(instruction))

    def _combine_masks(self, instruction: Instruction, slices: list[Slice]) -> None:
        words = [read_as("uint16_t", one) for one in slices]
        self.call(instruction.op, *words, count=round_up(self._count(instruction), WIDTH) // _WORD_BITS)

    def _rounded(self, instruction: Instruction, slices: list[Slice]) -> None:
        target, source = slices
        stage, count = self.places[STAGES[instruction.detail]], self._count(instruction)
        self.call("Cast", stage, source, rounding("CAST_RINT"), count=count)
        self.call("Cast", target, stage, rounding("CAST_NONE"), count=count)

    def _cast(self, instruction: Instruction, slices: list[Slice]) -> None:
        """Numbers of one byte pass through half."""
        target, source = slices
        mode, count = mode_of_cast(instruction), self._count(instruction)
        if instruction.detail in ONE_BYTE:
            stage = self.places[STAGES["bool"]]
            self.call("Cast", stage, source, mode, count=count)
            source = stage
        self.call("Cast", target, source, mode, count=count)

    def _read(self, instruction: Instruction, slices: list[Slice]) -> None:
        number = instruction.scalar
        if isinstance(number, State):
            read = self.k.get(f"{number.name}Read", slices[0], 0, number.ctype)
            self.k.assign(number, read)
        else:
            assert isinstance(number, Var)
            self.k.get(number.name, slices[0], 0, number.ctype)


def _number(instruction: Instruction) -> tuple[Expr, ...]:
    return () if instruction.scalar is None else (instruction.scalar,)


def typed(number: Expr, target: Slice) -> Operand:
    """A number as instructions on tensors of the target's type take it."""
    return Converted(number, HALF) if target.ctype == HALF else number


def mode_of_cast(instruction: Instruction) -> Enumerator:
    widens = instruction.op == "cast_in" and instruction.detail not in INTEGERS
    return rounding("CAST_NONE" if widens else "CAST_RINT")


_WIDTHS = {"half": 2, "bfloat16_t": 2, "int16_t": 2, "uint16_t": 2, "int8_t": 1, "uint8_t": 1, "int64_t": 8}


def _width(one: Slice) -> int:
    """Bytes of an element."""
    return _WIDTHS.get(one.ctype, 4)


_WRITERS: dict[str, Callable[[Selector, Instruction, list[Slice]], None]] = {
    "Round": Selector._round,
    "Compare": Selector._compare,
    "CompareScalar": Selector._compare,
    "Select": Selector._select,
    "SelectScalar": Selector._select,
    "And": Selector._combine_masks,
    "Or": Selector._combine_masks,
    "Not": Selector._combine_masks,
    "rounded": Selector._rounded,
    "cast_in": Selector._cast,
    "cast_out": Selector._cast,
    "get_value": Selector._read,
}
