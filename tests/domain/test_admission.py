"""Tasks from elsewhere: what kernels are written for is admitted, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.admission import admit, read_task
from evokernel_core.domain.errors import TaskRefused
from evokernel_core.domain.graph import DTypeArg, Graph, GraphInput, Node, SymbolicInt, ValueRef
from evokernel_core.domain.operations import operations
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol, Tolerance, tolerance_for
from evokernel_core.domain.tensor import TensorSpec, evaluate_dim
from evokernel_core.targets.ascendc.target import ASCENDC

X, Y = ValueRef("x"), ValueRef("y")
SPEC = TensorSpec(("s0", 8), "float32")


def task_of(op: str, *args: Any, **kwargs: Any) -> KernelTask:
    """One node of two inputs."""
    node = Node("z", op, args, tuple(kwargs.items()), (SPEC,))
    graph = Graph((GraphInput("x", SPEC), GraphInput("y", SPEC)), (node,), (ValueRef("z"),))
    return KernelTask("t", graph, (Symbol("s0", 64),), TOLERANCES["float32"], "other")


@pytest.mark.parametrize(("op", "args", "kwargs"), [
    ("aten.add.Tensor", (X, Y), {"alpha": 2}),
    ("aten.add.Tensor", (X, 1.5), {}),
    ("aten.div.Tensor", (X, SymbolicInt("(s0 * 8)")), {}),
    ("aten.div.Tensor_mode", (X, Y), {"rounding_mode": "floor"}),
    ("aten.gelu.default", (X,), {"approximate": "tanh"}),
    ("aten._to_copy.default", (X,), {"dtype": DTypeArg("float16")}),
    ("aten.cat.default", ((X, Y), 1), {}),
    ("aten.index.Tensor", (X, (None, Y)), {}),
    ("aten.sum.dim_IntList", (X, (1,), True), {}),
    ("aten.sum.dim_IntList", (X, None), {"dtype": DTypeArg("float32")}),
    ("aten.view.default", (X, (SymbolicInt("s0"), 2, 4)), {}),
    ("aten.clamp.default", (X, None, float("inf")), {}),
    ("aten.scatter_reduce.two", (X, 0, Y, Y, "amax"), {"include_self": False}),
])  # fmt: skip
def test_what_is_captured_is_admitted(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    task = task_of(op, *args, **kwargs)
    assert read_task(to_data(task)) == task


def test_every_operation_with_a_kernel_may_be_named() -> None:
    """A family or rewrite of an operation that is not in the table would refuse its own tasks."""
    named = {op.removesuffix("(complex)") for op in covered_ops(ASCENDC)}
    missing = {op for op in named if op.startswith("aten.")} - operations().keys()
    assert missing == {"aten.maximum.Tensor", "aten.minimum.Tensor"}  # no operations of PyTorch


_SCHEMAS = """
import sys, torch
kinds = {"t": "Tensor", "n": "number", "i": "int", "b": "bool", "f": "float", "d": "int", "w": "str"}
for line in sys.stdin:
    name, *parameters = line.split()
    packet, overload = name.split(".")
    schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
    known = {a.name: (str(a.type), a.kwarg_only, a.alias_info) for a in schema.arguments}
    assert not any(alias and alias.is_write for _, _, alias in known.values()), f"{name} writes"
    by_name = False
    for item in parameters:
        if item == "|":
            by_name = True
            continue
        parameter, _, kind = item.partition(":")
        assert known[parameter][1] == by_name, item
        assert kinds[kind[0]] in known[parameter][0], (name, item, known[parameter])
        assert ("List[" in known[parameter][0]) == ("*" in kind), (name, item)
"""


def test_the_table_says_what_pytorch_says() -> None:
    """Each operation is one of PyTorch's, writes to none of its arguments, and takes what the table says."""
    lines = (f"{op.name.removeprefix('aten.')} {_parameters(op)}" for op in operations().values())
    done = subprocess.run(
        [sys.executable, "-c", _SCHEMAS], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _parameters(operation: Any) -> str:
    def words(items: Any) -> list[str]:
        return [f"{item.name}:{item.base}{'*' if item.listed else ''}" for item in items]

    named = words(operation.named)
    return " ".join([*words(operation.positional), *(["|", *named] if named else [])])


@pytest.mark.parametrize("expression", [
    "s0", "s0 * 2", "(s0 + 2 * s1)", "((s0 - 3) // 2)", "((2 * s0) % 7)", "-s0", "(-1 + s0)",
])  # fmt: skip
def test_sizes_that_are_captured(expression: str) -> None:
    assert evaluate_dim(expression, {"s0": 9, "s1": 4}) == eval(expression, {"s0": 9, "s1": 4})


@pytest.mark.parametrize(
    "tolerance", [Tolerance(float("nan"), 0), Tolerance(0, float("inf")), Tolerance(-1, 0)]
)
def test_a_tolerance_that_is_no_number(tolerance: Tolerance) -> None:
    task = task_of("aten.add.Tensor", X, Y)
    with pytest.raises(TaskRefused):
        admit(KernelTask(task.name, task.graph, task.symbols, tolerance, "other"))


def test_a_dead_node_of_a_half_type_does_not_loosen_what_a_kernel_is_held_to() -> None:
    task = task_of("aten.add.Tensor", X, Y)
    half = TensorSpec(("s0", 8), "float16")
    dead = Node("w", "aten._to_copy.default", (X,), (("dtype", DTypeArg("float16")),), (half,))
    graph = Graph(task.graph.inputs, (dead, *task.graph.nodes), task.graph.outputs)
    assert tolerance_for(graph) == TOLERANCES["float32"]
    seen = Graph(task.graph.inputs, (dead,), (ValueRef("w"),))
    assert tolerance_for(seen) == TOLERANCES["float16"]


def test_what_eager_copies_is_no_part_of_what_is_computed() -> None:
    task = task_of("aten.add.Tensor", X, Y)
    copying = evolve(task, graph=evolve(task.graph, copies=(X, X)))
    assert read_task(to_data(copying)) == copying
    assert (copying.task_id, copying.spelled_id) == (task.task_id, task.spelled_id)


@pytest.mark.parametrize("ref", [ValueRef("w"), ValueRef("x", 1)], ids=["no value", "no result"])
def test_a_copy_of_what_is_not_there_is_refused(ref: ValueRef) -> None:
    task = task_of("aten.add.Tensor", X, Y)
    with pytest.raises(TaskRefused):
        admit(evolve(task, graph=evolve(task.graph, copies=(ref,))))


@pytest.mark.parametrize("size", ["2", "(s0 - 70)", "s0 * 99999999", "-s0 * 99999999"])
def test_a_size_that_a_device_can_have_is_computed(size: str) -> None:
    """Also as a number that only an operation reads, which no tensor has as its size."""
    assert admit(task_of("aten.mul.Tensor", X, SymbolicInt(size)))


@pytest.mark.parametrize(
    "size", [f"s0 * {'99999999 * ' * 30}9", f"-s0 * {'99999999 * ' * 30}9", f"{2**44 + 1}", f"-{2**44 + 1}"]
)
def test_a_size_beyond_all_bounds_is_refused(size: str) -> None:
    with pytest.raises(TaskRefused, match="beyond all bounds"):
        admit(task_of("aten.mul.Tensor", X, SymbolicInt(size)))


def test_a_size_that_is_a_truth_value_is_refused() -> None:
    """Python counts it among the integers."""
    spec = TensorSpec((True, 8), "float32")
    graph = Graph((GraphInput("x", spec),), (), (X,))
    with pytest.raises(TaskRefused, match="beyond all bounds"):
        admit(KernelTask("t", graph, (), TOLERANCES["float32"], "other"))
