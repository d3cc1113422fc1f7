"""Packages of kernels in Triton: their host code, their guards, and packages that hold two targets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from evokernel_server.documents.packages import files_to_read
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.cli import verify
from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.errors import PackageChanged, UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.domain.verdict import Verdict
from evokernel_core.package.guard_words import guard_words
from evokernel_core.package.integrity import MANIFEST, read_source, sealed
from evokernel_core.package.write import Placed, read_package
from evokernel_core.targets import author_for, load_packaging
from evokernel_core.targets.packages import write_package
from evokernel_core.targets.triton.expressions import cdiv, evaluate, next_power_of_2
from evokernel_core.targets.triton.launch import Launch, LaunchRecord, LibraryCall, Scratch, View
from evokernel_core.targets.triton.package.host_text import host_text
from evokernel_core.targets.triton.package.packaging import kernel_guards
from evokernel_core.targets.triton.package.python_text import condition_text, number_text
from tests import warm
from tests.tables import few
from tests.targets.ascendc.conftest import GraphBuilder
from tests.targets.triton import written

SITE = CallSite("if {holds}:\n    return {call}\n{original}", "return x", parameters=("x",))


def put(root: Path, task: KernelTask, source: KernelSource, site: CallSite = SITE) -> Path:
    verdict = Verdict(task.task_id, source.source_id, "a test", ())
    return write_package(root, task, Placed("model.py", "f", site), source, verdict)


def library_task() -> KernelTask:
    """A product, and what follows it."""
    g = GraphBuilder()
    a, b = g.input("a", ("s0", "s1")), g.input("b", (24, "s1"))
    turned = g.call("t.default", b, shape=("s1", 24))
    y = g.call("relu.default", g.call("mm.default", a, turned, shape=("s0", 24)), shape=("s0", 24))
    return g.task(y, g.call("neg.default", y, shape=("s0", 24)), symbols={"s0": 9, "s1": 40})


RELU = """
@triton.jit
def relu_and_negative(product, first, second, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.maximum(tl.load(product + place, mask=place < count), 0.0)
    tl.store(first + place, value, mask=place < count)
    tl.store(second + place, -value, mask=place < count)
"""


def library_source() -> KernelSource:
    a, b = View("a", ("s0", "s1"), ("s1", "1")), View("b", ("s1", "24"), ("1", "s1"))
    call = LibraryCall("aten.mm.default", (a, b), "product", ("s0", "24"))
    names = ("product", "output_0", "output_1", "s0 * 24")
    launch = Launch("relu_and_negative", ("cdiv(s0 * 24, 64)",), names, {"BLOCK": "64"})
    record = LaunchRecord(
        ("a", "b"), ("output_0", "output_1"), (call, launch), ("s0", "s1"),
        scratch=(Scratch("product", "float32", "s0 * 24"),), requires=("cdiv(s1, 8) <= next_power_of_2(s1)",),
    )  # fmt: skip
    return written.source(RELU, record)


def output_of_a_library() -> tuple[KernelTask, KernelSource]:
    """A product that is a result itself, beside its negative."""
    g = GraphBuilder()
    a, b = g.input("a", ("s0", "s1")), g.input("b", ("s1", 24))
    y = g.call("mm.default", a, b, shape=("s0", 24))
    task = g.task(y, g.call("neg.default", y, shape=("s0", 24)), symbols={"s0": 9, "s1": 40})
    views = View("a", ("s0", "s1"), ("s1", "1")), View("b", ("s1", "24"), ("24", "1"))
    call = LibraryCall("aten.mm.default", views, "output_0", ("s0", "24"))
    launch = Launch(
        "negative", ("cdiv(s0, 64)", "s1 * 0 + 24"), ("output_0", "output_1", "s0"), {"BLOCK": "64"}
    )
    record = LaunchRecord(("a", "b"), ("output_0", "output_1"), (call, launch), ("s0", "s1"))
    return task, written.source(NEGATIVE, record)


NEGATIVE = """
@triton.jit
def negative(product, output, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = row * tl.num_programs(1) + tl.program_id(1)
    tl.store(output + place, -tl.load(product + place, mask=row < rows), mask=row < rows)
"""


def authored(task: KernelTask, device: str = "nvidia_h200") -> KernelSource:
    author = author_for(device)
    return author.write(task, author.initial(task))


def keyword_task() -> KernelTask:
    """Operands under names that Python, PyTorch and the host code have taken, and a run-time number."""
    g = GraphBuilder()
    x, y = g.input("grid", ("run", 40)), g.input("kernel", (40,))
    scaled = g.call("mul.Tensor", x, g.scalar("torch"), shape=("run", 40))
    return g.task(g.call("add.Tensor", scaled, y, shape=("run", 40)), symbols={"run": 6})


def long_task() -> KernelTask:
    """More tensors than an operator may have."""
    g = GraphBuilder()
    y = g.call("mul.Tensor", g.input("x", ("s0", 24)), g.scalar("scale"), shape=("s0", 24))
    for index in range(66):
        y = g.call("add.Tensor", y, g.input(f"weight{index}", [24]), shape=("s0", 24))
    return g.task(y, symbols={"s0": 5})


CASES: Mapping[str, Callable[[], tuple[KernelTask, KernelSource]]] = {
    "rows": lambda: (written.softmax_task(), written.softmax_source()),
    "two launches with scratch": lambda: (written.total_task(), written.total_source()),
    "a library's product": lambda: (library_task(), library_source()),
    "a library's result": output_of_a_library,
    "names that are taken": lambda: ((task := keyword_task()), authored(task)),
    "tensors in a list": lambda: ((task := long_task()), authored(task)),
    "by our author": lambda: ((task := written.softmax_task(rows=7)), authored(task)),
}
HOST = """
import importlib, torch
from triton.runtime import interpreter
patch = interpreter._patch_lang_tensor
def patched(tensor, scope):  # numpy 2.4 makes no number of an array of one element
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))
interpreter._patch_lang_tensor = patched
for name in {names}:
    package = f"evokernel_kernels.{{name}}"
    host, test = (importlib.import_module(f"{{package}}.{{module}}") for module in ("host", "test_op"))
    for sizes in test.SIZES:
        given = test.arguments(sizes, "cpu")
        expected = test.reference(*given)
        passed = test.listed(given) if hasattr(test, "listed") else given
        torch.testing.assert_close(host.run(*passed), expected, rtol=1e-4, atol=1e-4)
        made = host.results(*passed)
        made, expected = (one if isinstance(one, tuple) else (one,) for one in (made, expected))
        assert [(one.shape, one.dtype) for one in made] == [(one.shape, one.dtype) for one in expected]
        assert all(host.limits(*sizes.values()))
    wrong = [one.double() if isinstance(one, torch.Tensor) else one for one in given]
    wrong = test.listed(wrong) if hasattr(test, "listed") else wrong
    try:
        host.run(*wrong)
    except ValueError as error:
        assert "was called outside of its contract" in str(error)
    else:
        raise AssertionError(name)
    if "softmax" in name or name.startswith("kernel"):
        turned = torch.randn(7, 3, 5)[:, :, 2].t()
        if len(given) == 1 and given[0].dim() == 2:
            torch.testing.assert_close(host.run(turned), test.reference(turned))
empty = importlib.import_module("evokernel_kernels.{empty}.host")
assert empty.run(torch.empty(0, 5)).shape == (0, 5)  # CUDA refuses to launch no program
print("fine")
"""


def run_python(root: Path, code: str, **environment: str) -> None:
    """In a process of its own, since Triton reads at its import whether it interprets."""
    words = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PATH": os.environ["PATH"], "HOME": str(root)}
    words["PYTHONPATH"] = str(root)
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=root, env={**words, **environment}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stdout + done.stderr


def test_host_code_computes_what_the_reference_does(tmp_path: Path) -> None:
    """In Triton's interpreter, on a CPU: the launches are those that a GPU gets."""
    names = [put(tmp_path, *case()).name for case in CASES.values()]
    task = evolve(written.softmax_task(), symbols=(Symbol("s0", 9, 0), Symbol("s1", 9, 1)))
    empty = put(tmp_path, task, written.softmax_source())
    assert "grid = (s0,)\n        if 0 not in grid:\n" in (empty / "host.py").read_text()
    run_python(tmp_path, HOST.format(names=names, empty=empty.name), TRITON_INTERPRET="1")


GPU = """
import importlib, warnings, torch
from torch._subclasses.fake_tensor import FakeTensorMode
torch.cuda.device_count = lambda: 2  # no driver is asked: tensors are fake, and nothing is launched
import model
kernel = importlib.import_module("evokernel_kernels.{name}")
guards, mode = kernel.guards, FakeTensorMode(allow_non_fake_inputs=True)
assert kernel.call.READY and kernel.call.DEVICE == "cuda"


def tensor(*shape, device="cuda:1", dtype=torch.float32):
    with mode:
        return torch.empty(shape, device=device, dtype=dtype)


x = tensor(7, 40)
holds = dict(
    rows=kernel.holds(x),
    cpu=kernel.holds(torch.empty(7, 40)),
    columns=kernel.holds(tensor(7, 70000)),
    turned=kernel.holds(tensor(40, 7).t()),
    expanded=kernel.holds(tensor(1, 40).expand(7, 40)),
    double=kernel.holds(tensor(7, 40, dtype=torch.float64)),
    gradient=kernel.holds(tensor(7, 40).requires_grad_()),
)
torch.use_deterministic_algorithms(True)
holds["deterministic"] = kernel.holds(x)
torch.use_deterministic_algorithms(False)
assert [name for name, value in holds.items() if value] == ["rows"], holds
with mode:
    made = model.f(x)
    assert made.device == torch.device("cuda:1") and made.shape == (7, 40)
for strict in (True, False):
    rows, columns = torch.export.Dim("rows", min=2, max=64), torch.export.Dim("columns", min=2, max=64)
    for sizes in (None, {{"x": {{0: rows, 1: columns}}}}):
        program = torch.export.export(model.Module(), (x,), dynamic_shapes=sizes, strict=strict)
        assert any("evokernel" in str(node.target) for node in program.graph.nodes), program.graph
    sizes = {{"x": {{0: rows, 1: torch.export.Dim("columns", min=2, max=1 << 20)}}}}
    program = torch.export.export(model.Module(), (x,), dynamic_shapes=sizes, strict=strict)
    assert not any("evokernel" in str(node.target) for node in program.graph.nodes), program.graph


class TooLarge(Exception):
    pass


def run(x):
    raise TooLarge("out of resource: shared memory")


operator = guards._launched("other", lambda x: x + 1, run, TooLarge)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    assert torch.equal(operator(torch.zeros(3)), torch.ones(3))
    assert torch.equal(operator(torch.ones(1)), torch.full((1,), 2.0))
assert ["shared memory" in str(one.message) for one in seen] == [True]
guards._hosts["other"] = kernel.guards._hosts["{name}"]
assert not guards.fits("other", (7, 40), (), (96, 200))
print("fine")
"""
MODEL = """
import torch
from evokernel_kernels import {name}


def f(x):
    if {name}.holds(x):
        return {name}.run(x)
    return x


class Module(torch.nn.Module):
    def forward(self, x):
        return f(x)
"""


def adding_source() -> KernelSource:
    """Softmax that claims to add in any order, of at most 65,536 columns."""
    text = written.SOFTMAX.replace("tl.store(output", "tl.atomic_add(output", 1)
    record = LaunchRecord(
        ("x",), ("output",), (written.SOFTMAX_LAUNCH,), ("s0", "s1"),
        requires=("next_power_of_2(s1) <= 65536", "cdiv(s1, 4) < 16385"),
    )  # fmt: skip
    return written.source(text, record)


def test_guards_on_a_machine_with_gpus(tmp_path: Path) -> None:
    """The devices are fake, the dispatcher, the compiler and the guards are not."""
    name = put(tmp_path, written.softmax_task(), adding_source(), evolve(SITE, original="return x")).name
    (tmp_path / "model.py").write_text(MODEL.format(name=name))
    done = warm.run(GPU.format(name=name), tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stdout + done.stderr


COMPILED = """
import torch
import evokernel_kernels, model
assert model.{name}.call.DEVICE == "cpu"
a, b = torch.randn(9, 40), torch.randn(40, 24)
compiled = torch.compile(model.f, backend="eager", fullgraph=True)


def runs(call):
    before = sum(evokernel_kernels.calls().values())
    call(a, b)
    after = sum(evokernel_kernels.calls().values())
    return after > before


def both():
    compiled(a, b)  # compiling runs it on fake tensors too
    assert runs(model.f) == runs(compiled)
    return runs(model.f)


with torch.no_grad():
    assert both() is {strict}
    torch.use_deterministic_algorithms(True)
    assert both() is False
    torch.use_deterministic_algorithms(False)
    torch.backends.cuda.matmul.allow_tf32 = True
    assert both() is True
    torch.set_float32_matmul_precision("highest")
    assert both() is {strict}
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        assert runs(model.f)
print("fine")
"""
PRODUCT_MODEL = """
import torch
from evokernel_kernels import {name}


def f(a, b):
    if {name}.holds(a, b):
        return {name}.run(a, b)
    return torch.mm(a, b)
"""
ATOMIC = written.PRODUCT.replace("tl.store(output", "tl.atomic_add(output")
PRECISIONS = {
    "ieee": (ATOMIC, True),
    "tf32": (ATOMIC.replace('"ieee"', '"tf32"'), False),
    "as Triton likes": (ATOMIC.replace(', input_precision="ieee"', ""), False),
}


@few("precision", PRECISIONS, keep=(0, 1))
def test_settings_of_pytorch_are_asked(precision: str, tmp_path: Path) -> None:
    """Whether results may differ from call to call, and whether products may be TF32, also when compiled."""
    text, strict = PRECISIONS[precision]
    site = evolve(SITE, original="return torch.mm(a, b)", parameters=("a", "b"))
    name = put(tmp_path, written.product_task(), written.product_source(text), site).name
    (tmp_path / "model.py").write_text(PRODUCT_MODEL.format(name=name))
    words = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "EVOKERNEL_EMULATE": "1"}
    done = warm.run(COMPILED.format(name=name, strict=strict), tmp_path, words)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stdout + done.stderr


def guards_of(text: str, dtype: str = "float32") -> set[str]:
    record = LaunchRecord(("a", "b"), ("output",), (written.PRODUCT_LAUNCH,), ("s0", "s1", "s2"))
    return {guard.text for guard in kernel_guards(text, record, written.product_task(dtype))}


TF32, VARY = 'guards.allows_tf32("matmul")', "guards.may_vary()"


@pytest.mark.parametrize(
    ("call", "dtype", "asked"),
    [
        ('tl.dot(a, b, input_precision="ieee")', "float32", set()),
        ('tl.dot(a, b, input_precision="tf32x3")', "float32", set()),
        ('tl.dot(a, b, input_precision="tf32")', "float32", {TF32}),
        ("tl.dot(a, b)", "float32", {TF32}),
        ("tl.dot(a, b)", "bfloat16", set()),
        ("tl.dot(a, b, allow_tf32=False)", "float32", set()),
        ("tl.dot(a, b, acc, PRECISION)", "float32", {TF32}),
        ("tl.dot(a, b, input_precision=PRECISION)", "float32", {TF32}),
        ("tl.atomic_add(a, tl.dot(a, b, acc))", "float32", {TF32, VARY}),
        ("tl.atomic_cas(a, 0, 1)", "float32", {VARY}),
        ("tl.store(a, b)", "float32", set()),
    ],
)
def test_what_a_text_asks_of_settings(call: str, dtype: str, asked: set[str]) -> None:
    assert guards_of(f"def f(a, b, acc, PRECISION):\n    {call}\n", dtype) == asked


def test_a_convolution_asks_the_setting_of_convolutions() -> None:
    g = GraphBuilder()
    x, w = g.input("x", (2, 3, 9, 9)), g.input("w", (4, 3, 3, 3))
    y = g.call(
        "convolution.default", x, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, shape=(2, 4, 7, 7)
    )
    record = LaunchRecord(("x", "w"), ("output",), ())
    (guard,) = kernel_guards("tl.dot(a, b)", record, g.task(y))
    assert guard.text == 'guards.allows_tf32("conv")'


OPERATORS = st.sampled_from(["+", "-", "*", "<=", "!="])


def expressions() -> st.SearchStrategy[str]:
    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, OPERATORS, inner).map(lambda given: f"({' '.join(given)})"),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
                lambda given: f"{given[0]}({given[1]}, {given[2]})"
            ),
            inner.map(lambda text: f"cdiv({text}, 7) // 3"),
            inner.map(lambda text: f"next_power_of_2(max({text}, 1))"),
            inner.map(lambda text: f"-{text} % 5"),
        )

    return st.recursive(st.sampled_from(["rows", "columns", "3", "64"]), larger, max_leaves=6)


NAMES = {"rows": "rows", "columns": "columns_2"}


@given(expressions(), st.integers(1, 300), st.integers(1, 300))
def test_an_expression_in_python_is_the_same_number(text: str, rows: int, columns: int) -> None:
    expected = evaluate(text, {"rows": rows, "columns": columns})
    triton = SimpleNamespace(cdiv=cdiv, next_power_of_2=next_power_of_2)
    values = {"rows": rows, "columns_2": columns}
    assert eval(number_text(text, NAMES), {"triton": triton, **values}) == expected
    assert eval(condition_text(text, NAMES), values) == expected


@given(st.integers(1, 300), st.integers(-3, 300), st.sampled_from(["<", "<="]))
def test_a_bound_of_a_power_of_two_is_one_of_its_number(bound: int, size: int, op: str) -> None:
    text = condition_text(f"next_power_of_2(n) {op} {bound}", {"n": "n"})
    assert eval(text, {"n": size}) == evaluate(f"next_power_of_2(n) {op} {bound}", {"n": size})
    assert "bit_length" not in text or (bound, op) == (1, "<")


def test_grids_of_cuda_are_asked_for() -> None:
    launch = evolve(written.SOFTMAX_LAUNCH, grid=("1", "s0 * 2", "4"))
    record = LaunchRecord(("x",), ("output",), (launch,), ("s0", "s1"))
    text = host_text("k", written.softmax_task(), record)
    assert "    return (s0 * 2 <= 65535,)\n" in text and "not all(limits(s0, s1))" in text


STRANGE = [
    {"launches": ({"kernel": "a\nimport os"},)},
    {"launches": ({"kernel": "import"},)},
    {"launches": ({"grid": ("__import__('os').system('id')",)},)},
    {"launches": ({"grid": ("s0.real",)},)},
    {"launches": ({"arguments": ("x", "output", "print(1)", "s1")},)},
    {"launches": ({"constants": {"BLOCK": "(lambda: 1)()"}},)},
    {"launches": ({"constants": {"x y": "1"}},)},
    {"launches": ({"constants": {"num_warps": "1"}},)},
    {"inputs": ("y",)},
    {"outputs": ("out",)},
    {"symbols": ("s0",)},
    {"requires": ("s0 if 1 else exit()",)},
    {"requires": ("[s0 for s0 in exit]",)},
    {"scratch": (Scratch("t", "float32); exit(", "1"),)},
    {"scratch": (Scratch("t", "float32", "exit()"),), "launches": ({"arguments": ("x", "output", "t")},)},
    {"launches": (LibraryCall("aten.sort.default", (View("x", ("s0",), ("1",)),), "output", ("s0",)),)},
    {"launches": (LibraryCall("aten.mm.default", (View("y", ("s0",), ("1",)),), "output", ("s0",)),)},
    {"launches": (LibraryCall("aten.mm.default", (View("x", ("s0",), ("id()",)),), "output", ("s0",)),)},
]


@pytest.mark.parametrize("changes", STRANGE, ids=str)
def test_host_code_is_of_the_record_alone(changes: Mapping[str, Any]) -> None:
    """Host code runs in a person's program, and a record may be a stranger's."""
    record = LaunchRecord(("x",), ("output",), (written.SOFTMAX_LAUNCH,), ("s0", "s1"))
    launches = changes.get("launches", ())
    if launches and isinstance(launches[0], dict):
        changes = {**changes, "launches": (evolve(written.SOFTMAX_LAUNCH, **launches[0]),)}
    assert host_text("k", written.softmax_task(), record)
    with pytest.raises(UsageError, match=r"^launch\.json |is no number over"):
        host_text("k", written.softmax_task(), evolve(record, **changes))


def test_words_of_guards() -> None:
    packaging = load_packaging("triton")
    task, source = written.product_task(), written.product_source(PRECISIONS["tf32"][0])
    told = tuple(map(str, guard_words(task, SITE, packaging.words, packaging.guards(task, source))))
    assert "All tensors are on one GPU and plain (of no subclass)." in told
    assert "torch.use_deterministic_algorithms is off: the kernel adds in any order." in told
    assert "PyTorch's setting lets float32 products be computed in TF32 (matmul)." in told
    assert any(words.startswith("triton is installed and the package's files") for words in told)


FOR_BOTH = """
import torch
torch.cuda.device_count = lambda: 1
import evokernel_kernels.{name} as kernel
assert (kernel.call.DEVICE, kernel.guards.EMULATED) == {device}, kernel.call.DEVICE
assert kernel.holds(torch.randn(3, 5)) is kernel.guards.EMULATED
print("fine")
"""


def test_a_package_holds_kernels_of_both_targets(tmp_path: Path) -> None:
    """The call takes the one whose device is there, whichever was written last."""
    task = written.softmax_task()
    ascendc, triton = authored(task, "ascend910b1"), adding_source()
    site = evolve(SITE, original="return x")
    for first, second in ((ascendc, triton), (triton, ascendc)):
        folder = put(tmp_path, task, first, site)
        assert put(tmp_path, task, second, site) == folder
        _, source, manifest = read_package(folder)
        assert source == second and manifest["format"] == 6
        assert [also["target"] for also in manifest["also"]] == [first.target]
        assert read_package(folder, target=first.target)[1] == first
        assert {*first.files, *second.files} < set(files_to_read(folder))
        judged = [verify._package(folder, target, changed=False)[1] for target in ("", first.target)]
        assert judged == [second, first]
        texts = {path.name: path.read_text() for path in folder.iterdir()}
        assert {*ascendc.files, *triton.files, "op_torch.cpp", "host.py"} < texts.keys()
        assert (
            f"test_op.py tiling.h {' '.join(sorted(['host.py', *triton.files]))})" in texts["CMakeLists.txt"]
        )
        assert '(DEVICE != "cuda" or guards.may_vary())' in texts["call.py"]
        assert f'guards.device("{folder.name}")' in texts["test_op.py"]
    (tmp_path / "model.py").write_text(MODEL.format(name=folder.name))
    for emulate, device in (("", ("cuda", False)), ("1", ("cpu", True))):
        words = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "EVOKERNEL_EMULATE": emulate}
        done = warm.run(FOR_BOTH.format(name=folder.name, device=device), tmp_path, words)
        assert (done.returncode, done.stdout) == (0, "fine\n"), done.stdout + done.stderr
    with pytest.raises(UsageError, match="The package has no kernel for other, but for ascendc, triton"):
        read_package(folder, target="other")


def hand_changed(folder: Path) -> None:
    (folder / "kernel.py").write_text("# faster")


def of_a_later_target(folder: Path) -> None:
    resealed(folder, target="tilelang")


def of_other_files(folder: Path) -> None:
    resealed(folder, sources=["kernel.py", "launch.json", "call.py"])


def resealed(folder: Path, **changes: Any) -> None:
    """Digests made anew over another record of the kernel."""
    manifest = json.loads((folder / MANIFEST).read_text())
    source = read_source(folder, {**manifest, **changes})
    data = {**manifest, **changes, "source_id": source.source_id}
    files = {name: (folder / name).read_text() for name in data.pop("files")}
    del data["digest"]
    (folder / MANIFEST).write_text(sealed(data, files))


@pytest.mark.parametrize("change", [hand_changed, of_a_later_target, of_other_files])
def test_a_kernel_that_is_not_known_does_not_stay_beside_another(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    """It would be written under a seal of ours."""
    task = written.softmax_task()
    folder = put(tmp_path, task, adding_source())
    change(folder)
    ascendc = authored(task, "ascend910b1")
    put(tmp_path, task, ascendc)
    assert read_package(folder)[2].get("also") is None
    assert not (folder / "kernel.py").exists()


def test_a_package_of_one_target_is_of_the_format_that_it_was(tmp_path: Path) -> None:
    task = written.softmax_task()
    for source in (authored(task, "ascend910b1"), adding_source()):
        folder = put(tmp_path / source.target, task, source)
        known, read, manifest = read_package(folder)
        assert (known, read, manifest["format"], "also" in manifest) == (task, source, 5, False)
        (folder / "kernel.json").write_text(
            (folder / "kernel.json").read_text().replace(source.target, "x", 1)
        )
        with pytest.raises(PackageChanged):
            read_package(folder)
