"""What a model is told: units, limits and a complete kernel of the kind that its task needs, constant parts
first, and from the memory the code that gained."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Mapping
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
from evokernel_core.synthesis.proposers.base import Candidate, Context, Precedent
from evokernel_core.synthesis.proposers.llm import LlmProposer
from evokernel_core.synthesis.proposers.llm_code import LONGEST_DIFF, hot_lines
from evokernel_core.synthesis.proposers.llm_prompt import (
    Prompt,
    common_part,
    draft_prompt,
    refine_prompt,
)
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
from prompts import FUNCTIONS

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
    shown = source_of(nearest(kind), CHIP)
    assert all(simplified(text) in question for text in shown.files.values())
    assert nearest(kind).family == kind.family
    assert [word for word in MARKS[kind.cores] if word not in shown.files[KERNEL]] == []
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
    common = common_part(common_knowledge(kind, CHIP))
    assert len(common) > 10_000
    prompts = (draft(tasks[one]), draft(tasks[other]), refine(tasks[one]), refine(tasks[other]))
    assert len({prompt.messages[0]["content"] for prompt in prompts}) == 1
    for prompt in prompts:
        assert prompt.messages[1]["content"].encode().startswith(f"{common}\n# The task".encode())


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


def test_the_best_kernel_of_a_similar_task_comes_with_what_made_it(tmp_path: Path) -> None:
    known, asked = product_of("zqhidden_state", "zqgate", 4096), product_of("a", "b", 2048)
    with Memory(tmp_path / "memory.db") as memory:
        remembered(memory, known)
        librarian = Librarian(
            memory,
            LlmProposer(ModelEndpoint("http://127.0.0.1:9/v1", "none"), ascendc(load_chip())),
            asked,
            {"pointwise": 1.0},
            RetrievalName.SIMILARITY,
            random.Random(1),
        )
        context = librarian.context(Search(asked, 5), None)
        (precedent,) = found = context.precedents()
    assert (precedent.kernel.latency_us, precedent.start and precedent.start.latency_us) == (20.0, 30.0)
    question = draft(asked, evolve(context, precedents=lambda: found)).messages[1]["content"]
    shown = question[question.index("# A kernel of a similar task, 20.00 us (modelled)") :]
    assert "aten.mul.Tensor -> float32" in shown
    assert "class " in shown and "ComputeTiling(" in shown, "the code itself"
    assert "What made it 1.50 times as fast" in shown
    assert "\n@@ " in shown and "\n-" in shown and "\n+" in shown
    assert "zq" not in question.lower()


def test_a_long_change_is_cut_and_a_kernel_that_cannot_be_written_is_left_out() -> None:
    task = product_of("a", "b", 2048)
    lines = "\n".join(f"// line {number} of a kernel" for number in range(2000))
    start = judged(task, ascendc_source("", lines, Strategy("model")), 30.0)
    kernel = judged(task, ascendc_source("", lines.replace("line", "row"), Strategy("model")), 10.0)
    context = Context(precedents=lambda: (Precedent(task, kernel, start),))
    question = draft(task, context).messages[1]["content"]
    shown = question[question.index("# A kernel of a similar task") :]
    assert "further lines of the change are left out" in shown
    assert len(shown) < LONGEST_DIFF + 2000
    foreign = judged(task, ascendc_source("", "", Strategy("family_of_old", version=0)), 10.0)
    context = Context(precedents=lambda: (Precedent(task, foreign),))
    assert "# A kernel of a similar task" not in draft(task, context).messages[1]["content"]


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

NUMERIC = "Output 0 of shape [7] differs. (with n0=7; inputs: structured, seed 2077038443)"


def failing(task: KernelTask, notes: tuple[str, ...]) -> Candidate:
    source = ascendc_source("// tiling\n", "// wrong\n", Strategy("model", notes=notes))
    gates = (
        *(GateResult(gate, GateStatus.PASSED) for gate in (GateName.AUDIT, GateName.COMPILE)),
        GateResult(GateName.CORRECTNESS, GateStatus.FAILED, "numeric", NUMERIC),
    )
    return Candidate(source, Verdict(task.task_id, source.source_id, "twin", gates))


def test_a_failure_says_what_passed_and_gives_no_seed(tasks: Mapping[str, KernelTask]) -> None:
    task = tasks["softmax_rows"]
    child = failing(task, ("one pass over rows",))
    text = draft(task, Context(children=(child,), feedback=summary(child.verdict))).messages[1]["content"]
    assert "Passed before it: audit, compile.\nFailed at correctness (numeric): Output 0" in text
    assert "Passed before: audit, compile. What it does: one pass over rows" in text
    assert text.count("inputs: structured)") == 2 and "2077038443" not in text and "seed" not in text


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
