"""A function of torch_npu in the place of a person's code: the package, the edit, and what runs where."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.edit import plan_edit, revert_edit
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.region import Region
from evokernel_core.package.vendor import write_vendor_package
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm

HEAD = "import torch\nfrom torch import nn\n\n\n"
NORM = (
    HEAD
    + """# evokernel: x=f32[6,16]
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 16), requires_grad=False)
        self.eps = 1e-5

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
"""
)
QUANT = (
    HEAD
    + """# evokernel: x=f16[6,16]
class Norm(nn.Module):
    def forward(self, x):
        wide = x.float()
        scale = wide.abs().amax(-1, keepdim=True) / 127
        return torch.round(wide / scale).to(torch.int8), scale.squeeze(-1)
"""
)
ROTARY = (
    HEAD
    + """# evokernel: x=f32[2,3,8,16], c=f32[1,1,8,16], s=f32[1,1,8,16]
class Norm(nn.Module):
    def forward(self, x, c, s):
        first, second = x.chunk(2, dim=-1)
        return x * c + torch.cat((-second, first), dim=-1) * s
"""
)


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentClient]:
    with AgentClient(warm.interpreter()) as client:
        yield client


def whole(agent: AgentClient, path: Path, text: str) -> Region:
    path.write_text(text)
    (region,) = agent.capture(path, text, covered_ops(ASCENDC), "Norm.forward", whole=True)
    assert region.task is not None, region.reason
    return region


def python(folder: Path, script: str, **environment: str) -> None:
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = warm.run(script, folder, {**os.environ, "PYTHONPATH": path, **environment})
    assert done.returncode == 0, done.stderr


CASES = {
    "npu_rms_norm": (NORM, "[torch.randn(6, 16)]", "[torch.randn(5, 16).double()]"),
    "npu_dynamic_quant": (QUANT, "[torch.randn(6, 16).half()]", "[torch.randn(6, 16)]"),
    "npu_rotary_mul": (
        ROTARY,
        "[torch.randn(2, 3, 8, 16), torch.rand(1, 1, 8, 16), torch.rand(1, 1, 8, 16)]",
        "[torch.randn(2, 1001, 8, 16), torch.rand(1, 1, 8, 16), torch.rand(1, 1, 8, 16)]",
    ),
}
"""By function: a file, a call that the guards let through, and one outside the contract or the limits."""
COMPARED = """
import torch, original, model, evokernel_kernels
given = {given}
torch.testing.assert_close(model.Norm()(*given), original.Norm()(*given))
assert sum(evokernel_kernels.calls().values()) == {calls}, evokernel_kernels.calls()
"""
CALLED = """
import importlib, sys, types
import torch, original
from evokernel_core.capture.agent.npu.functions import FILES
from evokernel_core.capture.agent.npu.table import TABLE
sys.modules["torch_npu"] = types.SimpleNamespace(__file__="/nowhere/torch_npu/__init__.py", **TABLE)
given = {given}
package = "evokernel_kernels.{name}"
call = importlib.import_module(package + ".call")
module = original.Norm()
operands = call._operands(*([module] if "self" in call._operands.__code__.co_varnames else []), *given)
init = importlib.import_module(package)
found = init.documented(*operands)
torch.testing.assert_close(found, module(*given))
"""


@pytest.mark.parametrize("function", CASES)
def test_the_function_runs_under_guards(agent: AgentClient, tmp_path: Path, function: str) -> None:
    text, given, outside = CASES[function]
    region = whole(agent, tmp_path / "model.py", text)
    folder = write_vendor_package(tmp_path, region, "ascend910b2")
    assert folder.name.startswith(f"{function}_")
    edited = plan_edit(text, region, folder.name)
    assert f"{folder.name}.holds(" in edited
    assert region.source.strip() in edited or "else" in edited
    (tmp_path / "model.py").write_text(edited)
    (tmp_path / "original.py").write_text(text)
    for emulate, values, calls in (("1", given, 1), ("1", outside, 0), ("", given, 0)):
        python(tmp_path, COMPARED.format(given=values, calls=calls), EVOKERNEL_EMULATE=emulate)
    python(tmp_path, CALLED.format(given=given, name=folder.name))
    assert revert_edit(edited, region, folder.name) == text


def test_the_manifest_says_what_is_called_and_claims_no_verdict(agent: AgentClient, tmp_path: Path) -> None:
    region = whole(agent, tmp_path / "model.py", NORM)
    manifest = json.loads((write_vendor_package(tmp_path, region, "ascend910b2") / "kernel.json").read_text())
    call = "torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)"
    assert manifest["vendor"] == {"function": "torch_npu.npu_rms_norm", "call": call}
    assert "verdict" not in manifest


def test_other_code_has_no_such_package(agent: AgentClient, tmp_path: Path) -> None:
    region = whole(agent, tmp_path / "model.py", NORM.replace("self.eps)", "self.eps).exp()"))
    with pytest.raises(UsageError, match=r"no function of torch_npu"):
        write_vendor_package(tmp_path, region, "ascend910b2")
    assert not (tmp_path / "evokernel_kernels").exists()
