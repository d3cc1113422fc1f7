"""Steps, blocks and what queues hand over between them; tiles that differ in their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.limits import Sharing
from evokernel_core.compiler.problems.products import Triangle
from evokernel_core.compiler.problems.tril import TriangleOfMatrices
from evokernel_core.compiler.shapes.sizes import ONE, extent
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as, strides
from evokernel_core.targets.ascendc.ir.cost import estimate_us
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, Int, Size, expr
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Copy,
    For,
    Instruction,
    Kernel,
    Let,
    Node,
)
from evokernel_core.targets.ascendc.ir.steps import Block, Part, Step, parts_of, pipelines, rounds
from evokernel_core.targets.ascendc.ir.tile import known_values, samples, walk
from evokernel_core.targets.ascendc.kernels.complex_multiply.complex_multiply_family import (
    ComplexMultiplySchedule,
    Paired,
)
from evokernel_core.targets.ascendc.kernels.complex_multiply.complex_multiply_family import build as paired
from evokernel_core.targets.ascendc.kernels.tril.tril_family import TrilSchedule
from evokernel_core.targets.ascendc.kernels.tril.tril_family import build as triangle
from evokernel_core.targets.ascendc.print.vector_kernel import stage_text

ROW = Constant("ROW", 1024)
PART = Constant("PART", 256)


class Rows:
    """A kernel of rows of 1024 elements, with its tensors and the length of a piece."""

    def __init__(self) -> None:
        self.k = Builder("Rows.")
        self.x, self.y = self.k.input("x", "x", "float", 4), self.k.output("y", "output", "float", 4)
        self.rows = self.k.param("rows", Size(extent("n")))
        self.k.require(self.rows, ">=", 1)

    def buffer(self, name: str, elements: Constant = PART, stages: int = 2) -> Buffer:
        return Buffer(name, "float", 4, elements, stages)

    def add(self, to: Any, left: Any, right: Any, count: Constant = PART) -> None:
        self.k.call("Add", to, left, right, count, repeats=count // 64)


def pinned() -> Kernel:
    """y = x + 1, whose ones are stored in front of every row's pieces too."""
    r = Rows()
    ones, taken, made = r.buffer("ones", stages=1), r.buffer("taken"), r.buffer("made")
    r.k.call("Duplicate", ones, Converted(Int(1), "float"), PART, repeats=4)
    with r.k.cores("row", r.rows) as row:
        r.k.store(r.y, row * ROW, ones, PART)
        with r.k.loop("part", 3) as part:
            place = r.k.let("place", row * ROW + (part + 1) * PART, U64)
            r.k.load(taken, r.x, place, PART)
            r.add(made, taken, ones)
            r.k.store(r.y, place, made, PART)
    return r.k.kernel()


def twice() -> Kernel:
    """y = x + the sum of the row's pieces: every piece is loaded in two passes."""
    r = Rows()
    taken, made, total = r.buffer("taken"), r.buffer("made"), r.buffer("total", stages=1)
    with r.k.cores("row", r.rows) as row:
        r.k.call("Duplicate", total, Converted(Int(0), "float"), PART, repeats=4)
        with r.k.loop("part", 4) as part:
            r.k.load(taken, r.x, row * ROW + part * PART, PART)
            r.add(total, total, taken)
        with r.k.loop("part", 4) as part:
            r.k.load(taken, r.x, row * ROW + part * PART, PART)
            r.add(made, taken, total)
            r.k.store(r.y, row * ROW + part * PART, made, PART)
    return r.k.kernel()


def gathered() -> Kernel:
    """y = x + x by pieces, of which a whole row is stored at once; odd rows are added once more."""
    r = Rows()
    taken, made = r.buffer("taken"), r.buffer("made", ROW)
    with r.k.cores("row", r.rows) as row:
        with r.k.loop("part", 4) as part:
            r.k.load(taken, r.x, row * ROW + part * PART, PART)
            r.add(at(made, part * PART), taken, taken)
            with r.k.when(row % 2, "==", 1):
                r.add(at(made, part * PART), at(made, part * PART), taken)
            with r.k.otherwise():
                r.k.call(
                    "Adds",
                    at(made, part * PART),
                    at(made, part * PART),
                    Converted(Int(0), "float"),
                    PART,
                    repeats=4,
                )
        r.k.store(r.y, row * ROW, made, ROW)
    return r.k.kernel()


def outline(parts: tuple[Part, ...]) -> list[Any]:
    """Kinds of steps; the parts of a block as a list."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, Step):
            found.append(part.kind.value)
        elif isinstance(part, Block):
            found += [outline(body) for body in part.bodies if body]
    return found


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (pinned, ["compute", ["store", ["load", "compute", "store"]]]),
        (twice, [["compute", ["load", "compute"], ["load", "compute", "store"]]]),
        (gathered, [[["load", "compute"], "store"]]),
    ],
)
def test_what_is_mixed_is_a_block(make: Callable[[], Kernel], expected: list[Any]) -> None:
    assert outline(parts_of(make().body)) == expected


def test_rounds_belong_to_the_innermost_body_that_has_them_whole() -> None:
    kernel = gathered()
    used = allocation.uses(kernel)
    (tiles,) = (part for part in parts_of(kernel.body) if isinstance(part, Block))
    (whole,) = rounds(tiles.bodies[0], used)
    assert (whole.buffer.name, whole.fills, whole.takes) == ("made", (0,), (1,))
    (loop, _) = tiles.bodies[0]
    assert isinstance(loop, Block)
    inner = {item.buffer.name: item.is_whole for item in rounds(loop.bodies[0], used)}
    assert inner == {"taken": True, "made": False}


def test_loops_that_load_are_pipelines() -> None:
    names = {make: [loop.var.name for loop, _ in pipelines(make())] for make in (pinned, twice, gathered)}
    assert names == {pinned: ["part"], twice: ["part", "part"], gathered: ["part"]}


@pytest.mark.parametrize("make", [pinned, twice, gathered])
def test_they_are_legal_and_right(make: Any, builder: Any, on_kernel: Any, chip: Any) -> None:
    assert not list(broken_rules(make(), chip, {"n": 70}))
    x = np.random.default_rng(3).integers(0, 50, (70, 1024)).astype("f4")
    pieces = x.reshape(70, 4, 256)
    expected = {
        pinned: np.concatenate([np.ones((70, 256), "f4"), x[:, 256:] + 1], 1),
        twice: (pieces + pieces.sum(1, keepdims=True)).reshape(70, 1024),
        gathered: x * (2 + np.arange(70)[:, None] % 2),
    }[make]
    np.testing.assert_array_equal(on_kernel(make(), x), expected)


def test_text_of_what_a_body_holds(builder: Any) -> None:
    graph = builder()
    task = graph.task(graph.call("relu.default", graph.input("x", ("n",)), shape=("n",)), symbols={"n": 4})
    text = stage_text(pinned(), task, "rows").kernel
    assert text.count("ones = onesQueue.DeQue<float>();") == 1
    assert text.index("onesQueue.FreeTensor(ones);") > text.index("CopyOut2(")
    assert "LocalTensor<float> ones;" in text
    assert text.count("LocalTensor<float> ones") == 2  # a member, and the tensor that Prepare fills


def _used_before_filled() -> Kernel:
    r = Rows()
    taken, made = r.buffer("taken"), r.buffer("made")
    with r.k.cores("row", r.rows) as row:
        r.add(made, taken, taken)
        r.k.store(r.y, row * ROW, made, PART)
        r.k.load(taken, r.x, row * ROW, PART)
    return r.k.kernel()


def _worked_on_between() -> Kernel:
    r = Rows()
    run = r.buffer("run")
    with r.k.cores("row", r.rows) as row:
        r.k.load(run, r.x, row * ROW, PART)
        r.add(run, run, run)
        r.k.store(r.y, row * ROW, run, PART)
    return r.k.kernel()


def _copied(rows: int, apart: int) -> Kernel:
    r = Rows()
    run = r.buffer("run", Constant("ALL", 8 * 4096), 1)
    with r.k.cores("row", r.rows) as row:
        r.k.load(run, r.x, row * ROW, 3, rows=rows, apart=apart, zeros=5)
        r.k.store(r.y, row * ROW, run, 3, rows=rows, apart=apart)
    return r.k.kernel()


@pytest.mark.parametrize(
    ("legal", "illegal", "rule"),
    [
        (twice(), _used_before_filled(), "queue-order"),
        (pinned(), _worked_on_between(), "queue-direction"),
        (_copied(4095, 1000), _copied(4096, 1000), "parameter-limit"),
        (_copied(2, 1 << 30), _copied(2, (1 << 30) + 3), "parameter-limit"),
    ],
)
def test_a_broken_rule_is_named(legal: Kernel, illegal: Kernel, rule: str, chip: Any) -> None:
    assert not list(broken_rules(legal, chip, {"n": 1}))
    assert rule in {item.rule for item in broken_rules(illegal, chip, {"n": 1})}


@pytest.mark.parametrize(("rows", "width"), [(1, 3), (5, 3), (70, 13), (7, 16)])
def test_rows_apart_with_zeros_behind_them(rows: int, width: int, on_kernel: Any) -> None:
    """Each row of 16 elements in turn is doubled, its first ``width`` ones alone; others become zeros."""
    r = Rows()
    taken, made = r.buffer("taken", Constant("ALL", 70 * 16)), r.buffer("made", Constant("ALL", 70 * 16))
    with r.k.cores("tile", 1):
        pitch = -(-width // 8) * 8
        r.k.load(taken, r.x, 0, width, rows=rows, apart=16, zeros=pitch - width)
        r.k.call("Add", made, taken, taken, expr(rows * pitch), repeats=rows * pitch // 64 + 1)
        r.k.store(r.y, 0, made, pitch, rows=rows, apart=16)
        if pitch < 16:
            r.k.call("Duplicate", made, Converted(Int(0), "float"), 70 * 16, repeats=20)
            r.k.store(r.y, 8, made, 8, rows=rows, apart=16)
    x = np.arange(rows * 16, dtype="f4").reshape(rows, 16) + 1
    expected = x * 2 * (np.arange(16) < width)
    np.testing.assert_array_equal(on_kernel(r.k.kernel(), x), expected)


def _triangle(upper: bool = False, dtype: str = "float32") -> Kernel:
    """Of n matrices with m rows and columns."""
    return triangle(
        TriangleOfMatrices("x", Triangle(upper, 0), extent("n"), extent("m"), extent("m"), dtype),
        TrilSchedule(8192, 2),
    )


def test_tiles_of_unequal_work_are_sampled(chip: Any) -> None:
    assert samples(twice(), {"n": 1000}) == (0,)
    numbers = samples(_triangle(), {"n": 50, "m": 256})
    places = [number % 256 for number in numbers]
    assert len(set(places)) == len(places)
    assert 0.4 < np.mean(places) / 256 < 0.65
    assert samples(_triangle(), {"n": 1, "m": 3}) == (0, 1, 2)
    upper, lower = (estimate_us(_triangle(item), {"n": 1, "m": 4096}, chip) for item in (True, False))
    assert upper == pytest.approx(lower, rel=0.1)


@pytest.mark.parametrize("columns", [1, 2048, 2049, 5000, 6144])
def test_a_loop_is_met_as_often_as_it_turns(columns: int) -> None:
    """The last row of a lower triangle keeps all its columns, in pieces of 2048."""
    kernel = _triangle()
    loads: list[tuple[float, int]] = []

    def visit(node: Node, times: float, values: Mapping[str, int], inside: bool) -> None:
        if isinstance(node, Copy) and node.is_load:
            assert inside
            loads.append((times, node.count.evaluate(values)))

    known, _ = known_values(kernel, {"n": 1, "m": columns}, 48)
    walk(kernel, known, visit, columns - 1)
    assert sum(times for times, _ in loads) == -(-columns // 2048)
    assert sum(times * count for times, count in loads) == columns


def test_a_walk_leaves_out_what_a_tile_does_not_do() -> None:
    """Nodes are met at least once; those that are left out are not, nor what is in them."""
    kernel = _triangle()
    met: list[Node] = []

    def visit(node: Node, times: float, values: Mapping[str, int], inside: bool) -> None:
        assert times > 0
        met.append(node)

    known, _ = known_values(kernel, {"n": 1, "m": 100}, 48)
    walk(kernel, known, visit, 99)
    assert {type(node) for node in met} > {Copy, Let}
    everything = len(met)
    met.clear()
    loops = frozenset(id(node) for node in kernel.nodes if isinstance(node, For) and not node.cores)
    walk(kernel, known, visit, 99, without=loops)
    assert 0 < len(met) < everything
    assert not any(isinstance(node, Copy) for node in met)


def test_elements_read_as_another_type() -> None:
    kernel = _triangle(dtype="int8")
    (fill,) = (node for node in kernel.nodes if isinstance(node, Instruction))
    (target,) = (item for _, item in fill.slices)
    assert (target.buffer.ctype, target.ctype) == ("uint8_t", "uint16_t")
    assert read_as("half", target).ctype == "half"


def _paired(tile: int = 2048, buffers: int = 2) -> Kernel:
    """Of n groups of r rows of c numbers."""
    grid = Sharing(ONE, extent("n"), extent("r"), extent("c"))
    return paired(Paired("x", "w", grid), ComplexMultiplySchedule(tile, buffers))


@pytest.mark.parametrize(
    ("rows", "numbers"), [(1, 1), (1, 64), (1, 5000), (3, 7), (32, 64), (300, 12), (1000, 1), (7, 4000)]
)
@pytest.mark.parametrize("tile", [128, 2048, 7168])
def test_products_of_pairs_are_legal_wherever_they_are_cut(
    tile: int, rows: int, numbers: int, chip: Any
) -> None:
    assert not list(broken_rules(_paired(tile), chip, {"n": 3, "r": rows, "c": numbers}))


def test_products_of_pairs_that_do_not_fit_are_refused(chip: Any) -> None:
    (found,) = broken_rules(_paired(8192), chip, {"n": 3, "r": 3, "c": 3})
    assert found.rule == "ub-capacity"


def _masked(repeats: int, lanes: int = 4) -> Kernel:
    r = Rows()
    taken, made = r.buffer("taken"), r.buffer("made")
    with r.k.cores("row", r.rows) as row:
        r.k.load(taken, r.x, row * ROW, PART)
        steps = strides("UnaryRepeatParams", 1, 1, 8, 8)
        mask = r.k.lanes("mask", Constant("MASK", 0x00FF00FF00FF00FF) >> lanes)
        r.k.call("Duplicate", made, Converted(Int(0), "float"), PART, repeats=4)
        times = Converted(expr(repeats), "uint8_t")
        r.k.call("Muls", made, taken, Converted(Int(2), "float"), mask, times, steps, repeats=repeats)
        r.k.store(r.y, row * ROW, made, PART)
        for part in range(1, 4):
            r.k.store(r.y, row * ROW + part * 256, made, PART)
    return r.k.kernel()


def test_masks_choose_lanes(on_kernel: Any) -> None:
    x = np.arange(2 * 1024, dtype="f4").reshape(2, 1024)
    kept = np.array([0x00FF00FF00FF00FF >> 4 >> lane & 1 for lane in range(64)] * 4, "f4")
    np.testing.assert_array_equal(on_kernel(_masked(4), x), np.tile(x[:, :256] * 2 * kept, (1, 4)))


def test_repeats_have_a_limit(chip: Any) -> None:
    assert not list(broken_rules(_masked(255), chip, {"n": 1}))
    assert {item.rule for item in broken_rules(_masked(256), chip, {"n": 1})} == {"parameter-limit"}


@pytest.mark.parametrize(("offsets", "is_legal"), [("uint32_t", True), ("int32_t", False), ("float", False)])
def test_offsets_have_one_type(offsets: str, is_legal: bool, chip: Any) -> None:
    r = Rows()
    taken, made, places = r.buffer("taken"), r.buffer("made"), Buffer("places", "int32_t", 4, PART)
    r.k.call("CreateVecIndex", places, Converted(Int(0), "int32_t"), PART, repeats=4)
    with r.k.cores("row", r.rows) as row:
        r.k.load(taken, r.x, row * ROW, PART)
        r.k.call("Gather", made, taken, read_as(offsets, places), 0, PART, repeats=4)
        r.k.store(r.y, row * ROW, made, PART)
    rules = {item.rule for item in broken_rules(r.k.kernel(), chip, {"n": 1})}
    assert rules == (set() if is_legal else {"type"})


def test_lines_are_short_and_helpers_take_what_they_use(builder: Any) -> None:
    graph = builder()
    x, w = graph.input("x", ("n", 4, 2)), graph.input("w", ("n", 4, 2))
    task = graph.task(graph.call("mul.Tensor", x, w, shape=("n", 4, 2)), symbols={"n": 4, "r": 5, "c": 6})
    text = stage_text(_paired(), task, "pairs")
    for line in (text.kernel + text.tiling).splitlines():
        assert len(line) <= 120, line
    assert "if (tiling.groups < 1 || tiling.rows < 1 || tiling.columns < 1) {" in text.tiling
    assert "const uint32_t squares = (height + 1) * pitch / (SIDE * BLOCK);" in text.kernel
