"""Kernels are kept as what differs from one like them, and come back whole whatever happens to that one."""

from __future__ import annotations

import random

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.experience import Stage
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.migrations.dictionaries import COMMON
from evokernel_core.memory.packed import LONGEST, packed, unpacked
from evokernel_core.memory.store import Memory
from evokernel_core.targets.ascendc.source import ascendc_source


def kernel(number: int, lines: int = 200, seed: int = 0) -> KernelSource:
    """Kernels of one seed differ in a line."""
    rng = random.Random(seed)
    text = "".join(f"DataCopy(x{rng.randrange(10**6)}, {rng.randrange(10**6)});\n" for _ in range(lines))
    return ascendc_source("tiling", f"{text}tile = {number};\n", Strategy("pointwise", {"tile": number}))


def bases(memory: Memory) -> list[bool]:
    return [row["base"] == 0 for row in memory.rows("sources", order_by="seq")]


def keep(memory: Memory, source: KernelSource, task_id: str, n: int) -> None:
    memory.record_candidate(source)
    memory.record_attempt(
        Attempt("job", n, task_id, source.source_id, "", Stage.DRAFT, "p", "v", "chip", feasible=True), []
    )


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_texts_come_back(text: str, like: str) -> None:
    assert unpacked(packed(text)) == text
    assert unpacked(packed(text, COMMON + like), COMMON + like) == text


@pytest.mark.parametrize(
    "data",
    [b"", b"no frame", packed("a text of some length")[:-3], packed("x" * (LONGEST + 1)), "text", None, 3],
)
def test_what_is_no_packed_text(data: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        unpacked(data)


def test_a_kernel_like_another_is_a_difference(memory: Memory) -> None:
    given = [kernel(1), kernel(2), kernel(1, seed=1), kernel(3), kernel(2, seed=1)]
    for source in given:
        memory.record_candidate(source)
        memory.record_candidate(source)
    assert bases(memory) == [True, False, True, False, False]
    assert [memory.source(source.source_id) for source in given] == given
    sizes = [len(row["kernel"]) for row in memory.rows("sources", order_by="seq")]
    assert max(sizes[1], sizes[3], sizes[4]) * 10 < min(sizes[0], sizes[2])


def test_long_kernels_are_differences_as_well(memory: Memory) -> None:
    """Deflate would look back 32 KiB, less than kernels of networks are long."""
    given = [kernel(number, lines=8000) for number in (1, 2)]
    for source in given:
        memory.record_candidate(source)
    assert bases(memory) == [True, False]
    assert [memory.source(source.source_id) for source in given] == given


def test_what_others_differ_from_may_be_forgotten(memory: Memory) -> None:
    for number, task in enumerate(("first", "second", "second"), 1):
        keep(memory, kernel(number), task, number)
    assert bases(memory) == [True, False, False]
    memory.forget_task("first")
    assert memory.source(kernel(1).source_id) is None
    assert [memory.source(kernel(number).source_id) for number in (2, 3)] == [kernel(2), kernel(3)]
    assert bases(memory) == [True, False]


@pytest.mark.parametrize("move", ["", "a", "more rows of a tile", "DataCopy(x1, 2); " * 9])
def test_what_others_differ_from_gets_another_strategy(memory: Memory, move: str) -> None:
    """They took words of its old strategy for their own."""
    given = [
        evolve(kernel(number), strategy=Strategy("fused", {"tile": number}, move="fewer"))
        for number in (1, 2, 3)
    ]
    for source in given:
        memory.record_candidate(source)
    assert bases(memory) == [True, False, False]
    given[0] = evolve(given[0], strategy=Strategy("program", {"tile": 1, "other": 7}, (move,), move=move))
    memory.record_candidate(given[0])
    assert [memory.source(source.source_id) for source in given] == given


def test_what_others_differ_from_is_mended(memory: Memory) -> None:
    """A damaged row takes with it what differs from it, until its kernel comes again."""
    for number in (1, 2):
        memory.record_candidate(kernel(number))
    with memory.transaction():
        memory.update("sources", 1, {"kernel": b"damaged"})
    assert memory.source(kernel(1).source_id) is memory.source(kernel(2).source_id) is None
    memory.record_candidate(kernel(3))
    memory.record_candidate(kernel(1))
    assert [memory.source(kernel(number).source_id) for number in (1, 2, 3)] == [
        kernel(1),
        kernel(2),
        kernel(3),
    ]
