"""References: the captured graph computes what the user's code computes, at other sizes too."""

from __future__ import annotations

import itertools
import math
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from evokernel_core.capture.agent.reference.index_ranges import ranges
from evokernel_core.capture.agent.reference.reference import draw, reference, run
from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.reference import DISTRIBUTIONS, ReferenceCase
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.target import ASCENDC


def load(path: Path, spec: TensorSpec, sizes: dict[str, int]) -> torch.Tensor:
    """A .bin file as the tensor that its spec describes."""
    shape, data = spec.sizes(sizes), path.read_bytes()
    assert len(data) == spec.nbytes(sizes)
    if not data:
        return torch.empty(shape, dtype=getattr(torch, spec.dtype))
    return torch.frombuffer(bytearray(data), dtype=getattr(torch, spec.dtype)).reshape(shape)


def arguments(task: KernelTask, case: ReferenceCase, sizes: dict[str, int]) -> dict[str, Any]:
    """The case's inputs by the expressions that they stand for."""
    files, scalars = iter(case.inputs), iter(case.scalars)
    return {
        item.expression: next(scalars)
        if item.kind is InputKind.SCALAR
        else load(next(files), item.spec, sizes)
        for item in task.graph.inputs
    }


BODIES = [
    ("x=f32[8,16]", "torch.softmax(x, dim=1)"),
    ("x=f16[8,16]", "F.log_softmax(x * 2 - 1, dim=-1)"),
    ("x=bf16[8,16]", "(x.float() / x.float().norm(dim=-1, keepdim=True)).to(torch.bfloat16)"),
    ("x=f32[8,16], y=f32[16]", "F.silu(x) * y + x.abs().sqrt()"),
    ("x=f32[8,16]", "torch.where(x > 0, x, torch.exp(x) - 1)"),
    ("x=f32[8,16]", "F.layer_norm(x, (16,), eps=1e-3)"),
    ("x=f32[8,16,4]", "x.flatten(1).sum(dim=1, keepdim=True) * 0.5"),
    ("x=f32[8,16], m=bool[8,16]", "x.masked_fill(m, 0.0) + m"),
    ("x=f32[8,16], n=i64[8,16]", "x * n"),
    ("x=f32[8,16]", "x.t().exp().contiguous()"),
    ("x=f32[8,16], s=0.5", "torch.tanh(x * s)"),
    ("x=f32[8,16]", "x / x.shape[0]"),
    ("x=f32[8,16]", "x.mean() - x"),
]


@pytest.mark.parametrize(("shapes", "body"), BODIES)
@pytest.mark.parametrize("distribution", ["normal", "structured"])
def test_references_equal_the_users_code(
    agent: AgentClient, capture_body: Any, tmp_path: Path, shapes: str, body: str, distribution: str
) -> None:
    names = ", ".join(part.split("=")[0].strip() for part in shapes.split(", "))
    (region,) = capture_body(shapes, names, f"return {body}")
    task = region.task
    assert task, region.reason
    for sizes in (task.sizes, {item.name: 3 + 4 * k for k, item in enumerate(task.symbols)}):
        case = agent.reference(task, sizes, 7, distribution, tmp_path / "case")
        scope = {"torch": torch, "F": F, "math": math, **arguments(task, case, sizes)}
        expected = eval(body, scope)
        (output,) = (
            load(path, spec, sizes)
            for path, spec in zip(case.outputs, task.graph.output_specs(), strict=True)
        )
        assert output.dtype == expected.dtype
        torch.testing.assert_close(output, expected, equal_nan=True)


@pytest.fixture
def task(capture_body: Any) -> KernelTask:
    (region,) = capture_body("x=f32[64,128]", "x", "return x.exp()")
    assert region.task
    return region.task


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_seeds_decide_the_inputs(
    agent: AgentClient, task: KernelTask, tmp_path: Path, distribution: str
) -> None:
    first, again, other = (
        agent.reference(task, task.sizes, seed, distribution, tmp_path / name)
        for seed, name in ((1, "a"), (1, "b"), (2, "c"))
    )
    assert first.inputs[0].read_bytes() == again.inputs[0].read_bytes()
    assert first.outputs[0].read_bytes() == again.outputs[0].read_bytes()
    if distribution != "structured":
        assert first.inputs[0].read_bytes() != other.inputs[0].read_bytes()


@pytest.mark.parametrize(
    ("distribution", "low", "high"),
    [("normal", -8, 8), ("uniform", 0, 1), ("wide", -50, 50), ("structured", -30, 30)],
)
def test_distributions(
    agent: AgentClient, task: KernelTask, tmp_path: Path, distribution: str, low: float, high: float
) -> None:
    case = agent.reference(task, task.sizes, 3, distribution, tmp_path)
    values = load(case.inputs[0], task.graph.inputs[0].spec, task.sizes)
    assert low <= values.min()
    assert values.max() <= high
    assert bool((values == 0).any()) is (distribution in ("wide", "structured"))


def test_the_mean_of_a_row_of_millions_may_be_rounded(
    agent: AgentClient, capture_body: Any, tmp_path: Path
) -> None:
    """Beside a spread that is small, its last bit moves every element."""
    (region,) = capture_body("x=f32[1,64,256,256]", "x", "return F.layer_norm(x, x.shape[1:])")
    assert region.task
    case = agent.reference(region.task, region.task.sizes, 7, "uniform+2^11", tmp_path)
    assert case.rounds


@pytest.mark.parametrize("shape", [(193, 635), (31, 9, 40), (17, 17)])
def test_the_largest_and_the_least_element_are_at_all_places_of_a_line(shape: tuple[int, ...]) -> None:
    values = draw(shape, "float32", "peaks", torch.Generator().manual_seed(3))
    for dim, size in enumerate(shape):
        asked = min(size, values.numel() // size)
        for found in (values.argmax(dim), values.argmin(dim)):
            assert len(found.unique()) >= 0.8 * asked, (dim, len(found.unique()), asked)


@pytest.mark.parametrize("sizes", [{"s0": 0, "s1": 4}, {"s0": 1, "s1": 1}])
def test_small_sizes(agent: AgentClient, task: KernelTask, tmp_path: Path, sizes: dict[str, int]) -> None:
    case = agent.reference(task, sizes, 3, "normal", tmp_path)
    assert case.outputs[0].stat().st_size == 4 * sizes["s0"] * sizes["s1"]


@pytest.mark.parametrize(("place", "known"), [(1, True), (0, False)])
def test_where_a_last_bit_chooses_the_result_is_computed_in_float64_too(
    place: int, known: bool, tmp_path: Path
) -> None:
    """The larger of two sums that are nearly equal decides what is read behind them."""
    x = {"shape": [8, 8], "dtype": "float32", "contiguous": True}
    row, chosen = ({"shape": [8], "dtype": dtype, "contiguous": True} for dtype in ("float32", "int64"))
    product = {"name": "p", "op": "aten.mm.default", "args": [{"ref": "x", "index": 0}] * 2, "outputs": [x]}
    largest = {"name": "m", "op": "aten.max.dim", "args": [{"ref": "p", "index": 0}, 1],
               "outputs": [row, chosen]}  # fmt: skip
    places = {"name": "c", "op": "aten._to_copy.default", "args": [{"ref": "m", "index": place}],
              "outputs": [row]}  # fmt: skip
    nodes = [{**node, "kwargs": []} for node in (product, largest, places)]
    nodes[2]["kwargs"] = [["dtype", {"dtype": "float32"}]]
    graph = {
        "inputs": [{"name": "x", "kind": "tensor", "spec": x}],
        "nodes": nodes,
        "outputs": [{"ref": "p", "index": 0}, {"ref": "c", "index": 0}],
    }
    found = reference(graph, {}, 0, "normal", str(tmp_path), rounded=False)
    assert bool(found["precise"]) == known


def test_of_several_values_for_one_place_the_last_one_is_expected(tmp_path: Path) -> None:
    """Threads that write at the same time leave any of them."""
    rows, writes, width = 300, 1500, 400
    specs = {"x": ([rows, width], "float32"), "i": ([writes], "int64"), "v": ([writes, width], "float32")}
    inputs = [
        {"name": name, "kind": "tensor", "spec": {"shape": shape, "dtype": dtype, "contiguous": True}}
        for name, (shape, dtype) in specs.items()
    ]
    x, i, v = ({"ref": name, "index": 0} for name in specs)
    node = {"name": "put", "op": "aten.index_put.default", "args": [x, [i], v], "kwargs": [],
            "outputs": [inputs[0]["spec"]]}  # fmt: skip
    graph = {"inputs": inputs, "nodes": [node], "outputs": [{"ref": "put", "index": 0}]}
    case = reference(graph, {}, 3, "normal", str(tmp_path), rounded=False)
    values, places, written, found = (
        torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=dtype).reshape(shape)
        for path, dtype, shape in (
            (case["inputs"][0], torch.float32, (rows, width)),
            (case["inputs"][1], torch.int64, (writes,)),
            (case["inputs"][2], torch.float32, (writes, width)),
            (case["outputs"][0], torch.float32, (rows, width)),
        )
    )
    for place, row in zip(places.tolist(), written, strict=True):
        values[place] = row
    assert torch.equal(found, values)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_values_stay_in_range_through_many_layers(distribution: str, tmp_path: Path) -> None:
    """Of matrices of equal signs, each layer would multiply values by thousands."""
    x = {"shape": [64, 64], "dtype": "float32", "contiguous": True}
    names = [f"w{number}" for number in range(30)]
    kinds = {"x": "tensor"} | dict.fromkeys(names, "parameter")
    inputs = [{"name": name, "kind": kind, "spec": x} for name, kind in kinds.items()]
    chain = ["x", *(f"p{number}" for number in range(30))]
    nodes = [
        {"name": made, "op": "aten.mm.default", "outputs": [x], "kwargs": [],
         "args": [{"ref": taken, "index": 0}, {"ref": weight, "index": 0}]}
        for taken, weight, made in zip(chain, names, chain[1:], strict=False)
    ]  # fmt: skip
    graph = {"inputs": inputs, "nodes": nodes, "outputs": [{"ref": chain[-1], "index": 0}]}
    case = reference(graph, {}, 3, distribution, str(tmp_path), rounded=False)
    values = torch.frombuffer(bytearray(Path(case["outputs"][0]).read_bytes()), dtype=torch.float32)
    assert values.abs().max() < 1e4


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_recurrent_layers_depend_steadily_on_what_they_take(
    agent: AgentClient, tmp_path: Path, distribution: str
) -> None:
    text = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 64, 3)

    def forward(self, x, h):
        return self.rnn(x, h)[0]

def get_inputs():
    return [torch.randn(90, 2, 8), torch.randn(3, 2, 64)]
"""
    (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
    task = region.task
    assert task, region.reason
    case = agent.reference(task, task.sizes, 2, distribution, tmp_path / "case")
    given = arguments(task, case, task.sizes)
    layer = torch.nn.GRU(8, 64, 3).double()
    for name, _ in layer.named_parameters():
        layer.get_parameter(name).data = given[f"self.rnn.{name}"].double()
    precise = layer(given["x"].double(), given["h"].double())[0]
    found = load(case.outputs[0], task.graph.output_specs()[0], task.sizes)
    torch.testing.assert_close(found.double(), precise, rtol=1e-5, atol=3e-5)
    assert given["x"].abs().max() > 0.99


def test_values_are_let_go_behind_their_last_reader() -> None:
    """A chain of values, of which the first is read once more at its end, and one that nothing reads."""
    spec = {"shape": [64], "dtype": "float32"}
    names = ["x", *(f"neg_{index}" for index in range(12))]
    nodes = [
        {
            "name": name,
            "op": "aten.neg.default",
            "args": [{"ref": before, "index": 0}],
            "kwargs": [],
            "outputs": [spec],
        }
        for before, name in itertools.pairwise(names)
    ]
    pair = [{"ref": "neg_0", "index": 0}, {"ref": "neg_11", "index": 0}]
    nodes.append({**nodes[0], "name": "unread"})
    nodes.append({"name": "sum", "op": "aten.add.Tensor", "args": pair, "kwargs": [], "outputs": [spec]})
    graph = {"inputs": [{"name": "x", "spec": spec, "kind": "tensor"}], "nodes": nodes, "outputs": [
        {"ref": "sum", "index": 0}, {"ref": "neg_5", "index": 0}]}  # fmt: skip
    made: list[weakref.ref[torch.Tensor]] = []
    alive: list[int] = []

    def after(_: str, __: object, ___: object, result: torch.Tensor) -> torch.Tensor:
        made.append(weakref.ref(result))
        alive.append(sum(item() is not None for item in made))
        return result

    x = torch.arange(64.0)
    total, sixth = run(graph, {"x": x}, {}, after)
    assert torch.equal(total, torch.zeros(64)) and torch.equal(sixth, x)
    assert max(alive) == 4  # the first, the sixth, one that is read and one that is made


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64"])
def test_no_divisor_is_drawn_that_its_type_makes_zero(dtype: str) -> None:
    spec = {"shape": [3], "dtype": dtype}
    node = {"name": "rest", "op": "aten.remainder.Tensor", "kwargs": [], "outputs": [spec]}
    node["args"] = [{"ref": "x", "index": 0}, {"ref": "y", "index": 0}]
    inputs = [{"name": name, "spec": spec, "kind": "tensor"} for name in "xy"]
    found = ranges(
        {"inputs": inputs, "nodes": [node], "outputs": []},
        dict.fromkeys((("x", 0), ("y", 0), ("rest", 0)), (3,)),
    )
    for distribution in DISTRIBUTIONS:
        drawn = draw((5000,), dtype, distribution, torch.Generator().manual_seed(1), found["y"])
        assert bool((drawn != 0).all())
