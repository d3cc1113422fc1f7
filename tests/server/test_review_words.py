"""What a review says: figures with their words, what binds a kernel, and what changed."""

from __future__ import annotations

import json
import re

import pytest
from attrs import evolve
from evokernel_server.review.contents import Vendor, kernel_of, wire
from evokernel_server.review.explanations import what_changed, why_faster
from evokernel_server.texts.hazards import with_help
from evokernel_server.texts.strategies import (
    changes_between,
    move_words,
    steps_between,
    strategy_changes,
    strategy_words,
)
from evokernel_server.texts.translations import speak
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.descriptor import Algorithm, Dataflow, Overlap, Stages
from evokernel_core.domain.eager import EagerComparison, Uncompared
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.kernel import THEN, KernelSchedule, Setting, Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import (
    GateName,
    GateResult,
    GateStatus,
    Hazard,
    Latency,
    LatencySource,
    Severity,
)
from evokernel_core.memory.candidates import Stored
from evokernel_core.targets.ascendc.source import ascendc_source
from tests.chinese import english
from tests.server.reviewed import CELL, LATENCY, SOURCE, STRATEGY, TASK, VERDICT, kernel, review

MEASURED = evolve(LATENCY, source=LatencySource.MEASURED, us=11.0)
FIGURE = re.compile(r"[\d.,]+ µs(?: (\w+))?")

LAUNCHES = evolve(STRATEGY, descriptor=evolve(CELL, kernels=3, stages=Stages.LAUNCHES))
OTHER = ascendc_source("", "2", STRATEGY)
REFINED = kernel(evolve(LATENCY, us=8.0), OTHER)


def why(
    latency: Latency = LATENCY, strategy: Strategy = STRATEGY, operator: tuple[float, str] | None = None
) -> tuple[str, ...]:
    return why_faster(kernel(latency), TASK, strategy, Vendor("npu_x", *operator) if operator else None)


SAID = {
    "one kernel": (why(), "2 ops fused; intermediates stay on chip"),
    "the ratio": (
        why(),
        "A launch takes 10.0 µs estimated on ascend910b1, eager 40.0 µs estimated: 4.0 times as fast.",
    ),
    "the pipes": (
        why(),
        "Busy on the slowest core, as a share of the launch with its start (estimated): loads from global "
        "memory 80 %, the vector unit 20 %.",
    ),
    "the bottleneck": (why(), "Bottleneck (estimated): MTE2-bound: 80 % busy."),
    "the bound": (
        why(),
        "50 % of the roofline limit (5.0 µs estimated).",
    ),
    "several kernels": (why(strategy=LAUNCHES), "2 operations are 3 kernels (a launch each)."),
    "a measured kernel": (
        why(MEASURED),
        "A launch takes 11.0 µs measured on ascend910b1; eager takes 40.0 µs estimated. The two "
        "are not compared.",
    ),
    "a slower operator": (
        why(operator=(20.0, "modelled")),
        "npu_x computes the same as one operator in 20.0 µs estimated: the kernel is 2.0 times as fast.",
    ),
    "a faster operator": (why(operator=(9.0, "modelled")), "consider that operator instead."),
    "an operator of another source": (
        why(operator=(9.0, "measured")),
        "the kernel's latency is estimated, so the two are not compared.",
    ),
    "a huge gain": (why(evolve(LATENCY, us=2.0)), "deserves a second look"),
    "the installed kernel itself": (
        what_changed(kernel(), kernel(), (), ()),
        "This is the accepted kernel.",
    ),
    "another verifier": (
        what_changed(kernel(), kernel(MEASURED, OTHER), (), ()),
        "Accepted: 10.0 µs estimated on ascend910b1; this one: 11.0 µs measured on ascend910b1. "
        "The two are not compared.",
    ),
    "a refined one": (
        what_changed(kernel(), REFINED, ("Tile: 1 instead of 2.",), ("halve tile", "spread by columns")),
        "It came from the accepted kernel by these steps: halve tile, then spread by columns.",
    ),
    "the same schedule": (what_changed(kernel(), REFINED, (), ()), "declare the same settings"),
}


@pytest.mark.parametrize("name", SAID)
def test_a_review_says(name: str) -> None:
    sentences, wanted = SAID[name]
    assert any(wanted in sentence for sentence in sentences), sentences
    for figure in FIGURE.finditer(" ".join(sentences)):
        assert figure[1] in ("estimated", "measured"), figure[0]


def with_setting(name: str, value: Setting) -> Strategy:
    return evolve(STRATEGY, settings={**dict(STRATEGY.settings), name: value})


CHANGED = {
    "nothing": (STRATEGY, ()),
    "a number": (with_setting("tile", 8192), ("Tile: 8,192 instead of 4,096.",)),
    "a switch": (with_setting("online", value=True), ("Online sums in one pass: yes instead of no.",)),
    "a new setting": (with_setting("panel_kb", 80), ("Panel kb: 80 instead of none.",)),
    "the cell": (
        evolve(STRATEGY, descriptor=evolve(CELL, dataflow=Dataflow.BLOCKS, algorithm=Algorithm.ONLINE)),
        ("Data flow: blocks instead of streamed.", "Algorithm: online instead of direct."),
    ),
    "an axis that was unknown": (evolve(STRATEGY, descriptor=evolve(CELL, overlap=Overlap.PIPELINED)), ()),
    "the family": (
        Strategy("rowwise", {"tile": 1}, descriptor=CELL),
        ("Family: rowwise instead of pointwise.",),
    ),
    "the version": (evolve(STRATEGY, version=1, settings={"tile": 1}), ()),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changes_of_a_strategy_are_sentences(name: str) -> None:
    new, wanted = CHANGED[name]
    assert strategy_changes(STRATEGY, new) == wanted


def program(groups: tuple[tuple[int, ...], ...], *kernels: dict[str, Setting]) -> Strategy:
    return Strategy(
        "program", groups=groups, kernels=tuple(KernelSchedule("fused", settings) for settings in kernels)
    )


def test_kernels_of_a_program_are_numbered_from_one() -> None:
    old = program(((0,), (1,)), {"tile": 1}, {"rows": 4})
    new = program(((0,), (1,)), {"tile": 2}, {"rows": 4})
    assert strategy_changes(old, new) == ("Kernel 1, tile: 2 instead of 1.",)
    cut = program(((0, 1),), {"tile": 2})
    assert strategy_changes(old, cut) == ("Grouping of operations: 0 1 instead of 0 | 1.",)


def test_the_kernels_of_a_program_are_told_in_their_order() -> None:
    groups = tuple((number,) for number in range(11))
    old, new = (program(groups, *[{"tile": tile}] * 11) for tile in (1, 2))
    wanted = tuple(f"Kernel {number}, tile: 2 instead of 1." for number in range(1, 12))
    assert strategy_changes(old, new) == wanted


def test_many_changes_end_with_their_number() -> None:
    new = evolve(STRATEGY, settings={f"s{n:02}": n for n in range(20)})
    assert strategy_changes(STRATEGY, new)[-1] == "And 11 further settings."


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (with_setting("tile", 8192), "tile raised"),
        (with_setting("tile", 64), "tile lowered"),
        (with_setting("online", value=True), "online sums in one pass on"),
        (with_setting("panel_kb", 80), "other panel kb"),
        (evolve(STRATEGY, family="rowwise"), "other family"),
    ],
)
def test_what_differs_is_said_in_two_words_and_in_the_fields_of_the_schedule(
    new: Strategy, words: str
) -> None:
    (change,) = changes_between(STRATEGY, new)
    assert change.words == words
    assert changes_between(new, STRATEGY)[0].before == change.after
    assert changes_between(new, new) == ()


@given(st.text(), st.text(), st.lists(st.text()))
def test_words_of_others_are_lines_without_control_characters(
    family: str, word: str, notes: list[str]
) -> None:
    strategy = Strategy(family, {word or "x": word}, tuple(notes))
    for sentence in (*strategy_words(strategy), *strategy_changes(STRATEGY, strategy)):
        assert sentence.isprintable()


def stored(text: str, parent: str, move: str) -> Stored:
    source = ascendc_source("", text, evolve(STRATEGY, move=move))
    return Stored(source, VERDICT, parent, Stage.REFINE)


def test_the_steps_from_the_installed_kernel_are_those_of_its_line() -> None:
    first = stored("1", "", "")
    second = stored("2", first.source.source_id, "halve tile")
    third = stored("3", second.source.source_id, "spread by columns")
    aside = stored("4", first.source.source_id, "largest tile")
    ids = [item.source.source_id for item in (first, second, third, aside)]
    known = (first, second, third, aside)
    assert steps_between(known, ids[0], ids[2]) == ("halve tile", "spread by columns")
    assert steps_between(known, ids[3], ids[2]) == ()
    assert steps_between(known, ids[0], ids[0]) == ()
    circle = (stored("5", stored("5", "", "a").source.source_id, "a"),)
    assert steps_between(circle, ids[0], circle[0].source.source_id) == ()


THREE = Sentence("{first}, then {next}", first=Sentence("double tile"), next=Sentence("whole rows"))


@pytest.mark.parametrize(
    ("move", "chinese"),
    [
        (Sentence("double tile"), "分块加倍"),
        (Sentence("double tile, then halve tile"), "分块加倍，然后 分块减半"),
        (THREE, "分块加倍，然后 整行"),
        (
            Sentence("{first}, then {next}", first=THREE, next=Sentence("model")),
            "分块加倍，然后 整行，然后 模型",
        ),
        (Sentence("tile longer along axis {axis}", axis=1), "分块沿第 1 轴加长"),
        (Sentence("tile longer along axis 1"), "tile longer along axis 1"),
        (Sentence(), ""),
    ],
)
def test_a_step_is_named_in_the_language_of_the_editor(move: Sentence, chinese: str) -> None:
    """Text alone, as memories of earlier versions have it, is known where it has no figures."""
    assert move_words(move) == move
    assert THEN.join(move.split(THEN)) == move
    speak("zh-cn")
    try:
        assert move_words(move) == chinese
        assert strategy_words(STRATEGY)[0] == "算子族：逐元素（pointwise）。"
    finally:
        speak("")


SEEN = tuple(
    Hazard(code, Severity.WARNING, "x") for code in ("uninitialised-store", "overflow-inf", "of-later")
)


@pytest.mark.parametrize(
    ("locale", "told"),
    [
        ("", "overflow-inf: Finite values that become infinite. Compute in float32, or scale or clamp"),
        ("zh-cn", "overflow-inf：有限的值变成了无穷大。请以 float32 计算"),
    ],
)
def test_warnings_say_what_they_mean_and_what_helps(locale: str, told: str) -> None:
    """A code of a later version stands alone."""
    passed = GateResult(GateName.CORRECTNESS, GateStatus.PASSED, hazards=SEEN)
    speak(locale)
    try:
        (gate,) = kernel_of(SOURCE, evolve(VERDICT, gates=(passed,)), LATENCY, TASK).gates
        failed = with_help(Sentence("{where}: {what}", where="overflow-inf", what="Exp."))
    finally:
        speak("")
    assert told in gate.detail and "of-later." in gate.detail
    assert failed.startswith("overflow-inf: Exp." if not locale else "overflow-inf：Exp.")
    assert "float32" in failed
    assert not locale or not english(gate.detail + failed)


def test_the_data_are_those_of_the_contract() -> None:
    data = json.loads(json.dumps(wire(review())))
    assert set(data) == {
        "uri", "file", "regionId", "name", "title", "line", "changeLine", "version", "before", "after",
        "guards", "why", "kernel", "installed", "vendor", "files", "parts",
    }  # fmt: skip
    assert set(data["kernel"]) == {
        "sourceId", "strategy", "us", "source", "chip", "baselineUs", "baseline", "baselineSource", "boundUs",
        "bottleneck", "pipes",
        "verifier", "gates", "inputs", "error",
    }  # fmt: skip
    assert data["kernel"]["sourceId"] == SOURCE.source_id
    assert data["kernel"]["pipes"] == {"MTE2": 0.8, "V": 0.2}
    assert data["kernel"]["inputs"] == [{"name": "self.x", "dtype": "float16", "shape": [8, 2048]}]
    assert data["kernel"]["error"] == {"abs": 2e-3, "rel": 1e-4}
    details = {gate["name"]: gate["detail"] for gate in data["kernel"]["gates"]}
    assert details["correctness"] == (
        "Compared with PyTorch (rtol 0.01, atol 0.01) at 2 sets of sizes, among them s0=1; s0=8. "
        "The file's own code has not been run beside its graph yet; accepting the kernel does so."
    )
    assert details["latency"].startswith(
        "A launch at the sizes of the file: 10.0 µs estimated on ascend910b1"
    )


EAGER = EagerComparison(
    ("normal", "nan"),
    (Uncompared("file_sizes", "its tensors are too large"), Uncompared("later", "its tensors are too large")),
)


@pytest.mark.parametrize(
    ("eager", "told"),
    [
        (
            EAGER,
            " The file's own code gave the same as its graph for ordinary values, NaN. Not compared with the "
            "file's own code: the file's own sizes, later (its tensors are too large).",
        ),
        (
            EagerComparison(uncompared=(Uncompared("", "it draws random numbers"),)),
            " Not compared with the file's own code: it draws random numbers.",
        ),
    ],
)
def test_what_came_of_the_files_own_code_is_said(eager: EagerComparison, told: str) -> None:
    gates = kernel_of(SOURCE, evolve(VERDICT, eager=eager), LATENCY, TASK).gates
    assert next(gate.detail for gate in gates if gate.name == "correctness").endswith(told)


@pytest.mark.parametrize("stages", Stages)
def test_how_kernels_follow_each_other_is_said_in_the_persons_language(stages: Stages) -> None:
    speak("zh-cn")
    try:
        strategy = evolve(STRATEGY, descriptor=evolve(CELL, kernels=3, stages=stages))
        assert not re.search("[a-z]{3}", why(strategy=strategy)[0])
    finally:
        speak("")
