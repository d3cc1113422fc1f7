"""Kernels of a program that differ in sizes and names only are one class with a tiling function each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.fusion.launches import MOST_TOGETHER
from evokernel_core.targets.ascendc.kernels.family import VECTORS_ALONE, Cores, KernelFacts, StageText
from evokernel_core.targets.ascendc.print.sharing import owners
from evokernel_core.targets.ascendc.source import KERNEL, TILING

FORMS = (
    StageText("settings", "a", "class", "entry", VECTORS_ALONE),
    StageText("settings", "b", "class", "entry", VECTORS_ALONE),
    StageText("others", "a", "class", "entry", VECTORS_ALONE),
    StageText("settings", "a", "class", "entry", KernelFacts(Cores.CUBE)),
    StageText("settings", "a", "another", "entry", VECTORS_ALONE),
)


def test_a_class_is_shared_by_texts_that_differ_in_their_tiling_function_only() -> None:
    assert owners(["same"] * 5, FORMS.__getitem__) == (0, 0, 2, 3, 4)


def test_no_text_is_made_for_a_kernel_that_nothing_is_like() -> None:
    asked: list[int] = []

    def form(number: int) -> StageText:
        asked.append(number)
        return FORMS[number]

    assert owners(["a", "b", "a"], form) == (0, 1, 2)
    assert asked == [0, 2]


def doubled_rows(graph: Any, widths: tuple[int, ...]) -> KernelTask:
    """Rows of each width, twice beside each other: a kernel each, of one class."""
    results = []
    for number, width in enumerate(widths):
        rows = graph.input(f"rows{number}", ("m", width))
        results.append(graph.call("cat.default", (rows, rows), 1, shape=("m", 2 * width)))
    task: KernelTask = graph.task(*results, symbols={"m": 6})
    return task


@pytest.mark.parametrize("apart", [False, True])
def test_rows_of_several_widths_share_a_class(apart: bool, builder: Any, on_twin: Any, chip: Any) -> None:
    widths = (24, 40, 72)
    task = doubled_rows(builder(), widths)
    strategy = initial(task, chip)
    if apart:
        (strategy,) = (
            m.strategy for m in moves(task, strategy, chip) if m.name == "a launch for each kernel"
        )
    source = write(task, strategy, chip)
    assert audit(task, source).status is GateStatus.PASSED
    assert source.files[KERNEL].count("\nclass ") == 1
    assert source.files[TILING].count("::ComputeTiling(") == len(widths)
    for m in (1, 6, 50):
        rng = np.random.default_rng(m)
        given = {f"rows{i}": rng.normal(size=(m, width)).astype("f4") for i, width in enumerate(widths)}
        found = on_twin(task, given, strategy=strategy, sizes={"m": m})
        for result, rows in zip(found, given.values(), strict=True):
            np.testing.assert_array_equal(result, np.hstack([rows, rows]))


def test_a_kernel_alone_keeps_the_names_of_its_graph(builder: Any, chip: Any) -> None:
    graph = builder()
    rows = graph.input("rows", ("m", 24))
    back = graph.call("flip.default", rows, (1,), shape=("m", 24))
    sums = graph.call("sum.dim_IntList", graph.input("values", (90, 6)), (0,), shape=(6,))
    task = graph.task(back, sums, symbols={"m": 6})
    text = write(task, initial(task, chip), chip).files[KERNEL]
    assert "GM_ADDR rows," in text
    assert "GM_ADDR values," in text


def test_a_launch_of_a_long_program_takes_the_tensors_that_it_touches(
    builder: Any, on_twin: Any, chip: Any
) -> None:
    widths = tuple(range(8, 8 + 8 * (MOST_TOGETHER + 2), 8))
    task = doubled_rows(builder(), widths)
    text = write(task, initial(task, chip), chip).files[KERNEL]
    first, second = (text.partition(f"kernels{i}(")[2].partition(")")[0] for i in range(2))
    assert "rows0Memory" in first
    assert "rows0Memory" not in second
    assert text.count("tensors[0]") == 1
    given = {f"rows{i}": np.full((6, width), i, "f4") for i, width in enumerate(widths)}
    found = on_twin(task, given)
    for result, rows in zip(found, given.values(), strict=True):
        np.testing.assert_array_equal(result, np.hstack([rows, rows]))
