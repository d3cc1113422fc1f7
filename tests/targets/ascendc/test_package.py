"""Kernel packages: what is written, and that importing one registers a working operator."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.capture.agent.guards.code import digest
from evokernel_core.capture.edit import plan_edit, revert_edit
from evokernel_core.capture.text import span_of
from evokernel_core.domain.call_site import CallSite, Guard
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.graph import DTypeArg, SymbolicInt, Update
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.import_root import import_root
from evokernel_core.package.reference import statements
from evokernel_core.package.write import Placed, kernel_name, place_package, read_package
from evokernel_core.targets import author_for
from evokernel_core.targets.ascendc.author import write
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial
from evokernel_core.targets.packages import write_package
from evokernel_core.twin.compiler import detect_compiler
from tests import warm
from tests.tables import few

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
    "call.py",
}
SHARED = {"__init__.py", "guards.py", "report.py"}
ORIGINAL = "return x * torch.rsqrt((x * x).mean(1, keepdim=True) + self.eps) * self.weight * scale"
MODEL = f"""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 24))
        self.eps = 1e-06

    def forward(self, x, scale=3.0):
        {ORIGINAL}
"""
RETURN = "if {holds}:\n            return {call}\n        {original}"
SITE = CallSite(
    RETURN,
    ORIGINAL,
    parameters=("self", "x", "scale"),
    guards=(Guard("self", "guards.equal({}.eps, 1e-06)"), Guard("self", 'not hasattr({}, "gain")')),
)


@pytest.fixture
def task(builder: Any) -> KernelTask:
    """RMS norm with a weight and a run-time scale, generic in its rows."""
    b = builder()
    x, weight = b.input("x", ["s0", 24]), b.input("weight", [24], parameter=True)
    b.inputs[1] = evolve(b.inputs[1], expression="self.weight")
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
def source(task: KernelTask, request: pytest.FixtureRequest) -> KernelSource:
    return _written(task, getattr(request, "param", "ascend910b1"))


@cache
def _written(task: KernelTask, device: str) -> KernelSource:
    author = author_for(device)
    return author.write(task, author.initial(task))


BOTH = pytest.mark.parametrize("source", ["ascend910b1", "nvidia_h200"], indirect=True)
"""Kernels of each target."""


def put(root: Path, task: KernelTask, source: KernelSource, site: CallSite = SITE) -> Path:
    verdict = Verdict(task.task_id, source.source_id, "twin test", ())
    return write_package(root, task, Placed("model.py", "Model.forward", site), source, verdict)


def applied(
    root: Path, task: KernelTask, source: KernelSource, text: str = MODEL, site: CallSite = SITE
) -> str:
    """Writes the package and the model as it is (before.py) and with the kernel (model.py); its name."""
    start = text.index(site.original)
    region = Region(
        "r", str(root / "model.py"), "Model.forward", span_of(text, start, start + len(site.original)),
        site.original, hashlib.sha256(site.original.encode()).hexdigest(), "norm", RegionStatus.CANDIDATE,
        task=task, site=site,
    )  # fmt: skip
    name = put(root, task, source, site).name
    edited = plan_edit(text, region, name)
    assert revert_edit(edited, region, name) == text
    (root / "before.py").write_text(text)
    (root / "model.py").write_text(edited)
    return name


def run_python(
    root: Path, code: str, *, emulate: bool = False, **more: str
) -> subprocess.CompletedProcess[str]:
    more |= {"EVOKERNEL_EMULATE": "1"} if emulate else {}
    return warm.run(code, root, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PATH": "/usr/bin:/bin", **more})


def test_the_package_holds_every_file_and_nothing_is_left_over(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    folder = put(tmp_path, task, source)
    assert {item.name for item in folder.iterdir()} == FILES
    put(tmp_path, task, source)
    assert {item.name for item in folder.parent.iterdir()} == SHARED | {folder.name}


def test_a_package_reads_back_as_what_was_written(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    folder = put(tmp_path, task, source)
    read_task, read_source, manifest = read_package(folder)
    assert read_task == task
    assert read_source == source
    assert manifest["source_id"] == source.source_id
    written = json.loads((folder / "kernel.json").read_text())
    assert (written["task_id"], written["title"]) == (task.task_id, "Model.forward")


def test_a_folder_that_is_no_package_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a kernel package"):
        read_package(tmp_path)


def test_a_folder_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    """As in a folder that is read-only; it was reported as a defect of ours."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"could not be written below .*file.* \(Not a directory\)"):
        place_package(tmp_path / "file", "k", {"kernel.json": "{}"})


def test_a_package_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = place_package(tmp_path, "k", {"kernel.json": "old"})
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.name.startswith(".k-"):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(UsageError, match="No space left"):
        place_package(tmp_path, "k", {"kernel.json": "new"})
    assert (package / "kernel.json").read_text() == "old"
    assert {item.name for item in package.parent.iterdir()} == SHARED | {"k"}


def test_the_import_root_is_above_all_packages(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "models" / "vision"
    inner.mkdir(parents=True)
    (inner / "__init__.py").touch()
    (inner.parent / "__init__.py").touch()
    assert import_root(inner / "net.py") == tmp_path / "project"


HOLDS = """
import json, sys, torch
from model import Model, {name} as kernel
model, x = Model(), torch.randn(7, 24)
found = {{}}

def ask(name, *given, of=model):
    found[name] = kernel.holds(of, *(given or (x, 3.0)))

class Own(torch.Tensor):
    pass

def changed(**attributes):
    other = Model()
    for key, value in attributes.items():
        setattr(other, key, value)
    return other

gone = Model()
del gone.eps
ask("a gradient is wanted")
model.requires_grad_(False)
ask("no gradient is wanted")
ask("an input wants a gradient", x.clone().requires_grad_(), 3.0)
model.requires_grad_(True)
with torch.no_grad():
    ask("gradients are off")
    ask("other rows", torch.randn(2, 24), 3.0)
    ask("no rows", torch.randn(0, 24), 3.0)
    ask("other columns", torch.randn(7, 23), 3.0)
    ask("another rank", torch.randn(1, 7, 24), 3.0)
    ask("another dtype", x.double(), 3.0)
    ask("not contiguous", torch.randn(24, 7).t(), 3.0)
    ask("a whole number", x, 3)
    ask("a subclass", x.as_subclass(Own), 3.0)
    ask("another device", x.to("meta"), 3.0)
    ask("no tensor", None, 3.0)
    with torch.autocast("cpu"):
        ask("autocast")
    torch.set_default_dtype(torch.float64)
    ask("another default dtype")
    torch.set_default_dtype(torch.float32)
    torch.vmap(lambda row: ask("vmap", row, 3.0) or row)(torch.randn(3, 7, 24))
    ask("another attribute", of=changed(eps=1e-5))
    ask("an attribute of another type", of=changed(eps=0))
    ask("a further attribute", of=changed(gain=2.0))
    ask("a missing attribute", of=gone)
with torch.inference_mode():
    ask("inference mode")
print(json.dumps(sorted(name for name, holds in found.items() if holds)), len(found))
"""


@BOTH
def test_the_guards_hold_within_the_contract_alone(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    name = applied(tmp_path, task, source)
    result = run_python(tmp_path, HOLDS.format(name=name), emulate=True)
    assert result.stdout, result.stderr
    holds = ["gradients are off", "inference mode", "no gradient is wanted", "other rows"]
    assert result.stdout == f"{json.dumps(holds)} 22\n"
    result = run_python(tmp_path, HOLDS.format(name=name))
    assert result.stdout == "[] 22\n", result.stderr  # no device, and the kernel is not built


USE = """
import os, torch
import before, evokernel_kernels, model
from evokernel_kernels.{name}.reference import reference
emulated = os.environ.get("EVOKERNEL_EMULATE") == "1"
one, other = before.Model(), model.Model()
x, wanted = torch.randn(7, 24), []
same = torch.testing.assert_close

def ran():
    return sum(evokernel_kernels.calls().values())

with torch.no_grad():
    same(other(x), one(x))
    assert ran() == emulated
    assert not emulated or torch.equal(model.{name}.run(other, x, 2.0), reference(x, other.weight, 2.0))
    same(other(x.double()), one(x.double()))  # the original code
    assert ran() == 2 * emulated

for net in (one, other):
    y = x.clone().requires_grad_()
    net(y).square().sum().backward()
    wanted.append((y.grad, net.weight.grad))
same(wanted[1], wanted[0])
assert ran() == 2 * emulated

with torch.no_grad():
    compiled = torch.compile(model.Model(), backend="eager", fullgraph=True)
    same(compiled(x), one(x))
    before_it = ran()
    same(compiled(x), one(x))
    assert ran() == before_it + emulated  # compiling runs it on fake tensors too
    rows = torch.export.Dim("rows", min=2, max=64)
    for strict in (True, False):
        for shapes in (None, {{"x": {{0: rows}}}})[:{ways}]:
            program = torch.export.export(model.Model(), (x,), dynamic_shapes=shapes, strict=strict)
            assert any("evokernel" in str(node.target) for node in program.graph.nodes) == emulated
            given = torch.randn(9, 24) if shapes else x
            made, before_it = program.module(), ran()
            same(made(given), one(given))
            assert ran() == before_it + emulated
print("fine")
"""


@few(
    ("source", "emulate", "ways"),
    [
        ("ascend910b1", True, 2),
        ("ascend910b1", False, 1),
        ("ascend910b1", False, 2),
        ("nvidia_h200", True, 2),
        ("nvidia_h200", False, 1),
    ],
    keep=(0, 1, 3),
    indirect=["source"],
)
def test_the_edited_model_runs_differentiates_compiles_and_exports(
    emulate: bool, ways: int, tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    name = applied(tmp_path, task, source)
    result = run_python(tmp_path, USE.format(name=name, ways=ways), emulate=emulate)
    assert (result.returncode, result.stdout) == (0, "fine\n"), result.stderr
    assert "changed since" not in result.stderr


REPORTED = """
import model, torch
net, x = model.Model(), torch.randn(7, 24)
{use}
"""
EMULATED = "with torch.no_grad(): "
USES = {
    "it ran": (f"{EMULATED}net(x)", "1 of 1 kernels ran"),
    "it ran in a compiled graph": (
        "net = torch.compile(net, backend='eager', fullgraph=True)\nwith torch.no_grad(): net(x)",
        "1 of 1 kernels ran",
    ),
    "it ran once": (f"net(x); net(x)\n{EMULATED}net(x)", "1 of 1 kernels ran"),
    "a gradient": ("net(x)", "0 of 1 kernels ran; 1 not: gradient (1)"),
    "other shapes": (
        f"{EMULATED}net(torch.randn(7, 4, 24))",
        "0 of 1 kernels ran; 1 not: shapes or dtypes (1)",
    ),
    "other values": (f"net.eps = 1e-5\n{EMULATED}net(x)", "0 of 1 kernels ran; 1 not: values (1)"),
    "autocast": (
        "with torch.no_grad(), torch.autocast('cpu'): net(x)",
        "0 of 1 kernels ran; 1 not: autocast (1)",
    ),
    "no call": ("", "0 of 1 kernels ran; 1 not: not called (1)"),
    "no device": (f"{EMULATED}net(x)", "0 of 1 kernels ran; 1 not: no NPU (1)"),
    "a changed file": (f"{EMULATED}net(x)", "0 of 1 kernels ran; 1 not: package changed (1)"),
    "changed code": (f"{EMULATED}net(x)", "0 of 1 kernels ran; 1 not: code changed (1)"),
}


@pytest.mark.parametrize("name", USES)
def test_a_program_says_when_it_ends_which_kernels_ran(
    name: str, tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    kernel = applied(tmp_path, task, source)
    use, said = USES[name]
    if name == "a changed file":
        (tmp_path / "evokernel_kernels" / kernel / "op_kernel.cpp").write_text("// mine\n")
    if name == "changed code":
        path = tmp_path / "model.py"
        path.write_text(path.read_text().replace("self.weight * scale", "self.weight + scale"))
    result = run_python(tmp_path, REPORTED.format(use=use), emulate=name != "no device", EVOKERNEL_REPORT="1")
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == f"EvoKernel: {said}"


CHANGED = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import model, torch
    with torch.no_grad():
        net, x = model.Model(), torch.randn(7, 24)
        for _ in range(3):
            net(x)
words = [str(item.message) for item in caught if "the kernel" in str(item.message)]
print(model.{name}.call.READY, model.{name}.holds(net.requires_grad_(False), x, 3.0), len(words), words)
"""
TEXTS = {
    "as it was": ("", "", True),
    "white space": ("self.weight * scale", "self.weight  *  scale", True),
    "a comment": ("        return x", "        # the root of the mean square\n        return x", True),
    "another formula": ("* self.weight * scale", "* self.weight + scale", False),
    "a longer formula": ("* self.weight * scale", "* self.weight * scale + 1", False),
    "another function": ("return y * 2", "return y * 3", False),
    "a function that is gone": ("def twice", "def double", False),
}


@few(
    "name",
    TEXTS,
    keep=(
        1,
        3,
        4,
        6,
    ),
)
def test_code_that_changed_is_not_replaced(
    name: str, tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    helper = "def twice(y):\n    return y * 2"
    text = f"{MODEL}\n\n{helper}\n"
    site = evolve(SITE, code=(("model.py:twice", digest(helper)),))
    kernel = applied(tmp_path, task, source, text, site)
    before, after, ready = TEXTS[name]
    edited = (tmp_path / "model.py").read_text()
    assert before in edited
    (tmp_path / "model.py").write_text(edited.replace(before, after) if before else edited)
    result = run_python(tmp_path, CHANGED.format(name=kernel), emulate=True)
    assert result.stdout.startswith(f"{ready} {ready} {int(not ready)} "), result.stdout + result.stderr
    symbol = "Model.forward" if "formula" in name else "twice"
    assert (f"{symbol} in model.py changed since the kernel {kernel} was made" in result.stdout) != ready


@BOTH
def test_the_packaged_test_passes_on_a_cpu(tmp_path: Path, task: KernelTask, source: KernelSource) -> None:
    folder = put(tmp_path, task, source)
    result = run_python(tmp_path, warm.pytest_of(folder))
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
    assert "outside of its contract: call it only where holds() is true" in text
    assert f'extern "C" bool {kernel_name(task, SITE)}_fits(' in text
    guard, stream = text.index("at::OptionalDeviceGuard guard("), text.index("c10_npu::getCurrentNPUStream()")
    assert guard < stream, "the stream must be that of the tensors' device"
    assert (
        f'TORCH_LIBRARY_FRAGMENT(evokernel, library)\n{{\n    library.def("{kernel_name(task, SITE)}(' in text
    )


@pytest.mark.parametrize(
    ("op", "given", "shape"),
    [
        ("split.Tensor", (8, 1), [4, 8]),
        ("split_with_sizes.default", ([8], 1), [4, 8]),
        ("unbind.int", (0,), [8]),
    ],
)
def test_a_list_of_one_tensor_is_a_list(
    op: str, given: tuple[Any, ...], shape: list[int], builder: Any
) -> None:
    b = builder()
    x = b.input("x", [1, 8] if op == "unbind.int" else [4, 8])
    task = b.task(b.call("relu.default", b.call(op, x, *given, shape=shape), shape=shape))
    text = "\n    ".join(["def reference(x):", *statements(task)])
    assert f"relu.default({text.split(' = ')[0].split()[-1]}[0])" in text


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


def test_the_build_file_links_what_the_samples_link(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    text = (put(tmp_path, task, source) / "CMakeLists.txt").read_text()
    (libraries,) = re.findall(r"target_link_libraries\(\w+ PRIVATE (.*)\)", text)
    assert libraries.split() == ["${TORCH_LIBRARIES}", "torch_npu", "tiling_api", "register", "platform"]
    assert "op_kernel.cpp PROPERTIES LANGUAGE ASC" in text


def test_the_binding_compiles_against_the_headers_of_torch(
    tmp_path: Path, task: KernelTask, source: KernelSource
) -> None:
    """Only the NPU's own headers are stand-ins; whether it links and runs, an NPU host must show. Texts that
    have compiled once are not compiled again."""
    folder = put(tmp_path, task, source)
    assert_binding_compiles(folder)


def assert_binding_compiles(folder: Path) -> None:
    torch = Path(importlib.util.find_spec("torch").origin).parent  # type: ignore[union-attr,arg-type]
    headers = [torch / "include", torch / "include/torch/csrc/api/include", STANDIN, folder]
    compiler, flags = detect_compiler(), ["-std=c++17", "-fsyntax-only", "-Werror"]
    includes = [f"-I{folder}" if folder == STANDIN else f"-isystem{folder}" for folder in headers]
    argv = [*map(str, compiler.argv), *flags, *includes, str(folder / "op_torch.cpp")]
    read = [path for root in (STANDIN, folder) for path in sorted(root.rglob("*.[ch]*")) if path.is_file()]
    key = repr((compiler, flags, version("torch"), [(path.name, path.read_bytes()) for path in read]))
    compiled = Path(os.environ["EVOKERNEL_KERNELS_DIR"]).parent / "bindings"
    known = compiled / hashlib.sha256(key.encode()).hexdigest()
    if known.exists():  # the same texts have compiled before
        return
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled.mkdir(parents=True, exist_ok=True)
    known.touch()


def test_the_reference_takes_tensors_that_are_not_contiguous(
    tmp_path: Path, builder: Any, source: KernelSource
) -> None:
    b = builder()
    x = b.input("x", ["s0", 24])
    flat = b.call("view.default", x, (SymbolicInt("24 * s0"),), shape=["24 * s0"])
    task = b.task(b.call("exp.default", flat, shape=["24 * s0"]), symbols={"s0": 5})
    name = put(tmp_path, task, source).name
    result = run_python(
        tmp_path,
        f"import torch\nfrom evokernel_kernels.{name}.reference import reference\nx = torch.randn(24, 5)\n"
        "torch.testing.assert_close(reference(x.t()), x.t().reshape(-1).exp())\nprint('fine')\n",
    )
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
    expressions = {"kept": "self.kept", **{f"weight{i}": f"self.weights[{i}]" for i in range(66)}}
    b.inputs[:] = [evolve(item, expression=expressions.get(item.name, item.name)) for item in b.inputs]
    task: KernelTask = b.task(y, total, old, symbols={"s0": 5})
    spec, one = task.graph.inputs[2].spec, TensorSpec((), "int64")
    updates = (
        Update("kept", spec, "self.kept", 1),
        Update("calls", one, "self.calls", None, 1),
        Update("before", spec, "self.before", 2),
    )
    return evolve(task, graph=evolve(task.graph, updates=updates))


LONG = """kept = self.kept.clone()
        y = x * scale
        for weight in self.weights:
            y = y * weight
        y = y + kept
        self.kept.copy_(y.detach().sum(0))
        self.before.copy_(-kept)
        self.calls.add_(1)
        return y"""
LONG_MODEL = f"""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weights = nn.ParameterList([nn.Parameter(torch.rand(24) + 0.5) for _ in range(66)])
        self.register_buffer("kept", torch.rand(24))
        self.register_buffer("before", torch.zeros(24))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, scale=2.0):
        {LONG}
"""
LONG_USE = """
import torch
import before, evokernel_kernels, model
one, other, x = before.Model(), model.Model(), torch.randn(5, 24)
with torch.no_grad():
    for turn in range(1, 4):
        result, expected = other(x * turn), one(x * turn)
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(dict(other.named_buffers()), dict(one.named_buffers()))
        assert other.calls == turn and list(evokernel_kernels.calls().values()) == [turn]
    for strict in (True, False):
        program = torch.export.export(model.Model(), (x,), strict=strict)
        assert any("evokernel" in str(node.target) for node in program.graph.nodes)
        made, fresh = program.module(), before.Model()
        torch.testing.assert_close(made(x), fresh(x), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(dict(made.named_buffers()), dict(fresh.named_buffers()))
gradients = [torch.autograd.grad(net(x).square().sum(), [net.weights[7], net.weights[65]])
             for net in (one, other)]
torch.testing.assert_close(*gradients)
assert other.calls == one.calls == 4 and sum(evokernel_kernels.calls().values()) >= 3
print("fine")
"""


def test_more_tensors_than_an_operator_may_have_are_passed_in_lists(
    tmp_path: Path, long_task: KernelTask, source: KernelSource
) -> None:
    """PyTorch registers no operator of more than 64 arguments."""
    site = CallSite(RETURN, LONG, parameters=("self", "x", "scale"))
    name = applied(tmp_path, long_task, source, LONG_MODEL, site)
    folder = tmp_path / "evokernel_kernels" / name
    call = (folder / "call.py").read_text()
    assert "guards.operator(NAME)(\n        [\n            x,\n            self.kept,\n" in call
    result = run_python(tmp_path, LONG_USE, emulate=True)
    assert (result.returncode, result.stdout) == (0, "fine\n"), result.stderr
    result = run_python(tmp_path, warm.pytest_of(folder))
    assert result.returncode == 0, result.stdout


@pytest.mark.thorough
def test_the_binding_of_lists_compiles_too(
    tmp_path: Path, long_task: KernelTask, source: KernelSource
) -> None:
    site = CallSite(RETURN, LONG, parameters=("self", "x", "scale"))
    name = applied(tmp_path, long_task, source, LONG_MODEL, site)
    assert_binding_compiles(tmp_path / "evokernel_kernels" / name)
