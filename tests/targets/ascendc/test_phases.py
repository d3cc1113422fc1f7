"""Family phases: images among zeros, their rows cut into phases, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import frozen

from evokernel_core.compiler.ops import SPACE_TO_DEPTH
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.author import initial, moves
from tests.tables import few


@frozen
class Case:
    """An image, and the sizes of its frame; the last one is that of a phase."""

    image: tuple[int, ...]
    before: tuple[int, ...]
    phases: int
    made: tuple[int, ...]
    dtype: str = "float32"
    tile_bytes: int = 8192

    @property
    def result(self) -> tuple[int, ...]:
        rows = (*self.made[:-1], self.phases) if self.phases > 1 else self.made[:-1]
        return (*self.image[:2], *rows, self.made[-1])


def task_of(case: Case, builder: Any) -> KernelTask:
    graph = builder()
    x = graph.input("x", case.image, case.dtype)
    spec = TensorSpec(case.result, case.dtype)
    graph.nodes.append(Node("framed", SPACE_TO_DEPTH.name, (x, case.before, case.phases), (), (spec,)))
    task: KernelTask = graph.task(ValueRef("framed"))
    return task


def expected(x: Any, case: Case) -> Any:
    sizes = (*case.image[:2], *case.made[:-1], case.made[-1] * case.phases)
    framed = np.zeros(sizes, x.dtype)
    area = [
        (zeros, min(zeros + n, m)) for zeros, n, m in zip(case.before, case.image[2:], sizes[2:], strict=True)
    ]
    inside = tuple(slice(first, last) for first, last in area)
    framed[(slice(None), slice(None), *inside)] = x[
        (slice(None), slice(None), *(slice(last - first) for first, last in area))
    ]
    if case.phases == 1:
        return framed
    return np.moveaxis(framed.reshape(*sizes[:-1], case.made[-1], case.phases), -1, -2)


CASES = (
    Case((2, 3, 9, 70), (1, 1), 1, (11, 80)),
    Case((2, 3, 33, 31), (2, 2), 4, (40, 16)),
    Case((1, 2, 12, 50), (3, 3), 3, (18, 32), "float16", 16384),
    Case((3, 1, 3001), (0,), 1, (3008,)),
    Case((2, 2, 5, 6, 40), (1, 2, 3), 2, (7, 10, 32), "bfloat16"),
    Case((1, 3, 5, 6, 20), (2, 0, 0), 1, (9, 6, 32)),
    Case((1, 2, 4, 30), (0, 20), 1, (9, 64), "float16"),  # more than a block of zeros in front
    Case((2, 1, 9001), (5,), 5, (1824,), "float32", 16384),
    Case((1, 2, 3, 700), (0, 3), 40, (4, 32), "float32", 32768),  # more phases than a word has bits
    Case((1, 2, 3, 400), (0, 3), 24, (3, 32), "float16", 32768),
    Case((1, 1, 3, 20), (5, 40), 1, (6, 96)),  # tiles without any of the image
    Case((2, 1, 8, 90), (1, 2), 2, (6, 32)),  # of which part is not wanted
)


@few("case", CASES, keep=(0, 1, 2, 4, 6, 8, 11), ids=str)
def test_frames(case: Case, builder: Any, on_twin: Any) -> None:
    task = task_of(case, builder)
    x = np.random.default_rng(3).standard_normal(case.image).astype(np.float32)
    strategy = Strategy("phases", {"tile_bytes": case.tile_bytes})
    (found,) = on_twin(task, {"x": x}, strategy=strategy)
    wanted = expected(x, case)
    if case.dtype == "bfloat16":
        np.testing.assert_allclose(found, wanted, rtol=1e-2)
    else:
        np.testing.assert_array_equal(found, wanted.astype(case.dtype))


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_tiles_grow_and_shrink(phases: int, builder: Any, chip: Any) -> None:
    task = task_of(Case((16, 3, 224, 224), (1, 1), phases, (226, 256)), builder)
    start = initial(task, chip)
    assert start.family == "phases"
    assert {move.name for move in moves(task, start, chip)} & {"larger tiles", "smaller tiles"}
