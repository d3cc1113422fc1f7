"""From words to instructions of the IR: registers are assigned in one scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from attrs import define, field, frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.hardware.ascend.isa import LANES, REPEAT_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as
from evokernel_core.targets.ascendc.ir.expr import Constant, Expr, Int, ceil_div
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Fields,
    Kept,
    Number,
    Operand,
    Ratio,
    Section,
    Slice,
)
from evokernel_core.targets.ascendc.legalization.limbs import BITS, LEAVES, Word, needed
from evokernel_core.targets.ascendc.legalization.limbs import Operand as Limb
from evokernel_core.targets.ascendc.legalization.long_division import division_step

Source = Slice | Converted
"""Where a word lies, or the number that it is in all elements."""

_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "max": "Max", "min": "Min"}
_WITH_NUMBER = {"add": "Adds", "mul": "Muls", "max": "Maxs", "min": "Mins"}
_TO_WHOLE = {"truncated": "TRUNC", "rounded": "RINT"}
_SHIFTS = {"shl": "ShiftLeft", "sar": "ShiftRight", "shr": "ShiftRight"}
_HALVES = 2
"""Bits are combined in halves of words."""
WORD = 4
"""Bytes of a word."""
PAIR = 2
"""Words of an integer of eight bytes: the low one, then the high one."""
_PATTERNS = {
    "low": Constant("LOW_WORDS", 1, "pattern of GatherMask"),
    "high": Constant("HIGH_WORDS", 2, "pattern of GatherMask"),
}
_ONE_RUN = Fields(
    "GatherMaskParams",
    {name: Int(value) for name, value in
     (("src0BlockStride", 1), ("repeatTimes", 1), ("src0RepeatStride", 0), ("src1RepeatStride", 0))},
    is_short=True,
)  # fmt: skip


def number(value: int) -> Converted:
    """A word that is the same in all elements."""
    return Converted(Int(value), "int32_t")


def rounding(mode: str) -> Enumerator:
    """How a cast rounds."""
    return Enumerator(f"RoundMode::CAST_{mode}")


@define
class Registers:
    """Tiles of words, of which one that is free again is taken before a new one."""

    new: Callable[[], Slice]
    free: list[Slice] = field(factory=list)

    def take(self) -> Slice:
        return self.free.pop(0) if self.free else self.new()

    def give(self, *registers: Slice) -> None:
        self.free[:0] = registers

    @property
    def apart(self) -> Registers:
        """Registers that are taken from these and not given back."""
        return Registers(self.take)


class IntegerTiles:
    """Tiles of words in one buffer, ``most`` of them."""

    def __init__(self, tile: Constant, most: int) -> None:
        self.taken = 0
        self._tile, self._buffer = tile, Buffer("words", "int32_t", 4, Int(most) * tile)

    def new(self) -> Slice:
        """One that nothing has taken yet."""
        self.taken += 1
        return at(self._buffer, Int(self.taken - 1) * self._tile)


@define
class Writer:
    """Writes what computes words, of ``count`` elements. ``leaf``: where a word that is read lies; it may ask
    for a register (``own``) to bring it there."""

    k: Builder
    count: Expr
    registers: Registers
    leaf: Callable[[Word, Writer], Source]
    _places: dict[int, Source] = field(factory=dict)
    _owned: dict[int, Slice] = field(factory=dict)
    _last: dict[int, int] = field(factory=dict)
    _origin: str = ""
    _note: str = ""
    _divides: Divider | None = None
    _measured: dict[tuple[int, int], tuple[Expr, Expr]] = field(factory=dict)

    def update(self, results: Iterable[tuple[Limb, Slice]]) -> None:
        """Every result into its place, which may be that of a leaf."""
        pairs = tuple(results)
        self.compute(
            [word for word, _ in pairs],
            {word.index: place for word, place in pairs if isinstance(word, Word)},
        )
        for word, place in pairs:
            self.put(word, place)
        self.registers.give(*self._owned.values())
        self._owned.clear()

    def compute(self, roots: Sequence[Limb], homes: Mapping[int, Slice]) -> None:
        """Every word that the roots are made of. ``homes``: where words are to lie if nothing is read there
        any more, by their index."""
        words = needed(roots)
        for position, word in enumerate(words):
            for source in word.words():
                self._last[source.index] = position
        for root in roots:
            if isinstance(root, Word):
                self._last[root.index] = len(words)
        for position, word in enumerate(words):
            if word.op in LEAVES:
                self._places[word.index] = self.leaf(word, self)
            else:
                self._compute(position, word, homes.get(word.index))

    # -- places -------------------------------------------------------------------------------

    def source(self, operand: Limb) -> Source:
        """The register or the number of a word."""
        return number(operand) if isinstance(operand, int) else self._places[operand.index]

    def put(self, operand: Limb, target: Slice) -> None:
        """A word into a place, unless it lies there."""
        source = self.source(operand)
        if isinstance(source, Converted):
            self.call("Duplicate", target, source)
        elif source != target:
            self.call("Adds", target, source, number(0))

    @contextmanager
    def borrowed(self, *operands: Limb) -> Iterator[list[Slice]]:
        """The registers of words; those of numbers are filled with them and borrowed."""
        lent: list[Slice] = []
        yield [self._tensor(operand, lent) for operand in operands]
        self.registers.give(*lent)

    def _tensor(self, operand: Limb, lent: list[Slice]) -> Slice:
        source = self.source(operand)
        if isinstance(source, Slice):
            return source
        lent.append(self.registers.take())
        self.call("Duplicate", lent[-1], source)
        return lent[-1]

    def _release(self, position: int, word: Word) -> None:
        """Registers whose words nothing reads after this position."""
        for source in dict.fromkeys(word.words()):
            if self._last[source.index] == position and source.index in self._owned:
                self.registers.give(self._owned.pop(source.index))

    def _is_read(self, place: Slice, position: int) -> bool:
        """Whether a place holds what is read behind this position."""
        return any(value is place and self._last[index] > position for index, value in self._places.items())

    def own(self, word: Word) -> Slice:
        """A register for a word, as long as it is read."""
        self._owned[word.index] = self.registers.take()
        return self._owned[word.index]

    # -- words --------------------------------------------------------------------------------

    def _compute(self, position: int, word: Word, home: Slice | None) -> None:
        if word.origin and word.origin != self._origin:
            self._origin = self._note = word.origin
        if word.op == "divide":
            self._divider(word).divide(word.args)
            self._release(position, word)
            return
        lent: list[Slice] = []
        operands = list(self._operands(word, lent))
        self._release(position, word)
        self.registers.give(*lent)
        if home is None or self._is_read(home, position):
            home = self.own(word)
        self._places[word.index] = home
        self._emit(word, home, operands)

    def _operands(self, word: Word, lent: list[Slice]) -> Iterator[Source]:
        """Registers, and behind one a number where an instruction takes it."""
        if word.op == "part":
            yield self._divider(word.args[0]).part(word.detail)
        elif word.op in _SHIFTS or word.op == "scaled":
            yield self._tensor(word.args[0], lent)
        elif word.op in _WITH_NUMBER:
            sources = [self.source(arg) for arg in word.args]
            if not any(isinstance(source, Slice) for source in sources):
                sources[0] = self._tensor(word.args[0], lent)
            yield from sorted(sources, key=lambda source: isinstance(source, Converted))
        else:
            yield from (self._tensor(arg, lent) for arg in word.args)

    def _emit(self, word: Word, target: Slice, operands: Sequence[Source]) -> None:
        match word.op:
            case "and" | "or" | "not":
                halves = (read_as("int16_t", part) for part in (target, *operands) if isinstance(part, Slice))
                self.call(word.op.capitalize(), *halves, times=_HALVES)
            case "shl" | "sar" | "shr":
                self._shift(word, target, operands[0])
            case "scaled":
                self._scale(word, target, operands[0])
            case "part":
                self.call("Adds", target, *operands, number(0))
            case "floated":
                self.call("Cast", _floats(target), *operands, rounding("RINT"))
            case "ratio":
                self.call("Div", *map(_floats, (target, *operands)))
            case "truncated" | "rounded":
                self.call("Cast", target, *map(_floats, operands), rounding(_TO_WHOLE[word.op]))
            case _:
                with_number = isinstance(operands[-1], Converted)
                self.call((_WITH_NUMBER if with_number else _BINARY)[word.op], target, *operands)

    def _shift(self, word: Word, target: Slice, a: Source) -> None:
        """To the right zeros come in from the left if the words have no sign."""
        bits, ctype = word.args[1], "uint32_t" if word.op == "shr" else "int32_t"
        assert isinstance(bits, int) and isinstance(a, Slice)
        views = (target, a) if word.op != "shr" else (read_as(ctype, target), read_as(ctype, a))
        self.call(_SHIFTS[word.op], *views, Converted(Int(bits), ctype))

    def _scale(self, word: Word, target: Slice, a: Source) -> None:
        """The product with a float, without its fraction: off by one at most where it is less than 2^20."""
        product, factor = _floats(target), self._factor(word)
        self.call("Cast", product, a, rounding("RINT"))
        self.call("Muls", product, product, factor)
        self.call("Cast", target, product, rounding("TRUNC"))

    def _factor(self, word: Word) -> Operand:
        """One divided by a literal, or by a size."""
        divisor = word.args[1]
        if isinstance(divisor, int):
            return Number(f"ONE_OVER_{divisor}", 1.0 / divisor)
        source = self.source(divisor)
        assert isinstance(source, Converted) and isinstance(source.value, Expr)
        return Ratio(Int(1), source.value)

    # -- divisions ----------------------------------------------------------------------------

    def _divider(self, whole: Limb) -> Divider:
        """Of all divisions. Raises PlanError where they are of two widths."""
        assert isinstance(whole, Word)
        bits = BITS * len(whole.args) // 2
        if self._divides is None:
            self._divides = Divider(self, bits)
        if self._divides.bits != bits:
            raise PlanError("Integers of four and of eight bytes are divided in kernels of their own.")
        return self._divides

    # -- instructions -------------------------------------------------------------------------

    def call(self, key: str, target: Slice, *operands: Operand, times: int = 1) -> None:
        """An instruction on ``count`` elements, or on so many times as many."""
        count, repeats = self._measures(times, max(_bytes_of(part) for part in (target, *operands)))
        note, self._note = self._note, ""
        given = operands if Kept() in operands else (*operands, count)
        self.k.call(key, target, *given, repeats=repeats, note=note)

    def _measures(self, times: int, width: int) -> tuple[Expr, Expr]:
        """So many times the count, and repeats on as many elements of so many bytes."""
        if (times, width) not in self._measured:
            count = self.count * times
            self._measured[times, width] = count, ceil_div(count, REPEAT_BYTES // width)
        return self._measured[times, width]


def pick(writer: Writer, target: Slice, pairs: Slice, limb: str) -> None:
    """The ``low`` or the ``high`` words of integers of eight bytes."""
    rest = (_PATTERNS[limb], Enumerator("true"), writer.count * PAIR, _ONE_RUN, Kept())
    writer.call("GatherMask", target, read_as("int32_t", pairs), *rest, times=PAIR)


@frozen
class Places:
    """Where Gather finds each word of a list: ``shift`` gives the bits of its number that count steps of
    ``stride`` bytes; the others count words."""

    name: str
    count: Expr
    shift: int
    stride: Expr

    @property
    def buffer(self) -> Buffer:
        return Buffer(f"{self.name[0].lower()}{self.name[1:]}", "int32_t", 4, self.count)

    def make(self, k: Builder, scratch: Buffer) -> None:
        """Bytes for each number; ``scratch`` has as many words."""
        places, repeats = self.buffer, ceil_div(self.count, LANES)

        def call(key: str, target: Buffer, *operands: Buffer | Converted) -> None:
            k.call(key, target, *operands, self.count, repeats=repeats)

        word = Converted(Int(WORD) - (self.stride << self.shift), "int32_t")
        with k.section(f"Make{self.name}", f"In bytes; k >> {self.shift} of number k counts words."):
            call("CreateVecIndex", places, number(0))
            call("ShiftRight", scratch, places, number(self.shift))
            call("Muls", places, places, Converted(self.stride, "int32_t"))
            call("Muls", scratch, scratch, word)
            call("Add", places, places, scratch)

    def gather(self, writer: Writer, target: Slice, source: Slice, times: int = 1) -> None:
        """The list, of as many words as the writer computes, or so many times as many."""
        writer.call("Gather", target, source, read_as("uint32_t", self.buffer), Int(0), times=times)


_BYTES = {"int64_t": 8, "int16_t": 2, "half": 2, "int8_t": 1, "uint8_t": 1}


def _bytes_of(operand: Operand) -> int:
    """Of an element; 1 where it is no slice."""
    return _BYTES.get(operand.ctype, 4) if isinstance(operand, Slice) else 1


def _floats(source: Source) -> Slice:
    assert isinstance(source, Slice)
    return read_as("float", source)


class Divider:
    """Long division of numbers without a sign, in registers of its own: one bit of the quotient a step, from
    the highest one on. All divisions of a kernel are one method."""

    def __init__(self, writer: Writer, bits: int) -> None:
        self._writer, self.bits = writer, bits
        self._limbs = ("Low",) if bits == BITS else ("Low", "High")
        names = (f"{part}{limb}" for part in ("quotient", "remainder", "divisor") for limb in self._limbs)
        self._parts = {name: writer.registers.take() for name in names}
        self._step: Section | None = None

    def part(self, name: str) -> Slice:
        """A word of the last quotient or remainder."""
        return self._parts[name]

    def divide(self, operands: Sequence[Limb]) -> None:
        """Divides words by words, or pairs of them by pairs."""
        names = (f"{part}{limb}" for part in ("quotient", "divisor") for limb in self._limbs)
        for name, operand in zip(names, operands, strict=True):
            self._writer.put(operand, self._parts[name])
        for limb in self._limbs:
            self._writer.put(0, self._parts[f"remainder{limb}"])
        if self._step is None:
            self._step = self._written()
        else:
            self._writer.k.again(self._step)

    def _written(self) -> Section:
        k, parts, bits = self._writer.k, self._parts, Constant("DIVIDED_BITS", self.bits)
        results = division_step(self.bits)
        registers = self._writer.registers.apart
        step = Writer(k, self._writer.count, registers, lambda word, _: parts[word.detail])
        with k.section("Divide", _DIVISION), k.loop("bit", bits):
            step.update((word, parts[name]) for name, word in results.items())
        assert isinstance(k.last, Section)
        return k.last


_DIVISION = (
    "The quotient and the remainder of numbers without a sign, one bit a step from the highest one on."
)
