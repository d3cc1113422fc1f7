"""One-hot encodings: the kernels of a comparison with the numbers of the classes, alone and in programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import DTypeArg, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.author import estimate_us, initial, write
from evokernel_core.targets.ascendc.source import KERNEL, TILING

RANDOM = np.random.default_rng(5)
Encode = Callable[[Any, ValueRef, tuple[Any, ...], int], ValueRef]


def encoded(b: Any, index: ValueRef, shape: tuple[Any, ...], classes: int) -> ValueRef:
    found: ValueRef = b.call("one_hot.default", index, classes, shape=(*shape, classes), dtype="int64")
    return found


def compared(b: Any, index: ValueRef, shape: tuple[Any, ...], classes: int) -> ValueRef:
    """The same as PyTorch's decomposition says it."""
    column = b.call("unsqueeze.default", index, -1, shape=(*shape, 1), dtype="int64")
    whole = DTypeArg("int64")
    numbers = b.call("arange.start_step", 0, classes, shape=(classes,), dtype="int64", kind=whole)
    equal = b.call("eq.Tensor", column, numbers, shape=(*shape, classes), dtype="bool")
    found: ValueRef = b.call("_to_copy.default", equal, shape=(*shape, classes), dtype="int64", kind=whole)
    return found


def masked(builder: Any, encode: Encode) -> KernelTask:
    """The value of the class of each row, out of ten."""
    b = builder()
    x, index = b.input("x", ("n", 10)), b.input("index", ("n",), "int64")
    kept = b.call("mul.Tensor", encode(b, index, ("n",), 10), x, shape=("n", 10))
    return b.task(b.call("sum.dim_IntList", kept, (-1,), shape=("n",)), symbols={"n": 70})


def routed(builder: Any, encode: Encode) -> KernelTask:
    """The share of rows of each expert, times what the router gives it."""
    b = builder()
    x = b.input("x", ("n", 8))
    share = b.call("_softmax.default", x, -1, False, shape=("n", 8))
    best = b.call("argmax.default", share, -1, shape=("n",), dtype="int64")
    chosen = b.call("_to_copy.default", encode(b, best, ("n",), 8), shape=("n", 8))
    kept = b.call("mul.Tensor", share, chosen, shape=("n", 8))
    return b.task(b.call("mean.dim", kept, (0,), shape=(8,)), symbols={"n": 64})


def looked_up(builder: Any, encode: Encode) -> KernelTask:
    """The rows of a codebook."""
    b = builder()
    index, book = b.input("index", ("n",), "int64"), b.input("book", (32, 16))
    chosen = b.call("_to_copy.default", encode(b, index, ("n",), 32), shape=("n", 32))
    return b.task(b.call("mm.default", chosen, book, shape=("n", 16)), symbols={"n": 48})


def expected(task: Any, x: Any, index: Any, book: Any) -> Any:
    if task is masked:
        return np.take_along_axis(x, index[:, None], 1)[:, 0]
    if task is looked_up:
        return book[index]
    share = np.exp(x - x.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    return (share * (np.arange(8) == share.argmax(-1)[:, None])).mean(0)


def unnumbered(text: str) -> str:
    """Source text without the numbers at the ends of names, which count the nodes of a graph."""
    return re.sub(r"(?<=[A-Za-z])_?\d+", "", text)


@pytest.mark.parametrize("task", [masked, routed, looked_up])
def test_kernels_are_those_of_the_comparison(builder: Any, chip: Any, on_twin: Any, task: Any) -> None:
    kept, plain = (task(builder, encode) for encode in (encoded, compared))
    first, second = (initial(item, chip) for item in (kept, plain))
    assert estimate_us(kept, first, chip) == estimate_us(plain, second, chip)
    sources = [write(kept, first, chip), write(plain, second, chip)]
    assert unnumbered(sources[0].files[TILING]) == unnumbered(sources[1].files[TILING])
    assert unnumbered(sources[0].files[KERNEL]) == unnumbered(sources[1].files[KERNEL])
    columns = 10 if task is masked else 8
    x = RANDOM.normal(size=(29, columns)).astype(np.float32)
    book = RANDOM.normal(size=(32, 16)).astype(np.float32)
    index = RANDOM.integers(0, 32 if task is looked_up else columns, 29)
    (result,) = on_twin(kept, {"x": x, "index": index, "book": book}, first, {"n": 29})
    np.testing.assert_allclose(result, expected(task, x, index, book), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("classes", [-1, 0])
def test_a_number_of_classes_that_the_values_decide_is_refused(builder: Any, chip: Any, classes: int) -> None:
    b = builder()
    index = b.input("index", ("n",), "int64")
    found = b.call("one_hot.default", index, classes, shape=("n", 5), dtype="int64")
    with pytest.raises(PlanError, match="one_hot"):
        initial(b.task(found, symbols={"n": 9}), chip)
