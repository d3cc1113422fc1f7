"""What is computed side by side from one tensor is one kernel that gives several tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import single_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs
from tests.capture.test_full_graph import executed

HEAD = "import torch\n\n\ndef swapped(x):\n    return torch.cat((x[:, 8:], x[:, :8]), -1)\n"
TOGETHER = {
    "statements": ("c = x.cos()\ns = x.sin()\nreturn c @ s.t()", 2),
    "scaled": ("h = torch.cat((x, x), -1)\nc = h.cos() * 2\ns = h.sin() * 2\nreturn c @ s.mT", 2),
    "returned": ("return x.cos(), x.sin()", 2),
    "unpacked": ("c, s = x.cos(), x.sin()\nreturn c @ s.t()", 2),
    "named, then returned": ("c = x.cos() * 2\ns = x.sin()\nreturn c.half(), s.half()", 2),
    "under a name that is read": ("c = x.cos()\nx = x.sin()\nreturn c @ x.t()", 2),
    "in a loop": ("for _ in range(2):\n    c = x.cos()\n    x = x.sin()\nreturn c @ x.t()", 2),
    "a rotation": (
        "a = x * z + swapped(x) * z.abs()\nb = y * z + swapped(y) * z.abs()\nreturn a @ b.t()", 2,
    ),
    "statistics": ("m = x.mean(-1)\nv = (x * x).mean(-1)\nreturn m, v", 2),
    "of rows and of elements": ("p = x.softmax(-1)\nc = x.cos()\nreturn p @ c.t()", 2),
    "three": ("return x.cos(), x.sin(), x + y", 3),
}  # fmt: skip
APART = {
    "of other tensors": ("a = x.cos()\nb = y.sin()\nreturn a @ b.t()", 2),
    "of other sizes": ("a = x.cos()\nb = x.mean(-1)\nreturn a.t() @ b", 2),
    "of other rows": ("a = x.mean(-1)\nb = x.mean(0)\nreturn a, b", 2),
    "one of the other": ("a = x.exp()\nb = a + 1\nreturn a @ b.t()", 2),
    "around what no kernel computes": ("a = x.cos()\nb = torch.linalg.inv(a)\nc = x.sin()\nreturn b @ c", 2),
    "a view": ("a = x.cos()\nb = x.t()\nreturn a @ b", 1),
    "a view of the other": ("a = x.cos()\nreturn a, a.view(16, 16)", 1),
    "a view of what they read": ("a = x.cos()\nb = x.view(16, 16)\nreturn a @ b", 1),
    "one twice": ("a = x.cos()\nreturn a, a", 1),
    "on lines with others": ("k = 2; a = x.cos()\nb = x.sin()\nreturn a @ b.t(), k", 2),
}
"""With as many kernels as there are regions."""
Regions = Callable[[str], list[Region]]


def file(body: str) -> str:
    lines = body.replace("\n", "\n    ")
    return f"{HEAD}\n\n# evokernel: x=f32[16,16], y=f32[16,16], z=f32[16,16]\ndef f(x, y, z):\n    {lines}\n"


@pytest.fixture
def regions(agent: AgentClient, tmp_path: Path) -> Regions:
    def capture(body: str) -> list[Region]:
        taken = agent.capture(tmp_path / "model.py", file(body), single_ops(ASCENDC), "f")
        return [region for region in taken if region.task]

    return capture


@pytest.mark.parametrize("name", TOGETHER)
def test_one_kernel_gives_several_tensors(name: str, regions: Regions) -> None:
    body, results = TOGETHER[name]
    (region,) = regions(body)
    assert region.task is not None and len(region.task.graph.outputs) == results
    edited, source = edited_module(file(body), region), executed(file(body))
    for rows, dtype, is_taken in (
        (16, torch.float32, True),
        (40, torch.float32, True),
        (16, torch.float64, False),
    ):
        given = [torch.randn(rows, 16, dtype=dtype) for _ in range(3)]
        before = runs(edited)
        torch.testing.assert_close(edited.f(*given), source["f"](*given))
        assert (runs(edited) > before) == is_taken


@pytest.mark.parametrize("name", APART)
def test_others_stay_apart(name: str, regions: Regions) -> None:
    body, count = APART[name]
    assert [len(region.task.graph.outputs) for region in regions(body) if region.task] == [1] * count
