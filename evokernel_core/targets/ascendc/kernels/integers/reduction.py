"""What kernels that reduce rows of integers share: words in lanes, their combination, and results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from evokernel_core.compiler.problems.integers import IntegerRows
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as, whole
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, CoreCount, Expr, Size, Var, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Slice
from evokernel_core.targets.ascendc.kernels.integers.instructions import (
    PAIR,
    WORD,
    IntegerTiles,
    Places,
    Registers,
    Source,
    Writer,
    number,
)
from evokernel_core.targets.ascendc.kernels.integers.integers_settings import (
    IntegerRowsSchedule,
    combination,
    is_wide,
    neutral,
)
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.legalization.limbs import Word

_ANY_NUMBER = 64
"""Of registers, until it is known how many a combination takes."""

Limbs = dict[str, Slice]
"""Where the low words lie, and the high ones where integers have eight bytes."""


class Reduction:
    """A kernel whose combinations have at most so many ``lanes``. ``batch``: rows whose results are stored at
    a time; their words lie ``apart`` in a buffer."""

    def __init__(
        self,
        problem: IntegerRows,
        schedule: IntegerRowsSchedule,
        note: str,
        *,
        lanes: Constant,
        batch: Constant,
        apart: Expr,
        registers: int = 0,
    ) -> None:
        self.k, self.problem = Builder(note.format(problem.what)), problem
        self.ctype, self.size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
        self.names = ("low", "high") if is_wide(problem) else ("low",)
        self.tile = Constant("TILE", schedule.tile, "most elements of a tile")
        self.tiles = IntegerTiles(lanes, registers or registers_of(problem.kind, problem.dtype))
        self._registers = Registers(self.tiles.new)
        self.x = self.k.input("x", parameter(problem.source), self.ctype, self.size)
        self.y = self.k.output("y", "output", self.ctype, self.size)
        self.taken = Buffer("taken", self.ctype, self.size, self.tile, schedule.buffers)
        self.made = Buffer("made", self.ctype, self.size, batch)
        self.sums = self.limbs("sums", lanes)
        self._pairs = Places("PairPlaces", batch * PAIR, 1, apart * WORD)

    def limbs(self, name: str, count: Expr) -> Limbs:
        """A buffer with so many words of each kind."""
        buffer = Buffer(name, "int32_t", 4, count * len(self.names))
        return {limb: at(buffer, count * place) for place, limb in enumerate(self.names)}

    def sizes(self) -> tuple[Expr, Expr, Expr, Expr]:
        """Rows, columns, the rows of a core, which lie one behind the other, and the tiles of a row."""
        k = self.k
        rows = k.param("rows", Size(self.problem.rows))
        columns = k.param("columns", Size(self.problem.columns))
        for size in (rows, columns):
            k.require(size, ">=", 1)
        share = k.param("rowsPerCore", ceil_div(rows, CoreCount()))
        return rows, columns, share, k.param("tiles", ceil_div(columns, self.tile), "of a row")

    def part(self, name: str, whole: Expr, start: Expr, most: Expr, ctype: str = "uint32_t") -> Var:
        """How much of a whole lies behind a start, at most so much."""
        return self.k.let(name, least(self.k.let(f"{name}Left", whole - start, U64), most), ctype)

    # -- words --------------------------------------------------------------------------------

    def writer(self, count: Expr, leaf: Callable[[Word, Writer], Source] | None = None) -> Writer:
        """Of instructions on so many elements."""
        return Writer(self.k, count, self._registers, leaf or _no_leaf)

    def start(self, limbs: Limbs, count: Expr) -> None:
        """Integers that change nothing."""
        for limb, word in zip(self.names, neutral(self.problem), strict=True):
            self.writer(count).call("Duplicate", limbs[limb], number(word))

    def combine(self, limbs: Limbs, other: Callable[[str, Word, Writer], Slice], count: Expr) -> None:
        """Integers with others, into the places of the first ones."""

        def leaf(word: Word, writer: Writer) -> Source:
            mine, limb = word.detail.split()
            return limbs[limb] if mine == "one" else other(limb, word, writer)

        results = combination(self.problem.kind, self.problem.dtype)
        self.writer(count, leaf).update(zip(results, limbs.values(), strict=True))

    # -- results ------------------------------------------------------------------------------

    def prepare(self, scratch: Buffer) -> None:
        """What joins words; the buffer has as many as a batch."""
        if is_wide(self.problem):
            self._pairs.make(self.k, scratch)

    def join(self, limbs: Limbs, count: Expr) -> None:
        """The results of so many rows, of their words."""
        writer, made = self.writer(count), whole(self.made)
        if is_wide(self.problem):
            self._pairs.gather(writer, read_as("int32_t", made), at(limbs["low"].buffer, 0), PAIR)
        else:
            writer.call("Adds", made, limbs["low"], number(0))


def _no_leaf(word: Word, writer: Writer) -> Source:
    raise AssertionError(f"No word is read, but {word.op}.")


@cache
def registers_of(kind: str, dtype: str) -> int:
    """How many registers a combination takes."""
    lanes = Constant("LANES", LANES)
    problem, schedule = IntegerRows("x", kind, False, dtype), IntegerRowsSchedule(LANES, buffers=1)
    draft = Reduction(problem, schedule, "", lanes=lanes, batch=lanes, apart=lanes, registers=_ANY_NUMBER)
    draft.combine(draft.sums, lambda limb, word, writer: writer.own(word), lanes)
    return draft.tiles.taken
