"""Kernel packages: what is written, and that importing one registers a working operator."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.ascendc.author import write
from evokernel_core.ascendc.emit.package import import_root, kernel_name, read_package, write_package
from evokernel_core.ascendc.schedule import initial
from evokernel_core.capture.edit import plan_edit, revert_edit
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.graph import DTypeArg, SymbolicInt, Update
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import Verdict
from evokernel_core.twin.chip import load_chip
from evokernel_core.twin.compiler import detect_compiler

STANDIN = Path(__file__).parent / "npu_standin"

FILES = {
    "op_kernel.cpp",
    "tiling.h",
    "op_torch.cpp",
    "CMakeLists.txt",
    "reference.py",
    "test_op.py",
    "kernel.json",
    "__init__.py",
}


@pytest.fixture
def task(builder: Any) -> KernelTask:
    """RMS norm with a weight and a run-time scale, generic in its rows."""
    b = builder()
    x, weight = b.input("x", ["s0", 24]), b.input("weight", [24], parameter=True)
    scale = b.scalar("scale")
    square = b.call("pow.Tensor_Scalar", x, 2, shape=["s0", 24])
    mean = b.call("mean.dim", square, (1,), True, shape=["s0", 1])
    root = b.call("rsqrt.default", b.call("add.Tensor", mean, 1e-6, shape=["s0", 1]), shape=["s0", 1])
    normal = b.call("mul.Tensor", x, root, shape=["s0", 24])
    view = b.call("view.default", normal, (SymbolicInt("s0"), 2, 12), shape=["s0", 2, 12])
    flat = b.call("view.default", view, (SymbolicInt("s0"), 24), shape=["s0", 24])
    weighted = b.call("mul.Tensor", flat, weight, shape=["s0", 24])
    scaled = b.call("mul.Tensor", weighted, scale, shape=["s0", 24])
    half = b.call("_to_copy.default", scaled, shape=["s0", 24], dtype="float32", **{})
    return b.task(half, symbols={"s0": 5})


@pytest.fixture
def source(task: KernelTask) -> KernelSource:
    chip = load_chip("ascend910b1")
    return write(task, initial(task, chip), chip)


def put(root: Path, task: KernelTask, source: KernelSource, name: str = "") -> Path:
    verdict = Verdict(task.task_id, source.source_id, "twin test", ())
    return write_package(root, name or kernel_name(task), task, source, verdict)


def run_python(root: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PATH": "/usr/bin:/bin"},
        check=False,
    )


def test_the_package_holds_every_file_and_nothing_is_left_over(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    folder = put(tmp_path, task, source)
    assert {item.name for item in folder.iterdir()} == FILES
    put(tmp_path, task, source)
    assert {item.name for item in folder.parent.iterdir()} == {"__init__.py", folder.name}


def test_a_package_reads_back_as_what_was_written(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    folder = put(tmp_path, task, source)
    read_task, read_source, manifest = read_package(folder)
    assert read_task == task
    assert read_source == source
    assert manifest["source_id"] == source.source_id
    assert json.loads((folder / "kernel.json").read_text())["task_id"] == task.task_id


def test_a_folder_that_is_no_package_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a kernel package"):
        read_package(tmp_path)


def test_the_import_root_is_above_all_packages(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "models" / "vision"
    inner.mkdir(parents=True)
    (inner / "__init__.py").touch()
    (inner.parent / "__init__.py").touch()
    assert import_root(inner / "net.py") == tmp_path / "project"


USE = """
import importlib, sys, torch
import evokernel_kernels.{name}
importlib.reload(evokernel_kernels.{name})
import evokernel_kernels.{other}
op = torch.ops.evokernel.{name}
x, weight = torch.randn(7, 24, requires_grad=True), torch.randn(24, requires_grad=True)
expected = x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * weight * 3.0
result = op(x, weight, 3.0)
torch.testing.assert_close(result, expected)
result.square().sum().backward()
gradients = x.grad.clone(), weight.grad.clone()
x.grad = weight.grad = None
expected.square().sum().backward()
torch.testing.assert_close(gradients, (x.grad, weight.grad))
torch.testing.assert_close(op(x.t().contiguous().t(), weight, 3.0), expected)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(24))
    def forward(self, x):
        return torch.ops.evokernel.{name}(x + 1.0, self.weight, 2.0).relu()

rows = torch.export.Dim("rows", min=2, max=64)
program = torch.export.export(Model(), (torch.randn(7, 24),), dynamic_shapes={{"x": {{0: rows}}}})
assert any("evokernel" in str(node.target) for node in program.graph.nodes)
y = torch.randn(9, 24)
torch.testing.assert_close(program.module()(y), Model()(y))
print("fine")
"""


def test_the_operator_runs_differentiates_and_exports_without_an_npu(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    name, other = kernel_name(task), "another_copy"
    put(tmp_path, task, source)
    put(tmp_path, task, source, other)
    result = run_python(tmp_path, USE.format(name=name, other=other))
    assert (result.returncode, result.stdout) == (0, "fine\n"), result.stderr


def test_the_packaged_test_passes_on_a_cpu(tmp_path: Path, task: KernelTask, source: KernelSource) -> None:
    folder = put(tmp_path, task, source)
    result = run_python(tmp_path, f"import pytest; raise SystemExit(pytest.main(['-q', {str(folder)!r}]))")
    assert result.returncode == 0, result.stdout


def test_the_reference_is_readable_torch(tmp_path: Path, task: KernelTask, source: KernelSource) -> None:
    text = (put(tmp_path, task, source) / "reference.py").read_text()
    assert "def reference(x, weight, scale):" in text
    assert "s0 = x.size(0)" in text
    assert "torch.ops.aten.mean.dim(" in text


def test_the_binding_checks_the_contract(tmp_path: Path, task: KernelTask, source: KernelSource) -> None:
    text = (put(tmp_path, task, source) / "op_torch.cpp").read_text()
    assert "x.size(1) != 24" in text
    assert "x.scalar_type() != at::kFloat" in text
    assert "x.size(0) < 1" in text
    assert "TORCH_WARN_ONCE" in text
    assert "c10_npu::getCurrentNPUStream()" in text
    assert f'TORCH_LIBRARY_FRAGMENT(evokernel, library)\n{{\n    library.def("{kernel_name(task)}(' in text


def test_dtypes_and_infinities_become_python(tmp_path: Path, builder: Any) -> None:
    b = builder()
    x = b.input("x", [4, 8], "float16")
    wide = b.call("_to_copy.default", x, shape=[4, 8], dtype="float32")
    node = b.nodes[-1]
    b.nodes[-1] = type(node)(node.name, node.op, node.args, (("dtype", DTypeArg("float32")),), node.outputs)
    floor = b.call("clamp.default", wide, float("-inf"), shape=[4, 8])
    task = b.task(floor)
    chip = load_chip("ascend910b1")
    folder = put(tmp_path, task, write(task, initial(task, chip), chip))
    text = (folder / "reference.py").read_text()
    assert "dtype=torch.float32" in text
    assert 'float("-inf")' in text


def test_the_binding_compiles_against_the_headers_of_torch(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    """Only the NPU's own headers are stand-ins; whether it links and runs, an NPU host must show."""
    folder = put(tmp_path, task, source)
    assert_binding_compiles(folder)


def assert_binding_compiles(folder: Path) -> None:
    torch = Path(importlib.util.find_spec("torch").origin).parent  # type: ignore[union-attr,arg-type]
    headers = [torch / "include", torch / "include/torch/csrc/api/include", STANDIN, folder]
    command = [str(part) for part in detect_compiler().argv] + ["-std=c++17", "-fsyntax-only", "-Werror"]
    includes = [f"-I{folder}" if folder == STANDIN else f"-isystem{folder}" for folder in headers]
    done = subprocess.run(
        [*command, *includes, str(folder / "op_torch.cpp")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


STRIDED = """
import torch
import evokernel_kernels.flat
x = torch.randn(24, 5)
torch.testing.assert_close(torch.ops.evokernel.flat(x.t()), x.t().reshape(-1).exp())
print("fine")
"""


def test_the_reference_takes_tensors_that_are_not_contiguous(
    tmp_path: Path, builder: Any, source: KernelSource
) -> None:
    b = builder()
    x = b.input("x", ["s0", 24])
    flat = b.call("view.default", x, (SymbolicInt("24 * s0"),), shape=["24 * s0"])
    put(tmp_path, b.task(b.call("exp.default", flat, shape=["24 * s0"]), symbols={"s0": 5}), source, "flat")
    result = run_python(tmp_path, STRIDED)
    assert (result.returncode, result.stdout) == (0, "fine\n"), result.stderr


@pytest.fixture
def long_task(builder: Any) -> KernelTask:
    """A product of 66 tensors and a number; a buffer keeps the product before, and calls are counted."""
    b = builder()
    x, scale = b.input("x", ["s0", 24]), b.scalar("scale")
    kept = b.input("kept", [24], parameter=True)
    weights = [b.input(f"weight{i}", [24], parameter=True) for i in range(66)]
    y = b.call("mul.Tensor", x, scale, shape=["s0", 24])
    for weight in weights:
        y = b.call("mul.Tensor", y, weight, shape=["s0", 24])
    y = b.call("add.Tensor", y, kept, shape=["s0", 24])
    total, old = b.call("sum.dim_IntList", y, (0,), shape=[24]), b.call("neg.default", kept, shape=[24])
    task: KernelTask = b.task(y, total, old, symbols={"s0": 5})
    spec, one = task.graph.inputs[2].spec, TensorSpec((), "int64")
    updates = (
        Update("kept", spec, "self.kept", 1),
        Update("calls", one, "self.calls", None, 1),
        Update("before", spec, "self.before", 2),
    )
    return evolve(task, graph=evolve(task.graph, updates=updates))


LONG_USE = """
import torch
import evokernel_kernels.long

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.rand(24) + 0.5) for _ in range(66)])
        self.register_buffer("kept", torch.rand(24))
        self.register_buffer("before", torch.zeros(24))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
    def forward(self, x):
        buffers = [self.kept, self.calls, self.before]
        return torch.ops.evokernel.long([x, *self.weights], buffers, 2.0)

model, x = Model(), torch.randn(5, 24, requires_grad=True)
kept = model.kept.clone()
expected = x * 2.0 * torch.stack(list(model.weights)).prod(0) + kept
result = model(x)
torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
torch.testing.assert_close((model.kept, model.before), (expected.sum(0).detach(), -kept))
assert model.calls == 1
wanted = torch.autograd.grad(expected.square().sum(), [x, model.weights[7], model.weights[65]])
found = torch.autograd.grad(result.square().sum(), [x, model.weights[7], model.weights[65]])
# products of 66 weights in another order
torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
program = torch.export.export(Model(), (torch.randn(5, 24),))
assert any("evokernel" in str(node.target) for node in program.graph.nodes)
print("fine")
"""


def test_more_tensors_than_an_operator_may_have_are_passed_in_lists(
    tmp_path: Path, long_task: KernelTask, source: KernelSource
) -> None:
    """PyTorch registers no operator of more than 64 arguments."""
    folder = put(tmp_path, long_task, source, "long")
    result = run_python(tmp_path, LONG_USE)
    assert (result.returncode, result.stdout) == (0, "fine\n"), result.stderr
    result = run_python(tmp_path, f"import pytest; raise SystemExit(pytest.main(['-q', {str(folder)!r}]))")
    assert result.returncode == 0, result.stdout
    assert_binding_compiles(folder)


def test_a_call_with_lists_is_put_in_and_taken_out(long_task: KernelTask) -> None:
    text = "def f(self, x, scale):\n    y = 2\n    return x * scale\n"
    code = "x * scale"
    digest = hashlib.sha256(code.encode()).hexdigest()
    region = Region(
        "f", "f.py", "f", Span(3, 11, 3, 20), code, digest, "{call}", "pointwise", RegionStatus.CANDIDATE,
        task=long_task,
    )  # fmt: skip
    edited = plan_edit(text, region, "long")
    assert "torch.ops.evokernel.long(\n        [\n            x,\n" in edited
    assert revert_edit(edited, region, "long") == text
