"""Files that were ported to Ascend: their calls of torch_npu are traced, or stay as they are, each alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm

HEAD = """
import torch
import torch_npu
from torch import nn
from torch_npu import npu_rotary_mul
from torch_npu.contrib import transfer_to_npu

torch.npu.set_device(0)
torch_npu.npu.set_compile_mode(jit_compile=False)
torch.npu.config.allow_internal_format = False
"""

MODEL = """
class Net(nn.Module):
    def __init__(self, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(16))

    def forward(self, x):
        return {value}

def get_inputs(): return [torch.rand(4, 8, 16).npu()]
"""

IDIOMS = {
    "torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]": "pow",
    "torch_npu.npu_add_rms_norm(x, x * 2, self.weight)[2]": "add",
    "torch.ops.npu.npu_rms_norm(x, self.weight, self.eps)[0]": "pow",
    "torch.ops.npu.npu_swiglu.default(x)": "silu",
    "npu_rotary_mul(x.unsqueeze(1), x.unsqueeze(1).cos(), x.unsqueeze(1).sin())": "cat",
    "torch_npu.npu_fusion_attention(x, x, x, 2, input_layout='BSH', scale=0.25)[0]": "scaled_dot_product",
    "torch_npu.npu_geglu(x, dim=-1, approximate=0)[0]": "gelu",
    "torch_npu.npu_format_cast(x, torch_npu.Format.ND) * 2": "mul",
    "torch_npu.npu_dtype_cast(x, torch.float16) * 2": "mul",
    "(x * 2) if torch.npu.is_available() else x.sinh()": "mul",
}


@pytest.fixture
def whole(agent: AgentClient, tmp_path: Path) -> Any:
    """Captures a file with every operation that kernels compute, as the command line does."""

    def run(text: str) -> Any:
        path = tmp_path / "model.py"
        path.write_text(HEAD + text)
        return agent.capture(path, None, dict(covered_ops(ASCENDC)), whole=True)

    return run


@pytest.mark.parametrize(("value", "op"), IDIOMS.items())
def test_documented_calls_are_regions_of_what_they_compute(whole: Any, value: str, op: str) -> None:
    (region,) = whole(MODEL.format(value=value))
    assert region.task, region.reason
    names = {node.op for node in region.task.graph.nodes}
    assert any(op in name for name in names), names
    assert not any("npu" in name for name in names)


UNKNOWN = """
class First(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

class Middle(nn.Module):
    def forward(self, x):
        y = {call}
        return y

class Last(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = First(), Middle(), Last()

    def forward(self, x):
        return self.last(self.middle(self.first(x)))

def get_inputs(): return [torch.rand(4, 8, 16).npu()]
"""


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("torch_npu.npu_wonder(x, 3)", "npu_wonder"),
        ("torch_npu.npu_wonder(x)[0]", "npu_wonder"),
        ("torch.ops.npu.npu_wonder(x)", "npu_wonder"),
        ("torch_npu.npu_wonder_(x)", "npu_wonder_"),
        ("torch_npu.npu_fusion_attention(x, x, x, 2, 'BSH', keep_prob=0.9)[0]", "npu_fusion_attention"),
    ],
)
def test_an_unknown_operation_costs_only_the_function_that_calls_it(whole: Any, call: str, name: str) -> None:
    regions = {region.symbol: region for region in whole(UNKNOWN.format(call=call))}
    assert regions["First.forward"].task, regions["First.forward"].reason
    assert regions["Last.forward"].task, regions["Last.forward"].reason
    assert f"torch_npu.{name}" in regions["Middle.forward"].reason
    line = (HEAD + UNKNOWN).split("{call}")[0].count("\n") + 1
    assert f"Line {line} " in regions["Middle.forward"].reason


def test_automatic_precision_of_the_device_is_refused_where_it_is_used(whole: Any) -> None:
    body = """
class Net(nn.Module):
    def forward(self, x):
        with torch.npu.amp.autocast():
            return torch.relu(x @ x.transpose(1, 2))

def get_inputs(): return [torch.rand(4, 8, 16)]
"""
    (region,) = whole(body)
    assert not region.task
    assert "torch_npu.npu.amp.autocast chooses types" in region.reason


def test_a_whole_function_never_drops_an_unknown_operation_whose_result_is_not_used(whole: Any) -> None:
    body = """
class Net(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        torch_npu.npu_wonder(x, out=(y,))
        return y * 2

def get_inputs(): return [torch.rand(4, 8, 16)]
"""
    regions = whole(body)
    assert any("torch_npu.npu_wonder" in region.reason for region in regions)
    for region in regions:
        lines = range(region.span.line, region.span.end_line + 1)
        assert not region.task or len(lines) == 1


LEFT_OVER = """
import sys, torch
from evokernel_core.capture.agent.loading.devices import on_host
with on_host():
    import torch_npu
    assert torch_npu.npu_swiglu and torch_npu.npu.current_device() == 0 and torch_npu.__version__
    import torch.npu
    from torch_npu.npu.amp import GradScaler, autocast
    with torch.npu.stream(torch.npu.Stream()) as stream:
        torch.npu.Event(enable_timing=True).record(stream)
assert not [name for name in sys.modules if name.startswith(("torch_npu", "torch.npu"))]
assert not hasattr(torch, "npu")
assert not hasattr(torch.ops.npu, "npu_swiglu")
"""


def test_nothing_of_the_table_is_left_behind(tmp_path: Path) -> None:
    run = warm.run(LEFT_OVER, tmp_path, os.environ)
    assert run.returncode == 0, run.stderr


INSTALLED = """
import torch, torch_npu
from evokernel_core.capture.agent.loading.devices import on_host
theirs = torch_npu.npu_swiglu
x = torch.rand(2, 8)
with on_host():
    assert torch_npu.npu_swiglu is not theirs
    assert torch.equal(torch_npu.npu_swiglu(x), torch.ops.npu.npu_swiglu(x))
    assert torch_npu.npu_other(x) == "theirs"
assert torch_npu.npu_swiglu is theirs
"""


def test_an_installed_extension_gets_its_functions_back(tmp_path: Path) -> None:
    stub = "def npu_swiglu(x, dim=-1): raise AssertionError\ndef npu_other(x): return 'theirs'\n"
    (tmp_path / "torch_npu.py").write_text(stub)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{INSTALLED}"
    run = warm.run(code, tmp_path, os.environ)
    assert run.returncode == 0, run.stderr


def test_libraries_see_that_there_is_no_npu(tmp_path: Path) -> None:
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "library.py").write_text("import torch\nfound = torch.npu.is_available()\n")
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        "from evokernel_core.capture.agent.loading.devices import on_host\n"
        "import torch\n"
        "with on_host():\n    import library\n    assert torch.npu.is_available() and not library.found\n"
    )
    run = warm.run(code, tmp_path, os.environ)
    assert run.returncode == 0, run.stderr


LOCAL_IMPORT = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        import torch_npu
        from torch.nn import functional as F
        y = torch_npu.npu_swiglu(x) * torch.ops.npu.npu_fast_gelu(x[..., :8])
        print("stays in Python")
        return F.relu(y) + 1

def get_inputs(): return [torch.rand(4, 8, 16)]
"""


def test_a_functions_own_import_means_the_same_in_every_call(agent: AgentClient, tmp_path: Path) -> None:
    regions = agent.capture(tmp_path / "model.py", LOCAL_IMPORT, dict(covered_ops(ASCENDC)))
    found = [{node.op for node in region.task.graph.nodes} for region in regions if region.task]
    assert [("aten.silu.default" in ops, "aten.relu.default" in ops) for ops in found] == [
        (True, False),
        (False, True),
    ], [region.reason for region in regions]
