"""Family attention: scaled dot products with an online softmax against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.rewrites.wide_attention import WIDEST
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import check, estimate_us, initial, moves, write
from tests.tables import few

SIZES = [(1, 1), (1, 70), (3, 17), (64, 64), (130, 200), (33, 513), (70, 1100)]
"""Queries and keys: single ones, whole tiles, tails, several steps."""


def task_of(
    builder: Any, dtype: str = "float32", *, depth: int = 24, width: int = 40, mask: tuple[Any, ...] = (),
    heads: int = 3, shared: int = 3, kind: str = "float32", **options: Any,
) -> KernelTask:  # fmt: skip
    """[2, heads, q, depth] against [2, shared, k, depth] and [2, shared, k, width]."""
    graph = builder()
    query = graph.input("query", (2, heads, "q", depth), dtype)
    key = graph.input("key", (2, shared, "k", depth), dtype)
    value = graph.input("value", (2, shared, "k", width), dtype)
    extra = (graph.input("mask", mask, kind),) if mask else ()
    node = graph.call(
        "scaled_dot_product_attention.default", query, key, value, *extra,
        shape=(2, heads, "q", width), dtype=dtype, **options,
    )  # fmt: skip
    task: KernelTask = graph.task(node, symbols={"q": 256, "k": 600})
    return task


def attention(
    query: Any, key: Any, value: Any, mask: Any = 0.0, causal: bool = False, scale: float | None = None
) -> Any:
    groups = query.shape[1] // key.shape[1]
    key, value = (np.repeat(item.astype("f8"), groups, 1) for item in (key, value))
    scores = query.astype("f8") @ key.swapaxes(-1, -2) * (scale or query.shape[-1] ** -0.5) + mask
    if causal:
        rows, columns = scores.shape[-2:]
        scores = np.where(np.arange(columns) <= np.arange(rows)[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def _draw(task: KernelTask, queries: int, keys: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sizes = {"q": queries, "k": keys}
    found = {}
    for item in task.graph.inputs:
        values = rng.normal(size=item.spec.sizes(sizes)).astype("f4")
        found[item.name] = values.astype("f2") if item.spec.dtype == "float16" else values
    return found


def _matches(found: Any, expected: Any, dtype: str) -> None:
    tolerance = 1e-4 if dtype == "float32" else 1e-2
    np.testing.assert_allclose(np.asarray(found, "f8"), expected, rtol=tolerance, atol=tolerance)


@few(
    ("dtype", "causal", "sizes"),
    [
        (dtype, causal, sizes)
        for sizes in (SIZES, [(200, 1100)])
        for dtype in ("float32", "float16", "bfloat16")
        for causal in (False, True)
    ],
    keep=(1, 4),
)
def test_many_sizes(
    dtype: str, causal: bool, sizes: list[tuple[int, int]], builder: Any, on_twin: Any, chip: Any
) -> None:
    task = task_of(builder, dtype, is_causal=causal)
    strategy = initial(task, chip)
    assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED
    for queries, keys in sizes:
        inputs = _draw(task, queries, keys, queries)
        (result,) = on_twin(task, inputs, strategy=strategy, sizes={"q": queries, "k": keys})
        expected = attention(*inputs.values(), causal=causal)
        _matches(result, expected, "float16" if dtype == "bfloat16" else dtype)


@few(("part", "queries"), [(part, queries) for queries in (70, 140) for part in range(3)], keep=(0,))
def test_every_move_gives_the_same_result(
    part: int, queries: int, builder: Any, on_twin: Any, chip: Any
) -> None:
    task = task_of(builder, "float16", is_causal=True)
    start = initial(task, chip)
    found = moves(task, start, chip)
    assert len(found) > 4
    inputs = _draw(task, queries, 700, 0)
    expected = attention(*inputs.values(), causal=True)
    for strategy in (start, *(move.strategy for move in found))[part::3]:
        assert estimate_us(task, strategy, chip) > 0
        (result,) = on_twin(task, inputs, strategy=strategy, sizes={"q": queries, "k": 700})
        _matches(result, expected, "float16")


MASKS = [("q", "k"), (2, 1, "q", "k"), (2, 3, "q", "k"), (2, 1, 1, "k"), (1, "k"), (3, "q", "k")]


@few(("shape", "most"), [(shape, most) for most in (40, 70) for shape in MASKS], keep=(0, 3, 5))
def test_masks_that_broadcast(shape: tuple[Any, ...], most: int, builder: Any, on_twin: Any) -> None:
    task = task_of(builder, mask=shape)
    for queries, keys in ((5, 9), (most, 1100)):
        inputs = _draw(task, queries, keys, 1)
        (result,) = on_twin(task, inputs, sizes={"q": queries, "k": keys})
        _matches(result, attention(*inputs.values()), "float32")


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "bool"), ("float16", "float16")])
def test_masks_of_other_types(dtype: str, kind: str, builder: Any, on_twin: Any) -> None:
    task = task_of(builder, dtype, mask=("q", "k"), kind=kind)
    inputs = _draw(task, 30, 90, 5)
    shown = inputs["mask"]
    if kind == "bool":
        inputs["mask"] = shown = np.random.default_rng(0).random((30, 90)) < 0.7
        shown = np.where(shown, 0.0, -np.inf)
    (result,) = on_twin(task, inputs, sizes={"q": 30, "k": 90})
    sides = [inputs[name] for name in ("query", "key", "value")]
    _matches(result, attention(*sides, mask=np.asarray(shown, "f8")), dtype)


def test_keys_that_a_mask_hides_weigh_nothing(builder: Any, on_twin: Any) -> None:
    task = task_of(builder, mask=("q", "k"))
    inputs = _draw(task, 40, 1100, 2)
    inputs["mask"] = np.where(np.arange(1100) < 1050, -np.inf, 0.0).astype("f4") + np.zeros((40, 1), "f4")
    (result,) = on_twin(task, inputs, sizes={"q": 40, "k": 1100})
    _matches(result, attention(*inputs.values()), "float32")


@pytest.mark.parametrize("shared", [1, 2])
def test_heads_that_share_keys(shared: int, builder: Any, on_twin: Any) -> None:
    task = task_of(builder, heads=4, shared=shared, enable_gqa=True, scale=0.3)
    inputs = _draw(task, 20, 30, 3)
    (result,) = on_twin(task, inputs, sizes={"q": 20, "k": 30})
    _matches(result, attention(*inputs.values(), scale=0.3), "float32")


@few(
    ("depth", "width", "most"),
    [(*sides, most) for most in (33, 65) for sides in ((1, 1), (64, 64), (300, 513), (128, 7))],
    keep=(0, 2),
)
def test_depths_and_widths(depth: int, width: int, most: int, builder: Any, on_twin: Any) -> None:
    task = task_of(builder, depth=depth, width=width)
    for queries, keys in ((9, 20), (most, 620)):
        inputs = _draw(task, queries, keys, 4)
        (result,) = on_twin(task, inputs, sizes={"q": queries, "k": keys})
        _matches(result, attention(*inputs.values()), "float32")


WIDE = {"q": 60, "k": 100, "d": 64, "w": 1024}
LONG = {"q": 100, "k": 900, "d": 64, "w": 64}


@few(("known", "queries"), [(LONG, 40), (WIDE, 40), (LONG, 100), (WIDE, 60)], keep=(0, 1))
def test_depths_and_widths_that_only_the_call_knows(
    known: dict[str, int], queries: int, builder: Any, on_twin: Any, chip: Any
) -> None:
    """The second is one step, whose results no vector core keeps, however wide."""
    graph = builder()
    sides = [graph.input("query", (6, "q", "d")), graph.input("key", (6, "k", "d"))]
    sides.append(graph.input("value", (6, "k", "w")))
    node = graph.call("scaled_dot_product_attention.default", *sides, shape=(6, "q", "w"))
    task = graph.task(node, symbols=known)
    strategy = initial(task, chip)
    assert strategy.family == "attention"
    for sizes in ({**known, "q": queries}, {"q": 3, "k": 70, "d": 9, "w": 17}):
        rng = np.random.default_rng(sizes["d"])
        inputs = {
            item.name: rng.normal(size=item.spec.sizes(sizes)).astype("f4") for item in task.graph.inputs
        }
        (result,) = on_twin(task, inputs, strategy=strategy, sizes=sizes)
        expected = attention(*(item[None] for item in inputs.values()))
        _matches(result, expected[0], "float32")


def test_what_is_refused(builder: Any, chip: Any) -> None:
    for options, words in (({"dropout_p": 0.1}, "random"), ({"scale": -1.0}, "positive")):
        with pytest.raises(PlanError, match=words):
            check(task_of(builder, **options), chip)


def _written(builder: Any, dtype: str, heads_behind: bool, causal: bool, scale: Any) -> KernelTask:
    """Attention as two products around a softmax; heads lie behind or in front of the positions."""
    graph = builder()
    shape = (2, "n", 3, 16) if heads_behind else (2, 3, "n", 16)
    sides = []
    for name in ("query", "key", "value"):
        side = graph.input(name, shape, dtype)
        if heads_behind:
            side = graph.call("permute.default", side, (0, 2, 1, 3), shape=(2, 3, "n", 16), dtype=dtype)
        sides.append(side)
    query, key, value = sides
    turned = graph.call("transpose.int", key, -2, -1, shape=(2, 3, 16, "n"), dtype=dtype)
    flat = {"query": (query, (6, "n", 16)), "key": (turned, (6, 16, "n")), "value": (value, (6, "n", 16))}
    q, k, v = (graph.call("view.default", ref, (), shape=size, dtype=dtype) for ref, size in flat.values())
    scores = graph.call("bmm.default", q, k, shape=(6, "n", "n"), dtype=dtype)
    scores = graph.call("view.default", scores, (), shape=(2, 3, "n", "n"), dtype=dtype)
    scores = graph.call("mul.Tensor", scores, scale, shape=(2, 3, "n", "n"), dtype=dtype)
    if causal:
        ones = graph.call("full.default", ("n", "n"), True, shape=("n", "n"), dtype="bool")
        seen = graph.call("tril.default", ones, shape=("n", "n"), dtype="bool")
        scores = graph.call("where.self", seen, scores, float("-inf"), shape=(2, 3, "n", "n"), dtype=dtype)
    weights = graph.call("_softmax.default", scores, -1, False, shape=(2, 3, "n", "n"), dtype=dtype)
    weights = graph.call("view.default", weights, (), shape=(6, "n", "n"), dtype=dtype)
    result = graph.call("bmm.default", weights, v, shape=(6, "n", 16), dtype=dtype)
    task: KernelTask = graph.task(
        graph.call("view.default", result, (), shape=(2, 3, "n", 16), dtype=dtype), symbols={"n": 50}
    )
    return task


@pytest.mark.parametrize("heads_behind", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_products_around_a_softmax_are_one_launch(
    heads_behind: bool, causal: bool, builder: Any, on_twin: Any, chip: Any
) -> None:
    task = _written(builder, "float32", heads_behind, causal, 0.3)
    assert initial(task, chip).family == "attention"
    for count in (1, 20, 70):
        rng = np.random.default_rng(count)
        shape = (2, count, 3, 16) if heads_behind else (2, 3, count, 16)
        inputs = {name: rng.normal(size=shape).astype("f4") for name in ("query", "key", "value")}
        (result,) = on_twin(task, inputs, sizes={"n": count})
        sides = [x.swapaxes(1, 2) if heads_behind else x for x in inputs.values()]
        _matches(result, attention(*sides, causal=causal, scale=0.3), "float32")


ALIGNED = ["top left", "bottom right"]
"""Query i sees the keys 0 to i, or all but as many as queries follow it."""


def _guarded(builder: Any, op: str, aligned: str, turned: bool, sizes: dict[str, int]) -> KernelTask:
    """Attention of 6 heads that share the keys of 2, written out: keys are repeated, a comparison hides those
    behind a query, and rows that see none are zero."""
    graph, queries, keys, dtype = builder(), (3, 6, "q", 16), (3, 6, "k", 16), "float16"
    scored = (3, 6, "q", "k")

    def view(ref: Any, shape: Any, dtype: str = dtype) -> Any:
        return graph.call("view.default", ref, (), shape=shape, dtype=dtype)

    query = graph.input("query", (3, "q", 6, 16) if turned else queries, dtype)
    if turned:
        query = graph.call("transpose.int", query, 1, 2, shape=queries, dtype=dtype)
    repeated = []
    for name in ("key", "value"):
        side = view(graph.input(name, (3, 2, "k", 16), dtype), (3, 2, 1, "k", 16))
        shape = (3, 2, 3, "k", 16)
        side = graph.call("expand.default", side, (3, 2, 3, SymbolicInt("k"), 16), shape=shape, dtype=dtype)
        repeated.append(view(view(side, keys), (18, "k", 16)))
    key = graph.call("transpose.int", repeated[0], 1, 2, shape=(18, 16, "k"), dtype=dtype)
    scores = graph.call("bmm.default", view(query, (18, "q", 16)), key, shape=(18, "q", "k"), dtype=dtype)
    scores = graph.call("mul.Tensor", view(scores, scored), 0.25, shape=scored, dtype=dtype)
    if op:
        numbers = [
            graph.call("arange.start_step", 0, SymbolicInt(end), shape=(end,), dtype="int64") for end in "qk"
        ]
        row = view(numbers[0], ("q", 1), "int64")
        if aligned == "bottom right":
            row = graph.call("add.Tensor", row, SymbolicInt("k - q"), shape=("q", 1), dtype="int64")
        sides = (row, view(numbers[1], (1, "k"), "int64"))
        pair = sides if op in ("lt", "ge") else sides[::-1]
        compared = graph.call(f"{op}.Tensor", *pair, shape=("q", "k"), dtype="bool")
        if op in ("gt", "lt"):
            parts = "masked_fill.Scalar", scores, compared, float("-inf")
        else:
            parts = "where.self", compared, scores, float("-inf")
        scores = graph.call(*parts, shape=scored, dtype=dtype)
    largest = graph.call("amax.default", scores, (-1,), True, shape=(3, 6, "q", 1), dtype=dtype)
    tests = [
        graph.call(test, largest, *args, shape=(3, 6, "q", 1), dtype="bool")
        for test, *args in (("isinf.default",), ("lt.Scalar", 0))
    ]
    nothing = graph.call("bitwise_and.Tensor", *tests, shape=(3, 6, "q", 1), dtype="bool")
    weights = graph.call("_softmax.default", scores, -1, False, shape=scored, dtype=dtype)
    zeros = graph.call("zeros_like.default", weights, shape=scored, dtype=dtype)
    weights = graph.call("where.self", nothing, zeros, weights, shape=scored, dtype=dtype)
    result = graph.call(
        "bmm.default", view(weights, (18, "q", "k")), repeated[1], shape=(18, "q", 16), dtype=dtype
    )
    task: KernelTask = graph.task(view(result, queries), symbols=sizes)
    return task


@few(
    ("op", "aligned", "turned", "sizes"),
    [
        (op, aligned, turned, sizes)
        for turned in (False, True)
        for sizes in ((50, 60), (2, 300), (1, 40))
        for op, aligned in (
            ("", ""),
            *((op, aligned) for op in ("gt", "lt", "le", "ge") for aligned in ALIGNED),
        )
    ],
    keep=(2, 13, 32, 44),
)
def test_heads_that_share_keys_written_out(
    op: str, aligned: str, turned: bool, sizes: tuple[int, int], builder: Any, on_twin: Any, chip: Any
) -> None:
    """Keys are read once for the heads that share them, whatever hides some; queries that come before the
    first key see none."""
    task = _guarded(builder, op, aligned, turned, dict(zip("qk", sizes, strict=True)))
    strategy = initial(task, chip)
    assert [kernel.family for kernel in strategy.kernels].count("matmul") == 0
    for queries, keys in (sizes, (3, 70), (1, 1), *([(20, 9)] if aligned else [])):
        rng = np.random.default_rng(keys)
        shape = (3, queries, 6, 16) if turned else (3, 6, queries, 16)
        inputs = {"query": rng.normal(size=shape).astype("f2")}
        inputs |= {name: rng.normal(size=(3, 2, keys, 16)).astype("f2") for name in ("key", "value")}
        (result,) = on_twin(task, inputs, strategy=strategy, sizes={"q": queries, "k": keys})
        query = inputs["query"].swapaxes(1, 2) if turned else inputs["query"]
        diagonal = {"": keys, "top left": 0, "bottom right": keys - queries}[aligned]
        hidden = np.where(np.tri(queries, keys, diagonal), 0.0, -np.inf)
        with np.errstate(invalid="ignore"):
            expected = attention(query, inputs["key"], inputs["value"], hidden, scale=0.25)
        _matches(result, np.nan_to_num(expected), "float16")


def _joined(
    builder: Any, joined: tuple[str, ...], parts: tuple[int, ...], heads: int, causal: bool
) -> KernelTask:
    """Attention of sides whose columns are joined of ``parts``, keys shared by all heads."""
    graph = builder()
    sides = []
    for name in ("query", "key"):
        shape = (2, heads if name == "query" else 1, name[0], sum(parts))
        if name in joined:
            given = [
                graph.input(f"{name}{place}", (*shape[:-1], part), "float16")
                for place, part in enumerate(parts)
            ]
            sides.append(graph.call("cat.default", tuple(given), -1, shape=shape, dtype="float16"))
        else:
            sides.append(graph.input(name, shape, "float16"))
    sides.append(graph.input("value", (2, 1, "k", 40), "float16"))
    node = graph.call(
        "scaled_dot_product_attention.default", *sides, None, 0.0, causal, scale=0.2,
        shape=(2, heads, "q", 40), dtype="float16",
    )  # fmt: skip
    task: KernelTask = graph.task(node, symbols={"q": 2, "k": 300})
    return task


@few(
    ("joined", "parts", "heads", "causal"),
    [
        (joined, parts, heads, causal)
        for heads, causal in ((5, False), (1, True))
        for joined in (("query", "key"), ("key",))
        for parts in ((300, 20), (7, 64))
    ],
    keep=(0, 3, 6),
)
def test_columns_that_are_joined_are_read_where_they_lie(
    joined: tuple[str, ...],
    parts: tuple[int, ...],
    heads: int,
    causal: bool,
    builder: Any,
    on_twin: Any,
    chip: Any,
) -> None:
    task = _joined(builder, joined, parts, heads, causal)
    strategy = initial(task, chip)
    assert strategy.family == "attention"
    for queries, keys in ((2, 300), (5, 9), (40, 1100)):
        inputs = _draw(task, queries, keys, keys)
        (result,) = on_twin(task, inputs, strategy=strategy, sizes={"q": queries, "k": keys})
        query, key = (
            np.concatenate([x for name, x in inputs.items() if name.startswith(side)], -1)
            for side in ("query", "key")
        )
        expected = attention(query, key, inputs["value"], causal=causal, scale=0.2)
        _matches(result, expected, "float16")


@pytest.mark.parametrize(("joined", "parts"), [(("query",), (8, 24)), (("query", "key"), (8, 16, 24))])
def test_columns_that_are_joined_otherwise_are_copied(
    joined: tuple[str, ...], parts: tuple[int, ...], builder: Any, chip: Any
) -> None:
    assert initial(_joined(builder, joined, parts, 1, False), chip).family == "program"


def test_a_scale_that_turns_scores_around_stays_two_products(builder: Any, chip: Any) -> None:
    assert initial(_written(builder, "float32", False, False, -0.3), chip).family == "program"


@pytest.mark.parametrize("shape", [(2, 1, 1, "n"), (2, 3, "n", "n"), (3, 1, "n"), ("n", "n")])
def test_written_attention_with_masks_over_batches_and_heads(
    shape: tuple[Any, ...], builder: Any, on_twin: Any, chip: Any
) -> None:
    """The products have one batch dimension, the scores two: a mask broadcasts to the scores."""
    graph = builder()
    sides = ("query", "key", "value")
    given = [graph.input(name, (2, 3, "n", 16)) for name in sides]
    mask = graph.input("mask", shape)
    q, k, v = (graph.call("view.default", item, (), shape=(6, "n", 16)) for item in given)
    turned = graph.call("transpose.int", k, 1, 2, shape=(6, 16, "n"))
    scores = graph.call("bmm.default", q, turned, shape=(6, "n", "n"))
    scores = graph.call("view.default", scores, (), shape=(2, 3, "n", "n"))
    scores = graph.call("mul.Tensor", scores, 0.25, shape=(2, 3, "n", "n"))
    scores = graph.call("add.Tensor", scores, mask, shape=(2, 3, "n", "n"))
    weights = graph.call("_softmax.default", scores, -1, False, shape=(2, 3, "n", "n"))
    weights = graph.call("view.default", weights, (), shape=(6, "n", "n"))
    result = graph.call("bmm.default", weights, v, shape=(6, "n", 16))
    task = graph.task(graph.call("view.default", result, (), shape=(2, 3, "n", 16)), symbols={"n": 40})
    assert initial(task, chip).family == "attention"
    for count in (1, 33):
        rng = np.random.default_rng(count)
        inputs = {name: rng.normal(size=(2, 3, count, 16)).astype("f4") for name in sides}
        hidden = rng.normal(size=[count if dim == "n" else dim for dim in shape]).astype("f4")
        (found,) = on_twin(task, {**inputs, "mask": hidden}, sizes={"n": count})
        _matches(found, attention(*inputs.values(), mask=hidden), "float32")


@few(
    ("dtype", "options"),
    [
        ("float32", {}),
        ("float32", {"mask": ("q", "k"), "is_causal": False}),
        ("float32", {"is_causal": True, "scale": 0.3}),
        ("float16", {"mask": (2, 1, 1, "k"), "kind": "bool", "heads": 4, "shared": 2}),
    ],
    keep=(
        1,
        3,
    ),
)
def test_values_wider_than_the_unified_buffer_take_several_kernels(
    dtype: str, options: dict[str, Any], builder: Any, on_twin: Any, chip: Any
) -> None:
    task = task_of(builder, dtype, width=1100, **options)
    check(task, chip)
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED
    for seed, (queries, keys) in enumerate([(5, 70), (1, 33)]):
        inputs = _draw(task, queries, keys, seed)
        mask = inputs.get("mask", 0.0)
        if options.get("kind") == "bool":
            inputs["mask"] = mask > -1
            inputs["mask"][0] = False  # no query of the first image sees a key
            mask = np.where(inputs["mask"], 0.0, -np.inf)
        causal, scale = bool(options.get("is_causal")), options.get("scale")
        with np.errstate(invalid="ignore"):
            expected = attention(inputs["query"], inputs["key"], inputs["value"], mask, causal, scale)
        if options.get("kind") == "bool":
            expected[0] = 0.0
        (found,) = on_twin(task, inputs, sizes={"q": queries, "k": keys})
        tolerance = 1e-4 if dtype == "float32" else 4e-3
        np.testing.assert_allclose(found, expected, tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("mask", [(), ("q", "k")])
def test_the_widest_values_of_one_kernel_have_a_schedule(
    dtype: str, mask: tuple[Any, ...], builder: Any, chip: Any
) -> None:
    task = task_of(builder, dtype, width=WIDEST, mask=mask, is_causal=True)
    assert initial(task, chip).family == "attention"
