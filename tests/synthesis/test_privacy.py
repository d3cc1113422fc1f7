"""No name of a person's file is in what a model is asked, whatever the file calls things."""

from __future__ import annotations

import json
import string
from itertools import permutations

import pytest
from attrs import evolve
from hypothesis import assume
from hypothesis import strategies as st

from evokernel_core.compiler.planned import identifier
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.serial import dumps
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import (
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    LineTime,
    Verdict,
)
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.experiences import make_experience
from evokernel_core.synthesis.lessons import Trial, lessons, summary
from evokernel_core.synthesis.privacy import MODEL, Privacy
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.llm import LlmProposer
from evokernel_core.synthesis.proposers.llm_code import hot_lines
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source
from evokernel_core.targets.ascendc.target import ascendc
from tests.tables import drawn

CHIP = load_chip()
LETTERS = string.ascii_letters + string.digits + "_"
OTHER_LETTERS = "éñüøжλ秘密モ"
sizes = st.text(LETTERS, min_size=9, max_size=14).map(lambda text: f"zq{text}")
names = st.builds(
    "{}zq{}".format,
    st.sampled_from(["", "", *OTHER_LETTERS]),
    st.text(LETTERS + OTHER_LETTERS, min_size=9, max_size=14),
)
"""Names that occur in no text of ours by chance; those of sizes have ASCII letters."""


def task_of(first: str, weight: str, scale: str, size: str, name: str) -> KernelTask:
    """relu(x * weight) * scale over rows of a size that the call knows."""
    spec = TensorSpec((size, 64), "float32")
    inputs = (
        GraphInput(first, spec, expression=f"self.{first}"),
        GraphInput(weight, TensorSpec((64,), "float32"), InputKind.PARAMETER, f"self.{weight}"),
        GraphInput(scale, TensorSpec((), "float32"), InputKind.SCALAR, f"self.{scale}"),
    )
    nodes = (
        Node("mul", "aten.mul.Tensor", (ValueRef(first), ValueRef(weight)), (), (spec,), 3),
        Node("relu", "aten.relu.default", (ValueRef("mul"),), (), (spec,), 4),
        Node("mul_1", "aten.mul.Tensor", (ValueRef("relu"), ValueRef(scale)), (), (spec,), 5),
    )
    graph = Graph(inputs, nodes, (ValueRef("mul_1"),))
    return KernelTask(name, graph, (Symbol(size, 512),), TOLERANCES["float32"], "elementwise")


def judged(task: KernelTask, source: KernelSource, feedback: str) -> Candidate:
    status = GateStatus.FAILED if feedback else GateStatus.PASSED
    gate = GateResult(GateName.COMPILE, status, "compile" if feedback else "", feedback)
    pipes = (("V", 3.0),)
    latency = Latency(9.0, LatencySource.MODELLED, CHIP.name, 8, pipes, "V is busy.", 1.0, 20.0)
    verdict = Verdict(task.task_id, source.source_id, "twin", (gate,), None if feedback else latency)
    return Candidate(source, verdict)


def check_that_no_name_is_sent(given_names: list[str], failed: bool) -> None:
    assume(not any(a.lower() in b.lower() for a, b in permutations(given_names, 2)))
    task = task_of(*given_names)
    strategy = initial(task, CHIP)
    source = write(task, strategy, CHIP)
    line = next(line for line in source.files[KERNEL].splitlines() if "Global" in line and "(" in line)
    feedback = (
        f"/home/{given_names[0]}/op_kernel.cpp:7: error in {line.strip()} (with {given_names[3]}=7)"
        if failed
        else ""
    )
    start = judged(task, source, "")
    another = write(task, moves(task, strategy, CHIP)[0].strategy, CHIP)
    child = judged(task, another, feedback)
    trial = Trial(task, {}, Stage.REFINE, another, child.verdict, 10.0, "V", frozenset())
    learned = tuple(lessons(trial))
    assert_free(dumps(learned), given_names)
    context = Context(learned, start, (child,), feedback=feedback)
    proposer = LlmProposer(ModelEndpoint("http://127.0.0.1:9/v1", "none"), ascendc(load_chip()))
    for asked in (context, evolve(context, start=None)):
        sent = proposer.preview(task, asked)
        assert "op_kernel.cpp" in sent and json.loads(sent)
        assert_free(sent, given_names)


test_no_name_of_the_file_is_sent, test_no_name_of_many_files_is_sent = drawn(
    check_that_no_name_is_sent,
    few=12,
    many=40,
    given_names=st.tuples(names, names, names, sizes, names).map(list),
    failed=st.booleans(),
)


def assert_free(text: str, words: list[str]) -> None:
    found = [word for word in words if word.lower().strip("_") in text.lower()]
    assert not [*found, *(word for word in words if identifier(word) in text.lower())], text
    assert not any(letter in text for letter in OTHER_LETTERS), text


def of_a_model(task: KernelTask, gate: GateName, feedback: str) -> Candidate:
    text = "void f()\n{\n    uint64_t mask = 64;\n    Muls(tile, tile, scale, count);\n}\n"
    source = ascendc_source("// tiling\n", text, Strategy(MODEL))
    failed = GateResult(gate, GateStatus.FAILED, "some-code", feedback)
    return Candidate(source, Verdict(task.task_id, source.source_id, "twin", (failed,)))


ASKED = LlmProposer(ModelEndpoint("http://127.0.0.1:9/v1", "none"), ascendc(load_chip()))
SAID = (
    "/home/zoe/secret plans/op_kernel.cpp:4: 'gate' was not declared in this scope; in the call "
    "Muls(tile, tile, gate, count) 'weight' has no 'hidden'"
)


@pytest.mark.parametrize("gate", [GateName.COMPILE, GateName.AUDIT])
def test_what_is_said_of_a_models_text_keeps_the_models_words(gate: GateName) -> None:
    task = task_of("hidden", "weight", "gate", "rows", "AcmeNet")
    child = of_a_model(task, gate, SAID)
    context = Context(children=(child,), feedback=summary(child.verdict))
    sent = json.loads(ASKED.preview(task, context))["messages"][1]["content"]
    said = SAID.replace("/home/zoe/secret plans/", "")
    assert sent.count(said) == 2, "in the list of attempts and as the last words"
    assert "zoe" not in sent and "secret plans" not in sent
    lesson = lessons(Trial(task, {}, Stage.DRAFT, child.source, child.verdict, 10.0, "V", frozenset()))
    assert all(said in item.body for item in lesson)


def test_what_is_said_of_values_of_a_models_kernel_has_names_of_ours() -> None:
    task = task_of("hidden", "weight", "gate", "rows", "AcmeNet")
    child = of_a_model(task, GateName.CORRECTNESS, "Input hidden was changed (with rows=7).")
    context = Context(children=(child,), feedback=summary(child.verdict))
    sent = json.loads(ASKED.preview(task, context))["messages"][1]["content"]
    assert sent.count("Input x0 was changed (with n0=7).") == 2


@pytest.mark.parametrize("kind", [ExperienceKind.RULE, ExperienceKind.API_CARD, ExperienceKind.PRACTICE])
def test_rules_cards_and_practices_are_shown_as_they_are(kind: ExperienceKind) -> None:
    text = "You cannot pass hidden lanes, gates or a weight of rows to AcmeNet."
    task = task_of("hidden", "weight", "gates", "rows", "AcmeNet")
    assert text in ASKED.preview(task, Context((make_experience(kind, text, text),)))
    trace = make_experience(ExperienceKind.TRACE, text, text)
    shown = "You cannot pass x0 lanes, x2 or a x1 of n0 to kernel."
    assert shown in ASKED.preview(task, Context((trace,)))


@pytest.mark.parametrize(
    "name", ["half", "float", "class", "int", "Tile", "tiling", "mask", "count", "Muls", "repeatTime"]
)
def test_words_of_the_language_and_of_all_kernels_are_no_names(name: str) -> None:
    text = f"'{name}' in Muls(tileLocal, maskLocal, half(2), count) of class Tile: float32, tiling.rows"
    for given_names in ((name, "weight", "scale", "size"), ("x", name, "scale", "size")):
        assert Privacy(task_of(*given_names, "AcmeNet")).words(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("'étude_secret' tile étudeSecretLocal, ÉTUDE_SECRET_BYTES", "'x0' tile x0Local, X0_BYTES"),
        ("秘密 秘密Gm copyIn秘密", "x1 x1Gm copyInx1"),
        ("hiddenState HIDDEN_STATE_BYTES HIDDENSTATE ROWS_OF_HIDDEN_STATE", "x2 X2_BYTES X2 N0_OF_X2"),
        ("copyInHiddenState loadEtude hiddenStates", "copyInX2 loadEtude hiddenStates"),
        ("ärgernis RgernisKernel rgernis_kernel Ärgernis", "kernel KernelKernel kernel_kernel kernel"),
        ("/home/John Smith/secret project/op_kernel.cpp:3: error", "op_kernel.cpp:3: error"),
        ("C:\\Users\\John Smith\\Acme Secret\\tiling.h:4", "tiling.h:4"),
        ("from /tmp/x/秘密/tiling.h:3, '/srv/acme/op_kernel.cpp'", "from tiling.h:3, 'op_kernel.cpp'"),
        ("a / b / c and x/y/z are no folders", "a / b / c and x/y/z are no folders"),
    ],
)
def test_names_are_found_in_all_their_forms(text: str, shown: str) -> None:
    task = task_of("étude_secret", "秘密", "hiddenState", "rows", "Ärgernis")
    assert Privacy(task).words(text) == shown


@pytest.mark.parametrize(
    "given_names",
    [
        ("class_", "Tile", "tiling_", "coreNum", "Kernel"),
        ("secret1", "secret", "secret11", "secretr", "secret_"),
        ("a_name_that_is_so_long_that_lines_of_the_kernel_break_at_other_places", "w", "s", "n", "net"),
    ],
)
def test_lines_that_take_the_time_are_those_of_the_kernel_that_is_shown(given_names: tuple[str, ...]) -> None:
    task = task_of(*given_names)
    start = judged(task, write(task, initial(task, CHIP), CHIP), "")
    shown = Privacy(task).files(start.source, ascendc(CHIP))
    text = start.source.files[KERNEL].splitlines()
    (number,) = (number for number, line in enumerate(text, 1) if "Relu(" in line or "Maxs(" in line)
    latency = start.verdict.latency
    assert latency is not None
    lines = (LineTime("V", "op_kernel.cpp", number, 8, 5.0),)
    timed = evolve(start, verdict=evolve(start.verdict, latency=evolve(latency, lines=lines)))
    (line,) = hot_lines(timed, shown)
    assert line["text"] in [" ".join(found.split()) for found in shown.files[KERNEL].splitlines()]
    assert line["method"] == "Compute"
