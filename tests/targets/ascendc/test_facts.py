"""What families declare of their kernels is what a reader of the text finds there.

Only the test reads the text; who launches the kernels, or fuses them, believes the facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pytest
from attrs import evolve, fields

from evokernel_core.compiler.coverage import family_of_task
from evokernel_core.compiler.family import Family
from evokernel_core.compiler.fusion.program import plan_program
from evokernel_core.compiler.ops import COMPLEX_MULTIPLY, SCAN
from evokernel_core.domain.graph import InputKind, Node, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.targets.ascendc.author import legalised
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import (
    ConvTransposeAxis as Axis,
)
from evokernel_core.targets.ascendc.kernels.family import Cores, KernelFacts, StageText
from evokernel_core.targets.ascendc.kernels.fused.fused_family import FusedFamily
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import refusal, strategy_of
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.kernels.registry import FAMILIES
from evokernel_core.targets.ascendc.lowering.queues import plan
from evokernel_core.targets.ascendc.print.stage import text_of
from evokernel_core.targets.ascendc.target import ASCENDC
from evokernel_core.twin.conditions import BUILT_IN, active_tokens
from evokernel_core.twin.kernels import CUBE, VECTOR, find_kernels
from tests.targets.ascendc import (
    test_convolution,
    test_convolution_epilogue,
    test_transposed_epilogue,
    transposed,
)
from tests.targets.ascendc.conftest import GraphBuilder
from tests.targets.ascendc.test_arg_reductions import Search
from tests.targets.ascendc.test_attention import task_of as attention
from tests.targets.ascendc.test_depthwise import depthwise
from tests.targets.ascendc.test_matmul_pitched import product
from tests.targets.ascendc.test_pooling import average_pool
from tests.targets.ascendc.test_recurrent import task_of as recurrent
from tests.targets.ascendc.test_shared_rows import channels_normalised, layers_normalised
from tests.targets.ascendc.test_sort import Case as Sorted
from tests.targets.ascendc.windows import Axis as Window

WAITS = re.compile(r"\bSyncAll\b|\bCrossCoreSetFlag\s*<\s*0\b")
"""Of all cores of a kind: mode 0 of the flags is one."""
GLOBALS = re.compile(r"\bGlobalTensor\s*<[^;()]*>\s*(\w+)\s*[;\[]")
LAYER = transposed.Layer((Axis(2, 1, 1, 1),), (3,), 16, 16, ((2, 40), (1, 7)))
CONVOLVED = test_convolution_epilogue.Case(2, 8, 16, (15, 17), (3, 3), ())


def _pointwise() -> KernelTask:
    graph = GraphBuilder()
    x, row, one = graph.input("x", ("n", "m")), graph.input("row", ("n", 1)), graph.input("one", (1,))
    made = graph.call("add.Tensor", x, row, shape=("n", "m"))
    return graph.task(graph.call("mul.Tensor", made, one, shape=("n", "m")), symbols={"n": 70, "m": 300})


def _linear(bias: str) -> KernelTask:
    """A product and what follows: nothing, a number a column, or one number."""
    graph = GraphBuilder()
    x, w = graph.input("x", ("m", 24)), graph.input("w", (24, 40), parameter=True)
    made = graph.call("mm.default", x, w, shape=("m", 40))
    if bias:
        other = graph.input("bias", (40,) if bias == "columns" else (1,))
        made = graph.call("add.Tensor", made, other, shape=("m", 40))
        made = graph.call("tanh.default", made, shape=("m", 40))
    return graph.task(made, symbols={"m": 70})


def _paired() -> KernelTask:
    graph = GraphBuilder()
    x, w = graph.input("x", ("b", "s", 6, 2)), graph.input("w", ("s", 6, 2))
    spec = TensorSpec(("b", "s", 6, 2), "float32")
    graph.nodes.append(Node("paired", COMPLEX_MULTIPLY.name, (x, w), (), (spec,)))
    return graph.task(ValueRef("paired"), symbols={"b": 2, "s": 70})


def _joined() -> KernelTask:
    graph = GraphBuilder()
    parts = tuple(graph.input(f"x{i}", ("n", 5)) for i in range(2))
    return graph.task(graph.call("stack.default", parts, -1, shape=("n", 5, 2)), symbols={"n": 1000})


def _moved(op: str) -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("n", "m"))
    arguments = {"permute": ((1, 0),), "flip": ((1,),), "tril": (0,)}[op]
    shape = ("m", "n") if op == "permute" else ("n", "m")
    return graph.task(graph.call(f"{op}.default", x, *arguments, shape=shape), symbols={"n": 600, "m": 700})


def _resized() -> KernelTask:
    graph, size = GraphBuilder(), (40, 60)
    x = graph.input("x", ("n", 3, 20, 30))
    call = graph.call("upsample_bilinear2d.default", x, size, False, None, None, shape=("n", 3, *size))
    return graph.task(call, symbols={"n": 4})


def _sampled() -> KernelTask:
    graph = GraphBuilder()
    x, grid = graph.input("x", ("n", 3, 20, 30)), graph.input("grid", ("n", "h", 16, 2))
    call = graph.call("grid_sampler_2d.default", x, grid, 0, 0, False, shape=("n", 3, "h", 16))
    return graph.task(call, symbols={"n": 4, "h": 10})


def _counted() -> KernelTask:
    graph = GraphBuilder()
    graph.input("x", ("n",))
    made = graph.call("arange.start_step", 0, 1, 1, shape=("n",), dtype="int64")
    return graph.task(made, symbols={"n": 9000})


def _integers(other: tuple[str | int, ...]) -> KernelTask:
    graph = GraphBuilder()
    x, y = graph.input("x", ("n", "m"), "int64"), graph.input("y", other, "int64")
    return graph.task(
        graph.call("add.Tensor", x, y, shape=("n", "m"), dtype="int64"), symbols={"n": 60, "m": 70}
    )


def _folded(op: str) -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("n", "m"), "int64")
    shape = ("n",) if op == "sum.dim_IntList" else ("n", "m")
    axes = (1,) if op == "sum.dim_IntList" else 1
    return graph.task(graph.call(op, x, axes, shape=shape, dtype="int64"), symbols={"n": 8, "m": 3000})


def _taken(wide: bool) -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("a", "b", 64) if wide else ("a", "b"))
    index = graph.input("index", ("k",), "int64")
    shape = ("a", "k", 64) if wide else ("a", "k")
    return graph.task(
        graph.call("index_select.default", x, 1, index, shape=shape), symbols={"a": 64, "b": 100, "k": 90}
    )


def _scattered(op: str) -> KernelTask:
    graph = GraphBuilder()
    x, index = graph.input("x", ("a", "b")), graph.input("index", ("a", "k"), "int64")
    values = graph.input("v", ("a", "k"))
    made = graph.call(op, x, 1, index, values, shape=("a", "b"))
    return graph.task(made, symbols={"a": 60, "b": 70, "k": 50})


def _bag() -> KernelTask:
    graph = GraphBuilder()
    table, index = graph.input("table", ("r", 48)), graph.input("i", ("a", "l"), "int32")
    rows = graph.call("embedding.default", table, index, shape=("a", "l", 48))
    made = graph.call("sum.dim_IntList", rows, (1,), shape=("a", 48))
    return graph.task(made, symbols={"r": 500, "a": 100, "l": 20})


def _scan(dim: int) -> KernelTask:
    graph = GraphBuilder()
    x, spec = graph.input("x", ("n", "m")), TensorSpec(("n", "m"), "float32")
    graph.nodes.append(Node("scan", SCAN.name, (x, dim, "sum", False, False, None), (), (spec,)))
    return graph.task(ValueRef("scan"), symbols={"n": 90, "m": 700})


def _behind(*chain: str) -> KernelTask:
    return test_transposed_epilogue._task(GraphBuilder, test_transposed_epilogue.Case(LAYER, chain))


TASKS: dict[str, Callable[[], KernelTask]] = {
    "rows and one number": _pointwise,
    "channels normalised": lambda: channels_normalised(GraphBuilder),
    "rows normalised": lambda: layers_normalised(GraphBuilder),
    "product": lambda: _linear(""),
    "product and a bias": lambda: _linear("columns"),
    "product and one number": lambda: _linear("one"),
    "product of copies": lambda: product(GraphBuilder, (5001, 4003, 6005), (False, False), "float16"),
    "attention": lambda: attention(GraphBuilder),
    "attention with a scale": lambda: attention(GraphBuilder, mask=("q", "k"), scale=0.25),
    "average": lambda: average_pool(GraphBuilder, (Window(3, 2, 1), Window(3, 2, 1))),
    "depthwise": lambda: depthwise(GraphBuilder, (Window(3, 1, 1), Window(3, 1, 1))),
    "depthwise without a bias": lambda: depthwise(GraphBuilder, (Window(5),), bias=False),
    "convolution": lambda: test_convolution_epilogue.task_of(GraphBuilder, CONVOLVED),
    "convolution and channels": lambda: test_convolution_epilogue.task_of(
        GraphBuilder, evolve(CONVOLVED, chain=("channels", "tanh"))
    ),
    "convolution of framed images": lambda: test_convolution.framed(test_convolution.CASES[0], GraphBuilder),
    "transposed": lambda: transposed.task_of(GraphBuilder, LAYER),
    "transposed and channels": lambda: _behind("channels", "tanh"),
    "transposed and tanh": lambda: _behind("tanh"),
    "paired": _paired,
    "joined": _joined,
    "turned": lambda: _moved("permute"),
    "flipped": lambda: _moved("flip"),
    "triangle": lambda: _moved("tril"),
    "counted": _counted,
    "place of the largest in rows": lambda: Search("max", ("n", 700), 1).task(GraphBuilder, n=30),
    "place of the smallest in lanes": lambda: Search("min", ("n", 50, 300), 1).task(GraphBuilder, n=3),
    "integers": lambda: _integers(("n", "m")),
    "integers and one a row": lambda: _integers(("n", 1)),
    "sum of integers": lambda: _folded("sum.dim_IntList"),
    "running sum of integers": lambda: _folded("cumsum.default"),
    "elements taken": lambda: _taken(False),
    "rows taken": lambda: _taken(True),
    "elements put": lambda: _scattered("scatter.src"),
    "elements added": lambda: _scattered("scatter_add.default"),
    "bag": _bag,
    "scan of rows": lambda: _scan(1),
    "scan of columns": lambda: _scan(0),
    "sorted": lambda: Sorted(("n", 30_000)).task(GraphBuilder, n=4),
    "largest": lambda: Sorted(("n", 300), keep=5).task(GraphBuilder, n=40),
    "resized": _resized,
    "sampled": _sampled,
    "recurrent": lambda: recurrent(GraphBuilder, "lstm"),
    "recurrent stack": lambda: recurrent(GraphBuilder, "gru", layers=2),
}


@cache
def chip() -> Chip:
    return load_chip("ascend910b1")


@cache
def kernels(name: str, *, every: bool) -> tuple[tuple[Family, KernelTask, StageText], ...]:
    """Kernels of an example, for each part of its program: those of the first schedule and of the steps from
    it, of all or of one of each kind."""
    task = legalised(TASKS[name](), chip())
    family = family_of_task(task, chip(), ASCENDC)
    parts = plan_program(task, chip(), ASCENDC).kinds if family is None else ((task, family),)
    return tuple(
        (each, part, text_of(each, part, strategy, chip(), "example"))
        for part, each in parts
        for strategy in _of_each_kind(_strategies(part, each), every=every)
    )


def _of_each_kind(strategies: Iterable[Strategy], *, every: bool) -> Iterable[Strategy]:
    """The first of those that differ in lengths alone: a number may be 0, 1 or more."""
    first: dict[object, Strategy] = {}
    for item in strategies:
        numbers = [min(value, 2) if type(value) is int else value for _, value in item.settings]
        first.setdefault(item if every else (item.family, tuple(numbers)), item)
    return first.values()


def _strategies(task: KernelTask, family: Family) -> Iterator[Strategy]:
    first = family.initial(task, chip())
    yield first
    yield from (move.strategy for move in family.moves(task, first, chip()))
    if isinstance(family, FusedFamily):
        planned, rows = plan(task, chip()), Schedule(Form.SHARED, 256, at_once=2**14)
        if planned.reductions and refusal(planned, rows, task, chip()) is None:
            yield strategy_of(planned, rows, "")


def seen(stage: StageText) -> tuple[KernelFacts, int]:
    """What a reader of the text finds, comments aside, and how many parameters the kernel has."""
    active = tuple(active_tokens(stage.kernel, dict(BUILT_IN)))
    tokens = [token.text for token in active]
    text = " ".join(tokens)
    (kernel,) = find_kernels([active]).values()
    assert kernel.name == stage.entry
    waits = bool(WAITS.search(text))
    cores = {VECTOR: Cores.VECTOR, CUBE: Cores.CUBE}.get(kernel.ratio, Cores.BOTH)
    if kernel.ratio.cube == 0:  # mixed of vector cores alone: those that meet
        cores = Cores.VECTOR
        assert kernel.ratio.mixed == waits
    reads = any(
        re.search(rf"\b{name} (\[ [^\]]*\] )*\. GetValue\b", text) for name in GLOBALS.findall(stage.kernel)
    )
    return KernelFacts(
        cores,
        waits_for_all=waits,
        uses_workspace=tokens.count("workspace") > 1,
        reads_numbers=reads,
        tiling_headers=("cmath",) if "std::" in stage.tiling else (),
    ), len(kernel.parameters)


def sizes_in(tiling: str, symbols: set[str]) -> tuple[set[str], set[str]]:
    """The symbols that ComputeTiling makes variables of, and those that it uses."""
    variable = r"const int64_t (\w+) = sizes\[\d+\];"
    rest = re.sub(rf"{variable}|//.*", "", tiling)
    return set(re.findall(variable, tiling)), symbols & set(re.findall(r"(?<!tiling\.)\b\w+\b", rest))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", TASKS)
def test_facts_are_those_of_the_text(name: str, every: bool) -> None:
    for _, task, stage in kernels(name, every=every):
        facts, parameters = seen(stage)
        assert stage.facts == facts
        tensors = sum(item.kind is not InputKind.SCALAR for item in task.graph.inputs)
        assert parameters == tensors + len(task.graph.outputs) + 2
        read, used = sizes_in(stage.tiling, {symbol.name for symbol in task.symbols})
        assert read == used


def test_the_examples_have_every_family_and_both_sides_of_every_fact() -> None:
    made = [item for name in TASKS for item in kernels(name, every=False)]
    assert {family.name for family, _, _ in made} == {family.name for family in FAMILIES}
    for item in fields(KernelFacts):
        values = {getattr(stage.facts, item.name) for _, _, stage in made}
        assert len(values) == (len(Cores) if item.name == "cores" else 2), item.name


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ("waits_for_all", "SyncAll();"),
        ("waits_for_all", "CrossCoreSetFlag<0, PIPE_MTE3>(READY);"),
        ("uses_workspace", "Fill(workspace);"),
        ("reads_numbers", "const float first = xGlobal.GetValue(0);"),
        ("reads_numbers", "const float first = xGlobal[offset].GetValue(0);"),
    ],
)
def test_facts_that_are_not_declared_are_found(changed: str, line: str) -> None:
    mark = "__mix__(0, 1)" if changed == "waits_for_all" else "__vector__"
    kernel = (
        f'GlobalTensor<float> xGlobal;\nextern "C" __global__ {mark} void name(GM_ADDR x, GM_ADDR workspace, '
        f"OpTiling tiling)\n{{\n    {line} // SyncAll workspace\n}}\n"
    )
    found, _ = seen(StageText("", "", kernel, "name", KernelFacts()))
    assert found == KernelFacts(**{changed: True})
