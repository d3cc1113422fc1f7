"""The model proposer against a recorded endpoint: good, flawed and hostile answers, and what leaves us."""

from __future__ import annotations

import gzip
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import stamina
from attrs import evolve

from evokernel_core.domain.descriptor import Algorithm, Descriptor, Overlap
from evokernel_core.domain.errors import (
    AnswerUnreadable,
    BudgetExhausted,
    EndpointError,
    NothingToGain,
    ProposerError,
    UsageError,
)
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.graph import DTypeArg, Graph, GraphInput, InputKind, Node, SymbolicInt, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.settings import ModelEndpoint, ModelProtocol
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import (
    SLOWER,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    Verdict,
)
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.spending import Cost, Spent
from evokernel_core.synthesis.privacy import Privacy
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.llm import LlmProposer
from evokernel_core.synthesis.proposers.llm_answer import read_answer
from evokernel_core.synthesis.proposers.llm_budget import Tally
from evokernel_core.synthesis.proposers.llm_model import ATTEMPTS, Model
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge import rules
from evokernel_core.targets.ascendc.source import KERNEL as KERNEL_FILE
from evokernel_core.targets.ascendc.source import TARGET, TILING, ascendc_source
from evokernel_core.targets.ascendc.target import ascendc
from tests.synthesis.endpoint import RecordedEndpoint, Recording, completion, kernel_text, recording

KEY = "sk-secret-key"
PROTOCOLS = (ModelProtocol.CHAT, ModelProtocol.RESPONSES)
Serve = Callable[..., tuple[RecordedEndpoint, LlmProposer]]


def scale_add(name: str = "scale_add") -> KernelTask:
    """y = a + 2*b over n elements, with names that must stay at home."""
    spec = TensorSpec(("batch",), "float16")
    inputs = tuple(GraphInput(n, spec, expression=f"self.{n}.secret") for n in ("secret_a", "secret_b"))
    nodes = (
        Node("secret_mul", "aten.mul.Tensor", (ValueRef("secret_b"), 2.0), (), (spec,), line=42),
        Node("y", "aten.add.Tensor", (ValueRef("secret_a"), ValueRef("secret_mul")), (), (spec,), line=43),
    )
    graph = Graph(inputs, nodes, (ValueRef("y"),))
    return KernelTask(name, graph, (Symbol("batch", 1_000_003),), TOLERANCES["float16"], "elementwise")


def candidate(kernel: str, us: float | None, feedback: str = "", parent: str = "") -> Candidate:
    """A kernel that takes ``us``, or failed to compile with ``feedback``."""
    source = ascendc_source("// tiling\n", kernel, Strategy("model"))
    status = GateStatus.FAILED if us is None else GateStatus.PASSED
    gate = GateResult(GateName.COMPILE, status, "error" if us is None else "", feedback)
    latency = us and Latency(
        us, LatencySource.MODELLED, "ascend910b1", 48, (("MTE2", 9.0), ("V", 3.0)), "MTE2 is busy.", 8.0, 40.0
    )
    return Candidate(source, Verdict("t", source.source_id, "twin", (gate,), latency or None), parent)


def messages(request: dict[str, Any]) -> list[dict[str, str]]:
    """Those of a request in either protocol."""
    found: list[dict[str, str]] = request["messages"] if "messages" in request else request["input"]
    return found


@pytest.fixture(autouse=True)
def no_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
def serve(tally: Tally) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(*answers: str | Recording, **options: Any) -> tuple[RecordedEndpoint, LlmProposer]:
            loaded = [recording(a) if isinstance(a, str) else a for a in answers]
            endpoint = stack.enter_context(RecordedEndpoint(*loaded))
            settings = ModelEndpoint(endpoint.url, "recorded", KEY, idle_timeout_s=5.0)
            return endpoint, LlmProposer(
                evolve(settings, **options), ascendc(load_chip()), books=lambda: tally
            )

        yield start


def test_a_good_answer_becomes_a_kernel_with_its_price_and_its_sources(serve: Serve, tally: Tally) -> None:
    endpoint, proposer = serve("good")
    proposal = proposer.draft(scale_add(), Context())
    assert "class ScaleAdd" in proposal.source.files[KERNEL_FILE]
    strategy = proposal.source.strategy
    assert (strategy.family, strategy.move) == ("model", "")
    assert strategy.notes[0].startswith("Runs of elements")
    assert proposal.tokens == tally.spent_by("").tokens == 6210
    assert strategy.descriptor == Descriptor(algorithm=Algorithm.DIRECT, overlap=Overlap.PIPELINED)
    assert [item.id for item in proposal.learned] == list(proposal.used)
    request = endpoint.requests[0]
    shown = [item.title for item in proposal.learned if item.title in request["messages"][1]["content"]]
    assert len(shown) == len(proposal.used) > 2, "all that was shown is credited"
    assert request["response_format"]["json_schema"]["strict"] is True
    assert [message["role"] for message in request["messages"]] == ["system", "user"]


def test_the_preview_is_what_is_sent(serve: Serve) -> None:
    endpoint, proposer = serve("good")
    task, context = scale_add(), Context(experiences=rules(Cores.CUBE, load_chip())[:2])
    preview = proposer.preview(task, context)
    proposer.draft(task, context)
    assert json.loads(preview) == endpoint.requests[0]
    assert KEY not in preview


def test_the_preview_knows_what_is_left_of_a_budget(serve: Serve, tally: Tally) -> None:
    endpoint, proposer = serve("good", token_budget=18_000)
    tally.spend("2026-01-30", "job", "m", Cost(4_000, 0))
    context = Context(job="job")
    preview = json.loads(proposer.preview(scale_add(), context))
    proposer.draft(scale_add(), context)
    assert preview == endpoint.requests[0]
    assert preview["max_tokens"] < json.loads(proposer.preview(scale_add(), Context()))["max_tokens"]


def test_only_the_spec_of_the_op_leaves(serve: Serve) -> None:
    endpoint, proposer = serve("good")
    lesson = Experience(
        "e1",
        ExperienceKind.TRACE,
        "a trace",
        "Task SecretModel_attention: aten.mul.\nIt worked.",
        task_id="secret",
    )
    failed = candidate("// mine\n", None, "/home/zoe/secret-project/op_kernel.cpp:3: no FastScale")
    context = Context(
        (lesson,), None, (failed,), feedback="In /home/zoe/secret-project/op_kernel.cpp:3: no FastScale"
    )
    proposer.draft(scale_add("SecretModel_attention"), context)
    sent = json.dumps(endpoint.requests)
    for word in ("ecret", "batch", "zoe", "/home"):
        assert word not in sent
    for word in (
        "n0 = 1000003",
        "v0 = aten.mul.Tensor(x1, 2.0)  # float16 [n0]",
        "op_kernel.cpp:3: no FastScale",
    ):
        assert word in sent


def test_every_kind_of_argument_has_words(serve: Serve) -> None:
    endpoint, proposer = serve("good")
    spec = TensorSpec(("s0", "s0*s1 + 1"), "bfloat16")
    args = (ValueRef("x"), SymbolicInt("s0*s1"), (1, None, True), -1, 0.5, "tanh")
    node = Node("z", "aten.some.op", args, (("dtype", DTypeArg("float32")),), (spec, spec))
    inputs = (
        GraphInput("x", spec),
        GraphInput("eps", TensorSpec((), "float32"), InputKind.SCALAR),
        GraphInput("w", TensorSpec((), "float32"), InputKind.PARAMETER),
    )
    graph = Graph(inputs, (node,), (ValueRef("z", 1),))
    symbols = (Symbol("s0", 8), Symbol("s1", 3, 2))
    proposer.draft(KernelTask("t", graph, symbols, TOLERANCES["bfloat16"], "other"), Context())
    question = endpoint.requests[0]["messages"][1]["content"]
    assert "v0 = aten.some.op(x0, n0 * n1, [1, None, True], -1, 0.5, 'tanh', dtype=float32)" in question
    assert "out0 = v0.1: bfloat16 [n0, 1 + n0 * n1]" in question
    assert "# bfloat16 [n0, 1 + n0 * n1], bfloat16 [n0, 1 + n0 * n1]" in question
    assert "tensors[]: x0, x2, out0" in question
    assert "scalars[]: x1" in question
    assert "any n1 from 2 to 17 must work" in question
    assert "bfloat16 is computed in float" in question


def test_a_repair_shows_the_kernel_and_the_words_that_failed_it(serve: Serve) -> None:
    endpoint, proposer = serve("does_not_compile", "good")
    first = proposer.draft(scale_add(), Context())
    assert "FastScale" in first.source.files[KERNEL_FILE]
    failed = candidate(
        first.source.files[KERNEL_FILE], None, "op_kernel.cpp:51: 'FastScale' was not declared."
    )
    context = Context(children=(failed,), feedback="Failed at compile: 'FastScale' was not declared.")
    second = proposer.draft(scale_add(), context)
    assert "FastScale" not in second.source.files[KERNEL_FILE]
    question = endpoint.requests[1]["messages"][1]["content"]
    assert "FastScale(b, 2, length);" in question
    assert "'FastScale' was not declared." in question
    assert "Repair it" in question
    assert "Repair it" not in endpoint.requests[0]["messages"][1]["content"]


def test_a_refinement_shows_the_start_its_bottleneck_and_earlier_tries(serve: Serve) -> None:
    endpoint, proposer = serve("faster")
    start = candidate("// the start\n", 12.5)
    children = (candidate("// slower\n", 13.0, parent=start.source.source_id),)
    proposal = proposer.refine(scale_add(), Context((), start, children))
    assert "Axpy" in proposal.source.files[KERNEL_FILE]
    assert proposal.source.strategy.move == "model"
    question = endpoint.requests[0]["messages"][1]["content"]
    for words in (
        "// the start",
        "12.50 us (modelled)",
        "MTE2 9.00 us, V 3.00 us.",
        "MTE2 is busy.",
        "13.00 us",
    ):
        assert words in question


def test_a_kernel_that_was_timed_only_is_no_failure_to_take_into_account(serve: Serve) -> None:
    endpoint, proposer = serve("faster")
    start, timed = candidate("// the start\n", 12.5), candidate("// the slower one\n", 13.0)
    gate = GateResult(GateName.LATENCY, GateStatus.FAILED, SLOWER, "A launch takes 13 us.")
    slower = evolve(timed, verdict=evolve(timed.verdict, gates=(gate,)), parent=start.source.source_id)
    proposer.refine(scale_add(), Context((), start, (slower,)))
    question = endpoint.requests[0]["messages"][1]["content"]
    assert "Timed only: A launch takes 13 us." in question
    assert "// the slower one" not in question
    assert "which failed" not in question
    assert "Take the last failure into account" not in question


def test_there_is_nothing_to_refine_without_a_start(serve: Serve) -> None:
    _, proposer = serve("good")
    with pytest.raises(ProposerError, match="draft one first"):
        proposer.refine(scale_add(), Context())


@pytest.mark.parametrize("name", ["code_fence", "extra_path"])
def test_what_stands_around_a_kernel_is_left_aside(serve: Serve, name: str) -> None:
    _, proposer = serve(name)
    assert "class ScaleAdd" in proposer.draft(scale_add(), Context()).source.files[KERNEL_FILE]


KERNEL = '{"files": {"tiling.h": "a", "op_kernel.cpp": "b"}, "notes": []}'


@pytest.mark.parametrize(
    "text",
    [
        KERNEL,
        f"```json\n{KERNEL}\n```",
        f"I think {{x}} and {{}} first.\n\n```\n{KERNEL}\n```\nThis is fast.",
        f'<think>what about {{"notes": []}}?</think>{KERNEL}',
        f"  \ufeff{KERNEL} {KERNEL}",
    ],
)
def test_a_kernel_among_words(text: str) -> None:
    assert read_answer(text, target=TARGET, move="").files[TILING] == "a\n"


FLAWED = {
    "not_json": "not JSON",
    "wrong_schema": "have the fields",
    "wrong_types": "op_kernel.cpp was empty",
    "empty": "was empty",
    "empty_file": "tiling.h was empty",
    "huge_file": "more than 65536 characters",
    "control_characters": "control characters",
    "refusal": "refused",
    "cut_off": "cut off",
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", FLAWED)
def test_a_flawed_answer_costs_an_attempt_and_says_what_to_do(
    serve: Serve, tally: Tally, name: str, protocol: ModelProtocol
) -> None:
    """The first that cannot be read is asked for again; what the model refuses is not."""
    tries = 1 if name == "refusal" else 2
    endpoint, proposer = serve(*[name] * tries, "good", protocol=protocol)
    with pytest.raises(ProposerError, match=FLAWED[name]) as raised:
        proposer.draft(scale_add(), Context())
    assert len(endpoint.requests) == tries
    assert not isinstance(raised.value, EndpointError)
    assert not raised.value.exhausted
    assert str(raised.value).endswith(".")
    wasted = tally.spent_by("").tokens
    assert wasted == raised.value.tokens > 0, "useless answers cost tokens too"
    proposal = proposer.draft(scale_add(), Context(feedback=str(raised.value)))
    assert (proposal.tokens, tally.spent_by("").tokens) == (6210, wasted + 6210)
    assert all(str(raised.value) in messages(request)[1]["content"] for request in endpoint.requests[1:])


@pytest.mark.parametrize("name", sorted(FLAWED.keys() - {"refusal"}))
def test_the_first_answer_that_cannot_be_read_costs_no_attempt(serve: Serve, tally: Tally, name: str) -> None:
    endpoint, proposer = serve(name, "good")
    proposal = proposer.draft(scale_add(), Context())
    assert "class ScaleAdd" in proposal.source.files[KERNEL_FILE]
    assert proposal.tokens == tally.spent_by("").tokens > 6210, "both answers are paid for"
    first, again = (messages(request)[1]["content"] for request in endpoint.requests)
    assert again.startswith(first.rstrip("\n"))
    assert re.search(FLAWED[name], again.removeprefix(first.rstrip("\n")))


@pytest.mark.parametrize(
    "content",
    [
        "null",
        "[]",
        '"text"',
        "[" * 100_000,
        '{"a": ' * 100_000,
        '{"files": {"tiling.h": "\\ud800", "op_kernel.cpp": "b"}, "notes": []}',
        '{"files": {"tiling.h": null, "op_kernel.cpp": "b"}, "notes": []}',
        '{"files": {"kernel.py": "a"}, "notes": []}',
        '{"files": ["tiling.h"], "notes": []}',
    ],
)
def test_no_answer_brings_the_proposer_down(serve: Serve, content: str) -> None:
    _, proposer = serve(completion(content))
    with pytest.raises(ProposerError, match=r"\.$"):
        proposer.draft(scale_add(), Context())


def test_hostile_code_is_only_ever_a_candidate(serve: Serve) -> None:
    """What the code does is the verifier's to judge; here it stays text, and its notes plain."""
    _, proposer = serve("hostile_code")
    proposal = proposer.draft(scale_add(), Context())
    assert "system(" in proposal.source.files[KERNEL_FILE]
    (note,) = proposal.source.strategy.notes
    assert "\n" not in note and "\x1b" not in note


def test_a_repeated_kernel_is_not_judged_again(serve: Serve) -> None:
    _, proposer = serve("good")
    known = proposer.draft(scale_add(), Context()).source.source_id
    with pytest.raises(ProposerError, match="repeated"):
        proposer.draft(scale_add(), Context(tried=frozenset({known})))


def test_windows_line_ends_make_no_second_kernel(serve: Serve) -> None:
    _, proposer = serve(
        completion(kernel_text("a\n", "b\nc")), completion(kernel_text("\ufeffa\r\n", "b\r\nc\r\n\r\n"))
    )
    first, second = (proposer.draft(scale_add(), Context()).source for _ in range(2))
    assert first.source_id == second.source_id


def test_an_endpoint_without_structured_output_is_asked_in_words(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint, proposer = serve("no_structured_output", "code_fence", "code_fence")
    assert proposer.draft(scale_add(), Context()).source.files[KERNEL_FILE]
    assert "response_format" in endpoint.requests[0]
    assert "response_format" not in endpoint.requests[1]
    assert "=== tiling.h" not in endpoint.requests[0]["messages"][0]["content"]
    proposer.draft(scale_add(), Context())
    assert "response_format" not in endpoint.requests[2]
    assert endpoint.requests[1]["messages"] == endpoint.requests[2]["messages"], "the first is asked alike"
    assert "=== tiling.h" in endpoint.requests[2]["messages"][0]["content"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["reasoning", "thought_block", "marked_files", "slow"])
def test_what_a_model_thinks_is_no_kernel(serve: Serve, name: str, protocol: ModelProtocol) -> None:
    _, proposer = serve(name, protocol=protocol)
    _, plain = serve("good")
    assert proposer.draft(scale_add(), Context()).source == plain.draft(scale_add(), Context()).source


def test_a_stream_that_breaks_is_asked_for_again(serve: Serve, tally: Tally) -> None:
    endpoint, proposer = serve("broken_stream", "good")
    assert proposer.draft(scale_add(), Context()).tokens == tally.spent_by("").tokens > 6210
    assert len(endpoint.requests) == 2


LONG = "".join(f"// line {number} of the kernel\n" for number in range(600))


@pytest.mark.parametrize("first", [[], ["no_structured_output"]])
def test_a_long_kernel_is_refined_by_edits(serve: Serve, first: list[str]) -> None:
    """As the fields of an object, or as blocks where the endpoint has no structured output."""
    edit = {"file": "op_kernel.cpp", "search": "// line 7 of the kernel\n", "replace": "// faster\n"}
    files = dict.fromkeys(("tiling.h", "op_kernel.cpp"))
    answer = json.dumps({"files": files, "edits": [edit], "notes": ["faster"]})
    if first:
        blocks = "<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n".format_map(edit)
        answer = f"=== op_kernel.cpp\n{blocks}=== notes\nfaster\n"
    twice = answer.replace("line 7 of", "of")
    endpoint, proposer = serve(*first, completion(answer), completion(twice))
    context = Context(start=candidate(LONG, 12.5))
    source = proposer.refine(scale_add(), context).source
    assert source.files[KERNEL_FILE] == LONG.replace("// line 7 of the kernel\n", "// faster\n")
    assert source.files[TILING] == "// tiling\n"
    with pytest.raises(ProposerError, match=r"Edit 1 of op_kernel.cpp matches") as raised:
        proposer.refine(scale_add(), context)
    proposer_asked = endpoint.requests[0]["messages"][1]["content"]
    assert "# Edits" in proposer_asked
    if not first:
        schema = endpoint.requests[0]["response_format"]["json_schema"]["schema"]
        assert "edits" in schema["required"]
    with pytest.raises(ProposerError):
        proposer.refine(scale_add(), evolve(context, feedback=str(raised.value)))
    question = endpoint.requests[-1]["messages"]
    assert str(raised.value) in question[1]["content"]
    assert ("<<<<<<< SEARCH" in question[1]["content"]) == bool(first)


def test_a_short_kernel_is_written_anew(serve: Serve) -> None:
    endpoint, proposer = serve("faster")
    proposer.refine(scale_add(), Context(start=candidate("// the start\n", 12.5)))
    request = endpoint.requests[0]
    assert "# Edits" not in request["messages"][1]["content"]
    assert "edits" not in request["response_format"]["json_schema"]["schema"]["properties"]


EDIT = {"file": "op_kernel.cpp", "search": "FastScale(b);\n", "replace": "Muls(b);\n"}
EDITED = json.dumps({"files": dict.fromkeys(("tiling.h", "op_kernel.cpp")), "edits": [EDIT], "notes": "one"})
BLOCKS = "=== op_kernel.cpp\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n".format_map(EDIT)


@pytest.mark.parametrize("answers", [[EDITED], ["no_structured_output", BLOCKS]], ids=["object", "text"])
@pytest.mark.parametrize("start", [None, "// the start\n"])
def test_a_kernel_that_failed_is_repaired_by_edits_of_it(
    serve: Serve, answers: list[str], start: str | None
) -> None:
    endpoint, proposer = serve(*answers[:-1], completion(answers[-1]))
    failed = candidate("// mine\nFastScale(b);\n", None, "no FastScale")
    context = Context(start=start and candidate(start, 12.5), children=(failed,))
    source = (proposer.refine if start else proposer.draft)(scale_add(), context).source
    assert source.files[KERNEL_FILE] == "// mine\nMuls(b);\n"
    assert "edits of it" in messages(endpoint.requests[-1])[1]["content"]


NOTHING = {
    "object": json.dumps(
        {"files": dict.fromkeys(("tiling.h", "op_kernel.cpp")), "notes": ["At the bound."]}
        | {"nothing_to_gain": True}
    ),
    "edits": json.dumps({"files": {}, "edits": [], "notes": "At the bound.", "nothing_to_gain": True}),
    "text": "=== nothing to gain\nAt the bound.\n=== end\n",
    "heading": "## Nothing to gain\n=== notes\n- At the bound.\n",
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_model_may_say_that_nothing_is_to_gain(serve: Serve, name: str) -> None:
    endpoint, proposer = serve(completion(NOTHING[name], 700))
    context = Context(start=candidate("// the start\n", 12.5))
    with pytest.raises(NothingToGain, match=r"nothing is to gain: At the bound\.") as raised:
        proposer.refine(scale_add(), context)
    assert (raised.value.tokens, len(endpoint.requests)) == (700, 1)
    request = endpoint.requests[0]
    schema = request["response_format"]["json_schema"]["schema"]
    assert "nothing_to_gain" in schema["required"]
    assert "`nothing_to_gain`" in request["messages"][1]["content"]
    with pytest.raises(AnswerUnreadable):  # a draft is never nothing
        proposer.draft(scale_add(), Context())
    assert "nothing_to_gain" not in json.dumps(endpoint.requests[1])


def test_several_kernels_come_of_one_question(serve: Serve) -> None:
    texts = [
        kernel_text("t", "first();"),
        "no kernel",
        kernel_text("t", "second();", ["other words"]),
        kernel_text("t", "second(); // again"),
        kernel_text("t", "known();"),
    ]
    endpoint, proposer = serve(completion(texts[0], 5000, others=texts[1:]), samples=5)
    known = read_answer(texts[4], target=TARGET, move="").source_id
    proposal = proposer.draft(scale_add(), Context(tried=frozenset({known})))
    found = (proposal, *proposal.others)
    assert [item.source.files[KERNEL_FILE] for item in found] == ["first();\n", "second();\n"]
    assert [item.tokens for item in found] == [5000, 0], "one question is paid for once"
    assert {item.used for item in found} == {proposal.used}
    assert endpoint.requests[0]["n"] == 5


def test_an_endpoint_with_another_name_for_the_limit_gets_it(serve: Serve) -> None:
    endpoint, proposer = serve("other_limit_name", "good")
    proposer.draft(scale_add(), Context())
    assert "max_tokens" in endpoint.requests[0]
    assert "max_tokens" not in endpoint.requests[1]
    assert endpoint.requests[1]["max_completion_tokens"] > 1000


@pytest.mark.parametrize("name", ["rate_limited", "overloaded"])
def test_a_passing_trouble_is_waited_out(serve: Serve, name: str) -> None:
    endpoint, proposer = serve(name, name, "good")
    proposer.draft(scale_add(), Context())
    assert len(endpoint.requests) == 3


DEAD = {
    "bad_key": ("refused the API key", 1),
    "no_such_model": ("knows no model 'recorded'", 1),
    "no_quota": ("quota is exhausted", 1),
    "rate_limited": ("rate or quota", 4),
    "overloaded": ("status 503 4 times", 4),
    "not_the_protocol": ("OpenAI protocol", 1),
    "no_choices": ("OpenAI protocol", 1),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", DEAD)
def test_an_endpoint_that_is_no_use_is_named(
    serve: Serve, tally: Tally, name: str, protocol: ModelProtocol
) -> None:
    words, asked = DEAD[name]
    endpoint, proposer = serve(name, protocol=protocol)
    with pytest.raises(EndpointError, match=words) as raised:
        proposer.draft(scale_add(), Context())
    assert len(endpoint.requests) == asked
    assert KEY not in str(raised.value)
    assert tally.spent_by("") == Spent()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"raw": " " * 2**20, "repeat": 4, "headers": {"Content-Length": str(4 * 2**20)}}, "more than 2 MB"),
        ({"raw": gzip.compress(b" " * 2**26), "headers": {"Content-Encoding": "gzip"}}, "packs its answers"),
        ({"raw": "x" * 100, "drip": 0.1}, "was not done after 1 s"),
        ({"raw": "{}", "delay": 2.0}, "sent nothing for 0.5 s"),
        ({"status": 307, "raw": "", "headers": {"Location": "http://127.0.0.1:1/v1"}}, "status 307"),
        ({"raw": "{" * 200_000}, "OpenAI protocol"),
        ({"raw": "null"}, "OpenAI protocol"),
        ({"raw": "9" * 5000}, "OpenAI protocol"),
        ({"raw": '{"choices": [{"message": null}]}'}, "OpenAI protocol"),
        ({"raw": '{"choices": "many"}'}, "OpenAI protocol"),
    ],
)
def test_a_hostile_endpoint_is_cut_off(serve: Serve, answer: Recording, words: str) -> None:
    endpoint, proposer = serve(answer, idle_timeout_s=0.5, total_timeout_s=1.0)
    with pytest.raises(EndpointError, match=words):
        proposer.draft(scale_add(), Context())
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_is_away_is_named() -> None:
    proposer = LlmProposer(
        ModelEndpoint("http://127.0.0.1:9/v1", "m", KEY, idle_timeout_s=0.5), ascendc(load_chip())
    )
    with pytest.raises(EndpointError, match="cannot be reached"):
        proposer.draft(scale_add(), Context())


@pytest.mark.parametrize(
    ("usage", "tokens"), [(None, None), ({"total_tokens": -5}, None), ({"total_tokens": 77}, 77)]
)
def test_tokens_that_nobody_counted_are_estimated_and_flagged(
    serve: Serve, usage: dict[str, int] | None, tokens: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = completion(kernel_text("a", "b"), tokens=None)
    answer["body"]["usage"] = usage and {"prompt_tokens": 1, "completion_tokens": 1} | usage
    _, proposer = serve(answer)
    proposal = proposer.draft(scale_add(), Context())
    assert ("they are estimated" in capsys.readouterr().err) == (tokens is None)
    assert proposal.tokens == tokens or (tokens is None and 2000 < proposal.tokens < 20_000)


def test_the_budget_bounds_what_is_asked_and_spent(serve: Serve, tally: Tally) -> None:
    endpoint, proposer = serve("good", token_budget=18_000)
    with pytest.raises(BudgetExhausted, match="budget of 18000 is used up"):
        for _ in range(10):
            proposer.draft(scale_add(), Context())
    assert 1 <= len(endpoint.requests) <= 2
    assert all(request["max_tokens"] <= 18_000 for request in endpoint.requests)
    assert tally.spent_by("").tokens <= 18_000
    poor = LlmProposer(ModelEndpoint("http://127.0.0.1:9/v1", "m", token_budget=100), ascendc(load_chip()))
    with pytest.raises(BudgetExhausted):
        poor.draft(scale_add(), Context())


def test_no_key_of_another_service_is_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "sk-of-another-service")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/elsewhere")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    endpoint, proposer = serve("good", api_key="")
    proposer.draft(scale_add(), Context())
    assert "of-another-service" not in json.dumps(endpoint.headers)


def test_the_key_goes_to_the_endpoint_and_nowhere_else(
    serve: Serve, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint, proposer = serve("overloaded", "no_structured_output", "bad_key")
    with pytest.raises(EndpointError):
        proposer.draft(scale_add(), Context())
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"
    printed = capsys.readouterr()
    assert KEY not in caplog.text + printed.out + printed.err
    assert KEY not in json.dumps(endpoint.requests)


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (ModelEndpoint(), "No model endpoint is configured"),
        (ModelEndpoint("https://example.org/v1"), "No model endpoint is configured"),
        (ModelEndpoint("example.org", "m"), "https://HOST/v1"),
        (ModelEndpoint("file:///etc/passwd", "m"), "https://HOST/v1"),
        (ModelEndpoint("http://[::1", "m"), "https://HOST/v1"),
        (ModelEndpoint("https://user:pass@example.org/v1", "m"), "carries a password"),
        (ModelEndpoint("http://example.org/v1", "m", KEY), "readable over the network"),
        (ModelEndpoint("https://example.org/v1", "m", "a\nb"), "characters that no key has"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused(endpoint: ModelEndpoint, words: str) -> None:
    with pytest.raises(EndpointError, match=words) as raised:
        Model(endpoint)
    assert KEY not in str(raised.value) and "pass@" not in str(raised.value)


def test_a_ca_bundle_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="CA bundle"):
        Model(ModelEndpoint("https://example.org/v1", "m", ca_bundle="/missing.pem"))


def test_a_local_endpoint_without_a_key_may_speak_plain_http() -> None:
    Model(ModelEndpoint("http://192.168.1.4:11434/v1", "m"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("error in /home/ann/x/op_kernel.cpp:3", "error in op_kernel.cpp:3"),
        (r"C:\Users\ann\op_kernel.cpp:3", "op_kernel.cpp:3"),
        ("Task My.Model_forward: aten.mul", "Task: aten.mul"),
        ("a/b/c and n / 2 / 3", "a/b/c and n / 2 / 3"),
        ("x = y; // comment /* more */", "x = y; // comment /* more */"),
    ],
)
def test_folders_and_names_are_taken_out(text: str, kept: str) -> None:
    assert Privacy(scale_add()).words(text) == kept
