"""Names of any length, and lines of any width: what is written passes the audit, whatever wraps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.compiler.fusion.records import ONE_LAUNCH, PROGRAM
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc import programs
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.print import statements, together
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.lexer import tokenize
from tests.tables import few

Make = Callable[[Any, str, str], KernelTask]


def product_then_norm(builder: Any, x_name: str, y_name: str) -> KernelTask:
    """A product on both kinds of cores, and two kernels that read it."""
    graph = builder()
    x, y = graph.input(x_name, ("b", 16, 40)), graph.input(y_name, (40, 24), parameter=True)
    rows = graph.call("view.default", x, (-1, 40), shape=("b*16", 40))
    product = graph.call("mm.default", rows, y, shape=("b*16", 24))
    powers = graph.call("exp.default", product, shape=("b*16", 24))
    value = graph.call("_softmax.default", powers, 0, False, shape=("b*16", 24))
    turned = graph.call("t.default", value, shape=(24, "b*16"))
    result = graph.call("mm.default", turned, powers, shape=(24, 24))
    return graph.task(result, symbols={"b": 6})


def product_alone(builder: Any, x_name: str, y_name: str) -> KernelTask:
    """A product with an epilogue: one kernel on cube and vector cores."""
    graph = builder()
    x, y = graph.input(x_name, ("m", 64)), graph.input(y_name, (64, 48), parameter=True)
    product = graph.call("mm.default", x, y, shape=("m", 48))
    return graph.task(graph.call("exp.default", product, shape=("m", 48)), symbols={"m": 40})


def sums_then_softmax(builder: Any, x_name: str, y_name: str) -> KernelTask:
    """Two grids of vector cores."""
    graph = builder()
    x, bias = graph.input(x_name, ("b", 24, 40)), graph.input(y_name, (24,), parameter=True)
    powers = graph.call("exp.default", x, shape=("b", 24, 40))
    total = graph.call("sum.dim_IntList", powers, (-1,), shape=("b", 24))
    moved = graph.call("add.Tensor", total, bias, shape=("b", 24))
    return graph.task(graph.call("_softmax.default", moved, -1, False, shape=("b", 24)), symbols={"b": 6})


TASKS: tuple[Make, ...] = (product_then_norm, product_alone, sums_then_softmax)
LENGTHS = (1, 13, *range(18, 42), 60, 87, 88, 100, 118, 150, 240)
"""Of names, around those at which some line reaches the width that it is wrapped at."""


def _named(make: Make, builder: Any, length: int) -> KernelTask:
    """A task whose names have so many characters, of which some are digits and underscores."""
    letters = ("orthogonality_of_2feature_maps_in" * 8)[:length].rstrip("_")
    task = make(builder, f"{letters}_x", f"{letters}_y")
    return evolve(task, name=letters)


def _strategies(task: KernelTask, chip: Chip) -> list[Strategy]:
    """With a launch for each kernel, and with one for all where there are several."""
    first = initial(task, chip)
    if first.family != PROGRAM:
        return [first]
    return [evolve(first, settings=_with(first, value)) for value in (False, True)]


def _with(strategy: Strategy, value: bool) -> tuple[Any, ...]:
    others = [item for item in strategy.settings if item[0] != ONE_LAUNCH]
    return (*others, (ONE_LAUNCH, value))


def _launches_what_it_declares(source: KernelSource) -> bool:
    texts = [token.text for token in tokenize(source.files[KERNEL])]
    launched = re.findall(r"(\w+)\s*<<<", source.files[KERNEL])
    return texts.count("__global__") == len(set(launched))


@pytest.mark.parametrize("make", TASKS, ids=lambda make: make.__name__)
def test_every_global_function_is_launched_whatever_its_names(make: Make, builder: Any, chip: Chip) -> None:
    for length in LENGTHS:
        task = _named(make, builder, length)
        for strategy in _strategies(task, chip):
            assert _launches_what_it_declares(write(task, strategy, chip)), (length, strategy.settings)


@few(
    ("make", "length", "width"),
    [(make, length, width) for make in TASKS for length, width in ((28, 120), (150, 120), (9, 48))],
    keep=(0, 1, 2, 4),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_what_is_written_passes_the_audit_at_any_width(
    make: Make, length: int, width: int, builder: Any, chip: Chip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_LONGEST", width)
    monkeypatch.setattr(together, "_WIDTH", width)
    programs._kernel_text.cache_clear()
    task = _named(make, builder, length)
    for strategy in _strategies(task, chip):
        result = audit(task, write(task, strategy, chip))
        assert result.status is GateStatus.PASSED, result.feedback
    programs._kernel_text.cache_clear()
