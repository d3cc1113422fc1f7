"""The dialect: each op declared once, written by some rewrite as declared, and taken by some family."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import evokernel_core.targets.ascendc as author_package
from evokernel_core.compiler.bounds import bound_us
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.compiler.ops import DIALECT, GATHER, PREFIX, SCAN, SPLIT_K_MM, Op, Parameter
from evokernel_core.domain.graph import Graph, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc import author
from evokernel_core.targets.ascendc.author import legalised
from evokernel_core.targets.ascendc.kernels.registry import FAMILIES
from evokernel_core.targets.ascendc.target import ASCENDC

AUTHOR = Path(str(author_package.__file__)).parent
FLOAT, INDEX = "float32", "int64"


def _size(b: Any) -> KernelTask:
    x = b.input("x", ("m", "n"))
    found = b.call("var.correction", x, (0, 1), correction=1, shape=())
    return b.task(found, symbols={"m": 4096, "n": 4096})


def _iota(b: Any) -> KernelTask:
    return b.task(b.call("arange.start_step", 0, 100, 3, shape=(34,), dtype=INDEX))


def _gather(b: Any) -> KernelTask:
    x, index = b.input("x", ("a", "b", "c")), b.input("index", ("k", "b", "c"), INDEX)
    return b.task(
        b.call("gather.default", x, 0, index, shape=("k", "b", "c")),
        symbols={"a": 9, "b": 5, "c": 7, "k": 3},
    )


def _rows(b: Any) -> KernelTask:
    x, index = b.input("x", ("a", 64)), b.input("index", ("k",), INDEX)
    return b.task(b.call("index_select.default", x, 0, index, shape=("k", 64)), symbols={"a": 100, "k": 7})


def _scatter(b: Any) -> KernelTask:
    x, index, v = b.input("x", ("a", "b")), b.input("i", ("k", "b"), INDEX), b.input("v", ("k", "b"))
    return b.task(b.call("scatter.src", x, 0, index, v, shape=("a", "b")), symbols={"a": 9, "b": 5, "k": 3})


def _scatter_parts(b: Any) -> KernelTask:
    given, index = b.input("g", ("a", "k", 40)), b.input("i", ("a", "k"), INDEX)
    found = b.call("embedding_dense_backward.default", given, index, 9, -1, False, shape=(9, 40))
    return b.task(found, symbols={"a": 300, "k": 200})


def _bag(whole: bool) -> Callable[[Any], KernelTask]:
    def task(b: Any) -> KernelTask:
        table, index, weights = b.input("table", ("r", 32)), b.input("i", ("n",), INDEX), b.input("w", ("n",))
        starts = b.input("o", ("b + 1",) if whole else ("b",), INDEX)
        args = (table, index, starts, False, 0, False, weights, whole, -1)
        results = [TensorSpec(("b", 32), FLOAT), *(TensorSpec(("b",), INDEX) for _ in range(3))]
        found = b.calls("_embedding_bag_forward_only.default", *args, outputs=results)
        return b.task(found, symbols={"r": 50, "n": 60, "b": 10})

    return task


def _bag_of_rows(b: Any) -> KernelTask:
    table, index = b.input("table", (50, 32)), b.input("i", ("n", 6), INDEX)
    rows = b.call("embedding.default", table, index, shape=("n", 6, 32))
    return b.task(b.call("sum.dim_IntList", rows, (1,), shape=("n", 32)), symbols={"n": 10})


def _resize(b: Any) -> KernelTask:
    x, size = b.input("x", ("n", 8, 32, 32)), (64, 64)
    found = b.call("upsample_bilinear2d.default", x, size, False, 2.0, 2.0, shape=("n", 8, *size))
    return b.task(found, symbols={"n": 4})


def _grid_sample(b: Any) -> KernelTask:
    x, grid = b.input("x", ("n", 8, 32, 32)), b.input("grid", ("n", "h", "w", 2))
    found = b.call("grid_sampler_2d.default", x, grid, 0, 1, True, shape=("n", 8, "h", "w"))
    return b.task(found, symbols={"n": 4, "h": 20, "w": 30})


def _sort(b: Any) -> KernelTask:
    x = b.input("x", ("m", "n"))
    specs = [TensorSpec(("m", "n"), FLOAT), TensorSpec(("m", "n"), INDEX)]
    return b.task(b.calls("sort.default", x, outputs=specs), symbols={"m": 9, "n": 77})


def _topk(b: Any) -> KernelTask:
    x = b.input("x", (2, 65536), "float16")
    specs = [TensorSpec((2, 8), "float16"), TensorSpec((2, 8), INDEX)]
    return b.task(b.calls("topk.default", x, 8, outputs=specs))


def _scan(b: Any) -> KernelTask:
    x = b.input("x", ("m", "n"))
    return b.task(b.call("cumsum.default", x, 1, shape=("m", "n")), symbols={"m": 9, "n": 77})


def _long_scan(b: Any) -> KernelTask:
    return b.task(b.call("cumsum.default", b.input("x", (2, 1 << 20)), 1, shape=(2, 1 << 20)))


def _integers(op: str, shape: tuple[str, ...]) -> Callable[[Any], KernelTask]:
    def task(b: Any) -> KernelTask:
        x = b.input("x", ("m", "n"), INDEX)
        args = ((1,),) if op.startswith("sum") else (1,)
        return b.task(b.call(op, x, *args, shape=shape, dtype=INDEX), symbols={"m": 9, "n": 77})

    return task


def _split_product(b: Any) -> KernelTask:
    x, y = b.input("x", ("m", 65536)), b.input("y", (65536, 64))
    return b.task(b.call("mm.default", x, y, shape=("m", 64)), symbols={"m": 64})


def _convolution(stride: int, pad: int, groups: int = 1, *, rank: int = 2) -> Callable[[Any], KernelTask]:
    def task(b: Any) -> KernelTask:
        sizes = (9, 33, 70)[-rank:]
        x = b.input("x", ("n", 4 * groups, *sizes))
        w = b.input("w", (8 * groups, 4, *(3,) * rank), parameter=True)
        made = tuple((size + 2 * pad - 3) // stride + 1 for size in sizes)
        args = (x, w, None, *((value,) * rank for value in (stride, pad, 1)), False, (0,) * rank, groups)
        found = b.call("convolution.default", *args, shape=("n", 8 * groups, *made))
        return b.task(found, symbols={"n": 2})

    return task


def _depthwise(b: Any) -> KernelTask:
    x, w = b.input("x", ("n", 3, "w")), b.input("weight", (3, 1, 4), parameter=True)
    args = (x, w, None, (1,), (3,), (1,), False, (0,), 3)
    wide = b.call("convolution.default", *args, shape=("n", 3, "w + 3"))
    return b.task(b.call("slice.Tensor", wide, 2, 0, 64, shape=("n", 3, 64)), symbols={"n": 2, "w": 64})


def _recurrent(kind: str, layers: int, *, both: bool = False) -> Callable[[Any], KernelTask]:
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[kind]

    def task(b: Any) -> KernelTask:
        chains = layers * (2 if both else 1)
        x, state = b.input("x", (12, 6, 32)), (chains, 6, 32)
        states = [b.input(name, state) for name in ("h", "c")[: 2 if kind == "lstm" else 1]]
        parameters = []
        for chain in range(chains):
            width = 64 if both and chain > 1 else 32
            shapes = ((gates * 32, width), (gates * 32, 32), (gates * 32,), (gates * 32,))
            parameters += [b.input(f"p{chain}_{i}", shape, parameter=True) for i, shape in enumerate(shapes)]
        given = tuple(states) if kind == "lstm" else states[0]
        results = [
            TensorSpec((12, 6, 64 if both else 32), FLOAT),
            *(TensorSpec(state, FLOAT) for _ in states),
        ]
        args = (x, given, tuple(parameters), True, layers, 0.0, False, both, False)
        return b.task(b.calls(f"{kind}.input", *args, outputs=results))

    return task


def _complex(b: Any) -> KernelTask:
    sizes = ("b", "s", 3, 5)
    x, w = b.input("x", (*sizes, 2)), b.input("w", (1, "s", 1, 5, 2))
    one, two = (
        b.call("view_as_complex.default", ref, shape=shape, dtype="complex64")
        for ref, shape in ((x, sizes), (w, (1, "s", 1, 5)))
    )
    found = b.call("mul.Tensor", one, two, shape=sizes, dtype="complex64")
    found = b.call("view_as_real.default", found, shape=(*sizes, 2))
    return b.task(found, symbols={"b": 2, "s": 40})


def _interleave(b: Any) -> KernelTask:
    refs = tuple(b.input(name, ("n", 5)) for name in ("x", "y"))
    return b.task(b.call("stack.default", refs, -1, shape=("n", 5, 2)), symbols={"n": 4096})


EXAMPLES: Mapping[str, tuple[str, Callable[[Any], KernelTask]]] = {
    "size": ("size", _size),
    "iota": ("iota", _iota),
    "gather": ("take", _gather),
    "gather of rows": ("take", _rows),
    "scatter": ("put", _scatter),
    "scatter in parts": ("put_parts", _scatter_parts),
    "bags": ("bag", _bag(False)),
    "bags with the last offset": ("bag", _bag(True)),
    "bags of equal length": ("bag", _bag_of_rows),
    "resize": ("resize", _resize),
    "grid sample": ("grid_sample", _grid_sample),
    "sort": ("sort", _sort),
    "top of long rows": ("sort", _topk),
    "scan": ("scan", _scan),
    "long scan": ("scan", _long_scan),
    "sum of integers": ("fold_integers", _integers("sum.dim_IntList", ("m",))),
    "running sum of integers": ("running_integers", _integers("cumsum.default", ("m", "n"))),
    "split k": ("split_mm", _split_product),
    "convolution": ("convolution", _convolution(1, 0)),
    "convolution with rows": ("convolution", _convolution(1, 1, rank=1)),
    "convolution of volumes": ("convolution", _convolution(2, 1, rank=3)),
    "grouped convolution": ("convolution", _convolution(2, 1, 2)),
    "frame": ("phases", _convolution(2, 1)),
    "depthwise": ("depthwise", _depthwise),
    "lstm": ("recurrence", _recurrent("lstm", 2)),
    "gru of both directions": ("recurrence", _recurrent("gru", 2, both=True)),
    "rnn": ("recurrence", _recurrent("rnn_tanh", 1)),
    "complex product": ("paired_product", _complex),
    "interleave": ("interleave", _interleave),
}
"""What an example is of, the op that it needs, and the graph in ATen."""


def _concrete(specs: tuple[TensorSpec, ...], sizes: Mapping[str, int]) -> list[tuple[tuple[int, ...], str]]:
    return [(spec.sizes(sizes), spec.dtype) for spec in specs]


@pytest.mark.parametrize("example", EXAMPLES)
def test_rewrites_write_what_is_declared(builder: Any, chip: Any, example: str) -> None:
    name, make = EXAMPLES[example]
    task = make(builder())
    graph = legalised(task, chip).graph
    own = [node for node in graph.nodes if node.op.startswith(PREFIX)]
    assert f"{PREFIX}{name}.default" in {node.op for node in own}
    for node in own:
        op = DIALECT[node.op]
        for sizes in (task.sizes, {key: 2 * size for key, size in task.sizes.items()}):
            made = op.rule(op.call(node, graph.spec))
            assert _concrete(made, sizes) == _concrete(node.outputs, sizes), node
            for ref in node.operands():
                assert 0 < op.read_bytes(node, ref, graph, sizes) <= graph.spec(ref).nbytes(sizes)
            assert op.flops(node, graph, sizes) >= 0


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_estimate_is_below_the_bound_of_bytes_and_operations(
    builder: Any, chip: Any, example: str
) -> None:
    task = EXAMPLES[example][1](builder())
    for kernel in author.kernels(task, author.initial(task, chip), chip):
        assert 0 < kernel.bound_us <= kernel.estimate_us, kernel


def test_a_bound_knows_the_unit_that_an_op_keeps_busy(builder: Any, chip: Any) -> None:
    graph = legalised(_split_product(builder()), chip).graph
    (node,) = (node for node in graph.nodes if node.op == SPLIT_K_MM.name)
    sizes = {"m": 64}
    assert SPLIT_K_MM.flops(node, graph, sizes) == 2 * 64 * 64 * 65536
    halves = tuple(
        evolve(item, spec=evolve(item.spec, dtype="float16", shape=(4096, 4096))) for item in graph.inputs
    )
    made = evolve(node, outputs=(TensorSpec((2, 4096, 4096), FLOAT),))
    alone = Graph(halves, (made,), (ValueRef(node.name),))
    task = evolve(_split_product(builder()), graph=alone)
    macs = 4096**3
    assert bound_us(task, chip) == pytest.approx(macs / 256 / 16 / chip.aic / chip.mhz)


def test_every_op_has_an_example_and_a_family() -> None:
    assert {f"{PREFIX}{name}.default" for name, _ in EXAMPLES.values()} == set(DIALECT)
    for name, op in DIALECT.items():
        takers = [family for family in FAMILIES if name in family.ops]
        assert takers and all(family.ops[name] == op.category for family in takers), name
        assert (op.category == "pointwise") == (name in POINTWISE)


def test_names_of_the_dialect_stand_in_the_dialect_alone() -> None:
    """A name that is written elsewhere would be an op that nothing declares."""
    for path in AUTHOR.rglob("*.py"):
        text = path.read_text()
        if path.name == "ops.py" or PREFIX not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not (node.value.startswith(PREFIX) and node.value.endswith(".default")), path
    assert {name for name in covered_ops(ASCENDC) if name.startswith(PREFIX)} == set(DIALECT)


def test_a_rule_needs_no_result_where_the_caller_chooses_nothing() -> None:
    specs = {"x": TensorSpec(("a", 9, 4, 8), "float16"), "i": TensorSpec((1, "k", 4), INDEX)}
    args = (ValueRef("x"), (ValueRef("i"),), True)
    made = GATHER.rule(GATHER.bound(args, lambda ref: specs[ref.name]))
    assert made == (TensorSpec(("a", "k", 4, 8), "float16"),)


@pytest.mark.parametrize(
    ("op", "args", "words"),
    [
        (SCAN, (ValueRef("x"), 0, "sum", False, False), "5 arguments"),
        (SCAN, (ValueRef("x"), 0, "sum", False, False, None, 1), "7 arguments"),
        (SCAN, (ValueRef("x"), True, "sum", False, False, None), "dim is no int"),
        (SCAN, (None, 0, "sum", False, False, None), "x is no Tensor"),
        (GATHER, (ValueRef("x"), ValueRef("i"), False), "indices is no Tensor"),
    ],
)
def test_arguments_that_do_not_fit_a_schema_are_named(op: Op, args: tuple[Any, ...], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        op.bound(args, lambda ref: TensorSpec((1,), FLOAT))


def test_schemas_are_read_as_pytorch_writes_them() -> None:
    assert Parameter.of(" int[]? before=None") == Parameter("before", "int[]?", None, False)
    assert Parameter.of("int most=7") == Parameter("most", "int", 7, False)
    assert Parameter.of("Tensor x") == Parameter("x", "Tensor", None, True)


def test_what_indices_choose_is_read_and_no_more(builder: Any, chip: Any) -> None:
    task = _rows(builder())
    (node,) = (node for node in legalised(task, chip).graph.nodes if node.op == GATHER.name)
    graph, sizes = legalised(task, chip).graph, {"a": 1 << 20, "k": 16}
    read = GATHER.read_bytes(node, next(node.operands()), graph, sizes)
    assert 15 * 64 * 4 < read <= 16 * 64 * 4


def test_the_indices_of_a_running_maximum_are_computed_where_they_are_read(builder: Any, chip: Any) -> None:
    b = builder()
    specs = [TensorSpec((4, 8), FLOAT), TensorSpec((4, 8), INDEX)]
    found = b.calls("cummax.default", b.input("x", (4, 8)), 1, outputs=specs)
    assert [node.op for node in legalised(b.task(found), chip).graph.nodes] == [SCAN.name]
    both = legalised(b.task(found, ValueRef(found.name, 1)), chip)
    assert [node.op for node in both.graph.nodes].count(SCAN.name) == 2
