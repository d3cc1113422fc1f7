"""Family layout: moving elements, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from evokernel_core.compiler.fusion.program import plan_program
from evokernel_core.compiler.shapes.boxes import read_layout
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.kernels.layout import copy as copying
from evokernel_core.targets.ascendc.kernels.layout.layout_family import FAMILY
from evokernel_core.targets.ascendc.kernels.layout.transpose import (
    TransposeSchedule,
    kernel,
    refusal,
    transposition_of,
)
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.tables import drawn

NUMPY = {"float32": "f4", "float16": "f2", "int64": "i8", "int32": "i4", "int8": "i1", "bool": "?"}


def _values(shape: Any, dtype: str, seed: int = 0) -> Any:
    numbers = np.random.default_rng(seed).integers(-100, 100, size=shape)
    return (numbers > 0) if dtype == "bool" else numbers.astype(NUMPY.get(dtype, "f4"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "int8"])
def test_a_permutation_at_many_sizes(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b", "c"), dtype)
    result = graph.call("permute.default", x, (2, 0, 1), shape=("c", "a", "b"), dtype=dtype)
    task = graph.task(result, symbols={"a": 3, "b": 50, "c": 70})
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED
    for a, b, c in [(3, 50, 70), (1, 1, 1), (2, 1, 33), (1, 129, 5), (4, 17, 200)]:
        values = _values((a, b, c), dtype)
        (found,) = on_twin(task, {"x": values}, sizes={"a": a, "b": b, "c": c})
        np.testing.assert_array_equal(found, values.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("shape", "order"), [((3, 3, "c"), (2, 0, 1)), (("c", 5, 4), (2, 1, 0)), ((6, "c", 3), (1, 0, 2))]
)
def test_a_permutation_of_fixed_dimensions_beside_one_of_any_size(
    shape: Any, order: Any, builder: Any, on_twin: Any
) -> None:
    """Runs that the file's size has in one piece do not always fit another size."""
    graph = builder()
    x = graph.input("x", shape, "float16")
    result = graph.call("permute.default", x, order, shape=[shape[i] for i in order], dtype="float16")
    task = graph.task(result, symbols={"c": 64})
    for c in (64, 80, 130, 7, 500):
        values = _values([c if size == "c" else size for size in shape], "float16")
        (found,) = on_twin(task, {"x": values}, sizes={"c": c})
        np.testing.assert_array_equal(found, values.transpose(order))


@pytest.mark.parametrize("dim", range(3))
def test_tensors_joined_along_any_dimension(dim: int, builder: Any, on_twin: Any, chip: Any) -> None:
    for dtype in ["float32", "float16", "bool", "int64"][dim:][:2]:
        graph = builder()
        shapes: list[list[Any]] = [["a", "b", "c"] for _ in range(3)]
        for number, length in enumerate((4, 1, 7)):
            shapes[number][dim] = length
        refs = tuple(graph.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes))
        result = ["a", "b", "c"]
        result[dim] = 12  # type: ignore[call-overload]
        known = {name: size for name, size in {"a": 3, "b": 40, "c": 37}.items() if name in result}
        task = graph.task(graph.call("cat.default", refs, dim, shape=result, dtype=dtype), symbols=known)
        assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED
        for sizes in (known, dict.fromkeys(known, 1), {name: size + 5 for name, size in known.items()}):
            parts = [_values([sizes.get(n, n) for n in shape], dtype, i) for i, shape in enumerate(shapes)]
            (found,) = on_twin(task, {f"x{i}": part for i, part in enumerate(parts)}, sizes=sizes)
            np.testing.assert_array_equal(found, np.concatenate(parts, dim))


@pytest.mark.parametrize(
    ("pads", "dtype"),
    [
        ((1, 2, 0, 3), "float32"),
        ((1, 1, 1, 1), "bfloat16"),
        ((0, 0, 2, 1, 1, 1), "int8"),
        ((-1, 2), "int64"),
        ((3, -2, -1, -1), "float16"),
        ((20, 40), "float32"),
    ],
)
def test_padding_and_cropping(pads: Any, dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    names: list[Any] = ["a", "b", "c"]
    width = [(0, 0)] * (3 - len(pads) // 2) + [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
    shape = [n if sum(w) == 0 else f"{n} + {sum(w)}" for n, w in zip(names, width, strict=True)]
    graph = builder()
    x = graph.input("x", names, dtype)
    task = graph.task(
        graph.call("constant_pad_nd.default", x, pads, 3, shape=shape, dtype=dtype),
        symbols={"a": 5, "b": 30, "c": 50},
    )
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED
    for sizes in ((5, 30, 50), (4, 4, 4), (3, 7, 200)):
        values = _values(sizes, dtype)
        kept = values[
            tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(width, sizes, strict=True))
        ]
        expected = np.pad(kept, [(max(lo, 0), max(hi, 0)) for lo, hi in width], constant_values=3)
        (found,) = on_twin(task, {"x": values}, sizes=dict(zip("abc", sizes, strict=True)))
        np.testing.assert_array_equal(found, expected)


def _check_chain(builder: Any, on_twin: Any, data: Any) -> None:
    """Permutations, slices, selections, flips, expansions and reshapes one after the other."""
    dtype = data.draw(st.sampled_from(["float32", "float16", "int64", "int8", "bool"]))
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    graph = builder()
    ref, values = graph.input("x", shape, dtype), _values(shape, dtype)
    expected = values
    for _ in range(data.draw(st.integers(1, 4))):
        op, args, expected = _step(data, expected)
        operand = (ref, ref) if op == "cat.default" else ref
        ref = graph.call(op, operand, *args, shape=expected.shape, dtype=dtype)
    task = graph.task(ref)
    (found,) = on_twin(task, {"x": values})
    np.testing.assert_array_equal(found, expected)


test_chains_of_views, _ = drawn(_check_chain, 8, 8, derandomize=True, data=st.data())
_, test_many_chains_of_views = drawn(_check_chain, 8, 40, data=st.data())


def _step(data: Any, x: Any) -> tuple[str, tuple[Any, ...], Any]:
    """One operation: its name, its arguments, and what it makes of ``x``."""
    dim = data.draw(st.integers(0, max(x.ndim - 1, 0)))
    kinds = [_slice, _flip, _expand, _pad, _join, *([_permute, _select, _flatten] if x.ndim > 1 else [])]
    return data.draw(st.sampled_from(kinds))(data, x, dim)


def _permute(data: Any, x: Any, _: int) -> Any:
    order = tuple(data.draw(st.permutations(range(x.ndim))))
    return "permute.default", (order,), x.transpose(order)


def _slice(data: Any, x: Any, dim: int) -> Any:
    start = data.draw(st.integers(0, x.shape[dim] - 1))
    stop, step = data.draw(st.integers(start + 1, x.shape[dim])), data.draw(st.integers(1, 3))
    return "slice.Tensor", (dim, start, stop, step), x[(slice(None),) * dim + (slice(start, stop, step),)]


def _select(data: Any, x: Any, dim: int) -> Any:
    place = data.draw(st.integers(-x.shape[dim], x.shape[dim] - 1))
    return "select.int", (dim, place), x.take(place, dim)


def _flip(_: Any, x: Any, dim: int) -> Any:
    return "flip.default", ((dim,),), np.flip(x, dim)


def _expand(data: Any, x: Any, _: int) -> Any:
    wider = (data.draw(st.integers(1, 4)), *x.shape)
    return "expand.default", (wider,), np.broadcast_to(x, wider)


def _pad(data: Any, x: Any, _: int) -> Any:
    low, high = data.draw(st.integers(0, 3)), data.draw(st.integers(-x.shape[-1] + 1, 9))
    kept = x[..., : x.shape[-1] + min(high, 0)]
    width = [(0, 0)] * (x.ndim - 1) + [(low, max(high, 0))]
    return "constant_pad_nd.default", ((low, high), 1), np.pad(kept, width, constant_values=1)


def _join(_: Any, x: Any, dim: int) -> Any:
    return "cat.default", (dim,), np.concatenate([x, x], dim)


def _flatten(_: Any, x: Any, __: int) -> Any:
    merged = (*x.shape[:-2], x.shape[-2] * x.shape[-1])
    return "view.default", (merged,), x.reshape(merged)


def test_every_move_gives_the_same_result(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", (6, 40, 5, 33))
    order = graph.call("permute.default", x, (0, 2, 3, 1), shape=(6, 5, 33, 40))
    task = graph.task(order)
    values = _values((6, 40, 5, 33), "float32")
    for move in moves(task, initial(task, chip), chip)[::2]:
        (found,) = on_twin(task, {"x": values}, strategy=move.strategy)
        np.testing.assert_array_equal(found, values.transpose(0, 2, 3, 1), err_msg=move.name)


@pytest.mark.parametrize("transposes", [True, False])
def test_many_small_tiles_a_core(transposes: bool, builder: Any, on_twin: Any, chip: Any) -> None:
    """Tiles wait in queues while others are loaded."""
    graph = builder()
    x = graph.input("x", ("a", "b", "c"), "float16")
    order = graph.call("permute.default", x, (0, 2, 1), shape=("a", "c", "b"), dtype="float16")
    task = graph.task(order, symbols={"a": 20, "b": 70, "c": 90})
    tiny = FAMILY.strategy_of(read_layout(task), TransposeSchedule("1,20,17", transposes))
    assert audit(task, write(task, tiny, chip)).status is GateStatus.PASSED
    for a, b, c in ((20, 70, 90), (1, 1, 5000), (7, 300, 1)):
        values = _values((a, b, c), "float16")
        (found,) = on_twin(task, {"x": values}, strategy=tiny, sizes={"a": a, "b": b, "c": c})
        np.testing.assert_array_equal(found, values.transpose(0, 2, 1))


def _check_schedule(builder: Any, on_twin: Any, chip: Any, data: Any) -> None:
    """Tiles that were chosen for other sizes than those of the run."""
    rank = data.draw(st.integers(2, 4))
    most = (90, 30, 12)[rank - 2]
    names = list("abcd"[:rank])
    dtype = data.draw(st.sampled_from(["float32", "float16", "int8", "int64"]))
    order = tuple(data.draw(st.permutations(range(rank)).filter(lambda item: list(item) != sorted(item))))
    sizes = st.lists(st.integers(1, most), min_size=rank, max_size=rank)
    graph = builder()
    shape = [names[i] for i in order]
    turned = graph.call("permute.default", graph.input("x", names, dtype), order, shape=shape, dtype=dtype)
    flipped = data.draw(st.sampled_from([(), *((i,) for i in range(rank))]))
    result = graph.call("flip.default", turned, flipped, shape=shape, dtype=dtype) if flipped else turned
    task = graph.task(result, symbols=dict(zip(names, data.draw(sizes), strict=True)))
    turn = transposition_of(read_layout(task), task.sizes)
    assert turn is not None
    tile = ",".join(str(data.draw(st.integers(1, 40))) for _ in turn.axes)
    can_square = turn.sides(TransposeSchedule(tile, True)) is not None
    squared = can_square and data.draw(st.booleans())
    item = TransposeSchedule(tile, squared, data.draw(st.integers(2, 3)), data.draw(st.integers(1, 2)))
    assume(refusal(turn, item, chip) is None)
    assert not list(broken_rules(kernel(read_layout(task), turn, item), chip, task.sizes))
    for _ in range(2):
        here = dict(zip(names, data.draw(sizes), strict=True))
        values = _values(tuple(here.values()), dtype)
        (found,) = on_twin(
            task, {"x": values}, strategy=FAMILY.strategy_of(read_layout(task), item), sizes=here
        )
        np.testing.assert_array_equal(found, np.flip(values.transpose(order), flipped))


test_any_schedule_at_any_sizes, _ = drawn(_check_schedule, 8, 8, derandomize=True, data=st.data())
_, test_many_schedules_at_any_sizes = drawn(_check_schedule, 8, 40, data=st.data())


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("flipped", [(0,), (1,), (0, 1, 2)])
def test_flips_by_copies_alone(
    flipped: tuple[int, ...], dtype: str, builder: Any, on_twin: Any, chip: Any
) -> None:
    """Places lead backwards from the end, row by row."""
    graph = builder()
    shape = ("a", 5, "b")
    x = graph.input("x", shape, dtype)
    task = graph.task(
        graph.call("flip.default", x, flipped, shape=shape, dtype=dtype), symbols={"a": 3, "b": 40}
    )
    item = copying.CopySchedule(1024, 2)
    assert not list(broken_rules(copying.kernel(read_layout(task), item), chip, task.sizes))
    for a, b in ((3, 40), (1, 700), (7, 1)):
        values = _values((a, 5, b), dtype)
        strategy = FAMILY.strategy_of(read_layout(task), item)
        (found,) = on_twin(task, {"x": values}, strategy=strategy, sizes={"a": a, "b": b})
        np.testing.assert_array_equal(found, np.flip(values, flipped))


def test_a_narrow_fill_between_two_tensors_goes_to_one_of_them(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x, y = graph.input("x", ("n", "a")), graph.input("y", ("n", "b"))
    zeros = graph.call("full.default", ("n", 2), 0.0, shape=("n", 2))
    result = graph.call("cat.default", (x, zeros, y), 1, shape=("n", "(a + b + 2)"))
    task = graph.task(result, symbols={"n": 5, "a": 40, "b": 30})
    for n, a, b in [(5, 40, 30), (1, 1, 1), (7, 3, 130)]:
        left, right = _values((n, a), "float32"), _values((n, b), "float32", 1)
        (found,) = on_twin(task, {"x": left, "y": right}, sizes={"n": n, "a": a, "b": b})
        np.testing.assert_array_equal(found, np.hstack([left, np.zeros((n, 2), "f4"), right]))


def test_a_fill(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 3), "int64")
    full = graph.call("full.default", ("n", 5), 2**33 + 7, shape=("n", 5), dtype="int64")
    task = graph.task(
        graph.call("cat.default", (x, full), 1, shape=("n", 8), dtype="int64"), symbols={"n": 30}
    )
    values = _values((30, 3), "int64")
    (found,) = on_twin(task, {"x": values})
    np.testing.assert_array_equal(found, np.concatenate([values, np.full((30, 5), 2**33 + 7)], 1))


def test_a_chain_of_views_before_a_product_is_one_kernel(builder: Any, on_twin: Any, chip: Any) -> None:
    """Queries and keys of several heads, cut out of one tensor."""
    graph = builder()
    x = graph.input("x", ("s", "n", 3 * 24))
    wide = graph.call("view.default", x, ("s", "n", 3, 24), shape=("s", "n", 3, 24))
    front = graph.call("transpose.int", wide, 0, 2, shape=(3, "n", "s", 24))
    heads = []
    for place in (0, 1):
        one = graph.call("select.int", front, 0, place, shape=("n", "s", 24))
        split = graph.call("view.default", one, ("n", "s", 3, 8), shape=("n", "s", 3, 8))
        turned = graph.call("transpose.int", split, 1, 2, shape=("n", 3, "s", 8))
        heads.append(graph.call("view.default", turned, ("n*3", "s", 8), shape=("n*3", "s", 8)))
    keys = graph.call("transpose.int", heads[1], 1, 2, shape=("n*3", 8, "s"))
    task = graph.task(
        graph.call("bmm.default", heads[0], keys, shape=("n*3", "s", "s")), symbols={"s": 20, "n": 2}
    )
    assert len(plan_program(task, chip, ASCENDC).stages) <= 3
    for s, n in ((20, 2), (1, 3)):
        values = np.random.default_rng(5).normal(size=(s, n, 72)).astype("f4")
        q, k = (values.reshape(s, n, 3, 3, 8)[:, :, i].transpose(1, 2, 0, 3) for i in (0, 1))
        (found,) = on_twin(task, {"x": values}, sizes={"s": s, "n": n})
        expected = (q @ k.swapaxes(-1, -2)).reshape(n * 3, s, s)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("op", "shift", "dtype"), [("triu", 0, "float32"), ("tril", 2, "bool"), ("tril", -3, "float16")]
)
def test_a_triangle(op: str, shift: int, dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", ("b", "n", "m"), dtype)
    task = graph.task(
        graph.call(f"{op}.default", x, shift, shape=("b", "n", "m"), dtype=dtype),
        symbols={"b": 2, "n": 30, "m": 40},
    )
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED
    for b, n, m in ((2, 30, 40), (1, 1, 1), (1, 5, 9000), (3, 200, 7)):
        values = _values((b, n, m), dtype)
        (found,) = on_twin(task, {"x": values}, sizes={"b": b, "n": n, "m": m})
        np.testing.assert_array_equal(found, getattr(np, op)(values, shift))


def test_views_that_do_not_fit_one_kernel_take_two(builder: Any, on_twin: Any, chip: Any) -> None:
    """Windows put together again and cropped: the crop does not follow the windows' borders."""
    graph = builder()
    x, y = graph.input("x", (2, 3, 4, 5, 5, 8)), graph.input("y", (2, 150, 8))
    turned = graph.call("permute.default", x, (0, 1, 3, 2, 4, 5), shape=(2, 3, 5, 4, 5, 8))
    image = graph.call("view.default", turned, (2, 15, 20, 8), shape=(2, 15, 20, 8))
    rows = graph.call("slice.Tensor", image, 1, 2, 12, shape=(2, 10, 20, 8))
    part = graph.call("slice.Tensor", rows, 2, 1, 16, shape=(2, 10, 15, 8))
    flat = graph.call("view.default", part, (2, 150, 8), shape=(2, 150, 8))
    task = graph.task(graph.call("add.Tensor", y, flat, shape=(2, 150, 8)))
    assert len(plan_program(task, chip, ASCENDC).stages) == 3
    a, b = (_values(shape, "float32") for shape in ((2, 3, 4, 5, 5, 8), (2, 150, 8)))
    (found,) = on_twin(task, {"x": a, "y": b})
    whole = a.transpose(0, 1, 3, 2, 4, 5).reshape(2, 15, 20, 8)
    np.testing.assert_array_equal(found, whole[:, 2:12, 1:16].reshape(2, 150, 8) + b)
