"""Cases about the numbers that a kernel and a graph name: what is found in texts, and what is drawn of it."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve

from evokernel_core.capture.reference import Values, base_of
from evokernel_core.domain.graph import Graph, Node
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import CasePlan, total_bytes
from evokernel_core.verifier.gates.landmarks import (
    LARGER,
    LIMIT,
    Landmarks,
    landmarks_of,
    small_cases,
    telling_words,
)
from evokernel_core.verifier.gates.mixture import PRIMES_ABOVE, PRIMES_BELOW
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
    assert 2500.5 in known.values and known.own_values == (1e-12,)
    assert landmarks_of(task.graph, None) == Landmarks()


@pytest.mark.parametrize(
    ("text", "equal", "compared"),
    [
        ("if (n % 48 == 0 || n < 99) { x[7] = 5; }", set(), {48, 99, 5}),
        ("if (n == 251 || 257 != n) { F(77); }", {251, 257}, set()),
        ("constexpr uint32_t ONE = 0x101; uint32_t two = 300; if (n != ONE) { F(77); }", {257}, {300}),
        ("bad = n == (1 << 12) || (n ^ 129) == 0;", {129, 4096}, set()),
        ("switch (n) { case 4 * 15: F(77); }", {60}, set()),
    ],
)
def test_what_a_text_does_with_a_number_is_told(text: str, equal: set[int], compared: set[int]) -> None:
    task = make_task("relu")
    known = landmarks_of(task.graph, read_source("relu").with_files({KERNEL: text, TILING: ""}))
    own = {value for value in known.equal if value > 50}
    assert own == {value for value in equal if value > 50}
    assert compared <= set(known.compared) - set(known.equal)
    assert 77 not in known.compared


@pytest.mark.parametrize(
    ("text", "equal", "compared"),
    [
        ("if n % 48 == 0 or n < 99:\n    x = y + 7 # 77\n", set(), {48, 99}),
        ("x = a // 3 if n == 251 or 257 != n else F(77)", {251, 257}, set()),
        ("ONE = 0x101\ntwo = 1_300\nif n != ONE:\n    F(77)", {257}, {1300}),
        ("bad = (n == (1 << 12)) | ((n ^ 129) == 0)", {129, 4096}, set()),
        ('"""of 251 == n"""\nmask = inside < 4 * 30', set(), {120}),
    ],
)
def test_what_a_text_in_triton_does_with_a_number_is_told(
    text: str, equal: set[int], compared: set[int]
) -> None:
    record = '{"requires": ["s1 <= 65536", "s0 != 509"], "constants": {"BLOCK": "1024"}, "warps": 4}'
    source = KernelSource("triton", {"kernel.py": text, "launch.json": record}, Strategy("model"))
    known = landmarks_of(make_task("relu").graph, source)
    assert {value for value in known.equal if value > 50} == {509} | equal
    assert compared | {65536} <= set(known.compared) - set(known.equal)
    assert {1024, 4} <= set(known.sizes) and 77 not in known.compared


def _drawn(known: Landmarks, tiling: tuple[int, ...] = (), count: int = 100) -> list[list[CasePlan]]:
    task = make_task("softmax")
    return [list(small_cases(task, Draw(f"{number:032x}"), known, tiling, CORES)) for number in range(count)]


def _share(drawn: list[list[CasePlan]], name: str, *wanted: int) -> float:
    return sum(any(dict(plan.sizes)[name] in wanted for plan in plans) for plans in drawn) / len(drawn)


@pytest.mark.parametrize("name", ["s0", "s1"])
def test_sizes_are_what_a_kernel_names(name: str) -> None:
    asked = _drawn(Landmarks((500, 700), (500, 700), (700,)), (555,))
    for landmark in (500, 700, 555, CORES - 1, CORES + 1, 2 * CORES + 1):
        assert _share(asked, name, landmark) > 0.2, landmark
    assert _share(asked, name, 699, 701, 1400, 499, 501, 1000, 554, 556, 1110) > 0.05
    assert _share(_drawn(Landmarks()), name, 699, 700, 701) == 0.0


def test_every_draw_has_sizes_as_large_as_each_other() -> None:
    for plans in _drawn(Landmarks()):
        sizes = [dict(plan.sizes) for plan in plans]
        assert any(9 < of["s0"] == of["s1"] != 100 for of in sizes)


def test_every_draw_has_odd_sizes_of_ordinary_values() -> None:
    for plans in _drawn(Landmarks()):
        odd = [plan for plan in plans if all(8 < size < 32 and size % 2 for _, size in plan.sizes)]
        assert any(plan.distribution == "normal" for plan in odd)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("if (n * m > 12000 && n * m < 12500) {}", ((12000, 12500),)),
        ("const bool bad = 700 <= area && area <= 900;", ((700, 900),)),
        ("if (n > 700) {} if (m < 900) {}", ()),
        ("if (n > 7 && n < 60) {}", ()),
    ],
)
def test_sizes_and_their_products_lie_between_two_numbers(
    text: str, ranges: tuple[tuple[int, int], ...]
) -> None:
    task = make_task("softmax")
    known = landmarks_of(task.graph, read_source("relu").with_files({KERNEL: text, TILING: ""}))
    assert known.ranges == ranges
    for plans in _drawn(known, count=10):
        drawn = [dict(plan.sizes) for plan in plans]
        for low, high in ranges:
            assert any(low < of["s0"] * of["s1"] < high and min(of.values()) > 1 for of in drawn)
            assert all(any(low < of[name] < high for of in drawn) for name in ("s0", "s1"))


@pytest.mark.parametrize("name", ["s0", "s1"])
def test_every_draw_has_even_sizes_of_two_sorts(name: str) -> None:
    for plans in _drawn(Landmarks()):
        drawn = {dict(plan.sizes)[name] for plan in plans}
        assert drawn & {48, 80, 96, 112}
        assert any(size < 64 and size % 2 == 0 and size & (size - 1) for size in drawn)


def test_every_draw_has_rows_of_more_than_16_bits_and_as_long_as_is_light() -> None:
    lasts, firsts = zip(
        *(
            (max(dict(plan.sizes)["s1"] for plan in plans), max(dict(plan.sizes)["s0"] for plan in plans))
            for plans in _drawn(Landmarks())
        ),
        strict=True,
    )
    assert min(lasts) > 1 << 17
    assert any(first > 1 << 16 for first in firsts)


def test_one_size_is_all_that_is_special() -> None:
    """Of a task of one symbol each draw has all of the few sizes that a kernel names."""
    task, known = make_task("relu"), Landmarks((500, 700), (500, 700), (700,))
    for number in range(20):
        plans = small_cases(task, Draw(f"{number:032x}"), known, (555,), CORES)
        drawn = {dict(plan.sizes)["s0"] for plan in plans}
        assert {500, 700, 555, CORES - 1, CORES + 1, 2 * CORES + 1} <= drawn
        assert any(size > 4096 and size % 64 == 0 for size in drawn)
        assert drawn & set(PRIMES_BELOW) and drawn & set(PRIMES_ABOVE)


def test_every_draw_has_the_numbers_and_what_is_beyond() -> None:
    for plans in _drawn(Landmarks(values=(0.25, 1e20), own_values=(3.0,))):
        hows = Counter(plan.distribution for plan in plans)
        assert hows["normal@3.0"] == 1
        for base in ("normal", "columns"):
            assert hows[f"{base}@0.25,1e20"] + hows[f"{base}@1e20,0.25"] == 1
        assert hows["normal*2^-1"] == 1  # swallowed by the number, in float16
    exact = {plan.distribution for plan in small_cases(make_task("relu"), Draw("0" * 32), Landmarks(), (), 1)}
    assert sum("*2^-" in how for how in exact) == 1 and sum("*2^" in how for how in exact) == 3
    assert base_of(str(Values("normal", near=(1e20, -3.0)))) == "normal"


@pytest.mark.parametrize(("name", "asked"), [("sigmoid", ["uniform<2^4", "uniform>2^4"]), ("abs", [])])
def test_what_has_digits_in_a_tail_is_asked_there_on_both_sides(name: str, asked: list[str]) -> None:
    task = make_task("softmax")
    (node,) = task.graph.nodes
    other = evolve(task, graph=evolve(task.graph, nodes=(evolve(node, op=f"aten.{name}.default"),)))
    hows = [plan.distribution for plan in small_cases(other, Draw("0" * 32), Landmarks(), (), CORES)]
    assert [how for how in hows if "<" in how or ">" in how] == asked and "zeros" in hows
    assert {base_of(how) for how in asked} <= {"uniform"}


def test_words_of_several_cases_tell_a_tile() -> None:
    assert telling_words([]) == ()
    tilings = [(40 + number, 64, 1, 0, number // 4 + 500) for number in range(6)]
    assert telling_words([*tilings, (9, 0, 777)]) == (9, 0, 777, 64, 500)


@pytest.mark.parametrize(("name", "most"), [("rnn_tanh", 64.0), ("sin", 4096.0)])
def test_no_value_is_about_numbers_at_which_no_digit_remains(name: str, most: float) -> None:
    task = make_task("softmax")
    (node,) = task.graph.nodes
    limited = evolve(task, graph=evolve(task.graph, nodes=(evolve(node, op=f"aten.{name}.default"),)))
    known = Landmarks((7, 65535), values=(0.5, 3.0, 5000.0, 1e20), own_values=(0.125, 1e9))
    drawn = small_cases(limited, Draw("0" * 32), known, (), CORES)
    told = [plan.distribution.partition("@")[2] for plan in drawn]
    near = {float(number) for words in told for number in words.split(",") if number}
    assert {0.5, 3.0, 0.125} <= near and max(near) <= most


def test_small_cases_are_small() -> None:
    task = make_task("softmax")
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    for plans in _drawn(Landmarks((100_000, 4096), (100_000, 4096)), (1 << 19,)):
        short = [plan for plan in plans if max(dict(plan.sizes).values()) <= 1 << 16]
        sizes = [total_bytes(task, dict(plan.sizes)) - least for plan in short]
        assert len(plans) >= 8 and len(plans) - len(short) <= 2
        assert max(sizes) <= LARGER * LIMIT and sum(sizes) < 60 * LIMIT


def test_one_input_alone_is_like_no_other() -> None:
    task = make_task("add")
    plans = small_cases(task, Draw("0" * 32), Landmarks(), (), CORES)
    assert [plan.distribution for plan in plans].count("alike") == 1
    symbols = (Symbol("s0", 64), Symbol("s1", 1))
    one = evolve(make_task("relu"), symbols=symbols[:1])
    assert not any(
        plan.distribution == "alike" for plan in small_cases(one, Draw("0" * 32), Landmarks(), (), 1)
    )
