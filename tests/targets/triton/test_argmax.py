"""Family argmax in Triton: ties, NaN, infinities, every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.targets.triton.kernels.argmax.argmax_family import FAMILY
from tests.targets.ascendc.test_arg_reductions import Search, expected, samples

CASES = [
    (Search("max", ("a", "b", "c"), 1), [(1, 1, 5), (3, 7, 65), (2, 300, 70)]),
    (Search("min", ("a", "b", "c"), 1, "float16", False), [(1, 1, 3), (2, 33, 130)]),
    (Search("max", ("a", "b"), 1), [(1, 1), (3, 10), (70, 64), (9, 2500)]),
    (Search("min", ("a", "b"), 1, "bfloat16"), [(2, 3), (9, 1500)]),
    (Search("max", ("a", "b"), 0, "float32", False), [(1, 2), (100, 300)]),
    (Search("min", ("a", "b"), None, "float32", False), [(1, 2), (30, 300)]),
]


@pytest.mark.parametrize(("search", "sizes"), CASES)
def test_search_is_numpys(search: Search, sizes: Any, builder: Any, interpreted: Any, gpu: Any) -> None:
    task = search.task(builder, **dict.fromkeys(search.shape, 300))
    start = FAMILY.initial(task, gpu)
    for seed, bound in enumerate(sizes):
        x = samples(bound, seed)
        best, index = expected(search.op, x, search.dim)
        named = dict(zip(search.shape, bound, strict=True))
        moves = [move.strategy for move in FAMILY.moves(task, start, gpu)] if seed == 1 else []
        for strategy in (start, *moves[:3]):
            results = interpreted(FAMILY, task, {"x": x}, named, strategy)
            np.testing.assert_array_equal(results[-1], index)
            if search.values:
                np.testing.assert_array_equal(results[0], best)


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any) -> None:
    for search, _ in CASES:
        compiles(FAMILY, search.task(builder, **dict.fromkeys(search.shape, 300)))
