"""Tasks and hand-written kernels in Triton for the tests of audit and backends."""

from __future__ import annotations

from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.launch import Launch, LaunchRecord, LibraryCall, Scratch, View
from evokernel_core.targets.triton.source import HEADER, triton_source
from tests.targets.ascendc.conftest import GraphBuilder


def softmax_task(dtype: str = "float32", rows: int = 96, columns: int = 200) -> KernelTask:
    """Softmax over the rows of a matrix of any sizes."""
    g = GraphBuilder()
    x = g.input("x", ("s0", "s1"), dtype)
    y = g.call("_softmax.default", x, -1, False, shape=("s0", "s1"), dtype=dtype)
    return g.task(y, symbols={"s0": rows, "s1": columns})


def total_task(rows: int = 40, columns: int = 300) -> KernelTask:
    """The sum of all elements of a matrix."""
    g = GraphBuilder()
    x = g.input("x", ("s0", "s1"))
    return g.task(g.call("sum.default", x, shape=()), symbols={"s0": rows, "s1": columns})


def product_task(dtype: str = "float32", m: int = 70, n: int = 50, k: int = 90) -> KernelTask:
    """A matrix product of any sizes."""
    g = GraphBuilder()
    a, b = g.input("a", ("s0", "s1"), dtype), g.input("b", ("s1", "s2"), dtype)
    y = g.call("mm.default", a, b, shape=("s0", "s2"), dtype=dtype)
    return g.task(y, symbols={"s0": m, "s1": k, "s2": n})


SOFTMAX = """
@triton.jit
def softmax_rows(x, output, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    values = tl.load(x + row * columns + column, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    result = powers / tl.sum(powers, 0)
    tl.store(output + row * columns + column, result, mask=inside)
"""
SOFTMAX_LAUNCH = Launch(
    "softmax_rows", ("s0",), ("x", "output", "s0", "s1"), {"BLOCK": "next_power_of_2(s1)"}
)
TOTAL = """
@triton.jit
def partial_sums(x, partial, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + place, mask=place < count, other=0.0)
    tl.store(partial + tl.program_id(0), tl.sum(values, 0))


@triton.jit
def total(partial, output, parts, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, parts, BLOCK):
        place = start + tl.arange(0, BLOCK)
        acc += tl.load(partial + place, mask=place < parts, other=0.0)
    tl.store(output, tl.sum(acc, 0))
"""
TOTAL_LAUNCHES = (
    Launch("partial_sums", ("cdiv(s0 * s1, 256)",), ("x", "partial", "s0 * s1"), {"BLOCK": "256"}),
    Launch("total", ("1",), ("partial", "output", "cdiv(s0 * s1, 256)"), {"BLOCK": "64"}),
)
PARTIAL = Scratch("partial", "float32", "cdiv(s0 * s1, 256)")
PRODUCT = """
@triton.jit
def product(a, b, output, m, k, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    tiles = tl.cdiv(n, N)
    row = (tl.program_id(0) // tiles) * M + tl.arange(0, M)[:, None]
    column = (tl.program_id(0) % tiles) * N + tl.arange(0, N)[None, :]
    inner = tl.arange(0, K)
    acc = tl.zeros([M, N], tl.float32)
    for start in range(0, k, K):
        there = start + inner
        left = tl.load(a + row * k + there[None, :], mask=(row < m) & (there[None, :] < k), other=0.0)
        right = tl.load(b + there[:, None] * n + column, mask=(there[:, None] < k) & (column < n), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(output + row * n + column, acc.to(output.dtype.element_ty), mask=(row < m) & (column < n))
"""
PRODUCT_LAUNCH = Launch(
    "product",
    ("cdiv(s0, 32) * cdiv(s2, 32)",),
    ("a", "b", "output", "s0", "s1", "s2"),
    {"M": "32", "N": "32", "K": "16"},
)


def source(text: str, record: LaunchRecord, header: str = HEADER) -> KernelSource:
    """A kernel as a model writes it."""
    return triton_source(f"{header}\n{text}", record, Strategy("model"))


def softmax_source(text: str = SOFTMAX, launch: Launch = SOFTMAX_LAUNCH) -> KernelSource:
    """One program a row."""
    return source(text, LaunchRecord(("x",), ("output",), (launch,), ("s0", "s1")))


def total_source(text: str = TOTAL) -> KernelSource:
    """Two launches with scratch between them."""
    return source(text, LaunchRecord(("x",), ("output",), TOTAL_LAUNCHES, ("s0", "s1"), scratch=(PARTIAL,)))


def product_source(text: str = PRODUCT) -> KernelSource:
    """A tile of the result a program."""
    return source(text, LaunchRecord(("a", "b"), ("output",), (PRODUCT_LAUNCH,), ("s0", "s1", "s2")))


SCALED = """
@triton.jit
def scaled(between, output, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(between + place, mask=place < count, other=0.0)
    tl.store(output + place, tl.maximum(values, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=place < count)
"""


def library_task() -> KernelTask:
    """A product and what a kernel does with it."""
    g = GraphBuilder()
    a, b = g.input("a", ("s0", "s1")), g.input("b", ("s1", "s2"))
    made = g.call("mm.default", a, b, shape=("s0", "s2"))
    return g.task(g.call("relu.default", made, shape=("s0", "s2")), symbols={"s0": 30, "s1": 20, "s2": 17})


def library_source() -> KernelSource:
    """A library's product into scratch, and a kernel behind it."""
    operands = (View("a", ("s0", "s1"), ("s1", "1")), View("b", ("s1", "s2"), ("s2", "1")))
    stages = (
        LibraryCall("aten.mm.default", operands, "between", ("s0", "s2")),
        Launch("scaled", ("cdiv(s0 * s2, 128)",), ("between", "output", "s0 * s2"), {"BLOCK": "128"}),
    )
    between = (Scratch("between", "float32", "s0 * s2"),)
    return source(SCALED, LaunchRecord(("a", "b"), ("output",), stages, ("s0", "s1", "s2"), scratch=between))
