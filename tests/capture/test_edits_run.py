"""What is offered for a program can be written and put in place, and computes there what the program did."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops, single_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm
from tests.capture.edited import edited_module, edited_text, runs
from tests.capture.test_full_graph import executed, model

X = "torch.randn(4, 6)"
PROGRAMS = {
    "the parts of complex numbers": (
        "",
        "x = torch.fft.fft(x)\ny = torch.relu(x.real * 2 - x.imag)\nz = torch.stack([y, y * 2], -1)\n"
        "return torch.view_as_complex(z)",
        X,
    ),
    "one text twice in a function": (
        "",
        "y = torch.sum(x * 2, -1)\nz = x.argmin() + torch.sum(x, -1)\nw = x.argmin() * 2\n"
        "v = torch.sum(x, -1)\nu = x.argmin() * 2\nreturn y, z, w, v, u",
        X,
    ),
    "one text twice in statements": (
        "",
        "if x.dim():\n    y = x.argmin()\n    x = x * 2\n    x = torch.relu(x) + 1\n    y = y + x.argmin()\n"
        "    x = x * 2\n    x = torch.relu(x) + 1\nreturn x.argmin() + y, x",
        X,
    ),
    "no tensor": (
        "",
        "t = torch.arange(6).float()[:, None] * torch.arange(4).float()\n"
        "return torch.cat((t.cos(), t.sin()), -1), torch.relu(x * 2)",
        X,
    ),
    "a result in the order of a transposed tensor": (
        "",
        "g = x.permute(0, 2, 3, 1)\nh = torch.sigmoid(g) * 2\ni = x.argmin()\n"
        "return h.permute(0, 3, 1, 2).view(x.shape[0], -1) + i, h.mean(-1), h.stride()",
        "torch.randn(2, 4, 6, 5)",
    ),
    "an import within": (
        "",
        "x = x * 2\nimport torch.nn.functional as G\nfrom torch import sigmoid as s\nreturn G.gelu(x) * s(x)",
        X,
    ),
}


def names_not_known(text: str, region: Region) -> Iterator[str]:
    """The names that the edit brings to a function, and that neither it nor its file has."""
    known = {*dir(builtins), "torch"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.alias):
            known.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    assert region.site is not None
    return (name for name in (*region.site.asked, *region.site.module_names) if name not in known)


def described(value: Any) -> Any:
    """A result with what a program sees of it: of a tensor how it lies in memory, too."""
    if not isinstance(value, torch.Tensor):
        return value
    strides = [step for step, size in zip(value.stride(), value.shape, strict=True) if size > 1]
    return value.dtype, value.shape, strides


def check(text: str, region: Region) -> None:
    assert not [*names_not_known(text, region)]
    first, second = executed(text), edited_module(text, region)
    torch.manual_seed(0)
    one, other = first["Model"]().eval(), second.Model().eval()
    other.load_state_dict(one.state_dict())
    given = first["get_inputs"]()
    with torch.no_grad():
        results = [pytree.tree_leaves(item(*pytree.tree_map(torch.clone, given))) for item in (one, other)]
    assert runs(second), "no call was the kernel's"
    assert [*map(described, results[0])] == [*map(described, results[1])]
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def evaluating() -> Iterator[AgentClient]:
    with AgentClient(warm.interpreter(), evaluation=True) as client:
        yield client


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_edit_of_a_program_runs(name: str, whole: bool, evaluating: AgentClient, tmp_path: Path) -> None:
    init, forward, inputs = PROGRAMS[name]
    text = model(init or "self.a = 1", forward, inputs)
    ops = covered_ops(ASCENDC) if whole else single_ops(ASCENDC)
    regions = [
        item for item in evaluating.capture(tmp_path / "model.py", text, ops, whole=whole) if item.task
    ]
    assert regions or not whole
    for region in regions:
        check(text, region)
    if regions:
        edited_text(text, regions)


REFUSED = {
    "a function without tensors": (
        """
        # evokernel: n=6
        def f(n):
            return torch.arange(n).float()[:, None] * torch.arange(4).float() + 1
        """,
        "no tensor",
    ),
    "double numbers": (
        """
        # evokernel: x=f32[4,6], count=f64[]
        def f(x, count):
            return x * 2 / count
        """,
        "count is float64",
    ),
    "keys that are no literals": (
        """
        KINDS = {torch.Tensor: 2.0, float: 1.0}

        # evokernel: x=f32[4,6]
        def f(x):
            return x * KINDS[float] + 1
        """,
        "KINDS",
    ),
    "an answer that only values give": (
        """
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("ready", torch.tensor(0, dtype=torch.uint8))

            def forward(self, x):
                if self.ready.item() == 0:
                    self.ready.fill_(1)
                return x * 2 + 1

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = Norm()

            def forward(self, x):
                return self.norm(torch.relu(x) * 2)

        def get_inputs():
            return [torch.randn(4, 6)]
        """,
        "depends on the values",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_call_can_stand_for_is_refused_with_its_reason(
    name: str, evaluating: AgentClient, tmp_path: Path
) -> None:
    text, reason = REFUSED[name]
    text = "import torch\nfrom torch import nn\n" + dedent(text)
    regions = evaluating.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    assert any(reason in item.reason for item in regions), [item.reason for item in regions]
