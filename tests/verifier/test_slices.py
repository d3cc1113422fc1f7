"""Which slices are computed apart: every rule against PyTorch, whole tasks, and what is chosen of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
import torch
from attrs import evolve, frozen
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import cases
from evokernel_core.verifier.gates.slices import choice as choices
from evokernel_core.verifier.gates.slices.independence import independent_symbols
from evokernel_core.verifier.gates.slices.rules import RULES, Mixed, SliceAxis, SlicedNode, SlicedOperand
from tests.targets.ascendc.conftest import GraphBuilder
from tests.verifier.conftest import make_task

SLICES = 6
KEPT = (0, 3, 4)
"""Of the slices, the ones that are computed alone."""


@frozen
class Example:
    """A call on tensors of these shapes, each with the dimension of its slices; ``rest`` follows them."""

    op: str
    shapes: Sequence[Sequence[int]]
    dims: Sequence[int | None]
    rest: tuple[Any, ...] = ()
    listed: bool = False

    @property
    def name(self) -> str:
        return self.op.split(".")[0]


def _two(op: str) -> Example:
    return Example(op, [(4, SLICES), (SLICES,)], [1, 0])


def _one(op: str, *rest: Any) -> Example:
    return Example(op, [(SLICES, 4)], [0], rest)


UNARY = """
abs acos acosh alias angle asin asinh atan atanh ceil clone cos cosh detach erf erfc erfinv exp exp2
expm1 floor gelu hardsigmoid hardswish isinf leaky_relu log log10 log1p log2 logical_not mish neg
reciprocal relu relu6 round rsqrt sigmoid sign signbit silu sin sinh softplus sqrt square tan tanh trunc
elu hardtanh contiguous ones_like zeros_like lift_fresh_copy _to_copy
""".split()  # noqa: SIM905
BINARY = """
add.Tensor sub.Tensor mul.Tensor div.Tensor atan2.default copysign.Tensor eq.Tensor ne.Tensor ge.Tensor
gt.Tensor le.Tensor lt.Tensor fmax.default fmin.default fmod.Tensor heaviside.default hypot.default
logaddexp.default logaddexp2.default logical_and.default logical_or.default logical_xor.default
maximum.default minimum.default pow.Tensor_Tensor remainder.Tensor rsub.Tensor clamp.Tensor
clamp_max.Tensor clamp_min.Tensor
""".split()  # noqa: SIM905
BITS = """
bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor bitwise_left_shift.Tensor
bitwise_right_shift.Tensor
""".split()  # noqa: SIM905
ROWS, IMAGE, VOLUME = (2, SLICES, 8), (2, SLICES, 8, 8), (2, SLICES, 8, 8, 8)
EXAMPLES = [
    *(_one(f"{name}.default") for name in UNARY),
    *map(_two, (*BINARY, *BITS)),
    _one("bitwise_not.default"),
    _one("full_like.default", 2.0),
    _one("fill.Scalar", 2.0),
    Example("where.self", [(4, SLICES), (4, SLICES), (4, 1)], [1, 1, None]),
    Example("masked_fill.Scalar", [(SLICES, 4), (1, 4)], [0, None], (0.5,)),
    Example("lerp.Scalar", [(SLICES, 4), (1, 4)], [0, None], (0.5,)),
    Example("addcmul.default", [(SLICES, 4), (1, 4), (SLICES, 1)], [0, None, 0]),
    Example("addcdiv.default", [(SLICES, 4), (1, 4), (SLICES, 1)], [0, None, 0]),
    *(_one(f"{name}.{kind}", *rest) for name, kind, *rest in (
        ("sum", "dim_IntList", (1,), True), ("mean", "dim", (-1,)), ("amax", "default", (1,)),
        ("amin", "default", (1,), True), ("argmax", "default", 1), ("argmin", "default", 1, True),
        ("logsumexp", "default", (1,)), ("linalg_vector_norm", "default", 2, (1,)), ("max", "dim", 1),
        ("min", "dim", 1), ("prod", "dim_int", 1), ("std", "correction", (1,)), ("var", "correction", (1,)),
        ("var_mean", "correction", (1,)), ("all", "dim", 1), ("any", "dim", 1))),
    Example("sum.dim_IntList", [(3, SLICES, 4)], [1], ((0, 2),)),
    *(Example(f"{name}.default", [(SLICES, 4)], [0], (1, False)) for name in ("_softmax", "_log_softmax")),
    *(_one(f"{name}.default", 1) for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")),
    _one("slice.Tensor", 1, 1, 3),
    _one("flip.default", (1,)),
    _one("roll.default", (1,), (1,)),
    Example("avg_pool1d.default", [ROWS], [1], ((2,), (2,))),
    Example("avg_pool2d.default", [IMAGE], [1], ((2, 2), (2, 2))),
    Example("avg_pool3d.default", [VOLUME], [1], ((2, 2, 2), (2, 2, 2))),
    Example("max_pool2d_with_indices.default", [IMAGE], [1], ((2, 2), (2, 2))),
    Example("max_pool3d_with_indices.default", [VOLUME], [1], ((2, 2, 2), (2, 2, 2))),
    Example("_adaptive_avg_pool2d.default", [IMAGE], [1], ((3, 3),)),
    Example("_adaptive_avg_pool3d.default", [VOLUME], [1], ((3, 3, 3),)),
    Example("adaptive_max_pool2d.default", [IMAGE], [1], ((3, 3),)),
    Example("adaptive_max_pool3d.default", [VOLUME], [1], ((3, 3, 3),)),
    *(Example(f"{how}_pad{n}d.default", [shape], [1], ((1,) * 2 * n,))
      for how in ("reflection", "replication") for n, shape in ((1, ROWS), (2, IMAGE), (3, VOLUME))),
    Example("constant_pad_nd.default", [IMAGE], [1], ((1, 1, 2, 0), 0.0)),
    *(Example(f"{name}.default", [IMAGE], [1]) for name in ("tril", "triu")),
    Example("native_layer_norm.default", [(SLICES, 4, 8)], [0], ((4, 8), None, None, 1e-5)),
    Example("convolution.default", [(SLICES, 3, 8, 8), (4, 3, 3, 3)], [0, None],
            (None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)),
    Example("mm.default", [(SLICES, 4), (4, 3)], [0, None]),
    Example("mm.default", [(3, 4), (4, SLICES)], [None, 1]),
    Example("bmm.default", [(SLICES, 2, 4), (SLICES, 4, 3)], [0, 0]),
    Example("bmm.default", [(2, SLICES, 4), (2, 4, 3)], [1, None]),
    Example("bmm.default", [(2, 3, 4), (2, 4, SLICES)], [None, 2]),
    Example("linear.default", [(2, SLICES, 4), (3, 4)], [1, None]),
    Example("scaled_dot_product_attention.default", [(2, SLICES, 5, 4)] * 3, [1] * 3),
    Example("permute.default", [(2, SLICES, 3)], [1], ((1, 2, 0),)),
    Example("transpose.int", [(2, SLICES, 3)], [1], (1, -1)),
    Example("t.default", [(SLICES, 3)], [0]),
    Example("select.int", [(2, SLICES, 3)], [1], (0, 1)),
    Example("cat.default", [(2, SLICES, 3), (4, SLICES, 3)], [1, 1], (0,), listed=True),
    Example("squeeze.dim", [(1, SLICES, 3)], [1], (0,)),
    Example("unsqueeze.default", [(2, SLICES)], [1], (1,)),
    Example("flatten.using_ints", [(SLICES, 2, 3)], [0], (1, 2)),
    Example("unflatten.int", [(SLICES, 12)], [0], (1, (3, 4))),
]  # fmt: skip
SIZED = {
    "view.default": [((SLICES, 2, 3), 0, (SLICES, 6)), ((2, SLICES, 3), 1, (2, SLICES, 3, 1))],
    "_unsafe_view.default": [((SLICES, 2, 3), 0, (SLICES, 6))],
    "reshape.default": [((SLICES, 2, 3), 0, (SLICES, 6))],
    "expand.default": [((SLICES, 1), 0, (3, SLICES, 4))],
    "broadcast_to.default": [((SLICES, 1), 0, (3, SLICES, 4))],
}
"""What names sizes: a shape, the dimension of the slices in it, and the shape asked for."""
MERGED = {"view.default": ((2, SLICES, 3), 1, (2, 3 * SLICES)), "reshape.default": ((2, SLICES), 1, (12,))}
"""Views that merge the dimension with others: the slices lie in runs of it."""


def packet(op: str) -> Any:
    name, overload = op.split(".")
    return getattr(getattr(torch.ops.aten, name), overload)


def drawn(example: Example) -> list[torch.Tensor]:
    torch.manual_seed(2)
    kind = example.name
    tensors = [torch.rand(tuple(shape)) * 0.9 + 0.05 for shape in example.shapes]
    if kind.startswith("bitwise"):
        return [(tensor * 7).int() for tensor in tensors]
    if kind in ("where", "masked_fill"):
        mask = 0 if kind == "where" else 1
        tensors[mask] = tensors[mask] > 0.5
    return tensors


def called(example: Example, tensors: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    first = (tensors,) if example.listed else tuple(tensors)
    result = packet(example.op)(*first, *example.rest)
    return result if isinstance(result, tuple) else (result,)


def place_of(
    op: str, tensors: Sequence[torch.Tensor], dims: Sequence[int | None], args: Any, made: Any
) -> SliceAxis:
    refs = [ValueRef(f"v{i}") for i in range(len(tensors))]
    values = {
        ref: SlicedOperand(tuple(tensor.shape), None if dim is None else SliceAxis(dim))
        for ref, tensor, dim in zip(refs, tensors, dims, strict=True)
    }
    outputs = tuple(TensorSpec(tuple(item.shape), "float32") for item in made)
    node = Node("n", f"aten.{op}", args(refs), (), outputs)
    return RULES[op.split(".", maxsplit=1)[0]](
        SlicedNode(node, values, tuple(tuple(i.shape) for i in made), SLICES)
    )


def kept(tensor: torch.Tensor, place: SliceAxis) -> torch.Tensor:
    """What a tensor has of the slices that are computed alone."""
    size = tensor.shape[place.dim]
    of = [i for i in range(size) if i // place.inner % SLICES in KEPT]
    return tensor.index_select(place.dim, torch.tensor(of))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.op)
def test_slices_alone_are_slices_of_the_whole(example: Example) -> None:
    tensors = drawn(example)
    alone = [
        tensor if dim is None else kept(tensor, SliceAxis(dim))
        for tensor, dim in zip(tensors, example.dims, strict=True)
    ]
    made = called(example, tensors)
    place = place_of(
        example.op, tensors, example.dims,
        lambda refs: ((tuple(refs),) if example.listed else tuple(refs)) + example.rest, made,
    )  # fmt: skip
    for whole, part in zip(made, called(example, alone), strict=True):
        torch.testing.assert_close(kept(whole, place), part, equal_nan=True)


SIZED_CALLS = [(op, case) for op, found in SIZED.items() for case in found]


@pytest.mark.parametrize(("op", "case"), [*SIZED_CALLS, *MERGED.items()])
def test_slices_of_views_are_where_their_elements_are(op: str, case: Any) -> None:
    shape, dim, asked = case
    tensor = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    made = (packet(op)(tensor, asked),)
    place = place_of(op, [tensor], [dim], lambda refs: (*refs, asked), made)
    of = set(kept(tensor, SliceAxis(dim)).flatten().tolist())
    assert set(kept(made[0], place).flatten().tolist()) == of
    if made[0].numel() == tensor.numel():
        assert kept(made[0], place).numel() == len(of)


def test_every_rule_is_compared() -> None:
    compared = {example.name for example in EXAMPLES} | {op.split(".")[0] for op in SIZED}
    assert compared == set(RULES)


MIXING = [
    _one("_softmax.default", 0, False),
    _one("sum.dim_IntList", (0,)),
    _one("cumsum.default", -2),
    _one("flip.default", (0,)),
    _one("slice.Tensor", 0, 0, 3),
    _one("select.int", 0, 1),
    Example("mm.default", [(3, SLICES), (SLICES, 4)], [1, 0]),
    Example("mm.default", [(SLICES, 3), (3, SLICES)], [0, 1]),
    Example("bmm.default", [(2, 3, SLICES), (2, SLICES, 4)], [2, 1]),
    Example("cat.default", [(SLICES, 3), (SLICES, 3)], [0, 0], (0,), listed=True),
    Example("cat.default", [(2, SLICES), (2, SLICES)], [1, None], (0,), listed=True),
    Example("add.Tensor", [(SLICES, 4), (SLICES, 4)], [0, None]),
    Example("add.Tensor", [(SLICES, SLICES), (SLICES,)], [0, 0]),
    Example("avg_pool2d.default", [(2, 3, SLICES, 8)], [2], ((2, 2), (2, 2))),
    Example("convolution.default", [(2, SLICES, 8, 8), (4, SLICES, 3, 3)], [1, 1],
            (None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)),
    Example("native_layer_norm.default", [(SLICES, 4)], [0], ((SLICES, 4), None, None, 1e-5)),
    Example("argmax.default", [(SLICES, 4)], [0]),
]  # fmt: skip


@pytest.mark.parametrize("example", MIXING, ids=lambda example: f"{example.op} {example.rest}")
def test_what_mixes_slices_is_known_to(example: Example) -> None:
    tensors = drawn(example)
    made = called(example, tensors)
    with pytest.raises(Mixed):
        place_of(
            example.op, tensors, example.dims,
            lambda refs: ((tuple(refs),) if example.listed else tuple(refs)) + example.rest, made,
        )  # fmt: skip


# --- tasks ---


def _task(made: Any, sizes: Mapping[str, int]) -> KernelTask:
    graph = GraphBuilder()
    task: KernelTask = graph.task(made(graph), symbols=sizes)
    return task


def test_dimensions_that_an_unknown_operation_sees_are_not_apart() -> None:
    def sorts(graph: GraphBuilder) -> ValueRef:
        x = graph.input("x", ("a", "b"))
        spec = TensorSpec(("a", "b"), "float32")
        return graph.calls("sort.default", x, 1, False, outputs=[spec, evolve(spec, dtype="int64")])

    assert independent_symbols(_task(sorts, {"a": 8, "b": 8})) == ()


def test_positions_and_counts_of_slices_are_not_apart() -> None:
    def counted(graph: GraphBuilder) -> ValueRef:
        from evokernel_core.domain.graph import SymbolicInt

        x = graph.input("x", ("a", "b"))
        places = graph.call("arange.start_step", 0, SymbolicInt("b"), 1, shape=("b",))
        return graph.call("add.Tensor", x, places, shape=("a", "b"))

    assert independent_symbols(_task(counted, {"a": 8, "b": 9})) == ("a",)


def test_outputs_without_the_dimension_are_not_apart() -> None:
    def two(graph: GraphBuilder) -> ValueRef:
        x = graph.input("x", ("a", "b"))
        graph.call("relu.default", x, shape=("a", "b"))
        return graph.call("sum.dim_IntList", x, (0,), False, shape=("b",))

    assert independent_symbols(_task(two, {"a": 8, "b": 9})) == ("b",)


@pytest.mark.parametrize("shape", [("a", "b", 1), ("b", 1, "a")])
def test_what_is_expanded_to_as_many_and_summed_is_not_apart(shape: tuple[Any, ...]) -> None:
    """The sum has each element as often as there are slices, which a part of them does not tell."""
    whole = tuple("a" if size == 1 else size for size in shape)
    dim = shape.index(1)

    def summed(graph: GraphBuilder) -> ValueRef:
        from evokernel_core.domain.graph import SymbolicInt

        x = graph.input("x", shape)
        sizes = tuple(SymbolicInt(size) for size in whole)
        spread = graph.call("expand.default", x, sizes, shape=whole)
        rest = tuple(size for place, size in enumerate(whole) if place != dim)
        return graph.call("sum.dim_IntList", spread, (dim,), False, shape=rest)

    assert independent_symbols(_task(summed, {"a": 8, "b": 9})) == ("b",)


def _large(**sizes: int) -> KernelTask:
    task = make_task("add")
    return evolve(task, symbols=tuple(Symbol(name, size) for name, size in sizes.items()))


def _chosen(task: KernelTask, secret: str) -> choices.ChosenSlices:
    found = choices.choose(task, Draw(secret * 32))
    assert isinstance(found, choices.ChosenSlices)
    return found


def test_a_draw_says_what_is_chosen_and_another_says_other_places() -> None:
    task = _large(s0=4096, s1=400_000)
    assert _chosen(task, "1") == _chosen(task, "1")
    assert _chosen(task, "1").runs != _chosen(task, "2").runs


@pytest.mark.parametrize("sizes", [{"s0": 4096, "s1": 400_000}, {"s0": 3_000_000, "s1": 512}])
def test_at_least_64_places_are_chosen_the_ends_among_them(sizes: dict[str, int]) -> None:
    task = _large(**sizes)
    found = _chosen(task, "3")
    rows = dict(found.runs)["s0"]
    assert len(rows) == 64
    assert rows[0][0] == 0 and sum(rows[-1]) == sizes["s0"]
    starts = [first for first, _ in rows]
    assert starts == sorted(starts) and all(a + n <= b for (a, n), (b, _) in itertools.pairwise(rows))
    assert cases.total_bytes(task, dict(found.sizes)) <= choices.ENOUGH + 100


@given(st.integers(1, 3000), st.sampled_from((1, 8, 64)), st.integers(1, 8), st.integers(0, 99))
def test_runs_are_apart_and_one_is_long(size: int, places: int, each: int, seed: int) -> None:
    count = min(places * each, size)
    found = choices._runs(size, places * each, places, Random(seed))
    assert sum(length for _, length in found) == count and sum(found[-1]) <= size
    assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(found))
    if places >= choices.SEVERAL and each > 1 and size >= places * (count + 2):
        assert max(length for _, length in found) > count // 2


def test_where_a_few_places_are_all_that_fits_nobody_knows_which() -> None:
    symbols = (Symbol("s0", 64), Symbol("s1", 2_000_000))
    task = evolve(make_task("softmax"), symbols=symbols)
    rows = {dict(_chosen(task, f"{n:x}").runs)["s0"] for n in range(16)}
    assert len(rows) > 8 and all(len(places) < choices.SEVERAL for places in rows)


@pytest.mark.parametrize(("room", "grows"), [(-1, False), (0, True), (1, True)])
def test_slices_grow_to_the_last_byte_that_a_kernel_may_touch(
    room: int, grows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draw with no bound shows what two slices touch; with that bound they are chosen, with less one is."""
    task = evolve(make_task("softmax"), symbols=(Symbol("s0", 2), Symbol("s1", 100_000)))
    monkeypatch.setattr(choices, "PLACES", 2)
    both = _chosen(task, "0")
    assert dict(both.sizes)["s0"] == 2
    touched = choices._touched(task, both)
    monkeypatch.setattr(choices, "TOUCHED", touched + room)
    assert (dict(_chosen(task, "0").sizes)["s0"] == 2) is grows


def test_inputs_that_may_be_indices_are_left_alone() -> None:
    def taken(graph: GraphBuilder) -> ValueRef:
        x, i = graph.input("x", ("a", "b")), graph.input("i", ("n",), "int64")
        return graph.call("index_select.default", x, 0, i, shape=("n", "b"))

    found = choices.choose(_task(taken, {"a": 9, "b": 9, "n": 9}), Draw("0" * 32))
    assert isinstance(found, str) and "integers" in found
