"""What a model is told: units, limits and a complete kernel of the kind that its task needs, constant parts
first, and from the memory the code that gained."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from attrs import evolve

from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.settings import ModelEndpoint, RetrievalName
from evokernel_core.domain.task import CATEGORIES, TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import (
    DrawnCase,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    LineTime,
    Verdict,
)
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.isa import RESERVED_BYTES
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.contexts import Librarian
from evokernel_core.synthesis.lessons import Trial, lessons, summary
from evokernel_core.synthesis.privacy import neutral
from evokernel_core.synthesis.proposers.base import Candidate, Context, Precedent
from evokernel_core.synthesis.proposers.llm import LlmProposer
from evokernel_core.synthesis.proposers.llm_code import LONGEST_CODE, hot_lines
from evokernel_core.synthesis.proposers.llm_prompt import (
    Prompt,
    common_part,
    draft_prompt,
    refine_prompt,
)
from evokernel_core.synthesis.proposers.llm_question import asked
from evokernel_core.synthesis.search import Search
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge import common_knowledge, kind_of
from evokernel_core.targets.ascendc.knowledge.exemplars import nearest, simplified, source_of
from evokernel_core.targets.ascendc.knowledge.prompting import system_message
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.gates import mixture

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from exemplars import captured
from prompts import FUNCTIONS, beside

CHIP = load_chip()


@pytest.fixture(scope="module")
def tasks() -> Mapping[str, KernelTask]:
    """The twenty tasks of ``make prompts``."""
    return dict(captured(FUNCTIONS))


def judged(task: KernelTask, source: KernelSource, us: float, **changes: object) -> Candidate:
    pipes = (("V", 0.8 * us), ("MTE2", 0.5 * us))
    latency = Latency(us, LatencySource.MODELLED, CHIP.name, 48, pipes, "V is busy.", 1.0, 20.0)
    gate = GateResult(GateName.COMPILE, GateStatus.PASSED)
    verdict = Verdict(task.task_id, source.source_id, "twin", (gate,), evolve(latency, **changes))
    return Candidate(source, verdict)


def draft(task: KernelTask, context: Context | None = None) -> Prompt:
    return draft_prompt(task, context or Context(), ascendc(CHIP), structured=True)


def refine(task: KernelTask, **context: object) -> Prompt:
    source = write(task, initial(task, CHIP), CHIP)
    given = Context(start=judged(task, source, 30.0))
    return refine_prompt(task, evolve(given, **context), ascendc(CHIP), structured=True)


# -- every category -------------------------------------------------------------------------------

UNITS = {
    **dict.fromkeys(
        """activation_gelu activation_mish elementwise_masked elementwise_broadcast softmax_rows
        normalization_layer normalization_rms reduction_columns reduction_argmax loss_huber pooling_max
        index_embedding layout_permute scan_cumsum elementwise_sort""".split(),  # noqa: SIM905
        Cores.VECTOR,
    ),
    "matmul_plain": Cores.CUBE,
    **dict.fromkeys(
        ("matmul_linear_gelu", "convolution_plain", "convolution_bias_tanh", "attention_heads"), Cores.BOTH
    ),
}
VECTOR_WORDS = (
    "MTE2 copies global memory to UB, V computes in UB, MTE3 copies UB to global memory",
    "255 repeats at most",
    "transcendental: 31; 32, 32",
)
CUBE_WORDS = (
    "global memory -> L1 (pipe MTE2) -> L0A and L0B (MTE1) -> products into L0C (M) -> global memory (FIX)",
    f"L1 {CHIP.memory.l1_bytes} bytes, L0A {CHIP.memory.l0a_bytes}, L0B {CHIP.memory.l0b_bytes}, L0C",
    "Mmad takes m, n and k up to 4095",
    "L1 holds Nz",
    "MTE2_MTE1, MTE1_M and M_FIX",
)
MIXED_WORDS = ("CrossCoreSetFlag<2, PIPE_FIX>(id)", "if ASCEND_IS_AIC", "KERNEL_TYPE_MIX_AIC_1_2")
SAID = {
    Cores.VECTOR: (
        VECTOR_WORDS,
        ("__vector__ void MyKernel", "1 to coreNum", f"{CHIP.ub_bytes} bytes of unified buffer"),
    ),
    Cores.CUBE: (CUBE_WORDS, ("__cube__ void MyKernel", "1 to coreNum / 2")),
    Cores.BOTH: (
        VECTOR_WORDS,
        CUBE_WORDS,
        MIXED_WORDS,
        (
            "__mix__(1, 2) void MyKernel",
            f"{CHIP.ub_bytes - RESERVED_BYTES} bytes of unified buffer",
            f"but for the last {RESERVED_BYTES} bytes",
        ),
    ),
}
UNSAID = {
    Cores.VECTOR: (*CUBE_WORDS, *MIXED_WORDS),
    Cores.CUBE: (*VECTOR_WORDS, *MIXED_WORDS),
    Cores.BOTH: (),
}
CARDED = {
    Cores.VECTOR: ("blockLen 0..2097151 (bytes)", "TQue<TPosition::VECIN, 1>", "Add Sub Mul Max Min(dst"),
    Cores.CUBE: ("srcDValue 1..65535", "m 0..4095 (rows)", "FixpipeParamsV220", "LoadData3DParamsV2"),
    Cores.BOTH: ("srcDValue 1..65535", "m 0..4095 (rows)", "flagId 0..15", "blockLen 0..2097151 (bytes)"),
}
MARKS = {
    Cores.VECTOR: ("TPipe", "DataCopyPad("),
    Cores.CUBE: ("Mmad(", "Fixpipe<", "LoadData(", "LocalMemAllocator<Hardware::L0A>"),
    Cores.BOTH: ("Mmad(", "Fixpipe<", "CrossCoreSetFlag<2", "ASCEND_IS_AIV"),
}


def test_the_tasks_are_of_every_category(tasks: Mapping[str, KernelTask]) -> None:
    assert len(tasks) == len(UNITS) == 20
    assert {task.op_category for task in tasks.values()} == CATEGORIES - {"other"}
    by_name = {name: task.op_category for name, task in tasks.items() if name != "elementwise_sort"}
    assert all(name.startswith(category) for name, category in by_name.items())


@pytest.mark.parametrize(("name", "units"), UNITS.items())
def test_a_prompt_names_units_limits_and_a_kernel_of_its_kind(
    tasks: Mapping[str, KernelTask], name: str, units: Cores
) -> None:
    task = tasks[name]
    kind = kind_of(task, CHIP)
    assert kind.units is units
    prompt = draft(task)
    system, question = (message["content"] for message in prompt.messages)
    for words in SAID[units]:
        assert [word for word in words if word not in system] == []
    assert [word for word in UNSAID[units] if word in system] == []
    assert [word for word in CARDED[units] if word not in question] == []
    typical = nearest(kind, CHIP)
    shown = source_of(typical, CHIP)
    assert all(simplified(text) in question for text in shown.files.values())
    assert typical.family == kind.family
    assert [word for word in MARKS[typical.cores] if word not in shown.files[KERNEL]] == []
    assert prompt.items, "practices or cards were chosen for this task"


# -- constant parts first -------------------------------------------------------------------------


def test_what_is_compared_is_told_by_classes(
    tasks: Mapping[str, KernelTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of the verifier's own table: no shares of it, no seeds and no single sizes."""
    task = tasks["softmax_rows"]
    question = draft(task).messages[1]["content"]
    said = [line for line in question.splitlines() if "that are compared, among others: " in line]
    assert "odd above 64" in said[0] and "structured, sorted or constant rows" in said[1]
    for each in mixture.CLASSES:
        told = any(f"{each.name};" in f"{line.rstrip('.')};" for line in said)
        assert told == (each.is_told and each.applies(task))
    assert not re.search(r"0\.\d|%|seed|\b100\b", " ".join(said))
    for symbol in task.symbols:
        assert f" = {symbol.size} when timed; any " in question
        assert f" to {max(symbol.size, 17)} must work" in question
    assert "may return false only where a size is beyond its range" in question
    other = evolve(mixture.CLASSES[-1], name="of another class")
    monkeypatch.setattr(mixture, "CLASSES", (*mixture.CLASSES, other))
    assert "; of another class." in draft(task).messages[1]["content"]
    fixed = evolve(task, symbols=(), graph=Graph((), (), ()))
    assert mixture.told(fixed)[0] == ()


def test_what_pytorch_and_a_launch_take_is_told(tasks: Mapping[str, KernelTask]) -> None:
    for name, units in UNITS.items():
        task, author = tasks[name], ascendc(CHIP)
        question, baseline = draft(task).messages[1]["content"], author.baseline(task)
        assert f"PyTorch's own operations take {baseline.us:.1f} us, {baseline.word.value}" in question
        assert baseline.source in question
        assert baseline.source or f"would be {baseline.low_us:.1f} to {baseline.high_us:.1f}" in question
        blocks = CHIP.aiv if units is Cores.VECTOR else CHIP.aic
        cost = CHIP.launch_of(3 * blocks if units is Cores.BOTH else blocks)
        assert f", and a launch {cost:.1f} us more on {blocks} blocks." in question


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("activation_gelu", "activation_mish"),
        ("activation_gelu", "elementwise_masked"),
        ("softmax_rows", "normalization_rms"),
        ("normalization_layer", "normalization_rms"),
    ],
)
def test_prompts_of_a_kind_begin_with_the_same_bytes(
    tasks: Mapping[str, KernelTask], one: str, other: str
) -> None:
    kind = kind_of(tasks[one], CHIP)
    assert kind == kind_of(tasks[other], CHIP)
    known = common_knowledge(kind, CHIP)
    rules = [card for card in known if card.kind is ExperienceKind.RULE]
    assert len(common_part(known)) > 10_000
    systems = set()
    for build, begins in ((draft, known), (refine, rules)):
        for prompt in map(build, (tasks[one], tasks[other])):
            systems.add(prompt.messages[0]["content"])
            common = f"{common_part(begins)}\n# The task"
            assert prompt.messages[1]["content"].encode().startswith(common.encode())
    assert len(systems) == 1


def test_the_system_message_is_that_of_units_and_chip(tasks: Mapping[str, KernelTask]) -> None:
    for name in ("matmul_linear_gelu", "convolution_plain", "attention_heads"):
        expected = system_message(Cores.BOTH, CHIP, structured=True)
        assert draft(tasks[name]).messages[0]["content"] == expected
    small = evolve(CHIP, aiv=40, aic=20, ub_bytes=123_456, memory=evolve(CHIP.memory, l1_bytes=777_777))
    text = system_message(Cores.BOTH, small, structured=True)
    assert "= 20 blocks" in text and "123200 bytes" in text and "L1 777777 bytes" in text


def test_a_name_of_the_file_changes_nothing_of_the_knowledge(tasks: Mapping[str, KernelTask]) -> None:
    """Names that are words of cards, too: privacy takes names out of what was said of the task alone."""
    task = tasks["activation_gelu"]
    (given,) = task.graph.inputs
    renamed = evolve(given, name="repeatTime")
    nodes = tuple(
        evolve(
            node,
            args=tuple(ValueRef("repeatTime") if arg == ValueRef(given.name) else arg for arg in node.args),
        )
        for node in task.graph.nodes
    )
    named = evolve(task, name="DataCopyPad", graph=evolve(task.graph, inputs=(renamed,), nodes=nodes))
    assert draft(named).messages == draft(task).messages


# -- feedback -------------------------------------------------------------------------------------


def test_lines_that_take_most_of_the_busiest_pipes_are_told(tasks: Mapping[str, KernelTask]) -> None:
    task = tasks["activation_gelu"]
    source = write(task, initial(task, CHIP), CHIP)
    text = source.files[KERNEL].splitlines()
    exp, copy = (
        next(number for number, line in enumerate(text, 1) if word in line)
        for word in ("Exp(", "DataCopyPad(x")
    )
    lines = (
        LineTime("MTE2", "op_kernel.cpp", copy, 38, 11.0),
        LineTime("V", "op_kernel.cpp", exp, 38, 12.5),
        LineTime("V", "elsewhere.h", 3, 9, 50.0),
    )
    start = judged(task, source, 30.0, lines=lines, balance=0.5)
    question = refine_prompt(task, Context(start=start), ascendc(CHIP), structured=True).messages[1][
        "content"
    ]
    told = question[question.index("Lines of op_kernel.cpp") :].splitlines()[1:3]
    assert told[0].startswith("- V 12.50 us, 38 calls in Compute: Exp(")
    assert told[1].startswith("- MTE2 11.00 us, 38 calls in CopyIn: DataCopyPad(x")
    assert "the mean time is 50 % of the slowest one's" in question
    assert "Balance the cores" in question, "the practice for what the figures say"
    assert "elsewhere.h" not in question


@pytest.mark.parametrize(
    ("head", "method"),
    [
        ("    __aicore__ inline void Compute(int32_t count)", "Compute"),
        ('extern "C" __global__ __aicore__ void op(GM_ADDR x)', "op"),
        ("    __aicore__ inline LocalTensor<half> Take(", "Take"),
        ("    __aicore__ inline Kernel() {}", "Kernel"),
        ("    __aicore__ inline void " + "a" * 2**22, ""),
    ],
)
def test_the_method_of_a_line_is_told(tasks: Mapping[str, KernelTask], head: str, method: str) -> None:
    source = ascendc_source("", f"{head}\n    Exp(y, x, n);\n", Strategy("model"))
    start = judged(tasks["activation_gelu"], source, 30.0, lines=(LineTime("V", KERNEL, 2, 1, 1.0),))
    (line,) = hot_lines(start, source)
    assert (line["method"], line["text"]) == (method, "Exp(y, x, n);")


# -- from the memory ------------------------------------------------------------------------------


def product_of(first: str, second: str, rows: int) -> KernelTask:
    spec = TensorSpec((rows, 512), "float32")
    nodes = (
        Node("mul", "aten.mul.Tensor", (ValueRef(first), ValueRef(second)), (), (spec,)),
        Node("relu", "aten.relu.default", (ValueRef("mul"),), (), (spec,)),
    )
    graph = Graph((GraphInput(first, spec), GraphInput(second, spec)), nodes, (ValueRef("relu"),))
    return KernelTask(f"net_{first}", graph, (), TOLERANCES["float32"], "elementwise")


def refined(task: KernelTask) -> tuple[KernelSource, KernelSource]:
    """The author's draft, and a kernel that one of its moves gives."""
    strategy = initial(task, CHIP)
    sources = [write(task, move.strategy, CHIP) for move in moves(task, strategy, CHIP)]
    return write(task, strategy, CHIP), sources[0]


def remembered(memory: Memory, task: KernelTask) -> None:
    """A draft of 30 us and a refinement of 20 us, with the lessons of both."""
    memory.record_task(task, {"pointwise": 1.0})
    parent = ""
    for number, (source, us) in enumerate(zip(refined(task), (30.0, 20.0), strict=True), 1):
        stage = Stage.REFINE if parent else Stage.DRAFT
        verdict = judged(task, source, us).verdict
        memory.record_candidate(source)
        memory.record_verdict(verdict, CHIP.name)
        attempt = Attempt(
            "job", number, task.task_id, source.source_id, parent, stage, "s", "twin", CHIP.name, True
        )
        memory.record_attempt(attempt, ())
        best_us = 30.0 if parent else float("inf")
        for lesson in lessons(
            Trial(task, {"pointwise": 1.0}, stage, source, verdict, best_us, "V", frozenset())
        ):
            memory.add_experience(lesson)
        parent = source.source_id


def test_the_best_kernel_of_a_similar_task_comes_in_place_of_an_example(tmp_path: Path) -> None:
    known, new = product_of("zqhidden_state", "zqgate", 4096), product_of("a", "b", 2048)
    with Memory(tmp_path / "memory.db") as memory:
        remembered(memory, known)
        librarian = Librarian(
            memory,
            LlmProposer(ModelEndpoint("http://127.0.0.1:9/v1", "none"), ascendc(load_chip())),
            new,
            {"pointwise": 1.0},
            RetrievalName.SIMILARITY,
            random.Random(1),
        )
        context = librarian.context(Search(new, 5), None)
        (precedent,) = found = context.precedents()
    assert precedent.kernel.latency_us == 20.0
    question = draft(new, evolve(context, precedents=lambda: found)).messages[1]["content"]
    shown = question[question.index("# A kernel of a similar task, 20.00 us (modelled)") :]
    assert "aten.mul.Tensor -> float32" in shown
    assert "class " in shown and "ComputeTiling(" in shown, "the code itself"
    assert "## exemplar" not in question, "one kernel is shown"
    assert "zq" not in question.lower()


def test_a_kernel_of_other_operations_is_no_similar_one(tasks: Mapping[str, KernelTask]) -> None:
    gelu, mish = tasks["activation_gelu"], tasks["activation_mish"]
    kernels = [judged(task, write(task, initial(task, CHIP), CHIP), 20.0) for task in (gelu, mish)]
    foreign = judged(gelu, ascendc_source("", "", Strategy("family_of_old", version=0)), 10.0)
    long = judged(gelu, ascendc_source("", "// line\n" * LONGEST_CODE, Strategy("model")), 10.0)
    for task, kernel in ((mish, kernels[1]), (gelu, foreign), (gelu, long)):
        known = (Precedent(task, kernel),)
        question = draft(gelu, Context(precedents=partial(tuple, known))).messages[1]["content"]
        assert "# A kernel of a similar task" not in question and "## exemplar" in question


NEEDED = {
    "reduction_columns": ("BlockReduceSum, BlockReduceMax",),
    "softmax_rows": ("BlockReduceSum, BlockReduceMax",),
    "index_embedding": ("int64 indices", "Waits by hand"),
    "activation_gelu": ("Without erf: gelu(x)",),
    "matmul_plain": ("A bias of the operands' type", "Fill: one value"),
    "matmul_linear_gelu": ("A bias of the operands' type", "Without erf: gelu(x)"),
}


@pytest.mark.parametrize(("name", "words"), NEEDED.items())
def test_what_a_category_needs_stands_in_full(
    tasks: Mapping[str, KernelTask], name: str, words: tuple[str, ...]
) -> None:
    """In a draft and in a refinement, with a full memory too."""
    task = tasks[name]
    known = full_memory(task)
    for prompt in (draft(task), draft(task, known), refine(task)):
        assert [text for text in words if text not in prompt.messages[1]["content"]] == []


# -- sizes ----------------------------------------------------------------------------------------


def full_memory(task: KernelTask) -> Context:
    """What a memory of fifty kernels may choose: more than there is room for, two items of each attempt."""
    items = tuple(
        Experience(f"{kind}{number}", kind, f"{kind} {number}", "What was done. " * 40, payload=payload)
        for number in range(50)
        for payload in [json.dumps({"source_id": f"s{number}"})]
        for kind in (ExperienceKind.TRACE, ExperienceKind.SUCCESS)
    )
    best = judged(task, write(task, initial(task, CHIP), CHIP), 20.0)
    return Context(items, precedents=lambda: (Precedent(task, best), Precedent(task, best)))


@pytest.mark.parametrize(("name", "units"), UNITS.items())
def test_prompts_are_short_and_show_one_kernel(
    tasks: Mapping[str, KernelTask], name: str, units: Cores
) -> None:
    """All but the kernel, of a first draft, a repair, a refinement and one behind a failure."""
    task, author, most = tasks[name], ascendc(CHIP), 32_000 if units is Cores.BOTH else 24_000
    own = write(neutral(task), initial(neutral(task), CHIP), CHIP)
    failed = failing(task, ("one pass over rows",) * 8)
    start, other = judged(task, own, 30.0), list(failed.source.files.values())
    example = [
        simplified(text) for text in source_of(nearest(kind_of(task, CHIP), CHIP), CHIP).files.values()
    ]
    mine = list(own.files.values())
    for known in (Context(), full_memory(task)):
        behind = evolve(known, children=(failed,) * 9, feedback=NUMERIC)
        shown = mine if known.experiences and sum(map(len, mine)) < LONGEST_CODE else example
        for context, code in (
            (known, shown),
            (behind, other),
            (evolve(known, start=start), mine),
            (evolve(behind, start=start), other),
        ):
            messages = asked(task, context, author, ModelEndpoint()).question.messages
            assert beside(messages, code) <= most
            assert sum(map(len, code)) <= 48_000 or code is mine
            text = messages[-1]["content"]
            assert ("## exemplar" in text) == (code is example and context is known)
            assert ("# A kernel of a similar task" in text) == (code is mine and context is known)
            assert not ("trace 0\n" in text and "success 0\n" in text), "one item of an attempt"
            assert ("trace 0\n" in text) or not context.experiences or units is Cores.BOTH


def test_what_all_prompts_say_is_credited_to_none(tasks: Mapping[str, KernelTask]) -> None:
    task = tasks["activation_gelu"]
    lesson = Experience("e1", ExperienceKind.TRACE, "a trace", "It worked.", task_id="other")
    prompt = draft(task, Context((lesson,)))
    question = prompt.messages[1]["content"]
    assert prompt.items[0] == lesson
    assert all(
        f"[{number}] {item.kind.value}: {item.title}" in question
        for number, item in enumerate(prompt.items, 1)
    )
    assert not [item for item in prompt.items if item.kind.value in ("rule", "exemplar")]


# -- feedback -------------------------------------------------------------------------------------

NUMERIC = "Output 0 of shape [7] differs."
CASE = DrawnCase((("n0", 7),), "structured", 2077038443)


def failing(task: KernelTask, notes: tuple[str, ...]) -> Candidate:
    source = ascendc_source("// tiling\n", "// wrong\n", Strategy("model", notes=notes))
    gates = (
        *(GateResult(gate, GateStatus.PASSED) for gate in (GateName.AUDIT, GateName.COMPILE)),
        GateResult(GateName.CORRECTNESS, GateStatus.FAILED, "numeric", NUMERIC, case=CASE),
    )
    return Candidate(source, Verdict(task.task_id, source.source_id, "twin", gates))


def test_a_failure_says_what_passed_and_gives_no_seed(tasks: Mapping[str, KernelTask]) -> None:
    task = tasks["softmax_rows"]
    child = failing(task, ("one pass over rows",))
    text = draft(task, Context(children=(child,), feedback=summary(child.verdict))).messages[1]["content"]
    assert "Passed before it: audit, compile.\nFailed at correctness (numeric): Output 0" in text
    assert "Passed before: audit, compile. What it does: one pass over rows" in text
    assert (
        text.count("differs. (with n0=7; inputs: structured)") == 2
        and "2077038443" not in text
        and "seed" not in text
    )


def test_earlier_attempts_come_with_their_times_and_what_they_do(tasks: Mapping[str, KernelTask]) -> None:
    task = tasks["softmax_rows"]
    other = judged(task, ascendc_source("", "// other\n", Strategy("model", notes=("held rows",))), 28.0)
    text = refine(task, children=(other,)).messages[1]["content"]
    assert "Busy: V 22.40 us, MTE2 14.00 us. What it does: held rows" in text


def test_what_a_launch_takes_is_fixed(tasks: Mapping[str, KernelTask]) -> None:
    launches = {"softmax_rows": CHIP.launch_of(48), "convolution_bias_tanh": CHIP.launch_of(3 * 48)}
    for name, us in launches.items():
        text = refine(tasks[name]).messages[1]["content"]
        assert f"\n{us:.1f} us of its time are its launch on 48 blocks" in text


def test_a_start_that_is_not_the_best_says_so(tasks: Mapping[str, KernelTask]) -> None:
    task = tasks["softmax_rows"]
    best = judged(task, ascendc_source("", "// best\n", Strategy("model")), 20.0)
    assert "(The fastest so far takes 20.00 us." in refine(task, candidates=(best,)).messages[1]["content"]
    slower = evolve(best, verdict=judged(task, best.source, 31.0).verdict)
    assert "The fastest so far" not in refine(task, candidates=(slower,)).messages[1]["content"]


def test_a_launch_on_fewer_cores_is_not_uneven(tasks: Mapping[str, KernelTask]) -> None:
    task = tasks["softmax_rows"]
    source = write(task, initial(task, CHIP), CHIP)
    for blocks, share in ((48, "50"), (36, "67"), (24, ""), (1, "")):
        start = judged(task, source, 30.0, balance=0.5, block_dim=blocks)
        text = refine(task, start=start).messages[1]["content"]
        assert ("Over the cores that it uses the mean time is" in text) == bool(share)
        assert f"mean time is {share} % of" in text or not share
