"""Integer inputs of references: of every size where nothing but integers is computed from them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from evokernel_core.capture.agent.reference.integer_inputs import draw_whole, free
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.serial import to_data
from evokernel_core.targets.ascendc.target import ASCENDC

ROWS = [
    ("n=i64[4]", "n + 1", {"n"}),
    ("n=i64[4], m=i64[4]", "(n * 2 == m).sum(), n.cumsum(0) // 3", {"n", "m"}),
    ("n=i64[4], m=i64[4]", "n // m", {"n"}),
    ("n=i64[4], m=i64[4]", "(n + 1) % m", set()),
    ("n=i64[4], m=i64[4]", "n / m", set()),
    ("n=i64[4], x=f32[4]", "(n + 1).float() * x", set()),
    ("n=i64[4], x=f32[90,5]", "x[n + 1], n > 3", set()),
    ("n=i64[4], m=i64[4], x=f32[4]", "x.masked_fill(n > m, 0.0), m * 2", {"n", "m"}),
]


@pytest.mark.parametrize(("shapes", "body", "expected"), ROWS)
def test_inputs_that_may_be_anything(
    shapes: str, body: str, expected: set[str], agent: AgentClient, tmp_path: Any
) -> None:
    names = ", ".join(part.split("=")[0].strip() for part in shapes.split(", "))
    text = f"import torch\n\n\n# evokernel: {shapes}\ndef f({names}):\n    return {body}\n"
    regions = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    region, *_ = [item for item in regions if item.task is not None]
    assert region.task is not None
    assert free(to_data(region.task.graph)) == expected


def test_wide_integers_are_of_every_size() -> None:
    values = draw_whole((4000,), "int64", torch.Generator().manual_seed(0), wide=True)
    sizes = values.abs().double().log2().clamp(0).long()
    assert values.min() < -(1 << 60) and values.max() > 1 << 60 and len(sizes.unique()) > 60
    assert draw_whole((4000,), "uint8", torch.Generator().manual_seed(0), wide=True).unique().numel() == 256


def test_places_computed_from_masks_lie_in_their_tensors(agent: AgentClient, tmp_path: Any) -> None:
    """The last word of each row, as a mask of its words says."""
    head = "import torch\n\n\n# evokernel: mask=i64[3,9], x=f32[3,9]\n"
    text = f"{head}def f(mask, x):\n    return x.gather(1, (mask.sum(1) - 1).unsqueeze(1)) + 1\n"
    region, *_ = [
        item
        for item in agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
        if item.task is not None
    ]
    assert region.task is not None
    for distribution in ("normal", "structured"):
        agent.reference(region.task, dict(region.task.sizes), 0, distribution, tmp_path / distribution)
