"""From words to the statements of a tile: registers are assigned in one scan, operands become text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field, frozen

from evokernel_core.ascendc.legalization.graph import Read, WordPlan
from evokernel_core.ascendc.legalization.limbs import BITS, LEAVES, SHIFTS, SIGN, Operand, Word, needed
from evokernel_core.ascendc.lowering.program import camel, size_field
from evokernel_core.domain.errors import PlanError

_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "max": "Max", "min": "Min"}
_WITH_NUMBER = {"add": "Adds", "mul": "Muls", "max": "Maxs", "min": "Mins"}
_FLOATS = {"floated": "ToFloats", "ratio": "DivideFloats", "truncated": "ToWords"}
"""Operations on registers that hold floats, or come to hold them."""
_BITS = {"and": "AndWords", "or": "OrWords"}
_SHIFTS = {"shl": "ShiftLeft", "sar": "ShiftRight", "shr": "ShiftRightZeros"}
_PICKED = {"low": "LOW_WORDS", "high": "HIGH_WORDS"}
SHORT = frozenset({"bool", "uint8", "int8"})
"""dtypes that reach words through half."""


@frozen
class WordProgram:
    """``lines`` compute a tile of ``count`` elements; ``words`` registers are in use at a time, ``steps``
    instructions run, of which ``picks`` take every other word and ``joins`` write eight-byte integers of
    two words, and ``divides`` of numbers of ``divided_bits`` run a loop of their own."""

    lines: tuple[str, ...]
    words: int
    steps: int
    picks: int
    joins: int
    divides: int
    divided_bits: int
    helpers: frozenset[str]

    @property
    def uses_half(self) -> bool:
        return "halfStage" in "\n".join(self.lines)

    @property
    def uses_bits(self) -> bool:
        return bool(self.helpers & {"AndWords", "OrWords", "NotWords"})


@define
class _Writer:
    plan: WordPlan
    results: Sequence[str]
    stem: str
    reads: Mapping[str, Read] = field(init=False)
    last: dict[int, int] = field(factory=dict)
    registers: dict[int, str] = field(factory=dict)
    free: list[str] = field(factory=list)
    owned: set[str] = field(factory=set)
    lines: list[str] = field(factory=list)
    steps: int = 0
    picks: int = 0
    joins: int = 0
    divides: list[int] = field(factory=list)
    origin: str = ""

    def __attrs_post_init__(self) -> None:
        self.reads = {item.name: item for item in self.plan.reads}

    def run(self) -> WordProgram:
        stores = [output.words for output in self.plan.outputs]
        words = needed(operand for store in stores for operand in store)
        for position, word in enumerate(words):
            for source in word.words():
                self.last[source.index] = position
        for store in stores:
            for operand in store:
                if isinstance(operand, Word):
                    self.last[operand.index] = len(words)
        for position, word in enumerate(words):
            self._compute(position, word)
        for name, output in zip(self.results, self.plan.outputs, strict=True):
            self._store(name, output.dtype, output.words)
        text = "\n".join(self.lines)
        known = ("AndWords", "OrWords", "NotWords", "ShiftRightZeros", "PickWords", "JoinWords",
                 "ScaleWords", "ToFloats", "DivideFloats", "ToWords")  # fmt: skip
        helpers = frozenset(name for name in known if f"{name}(" in text)
        return WordProgram(
            tuple(self.lines), len(self.owned), self.steps, self.picks, self.joins, len(self.divides),
            self._divided_bits(), helpers,
        )  # fmt: skip

    def _divided_bits(self) -> int:
        """The width of all divisions. Raises PlanError where there are two."""
        if len(set(self.divides)) > 1:
            raise PlanError("Integers of four and of eight bytes are divided in kernels of their own.")
        return max(self.divides, default=0)

    # -- registers ----------------------------------------------------------------------------

    def _take(self) -> str:
        if not self.free:
            self.free.append(f"{self.stem}{len(self.owned)}")
            self.owned.add(self.free[0])
        return self.free.pop(0)

    def _release(self, position: int, word: Word) -> None:
        """Registers whose words nothing reads after this position."""
        for source in dict.fromkeys(word.words()):
            register = self.registers.get(source.index, "")
            if self.last[source.index] == position and register in self.owned:
                self.free.insert(0, register)

    def _emit(self, line: str) -> None:
        self.lines.append(line)
        self.steps += 1

    # -- operands -----------------------------------------------------------------------------

    def _number(self, operand: Operand) -> str | None:
        """A C++ expression where the operand is the same for a whole tile."""
        if isinstance(operand, int):
            return literal(operand)
        if operand.op == "size":
            return f"static_cast<int32_t>(tiling_.{size_field(operand.detail)})"
        if operand.op in LEAVES and not self.reads[operand.detail].columns:
            value = f"{camel(operand.detail)}Number"
            if operand.op == "high":
                value = f"({value} >> WORD_BITS)"
            return f"static_cast<int32_t>({value})"
        return None

    def _tensor(self, operand: Operand, borrowed: list[str]) -> str:
        """The register of an operand, of a number one that is filled with it and ``borrowed``."""
        number = self._number(operand)
        if number is None:
            assert isinstance(operand, Word)
            return self.registers[operand.index]
        register = self._take()
        borrowed.append(register)
        self._emit(f"Duplicate({register}, {number}, count);")
        return register

    # -- words --------------------------------------------------------------------------------

    def _compute(self, position: int, word: Word) -> None:
        if word.op in LEAVES:
            self._read(word)
            return
        if word.origin and word.origin != self.origin:
            self.origin = word.origin
            self.lines.append(f"// {word.origin}")
        borrowed: list[str] = []
        if word.op == "divide":
            operands = [self._tensor(arg, borrowed) for arg in word.args]
            self._emit(f"Divide({', '.join(operands)}, count);")
            self.divides.append(BITS * len(operands) // 2)
            self._release(position, word)
            self.free[:0] = borrowed
            return
        op, *operands = self._written(word, borrowed)
        self._release(position, word)
        self.free[:0] = borrowed
        target = self.registers[word.index] = self._take()
        self._emit(f"{op}({', '.join([target, *operands])}, count);")

    def _written(self, word: Word, borrowed: list[str]) -> Iterator[str]:
        """The instruction's name and its operands."""
        a, *rest = word.args
        if word.op == "part":
            yield from ("Adds", f"{word.detail}Local", "0")
            return
        if word.op == "scaled":
            self.steps += 2
            factor = word.detail or f"1.0f / static_cast<float>({self._number(rest[0])})"
            yield from ("ScaleWords", self._tensor(a, borrowed), factor)
            return
        if word.op in _FLOATS:
            yield from (_FLOATS[word.op], *(self._tensor(arg, borrowed) for arg in word.args))
            return
        if word.op == "not":
            yield from ("NotWords", self._tensor(a, borrowed))
            return
        b = rest[0]
        if word.op in SHIFTS:
            yield from (_SHIFTS[word.op], self._tensor(a, borrowed), literal(b))
            return
        if word.op in _BITS:
            yield from (_BITS[word.op], self._tensor(a, borrowed), self._tensor(b, borrowed))
            return
        first, second = self._number(a), self._number(b)
        if word.op == "sub" or (first is None) == (second is None):
            yield from (_BINARY[word.op], self._tensor(a, borrowed), self._tensor(b, borrowed))
        elif second is not None:
            yield from (_WITH_NUMBER[word.op], self._tensor(a, borrowed), second)
        else:
            assert first is not None
            yield from (_WITH_NUMBER[word.op], self._tensor(b, borrowed), first)

    def _read(self, word: Word) -> None:
        if self._number(word) is not None:
            return
        item = self.reads[word.detail]
        local = f"{camel(item.name)}Local"
        if item.dtype == "int32":
            self.registers[word.index] = local
            return
        target = self.registers[word.index] = self._take()
        if item.dtype == "int64":
            self._emit(f"PickWords({target}, {local}, {_PICKED[word.op]}, count);")
            self.picks += 1
        elif item.dtype in SHORT:
            self._emit(f"Cast(halfStage, {local}, RoundMode::CAST_NONE, count);")
            self._emit(f"Cast({target}, halfStage, RoundMode::CAST_RINT, count);")
        else:
            self._emit(f"Cast({target}.ReinterpretCast<float>(), {local}, RoundMode::CAST_NONE, count);")
            self._emit(f"Cast({target}, {target}.ReinterpretCast<float>(), RoundMode::CAST_RINT, count);")

    # -- results ------------------------------------------------------------------------------

    def _store(self, name: str, dtype: str, store: Sequence[Operand]) -> None:
        local, borrowed = f"{name}Local", list[str]()
        if dtype == "int32":
            self._copy(local, store[0])
        elif dtype == "int64":
            self._store_wide(local, store, borrowed)
        elif dtype == "int16":
            self._emit(f"Cast({local}, {self._tensor(store[0], borrowed)}, RoundMode::CAST_NONE, count);")
        else:
            source = self._tensor(store[0], borrowed)
            self._emit(f"Cast(halfStage.ReinterpretCast<int16_t>(), {source}, RoundMode::CAST_NONE, count);")
            self._emit("Cast(halfStage, halfStage.ReinterpretCast<int16_t>(), RoundMode::CAST_NONE, count);")
            self._emit(f"Cast({local}, halfStage, RoundMode::CAST_RINT, count);")
        self.free[:0] = borrowed

    def _copy(self, local: str, operand: Operand) -> None:
        number = self._number(operand)
        if number is not None:
            self._emit(f"Duplicate({local}, {number}, count);")
            return
        assert isinstance(operand, Word)
        self._emit(f"Adds({local}, {self.registers[operand.index]}, 0, count);")

    def _store_wide(self, local: str, store: Sequence[Operand], borrowed: list[str]) -> None:
        low, high = store
        if is_sign(high, low):
            self._emit(f"Cast({local}, {self._tensor(low, borrowed)}, RoundMode::CAST_NONE, count);")
            return
        pair = (self._tensor(low, borrowed), self._tensor(high, borrowed))
        self._emit(f"JoinWords({local}, {pair[0]}, {pair[1]}, count);")
        self.joins += 1


def literal(value: Operand) -> str:
    """A known word in C++."""
    assert isinstance(value, int)
    return str(value) if value > SIGN else f"({value + 1} - 1)"  # C++ has no literal for the least int32


def is_sign(high: Operand, low: Operand) -> bool:
    """Whether a high word only repeats the sign of the low one."""
    if isinstance(high, int):
        return isinstance(low, int) and high == low >> BITS
    return high.op == "sar" and high.args == (low, BITS - 1)


def word_program(plan: WordPlan, results: Sequence[str], stem: str = "word") -> WordProgram:
    """The statements for a tile; ``results`` are the names of the plan's outputs, ``stem`` that of the
    registers. Raises PlanError where one kernel cannot have all of them."""
    return _Writer(plan, results, stem).run()
