"""Runs packages of kernels in Triton on a GPU as a person's program does.

    python -m benchmarks.gpu_package [--json OUT]

Each check is one line: an operator beside its reference, guards, ``torch.compile`` and a captured CUDA graph,
another stream and another device, sizes of another divisibility, gradients, a forked process, and a kernel
that the device cannot hold. ``failed`` of ``checks`` in the summary. Needs a CUDA device, torch and triton,
and no network.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

sys.path.insert(0, str(Path(__file__).parents[1]))

from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.package.write import Placed
from evokernel_core.targets import author_for
from evokernel_core.targets.packages import write_package
from evokernel_core.targets.triton.launch import Launch, LaunchRecord
from tests.targets.triton import written

MODEL = """
import torch
from evokernel_kernels import {name}


def original({arguments}):
    {body}


def edited({arguments}):
    if {name}.holds({arguments}):
        return {name}.run({arguments})
    {body}
"""
CHECKS = '''
import importlib, json, os, sys, time, traceback, warnings
import torch
torch.backends.cudnn.allow_tf32 = False
model = importlib.import_module(sys.argv[1])
kernel, shapes, functions = getattr(model, sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4])
guards, close = kernel.guards, torch.testing.assert_close


def given(change=0, device="cuda"):
    """Inputs; the first dimension of the first one is another where it is asked for."""
    found = [torch.randn(*shape, device=device) for shape in shapes]
    return [found[0][: shapes[0][0] - change].contiguous(), *found[1:]] if change else found


def names_of(call):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    return {event.key for event in seen.key_averages()}


def same(results, expected):
    close(results, expected, rtol=1e-4, atol=1e-4)


def is_ready():
    assert kernel.call.READY and kernel.call.DEVICE == "cuda"


def forks():
    child = os.fork()
    if not child:
        status = 1
        try:
            status = int(torch.zeros(3, device="cuda").sum().item())
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def computes():
    inputs = given()
    assert kernel.holds(*inputs)
    same(model.edited(*inputs), model.original(*inputs))
    assert set(functions) <= names_of(lambda: model.edited(*inputs))


def takes_other_sizes():
    for change in range(1, 18):
        inputs = given(change)
        assert kernel.holds(*inputs)
        same(model.edited(*inputs), model.original(*inputs))


def leaves_what_it_does_not_take():
    first, *rest = inputs = given()
    assert not kernel.holds(*[one.cpu() for one in inputs])
    assert not kernel.holds(first.double(), *rest)
    assert not kernel.holds(first.t().contiguous().t(), *rest)
    assert not kernel.holds(first[:1].expand(*first.shape), *rest)
    with torch.autocast("cuda"):
        assert not kernel.holds(*inputs)
    same(model.edited(*[one.cpu() for one in inputs]), model.original(*[one.cpu() for one in inputs]))


def gradients():
    def of(call):
        torch.manual_seed(0)
        inputs = [one.requires_grad_() for one in given()]
        call(*inputs).square().sum().backward()
        return [one.grad for one in inputs]
    same(of(model.edited), of(model.original))


def compiles():
    inputs = given()
    for dynamic in (None, True):
        torch._dynamo.reset()
        compiled = torch.compile(model.edited, fullgraph=True, dynamic=dynamic)
        same(compiled(*inputs), model.original(*inputs))
        assert set(functions) <= names_of(lambda: compiled(*inputs)), "no kernel of ours ran"


def reduces_overhead():
    torch._dynamo.reset()
    compiled = torch.compile(model.edited, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        inputs = given()
        same(compiled(*inputs).clone(), model.original(*inputs))


def captures():
    inputs = given()
    model.edited(*inputs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = model.edited(*inputs)
    for own, other in zip(inputs, given()):
        own.copy_(other)
    graph.replay()
    torch.cuda.synchronize()
    same(result, model.original(*inputs))


def streams():
    inputs, stream = given(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        slow = torch.randn(2048, 2048, device="cuda")
        for _ in range(20):
            slow = slow @ slow / 100
        inputs[0].fill_(0.5)
        result = model.edited(*inputs)
    stream.synchronize()
    same(result, model.original(*inputs))


def other_device():
    if torch.cuda.device_count() < 2:
        return "one device here"
    inputs = given(device="cuda:1")
    result = model.edited(*inputs)
    assert result.device.index == 1 and torch.cuda.current_device() == 0
    same(result, model.original(*inputs))


def deterministic():
    inputs = given()
    torch.use_deterministic_algorithms(True)
    held = kernel.holds(*inputs)
    torch.use_deterministic_algorithms(False)
    return f"holds: {held}"


def too_large():
    inputs = given()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        same(model.edited(*inputs), model.original(*inputs))
    words = [str(one.message) for one in seen if "Triton cannot compile" in str(one.message)]
    assert words, "it was compiled"
    assert not kernel.holds(*inputs)
    return words[0]


def cost():
    inputs = given(shapes[0][0] - 1)
    operator = guards.operator(kernel.call.NAME)
    def us(call):
        for _ in range(20):
            call()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(500):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / 500 * 1e6
    calls = dict(original=lambda: model.original(*inputs), operator=lambda: operator(*inputs),
                 edited=lambda: model.edited(*inputs))
    return "wall us of a small call: " + ", ".join(f"{name} {us(call):.1f}" for name, call in calls.items())


for check in json.loads(sys.argv[5]):
    torch.manual_seed(1)
    try:
        with torch.no_grad() if check != "gradients" else torch.enable_grad():
            told, ok = globals()[check]() or "", True
    except Exception:
        told, ok = traceback.format_exc()[-1500:], False
    print(json.dumps({"check": check, "ok": ok, "told": told}), flush=True)
'''
ALL = (
    *("forks", "is_ready", "computes", "takes_other_sizes", "leaves_what_it_does_not_take", "gradients"),
    *("compiles", "reduces_overhead", "captures", "streams", "other_device", "deterministic", "cost"),
)
"""A fork comes first: afterwards CUDA is in use."""


@frozen
class Trial:
    """A package and what is asked of it: the arguments and the body of its function, shapes of inputs, names
    of jit functions that a profiler sees."""

    name: str
    task: KernelTask
    source: KernelSource
    arguments: str
    body: str
    shapes: tuple[tuple[int, ...], ...]
    functions: tuple[str, ...]
    checks: tuple[str, ...] = ALL


def trials() -> Iterator[Trial]:
    rows = ((96, 200),)
    body = "return torch.softmax(x, -1)"
    yield Trial("rows", written.softmax_task(), written.softmax_source(), "x", body, rows, ("softmax_rows",))
    task = written.softmax_task(rows=64)
    author = author_for("nvidia_h200")
    own = author.write(task, author.initial(task))
    yield Trial("author", task, own, "x", body, ((64, 200),), ())
    yield Trial(
        "two_launches", written.total_task(), written.total_source(), "x", "return x.sum()",
        ((40, 300),), ("partial_sums", "total"),
    )  # fmt: skip
    product = "return torch.mm(a, b)"
    shapes = ((70, 90), (90, 50))
    yield Trial(
        "product", written.product_task(), written.product_source(), "a, b", product, shapes, ("product",)
    )
    atomic = written.source(
        written.SOFTMAX.replace("tl.store(", "tl.atomic_xchg("),
        LaunchRecord(("x",), ("output",), (written.SOFTMAX_LAUNCH,), ("s0", "s1")),
    )
    task = written.softmax_task(rows=33)
    yield Trial("atomic", task, atomic, "x", body, ((33, 200),), (), ("computes", "deterministic"))
    wide = {"M": "64", "N": "64", "K": "64"}
    launch = Launch("product", ("cdiv(s0, 64) * cdiv(s2, 64)",), written.PRODUCT_LAUNCH.arguments, wide, 4, 8)
    record = LaunchRecord(("a", "b"), ("output",), (launch,), ("s0", "s1", "s2"))
    staged = written.source(written.PRODUCT.replace("ieee", "tf32x3"), record)
    large = written.product_task(m=71)
    shapes = ((71, 90), (90, 50))
    yield Trial("too_large", large, staged, "a, b", product, shapes, (), ("too_large",))


def run(trial: Trial, root: Path) -> list[dict[str, object]]:
    """One row a check; a package that ends its process is a row too."""
    site = CallSite("", trial.body, parameters=tuple(trial.arguments.split(", ")))
    verdict = Verdict(trial.task.task_id, trial.source.source_id, "none", ())
    module = f"model_{trial.name}"
    place = Placed(f"{module}.py", "original", site)
    name = write_package(root, trial.task, place, trial.source, verdict).name
    words = {"name": name, "arguments": trial.arguments, "body": trial.body}
    (root / f"{module}.py").write_text(MODEL.format(**words))
    given = [module, name, *map(json.dumps, (trial.shapes, trial.functions, trial.checks))]
    command = [sys.executable, "-c", CHECKS, *given]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=240, check=False)
        output, error = done.stdout, done.stderr
    except subprocess.TimeoutExpired as stopped:
        output, error = str(stopped.stdout or b"", "utf-8", "replace"), "it took more than 240 s"
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    missing = trial.checks[len(rows) :]
    rows += [{"check": check, "ok": False, "told": error[-1500:]} for check in missing]
    return [{"package": trial.name, **row} for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="names of packages, with commas")
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.device_count():
        print("PyTorch sees no CUDA device here; run this on a machine with a GPU.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        wanted = arguments.only.split(",") if arguments.only else [trial.name for trial in trials()]
        rows = [row for trial in trials() if trial.name in wanted for row in run(trial, Path(folder))]
    for row in rows:
        print("ok    " if row["ok"] else "FAILED", row["package"], row["check"], row["told"])
    failed = [row for row in rows if not row["ok"]]
    summary = {"checks": len(rows), "failed": len(failed)}
    print(json.dumps(summary))
    if arguments.json:
        arguments.json.write_text(json.dumps({"summary": summary, "rows": rows}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
