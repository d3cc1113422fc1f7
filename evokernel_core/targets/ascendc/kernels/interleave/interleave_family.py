"""Family interleave: thin tensors joined so that elements alternate, as in a stack along a last dimension.

Long runs of every tensor come into the unified buffer, where two transpositions of squares interleave them.
"""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.limits import words_of
from evokernel_core.compiler.ops import INTERLEAVE, categories
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.schedule import Range, Scaled, Schedule, Shifted
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, at, transpose
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Constant,
    Expr,
    Function,
    Size,
    Var,
    binary,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.kernels.built import always, among, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.rendering import RAW, parameter
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS

_UNIT_BYTES = 512
"""What one repeat of a transposition takes: 16 blocks."""
_MOST_REPEATS = most_of("TransDataTo5HD", "repeatTimes")


@frozen
class Interleave:
    """The tensors' names; each holds ``words`` words of ``width`` bytes, of which ``item`` stay together."""

    sources: tuple[str, ...]
    words: Extent
    width: int
    item: int


@frozen
class InterleaveSchedule(Schedule):
    """Repeats of a transposition that a tile of one tensor takes, and how many tiles are under way."""

    repeats: Annotated[int, Range(1, _MOST_REPEATS), Scaled("larger tiles", "smaller tiles")]
    buffers: Annotated[int, BUFFERS, Shifted("one more tile under way", "one tile less under way")]

    @property
    def bytes(self) -> int:
        """Of a tensor in a tile."""
        return self.repeats * _UNIT_BYTES


def read_interleave(task: KernelTask) -> Interleave:
    """The one join of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, {INTERLEAVE.name}, Sentence("The kernel is not exactly one join of thin tensors."))
    refs = list(node.operands())
    spec = task.graph.spec(refs[0])
    result = words_of(spec, literal(node.args[1]))
    if result is None:
        raise PlanError("The items of a join are too long to be interleaved by transpositions.")
    width, item = result
    sources = tuple(input_below(task.graph, ref, Sentence("a join of thin tensors")) for ref in refs)
    words = product([*map(extent, spec.shape), Extent(ITEM_SIZE[spec.dtype] // width)])
    return Interleave(sources, words, width, item)


_NOTE = """\
Interleaves tensors item by item. Transposed squares of each tensor hold in row j word j of every block; taken
in the order of the result and transposed back, rows of all tensors give blocks of the result."""
_BLOCKS = Constant("BLOCKS", 16, "that one transposition takes")


def build(problem: Interleave, schedule: InterleaveSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    width, ctype = problem.width, RAW[problem.width]
    tensors = Constant("TENSORS", len(problem.sources))
    unit = Constant("UNIT", _UNIT_BYTES // width, "words of one repeat of a transposition")
    tile_words = Constant("TILE", schedule.repeats * unit.value, "most words of each tensor in a tile")
    k = Builder(_NOTE)
    sources = k.inputs("sources", [parameter(name) for name in problem.sources], ctype, width)
    joined = k.output("joined", "output", ctype, width)
    words = k.param("words", Size(problem.words), "of each tensor")
    k.require(words, ">=", 1)
    tiles = k.param("tiles", ceil_div(words, tile_words))
    x, y, squares = (
        Buffer(name, ctype, width, tensors * tile_words, stages)
        for name, stages in (("x", schedule.buffers), ("y", schedule.buffers), ("squares", 1))
    )
    with k.cores("tile", tiles) as tile:
        start = k.let("start", tile * tile_words, U64)
        left = k.let("left", words - start, U64)
        count = k.let("count", least(left, tile_words))
        with k.loop("tensor", tensors) as tensor:
            k.load(at(x, tensor * tile_words), sources, start, count, index=tensor)
        # What lies behind the words of the last tile is interleaved too, and not stored.
        repeats = k.let("repeats", ceil_div(count, unit))
        squared = _Squares(k, problem, tensors, tile_words, repeats)
        with k.loop("tensor", tensors) as tensor, k.section("MakeSquares", squared.square_note):
            squared.make_squares(x, squares, tensor * tile_words)
        with k.loop("block", tensors) as block, k.section("MakeBlocks", _BLOCKS_NOTE):
            squared.make_blocks(squares, y, block)
        k.store(joined, start * tensors, y, count * tensors)
    return k.kernel()


_BLOCKS_NOTE = "Of each TENSORS blocks of the result the one at `block`."


class _Squares:
    """The two transpositions of a tile: blocks to rows of squares, and rows of all tensors to blocks.

    A transposition of words of four bytes takes two squares of 8 blocks, whose rows alternate in its result.
    """

    def __init__(
        self, k: Builder, problem: Interleave, tensors: Constant, tile_words: Constant, repeats: Expr
    ) -> None:
        self._k, self._tensors, self._repeats = k, tensors, repeats
        self._ctype, self._pairs = RAW[problem.width], problem.width == 4
        self._side = Constant("SIDE", BLOCK_BYTES // problem.width, "words of a block, and rows of a square")
        self._row_of = _row_of(problem, tensors, tile_words, self._side)

    @property
    def square_note(self) -> str:
        if self._pairs:
            return (
                "A transposition gives for word j of a block the row of the first square, then of the second."
            )
        return "A transposition takes the blocks of one square, and gives a row for each word of a block."

    def make_squares(self, source: Buffer, target: Buffer, start: Expr) -> None:
        k, side = Var("k"), self._side
        made = at(target, start + self._interleaved(k) * side)
        transpose(self._k, (made, _BLOCKS), (at(source, start + k * side), _BLOCKS), k, self._repeats)

    def make_blocks(self, source: Buffer, target: Buffer, block: Expr) -> None:
        k, side = Var("k"), self._side
        word = block * side + (k % side if self._pairs else k)
        row = self._row_of(word) + (k // side * side * side if self._pairs else 0)
        made = at(target, (self._interleaved(k) * self._tensors + block) * side)
        step = _BLOCKS * self._tensors
        transpose(self._k, (made, step), (at(source, row), _BLOCKS), k, self._repeats)

    def _interleaved(self, k: Expr) -> Expr:
        """Where the k-th row of a transposition goes: of two squares they alternate."""
        return k % 2 * self._side + k // 2 if self._pairs else k


def _row_of(problem: Interleave, tensors: Constant, tile_words: Constant, side: Constant) -> Function:
    """The place of the row that has a word of the result."""
    word, constant = Var("word"), Constant("ITEM", problem.item, "words of one tensor that stay together")
    whole = word // constant
    row = binary("*", whole // tensors, constant) + word % constant
    note = "Where the row of a word of the result lies; words count from the first of SIDE * TENSORS."
    return Function("RowOf", (word,), whole % tensors * tile_words + row * side, note)


FAMILY = SearchingFamily(
    variant=variant_of(build),
    name="interleave",
    ops=categories(INTERLEAVE),
    read=on_any_chip(read_interleave),
    schedule_of=InterleaveSchedule.of,
    starts=among(InterleaveSchedule(repeats, 2) for repeats in (1, 2, 4, 8, 16, 24, 32, 48, 64)),
    notes=always(
        (
            Sentence("Runs of {bytes} bytes of every tensor, {buffers} under way."),
            Sentence("Two transpositions in the unified buffer interleave the runs."),
        )
    ),
    cell=always(Descriptor(Dataflow.STREAMED, Reuse.NONE, Split.ELEMENTS, Algorithm.TRANSPOSE)),
)
