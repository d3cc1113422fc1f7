"""Which times can be those of the whole work: clever algorithms are, forged figures are not."""

from __future__ import annotations

import pytest
from attrs import evolve

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.roofline import moved_us, roofline_us, traffic
from evokernel_core.twin.run import PipeWork
from evokernel_core.verifier.base import Timing
from evokernel_core.verifier.gates.plausible import implausible, unsteady

CHIP = load_chip()


def product(dtype: str = "float32") -> KernelTask:
    spec = TensorSpec(("s0", "s1"), dtype)
    other = TensorSpec(("s1", "s1"), dtype)
    node = Node("z", "aten.mm.default", (ValueRef("x"), ValueRef("y")), (), (spec,))
    graph = Graph((GraphInput("x", spec), GraphInput("y", other)), (node,), (ValueRef("z"),))
    return KernelTask("mm", graph, (Symbol("s0", 4096), Symbol("s1", 4096)), TOLERANCES[dtype], "matmul")


def convolution() -> KernelTask:
    x, weight = TensorSpec((16, 256, 56, 56), "float16"), TensorSpec((256, 256, 3, 3), "float16")
    args = (ValueRef("x"), ValueRef("w"), None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    node = Node("z", "aten.convolution.default", args, (), (x,))
    graph = Graph((GraphInput("x", x), GraphInput("w", weight)), (node,), (ValueRef("z"),))
    return KernelTask("conv", graph, (), TOLERANCES["float16"], "convolution")


def pointwise() -> KernelTask:
    spec = TensorSpec(("s0", 4096), "float32")
    node = Node("z", "aten.relu.default", (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("z"),))
    return KernelTask("relu", graph, (Symbol("s0", 65_536),), TOLERANCES["float32"], "activation")


def timing(task: KernelTask, us: float, cube_us: float = 0.0, vector_us: float = 0.0) -> Timing:
    """A launch of ``us`` in which every cube and vector core worked so long; it moved every byte once."""
    read, written = traffic(task, task.sizes)
    work = {
        "M": PipeWork(1000, 0, cube_us * CHIP.aic), "V": PipeWork(1000, 0, vector_us * CHIP.aiv),
        "MTE2": PipeWork(1000, read, us), "FIX" if cube_us else "MTE3": PipeWork(1000, written, us),
    }  # fmt: skip
    return Timing(us, CHIP.aic, (), "", (), tuple(work.items()))


@pytest.mark.parametrize(("task", "share", "how"), [
    (convolution(), 1 / 2.25, "Winograd's F(2x2, 3x3): 16 products in place of 36"),
    (convolution(), 1 / 4, "Winograd's F(4x4, 3x3)"),
    (product("float16"), 7 / 8, "Strassen's product, one level"),
    (product("float16"), 7**3 / 8**3, "Strassen's product, three levels"),
    (product("float32"), 3 / 4, "float32 as three products of bfloat16, each four times as fast"),
    (product("float32"), 1.0, "the direct one"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_fewer_multiplications_are_plausible(task: KernelTask, share: float, how: str) -> None:
    us = max(share * roofline_us(task, CHIP), moved_us(task, CHIP))
    assert implausible(task, CHIP, timing(task, us, cube_us=0.97 * us)) == ""


@pytest.mark.parametrize("task", [product(), convolution(), pointwise()], ids=lambda task: task.name)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.97])
def test_a_forged_time_is_not(task: KernelTask, share: float) -> None:
    """A result that says less than its own pipes worked, or than the bytes take."""
    honest = max(roofline_us(task, CHIP), moved_us(task, CHIP))
    forged = evolve(timing(task, honest, cube_us=honest, vector_us=honest), us=share * honest)
    assert implausible(task, CHIP, forged)


def test_outputs_that_are_not_stored_are_named() -> None:
    task = pointwise()
    us = 2 * moved_us(task, CHIP)
    whole = timing(task, us, vector_us=us / 2)
    assert implausible(task, CHIP, whole) == ""
    half = tuple((pipe, evolve(work, nbytes=work.nbytes // 2)) for pipe, work in whole.work)
    assert "stores" in implausible(task, CHIP, evolve(whole, work=half))


@pytest.mark.parametrize(("share", "is_seen"), [(1.0, False), (0.9, False), (0.8, True), (0.0, True)])
@pytest.mark.parametrize("pipe", ["V", "MTE2", "MTE3"])
def test_work_that_is_skipped_beyond_what_was_compared(pipe: str, share: float, is_seen: bool) -> None:
    task, sizes = pointwise(), {"s0": 640}
    small = evolve(task, symbols=(Symbol("s0", 640),))
    seen = timing(small, 10.0, vector_us=5.0)
    full = timing(task, 1024.0, vector_us=512.0)
    cut = tuple(
        (name, evolve(work, us=share * work.us, nbytes=int(share * work.nbytes)) if name == pipe else work)
        for name, work in full.work
    )
    assert bool(unsteady(task, evolve(full, work=cut), seen, sizes)) is is_seen


def put() -> KernelTask:
    """2,048 rows that are put into a copy of many."""
    spec, rows, index = (
        TensorSpec(("s0", 1024), "float32"), TensorSpec(("s1", 1024), "float32"), TensorSpec(("s1",), "int64")
    )  # fmt: skip
    args = (ValueRef("x"), (ValueRef("i"),), ValueRef("v"), False)
    node = Node("z", "aten.index_put.default", args, (), (spec,))
    graph = Graph(
        (GraphInput("x", spec), GraphInput("i", index), GraphInput("v", rows)), (node,), (ValueRef("z"),)
    )
    symbols = (Symbol("s0", 8192), Symbol("s1", 2048))
    return KernelTask("put", graph, symbols, TOLERANCES["float32"], "index")


@pytest.mark.parametrize(
    ("sizes", "share", "is_seen"),
    [
        ({"s0": 505, "s1": 2048}, 1.0, False),  # every core looks at all indices, however many rows there are
        ({"s0": 505, "s1": 2048}, 0.8, True),
        ({"s0": 505, "s1": 2048}, 16.0, False),  # it does as much for each row
    ],
)
def test_vector_work_may_grow_with_what_is_put(sizes: dict[str, int], share: float, is_seen: bool) -> None:
    task = put()
    small = evolve(task, symbols=tuple(Symbol(name, size) for name, size in sizes.items()))
    seen, full = timing(small, 10.0, vector_us=5.0), timing(task, 100.0, vector_us=5.0 * share)
    assert bool(unsteady(task, full, seen, sizes)) is is_seen


def shared() -> KernelTask:
    """Sines of a row that are added to many rows."""
    row, rows = TensorSpec((65_536,), "float32"), TensorSpec(("s0", 65_536), "float32")
    nodes = (
        Node("sine", "aten.sin.default", (ValueRef("r"),), (), (row,)),
        Node("z", "aten.add.Tensor", (ValueRef("x"), ValueRef("sine")), (), (rows,)),
    )
    graph = Graph((GraphInput("x", rows), GraphInput("r", row)), nodes, (ValueRef("z"),))
    return KernelTask("shared", graph, (Symbol("s0", 64),), TOLERANCES["float32"], "elementwise")


@pytest.mark.parametrize(
    ("cost", "rows", "is_seen"),
    [(1, 64, False), (8, 64, False), (0, 64, False), (8, 40, True), (0, 32, True), (100, 13, True)],
)
def test_what_more_rows_share_is_no_skipped_work(cost: int, rows: int, is_seen: bool) -> None:
    """A kernel that computes ``rows`` of 64, and ``cost`` times as much as for a row for what all share."""
    task, sizes = shared(), {"s0": 13}
    small = evolve(task, symbols=(Symbol("s0", 13),))
    seen, full = timing(small, 10.0, vector_us=13.0 + cost), timing(task, 50.0, vector_us=rows + float(cost))
    assert bool(unsteady(task, full, seen, sizes)) is is_seen


def test_a_backend_that_counts_nothing_is_held_to_the_bytes() -> None:
    task = pointwise()
    us = 2 * moved_us(task, CHIP)
    assert implausible(task, CHIP, Timing(us, 48, (), "")) == ""
    assert implausible(task, CHIP, Timing(us / 4, 48, (), ""))
    assert unsteady(task, Timing(us, 48, (), ""), Timing(us, 48, (), ""), {"s0": 640}) == ""
