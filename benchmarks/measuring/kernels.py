"""An element-wise task, its kernel, and the same kernel that does part of its work twice."""

from __future__ import annotations

from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.triton.launch import Launch, LaunchRecord
from evokernel_core.targets.triton.source import HEADER, triton_source

BLOCK = 2048
REPEATED = 3
"""Per cent of the blocks."""
BYTES = 8
"""Of an element: read once, written once."""
TEXT = f"""{HEADER}

@triton.jit
def affine(x, output, n, blocks, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    block = tl.where(block >= blocks, block - blocks, block)
    offsets = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(output + offsets, tl.load(x + offsets, mask=mask) * 2.0 + 1.0, mask=mask)
"""


def affine_task(elements: int) -> KernelTask:
    """``2 x + 1`` of so many float32."""
    spec = TensorSpec(("s0",), "float32")
    graph = Graph(
        (GraphInput("x", spec, InputKind.TENSOR, "x"),),
        (
            Node("mul", "aten.mul.Tensor", (ValueRef("x"), 2.0), (), (spec,)),
            Node("add", "aten.add.Tensor", (ValueRef("mul"), 1.0), (), (spec,)),
        ),
        (ValueRef("add"),),
    )
    symbols = (Symbol("s0", elements),)
    return KernelTask("affine", graph, symbols, TOLERANCES["float32"], "elementwise")


def affine_record(grid: str = f"cdiv(s0, {BLOCK})", text_kernel: str = "affine") -> LaunchRecord:
    """The record of ``TEXT``, with as many programs as blocks."""
    launch = Launch(
        text_kernel, (grid,), ("x", "output", "s0", f"cdiv(s0, {BLOCK})"), {"BLOCK": str(BLOCK)}, warps=8
    )
    return LaunchRecord(("x",), ("output",), (launch,), ("s0",))


def affine_kernel(repeated: int = 0) -> KernelSource:
    """The kernel, which does so many per cent of its blocks twice."""
    blocks = f"cdiv(s0, {BLOCK})"
    grid = blocks if not repeated else f"{blocks} + {blocks} * {repeated} // 100"
    return triton_source(TEXT, affine_record(grid), Strategy("model"))
