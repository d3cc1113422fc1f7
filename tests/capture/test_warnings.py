"""What PyTorch warns of, a call says too; what else warns, or makes text of tensors, has no kernel."""

from __future__ import annotations

import warnings
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
import torch

from evokernel_core.capture.client import AgentClient, CaptureWay
from evokernel_core.compiler.coverage import covered_ops, single_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs

OF_PYTHON = {
    "softmax": "return F.softmax(x * 2)",
    "log_softmax": "return F.log_softmax(x * 2) + 1",
    "mse_loss": "return F.mse_loss(x * 2, x[:, :1])",
    "l1_loss": "return F.l1_loss(x * 2, x[:, :1])",
    "kl_div": "return F.kl_div(x, x.exp(), reduction='mean')",
    "dropout2d": "return F.dropout2d(x * 2, 0.5, False) + 1",
    "copied": "return x * torch.tensor(x.mean()) + 1",
    "own": "warnings.warn('x is small')\nreturn x * 2 + 1",
    "text": "s = repr(x * 2)\nreturn x * len(s)",
}
ONCE = {
    "addcmul": "return torch.addcmul(x, 0.5, x, x)",
}
"""What PyTorch warns of once in a process."""
REFUSED = {**OF_PYTHON, **ONCE}
REPEATED = {
    "size_average": "return F.mse_loss(x * 2, x, size_average=False)",
    "instance_norm": "return nn.InstanceNorm2d(4)(x[None, None] * 2) + 1",
    "twice": "return F.mse_loss(x * 2, x, reduce=True) + nn.InstanceNorm2d(4)(x[None, None]).sum()",
}
"""What PyTorch's own Python code warns of."""
SILENT = {
    "with_dim": "return F.softmax(x * 2, -1)",
    "same_sizes": "return F.mse_loss(x * 2, x)",
    "caught": "with warnings.catch_warnings():\n    y = x * 2 + 1\nreturn y",
}
ONLY_EAGER = {
    "var": "return x[:, :1].var(1) + 1",
    "to_real": "return torch.complex(x, x).to(torch.float32) + 1",
}
"""A tensor without values does not warn of it."""
HEAD = "import warnings\n\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"


def text_of(bodies: dict[str, str]) -> str:
    head = "# evokernel: x=f32[8,16]\ndef "
    return HEAD + "\n\n".join(f"{head}{name}(x):\n{indent(body, '    ')}\n" for name, body in bodies.items())


@pytest.fixture(scope="module", params=["single", "programs"])
def regions(
    request: pytest.FixtureRequest, agent: AgentClient, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Region]]:
    programs = request.param == "programs"
    ops = covered_ops(ASCENDC) if programs else single_ops(ASCENDC)
    path = tmp_path_factory.mktemp("warnings") / "model.py"
    result: dict[str, list[Region]] = {name: [] for name in {**REFUSED, **REPEATED, **SILENT}}
    for region in agent.capture(path, text_of({**REFUSED, **REPEATED, **SILENT}), ops, whole=programs):
        result[region.symbol].append(region)
    return result


def warned(name: str, body: str) -> list[str]:
    made: dict[str, Any] = {}
    exec(text_of({name: body}), made)
    with warnings.catch_warnings(record=True) as told, torch.no_grad():
        warnings.simplefilter("always")
        made[name](torch.randn(8, 16))
    return [str(warning.message) for warning in told]


@pytest.mark.parametrize("name", REFUSED)
def test_what_warns_has_no_kernel(name: str, regions: dict[str, list[Region]]) -> None:
    texts = warned(name, REFUSED[name])
    assert texts or name in {"text", *ONCE}
    reasons = " ".join(str(region.reason) for region in regions[name])
    assert all(region.task is None for region in regions[name]) or name == "own", reasons
    for text in texts if name != "own" else ():
        assert " ".join(text.split())[:60] in reasons


@pytest.mark.parametrize("name", REPEATED)
def test_a_call_says_what_pytorch_warns_of(name: str, agent: AgentClient, tmp_path: Path) -> None:
    path, text = tmp_path / "model.py", text_of({name: REPEATED[name]})
    way = CaptureWay(covered_ops(ASCENDC), True)
    (region,) = (one for one in agent.capture(path, text, way.fusible, whole=True) if one.task)
    assert not agent.compare(region, text, (way,)).difference
    edited, x = edited_module(text, region), torch.randn(8, 16)
    with warnings.catch_warnings(record=True) as told, torch.no_grad():
        warnings.simplefilter("always")
        getattr(edited, name)(x)
    assert runs(edited) == 1
    assert [str(one.message) for one in told] == warned(name, REPEATED[name])
    assert {one.filename for one in told} == {edited.__file__}
    with warnings.catch_warnings(), torch.no_grad(), pytest.raises(UserWarning):
        warnings.simplefilter("error")
        getattr(edited, name)(x)


@pytest.mark.parametrize("name", SILENT)
def test_what_does_not_warn_keeps_its_kernel(name: str, regions: dict[str, list[Region]]) -> None:
    assert not warned(name, SILENT[name])
    assert any(region.task for region in regions[name])


@pytest.mark.parametrize("name", ONLY_EAGER)
def test_a_warning_of_values_is_a_difference(name: str, agent: AgentClient, tmp_path: Path) -> None:
    path, text = tmp_path / "model.py", text_of({name: ONLY_EAGER[name]})
    way = CaptureWay(covered_ops(ASCENDC), True)
    (region,) = (one for one in agent.capture(path, text, way.fusible, whole=True) if one.task)
    assert str(agent.compare(region, text, (way,)).difference).startswith("It warns, which")
