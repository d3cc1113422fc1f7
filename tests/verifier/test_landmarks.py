"""Cases about the numbers that a kernel and a graph name: what is found in texts, and what is drawn of it."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve

from evokernel_core.capture.reference import Values, base_of
from evokernel_core.domain.graph import Graph, Node
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import CasePlan, total_bytes
from evokernel_core.verifier.gates.landmarks import COMPARED, LIMIT, Landmarks, landmarks_of, small_cases
from tests.verifier.conftest import make_task, read_source

CORES = 40


def _with_constant(task: KernelTask, value: float) -> Graph:
    (node,) = task.graph.nodes
    return evolve(task.graph, nodes=(Node(node.name, node.op, (*node.args, value), (), node.outputs),))


def test_what_texts_and_graphs_name_is_a_landmark() -> None:
    source, task = read_source("relu"), make_task("relu")
    text = source.files[KERNEL].replace("0.0f", "2'500.5f") + "// 777\n"
    tiling = source.files[TILING].replace("/ 16", "/ 0x30u").replace("LANES = 64", "LANES = 96")
    known = landmarks_of(_with_constant(task, 1e-12), source.with_files({KERNEL: text, TILING: tiling}))
    assert {48, 96} <= set(known.sizes) and 777 not in known.sizes
    asked = landmarks_of(task.graph, source.with_files({KERNEL: "if (n % 48 == 0 || n < 99) { x[7] = 5; }"}))
    assert [asked.sizes.count(value) for value in (48, 99, 7)] == [COMPARED, COMPARED, 1]
    assert 2500.5 in known.values and known.own_values == (1e-12,)
    assert landmarks_of(task.graph, None) == Landmarks()


def _drawn(known: Landmarks, tiling: tuple[int, ...] = (), count: int = 100) -> list[list[CasePlan]]:
    task = make_task("softmax")
    return [list(small_cases(task, Draw(f"{number:032x}"), known, tiling, CORES)) for number in range(count)]


def _share(drawn: list[list[CasePlan]], name: str, *wanted: int) -> float:
    return sum(any(dict(plan.sizes)[name] in wanted for plan in plans) for plans in drawn) / len(drawn)


@pytest.mark.parametrize("name", ["s0", "s1"])
def test_sizes_are_at_and_next_to_what_a_kernel_names(name: str) -> None:
    drawn = _drawn(Landmarks((12_000,)), (777,))
    for landmark in (12_000, 777):
        assert _share(drawn, name, *range(landmark - 1, landmark + 2)) > 0.15
    assert _share(_drawn(Landmarks()), name, 11_999, 12_000, 12_001) < 0.1


def test_classes_of_sizes_come_up_without_any_landmark() -> None:
    drawn = _drawn(Landmarks())
    threes = tuple(3 * 2**power for power in range(1, 10))
    for wanted in (
        (1,),
        (2,),
        (40, 80, 120),
        (39, 41, 79, 81),
        threes,
        (251, 257, 509, 521),
        (200, 500, 1000),
    ):
        assert _share(drawn, "s0", *wanted) > 0.15, wanted
    assert _share(drawn, "s1", *range(4097, 20_000)) > 0.2


def test_every_draw_has_the_numbers_and_what_is_beyond() -> None:
    for plans in _drawn(Landmarks((), (0.25, 1e20), (3.0,))):
        hows = Counter(plan.distribution for plan in plans)
        assert hows["normal@3.0"] == 1 and hows["normal@0.25,1e20"] + hows["normal@1e20,0.25"] == 2
        assert hows["normal*2^-1"] == 1  # swallowed by the number, in float16
    exact = {plan.distribution for plan in small_cases(make_task("relu"), Draw("0" * 32), Landmarks(), (), 1)}
    assert sum("*2^" in how for how in exact) == 1
    assert base_of(str(Values("normal", near=(1e20, -3.0)))) == "normal"


def test_small_cases_are_small() -> None:
    task = make_task("softmax")
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    for plans in _drawn(Landmarks((100_000, 4096)), (1 << 19,)):
        sizes = [total_bytes(task, dict(plan.sizes)) - least for plan in plans]
        assert len(plans) >= 8 and max(sizes) <= 8 * LIMIT and sum(sizes) < 60 * LIMIT


def test_one_input_alone_is_like_no_other() -> None:
    task = make_task("add")
    plans = small_cases(task, Draw("0" * 32), Landmarks(), (), CORES)
    assert [plan.distribution for plan in plans].count("alike") == 1
    symbols = (Symbol("s0", 64), Symbol("s1", 1))
    one = evolve(make_task("relu"), symbols=symbols[:1])
    assert not any(
        plan.distribution == "alike" for plan in small_cases(one, Draw("0" * 32), Landmarks(), (), 1)
    )
