"""A number that only the call decides, anywhere among an operation's arguments, costs one kernel at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve, frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.author import initial

SHAPE = (8, 6, 16, 32)
X = ValueRef("x")
UNIT = (None, (1, 1), (1, 1), (1, 1))
"""No bias, and one for stride, padding and dilation."""


@frozen
class Operand:
    """A further tensor of an operation."""

    shape: tuple[int, ...]
    dtype: str


def floats(*shape: int) -> Operand:
    return Operand(shape, "float32")


def indices(*shape: int) -> Operand:
    return Operand(shape, "int64")


HERE = SymbolicInt("s0 + 1")

# operation, arguments after the operand, shape of the result
OPERATIONS: tuple[tuple[str, tuple[Any, ...], tuple[int, ...]], ...] = (
    ("triu.default", (1,), SHAPE),
    ("tril.default", (-1,), SHAPE),
    ("cumsum.default", (3,), SHAPE),
    ("cumprod.default", (2,), SHAPE),
    ("flip.default", ((1, 3),), SHAPE),
    ("roll.default", ((1, 3), (1, 2)), SHAPE),
    ("select.int", (1, 2), (8, 16, 32)),
    ("slice.Tensor", (3, 4, 20, 2), (8, 6, 16, 8)),
    ("permute.default", ((0, 2, 1, 3),), (8, 16, 6, 32)),
    ("transpose.int", (1, 3), (8, 32, 16, 6)),
    ("unfold.default", (3, 4, 2), (8, 6, 16, 15, 4)),
    ("diagonal.default", (0, 2, 3), (8, 6, 16)),
    ("constant_pad_nd.default", ((1, 1), 0.0), (8, 6, 16, 34)),
    ("reflection_pad2d.default", ((1, 1, 2, 2),), (8, 6, 20, 34)),
    ("repeat.default", ((1, 1, 2, 1),), (8, 6, 32, 32)),
    ("expand.default", ((8, 6, 16, 32),), SHAPE),
    ("view.default", ((8, 6, 512),), (8, 6, 512)),
    ("unsqueeze.default", (1,), (8, 1, 6, 16, 32)),
    ("sum.dim_IntList", ((1, 3), False), (8, 16)),
    ("mean.dim", ((2,), True), (8, 6, 1, 32)),
    ("var.correction", ((3,),), (8, 6, 16)),
    ("amax.default", ((3,), False), (8, 6, 16)),
    ("argmax.default", (3,), (8, 6, 16)),
    ("prod.dim_int", (3,), (8, 6, 16)),
    ("_softmax.default", (3, False), SHAPE),
    ("_log_softmax.default", (1, False), SHAPE),
    ("avg_pool2d.default", ((2, 2), (2, 2), (0, 0)), (8, 6, 8, 16)),
    ("max_pool2d.default", ((2, 2), (2, 2), (0, 0)), (8, 6, 8, 16)),
    ("_adaptive_avg_pool2d.default", ((4, 4),), (8, 6, 4, 4)),
    ("upsample_nearest2d.vec", ((32, 64), None), (8, 6, 32, 64)),
    ("pixel_shuffle.default", (2,), (8, 6, 16, 32)),
    ("glu.default", (3,), (8, 6, 16, 16)),
    ("movedim.int", (1, 3), (8, 16, 32, 6)),
    ("narrow.default", (3, 4, 8), (8, 6, 16, 8)),
    ("repeat_interleave.self_int", (2, 3), (8, 6, 16, 64)),
    ("max_pool2d.default", (2,), (8, 6, 8, 16)),
    ("im2col.default", ((2, 2), (1, 1), (0, 0), (2, 2)), (8, 24, 128)),
    ("pixel_unshuffle.default", (2,), (8, 24, 8, 16)),
    ("cat.default", ((X, X), 2), (8, 6, 32, 32)),
    ("stack.default", ((X, X), 4), (8, 6, 16, 32, 2)),
    (
        "convolution.default",
        (floats(12, 6, 3, 3), None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1),
        (8, 12, 16, 32),
    ),
    ("convolution.default", (floats(6, 1, 3, 3), None, (1, 1), (1, 1), (1, 1), False, (0, 0), 6), SHAPE),
    (
        "convolution.default",
        (floats(6, 4, 2, 2), None, (2, 2), (0, 0), (1, 1), True, (0, 0), 1),
        (8, 4, 32, 64),
    ),
    ("gather.default", (3, indices(8, 6, 16, 4)), (8, 6, 16, 4)),
    ("index_select.default", (2, indices(5)), (8, 6, 5, 32)),
    ("scatter.src", (3, indices(8, 6, 16, 4), floats(8, 6, 16, 4)), SHAPE),
    ("scatter_add.default", (3, indices(8, 6, 16, 4), floats(8, 6, 16, 4)), SHAPE),
    ("index_add.default", (0, indices(3), floats(3, 6, 16, 32)), SHAPE),
    ("grid_sampler_2d.default", (floats(8, 5, 5, 2), 0, 0, False), (8, 6, 5, 5)),
    ("select_scatter.default", (floats(8, 16, 32), 1, 2), SHAPE),
    ("slice_scatter.default", (floats(8, 6, 4, 32), 2, 4, 8, 1), SHAPE),
    ("linalg_vector_norm.default", (2, (3,), False), (8, 6, 16)),
    ("logsumexp.default", ((3,), False), (8, 6, 16)),
)


def _replaced(arg: Arg) -> Iterator[Arg]:
    """The argument once for each integer in it, which the call decides instead."""
    if isinstance(arg, tuple):
        for place, item in enumerate(arg):
            yield from ((*arg[:place], changed, *arg[place + 1 :]) for changed in _replaced(item))
    elif isinstance(arg, int) and not isinstance(arg, bool):
        yield HERE


def _variants(node: Node) -> Iterator[Node]:
    yield node
    for place, arg in enumerate(node.args):
        for changed in _replaced(arg):
            yield evolve(node, args=(*node.args[:place], changed, *node.args[place + 1 :]))


def _planned(task: KernelTask, chip: Chip) -> str:
    try:
        initial(task, chip)
    except PlanError as error:
        return str(error)
    return ""


def _operand(b: Any, place: int, item: Any) -> Arg:
    if not isinstance(item, Operand):
        return item
    operand: ValueRef = b.input(f"y{place}", item.shape, item.dtype)
    return operand


@pytest.mark.parametrize(("op", "args", "shape"), OPERATIONS, ids=[item[0] for item in OPERATIONS])
def test_a_refusal_is_a_sentence(
    builder: Any, chip: Chip, op: str, args: tuple[Any, ...], shape: tuple[int, ...]
) -> None:
    b = builder()
    x = b.input("x", SHAPE)
    operands = [
        b.input(f"y{at}", item.shape, item.dtype) if isinstance(item, Operand) else item
        for at, item in enumerate(args)
    ]
    found = b.call(op, *(() if X in args[:1] or args[0] == (X, X) else (x,)), *operands, shape=shape)
    task = b.task(b.call("neg.default", found, shape=shape))
    first, after = task.graph.nodes
    for variant in _variants(first):
        graph = evolve(task.graph, nodes=(variant, after))
        reason = _planned(evolve(task, graph=graph, symbols=(Symbol("s0", 2),)), chip)
        assert not reason or reason.endswith(".")
