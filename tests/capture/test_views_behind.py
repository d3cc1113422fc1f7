"""A view at the end of an expression or a run that a kernel cannot lay out costs the view, not the kernel."""

from __future__ import annotations

from textwrap import indent

import pytest
import torch
from attrs import frozen

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops, single_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs
from tests.capture.test_edits_run import described

BODIES = {
    "Expanded": "y = x / torch.norm(x, dim=-1, keepdim=True)\nreturn y[:, None].expand(4, 3, 6)",
    "ExpandedInOne": "return (torch.relu(x) * 2)[:, None].expand(4, 3, 6)",
    "Transposed": "y = torch.softmax(x, -1) * 2\nz = y.transpose(0, 1)\nreturn z",
    "Named": "return (torch.relu(x) * 2).T",
    "Chained": "return torch.sigmoid(x).mul(2).unsqueeze(0).transpose(1, 2)",
    "Heads": "q = torch.relu(x).mul(2)\nq = q.view(4, 2, 3).permute(1, 0, 2)\nreturn q",
    "Strided": "y = torch.sigmoid(x) * 3\nreturn y[:, ::2]",
    "Cut": "return (torch.sigmoid(x) * 3)[:, 1:]",
    "ByFunction": "y = torch.sigmoid(x) * 3\nreturn torch.transpose(y, 0, 1)",
    "Joined": "y = torch.sigmoid(x) * 3\nreturn x + 1, y.t()",
    "Again": "y = torch.sigmoid(x) * 3\nz = y.t()\nw = torch.relu(z.contiguous()) + 1\nreturn w.t()",
}
UNDER = "with warnings.catch_warnings():\n"
"""Lets no kernel stand for all of a forward."""
HEAD = "import warnings\n\nimport torch\nfrom torch import nn\n\n\n"
TAIL = "def get_inputs():\n    return [torch.randn(4, 6)]\n"


@frozen
class Captured:
    text: str
    regions: tuple[Region, ...]

    def of(self, name: str) -> list[Region]:
        return [region for region in self.regions if region.symbol == f"{name}.forward" and region.task]


def program() -> str:
    """One module that calls all of them, so that one capture sees them."""
    classes = [
        f"class {name}(nn.Module):\n    def forward(self, x):\n"
        f"{indent(UNDER + indent(body, '    '), ' ' * 8)}\n\n\n"
        for name, body in BODIES.items()
    ]
    made = "".join(f"        self.{name} = {name}()\n" for name in BODIES)
    called = "".join(f"        self.{name}(x)\n" for name in BODIES)
    model = (
        f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{made}\n"
        f"    def forward(self, x):\n{called}        return x\n\n\n"
    )
    return HEAD + "".join(classes) + model + TAIL


@pytest.fixture(scope="module", params=["single", "programs"])
def captured(
    request: pytest.FixtureRequest, agent: AgentClient, tmp_path_factory: pytest.TempPathFactory
) -> Captured:
    text, path = program(), tmp_path_factory.mktemp("views") / "model.py"
    programs = request.param == "programs"
    ops = covered_ops(ASCENDC) if programs else single_ops(ASCENDC)
    return Captured(text, tuple(agent.capture(path, text, ops, whole=programs)))


@pytest.mark.parametrize("name", BODIES)
def test_what_is_computed_before_a_view_keeps_its_kernel(captured: Captured, name: str) -> None:
    assert captured.of(name), [region.reason for region in captured.regions]


def test_the_edited_modules_give_the_same_tensors(captured: Captured) -> None:
    """Strides, too: the views stay the user's."""
    regions = [region for region in captured.regions if region.task]
    plain: dict[str, type] = {}
    exec(compile(captured.text, "plain.py", "exec"), plain)
    edited = edited_module(captured.text, *regions)
    x = torch.randn(4, 6)
    with torch.no_grad():
        for name in BODIES:
            before = runs(edited)
            expected, result = plain[name]()(x), getattr(edited, name)()(x)
            assert runs(edited) > before, name
            pairs = zip(
                *(one if isinstance(one, tuple) else (one,) for one in (expected, result)), strict=True
            )
            for one, other in pairs:
                assert described(one) == described(other), name
                torch.testing.assert_close(one, other)
