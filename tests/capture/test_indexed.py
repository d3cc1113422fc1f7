"""Writing by index: what is written has the sizes of its place, in parts of functions as in whole ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from evokernel_core.ascendc.families.registry import covered_ops
from evokernel_core.capture.client import AgentClient, Way

TEXT = """
import torch

# evokernel: x=f32[9,17], where=i64[6], values=f32[6,17]
def added(x, where, values):
    return torch.relu(x.index_add(0, where, values))

# evokernel: x=f32[9,17], where=i64[6], values=f32[6,17]
def scaled(x, where, values):
    return torch.relu(x.index_add(0, where, values, alpha=2))

# evokernel: x=f32[9,17], where=i64[6], values=f32[6,17]
def put(x, where, values):
    return torch.relu(torch.index_put(x, [where], values, True))
"""
NAMES = ("added", "scaled", "put")


@pytest.mark.parametrize("ways", [{}, dict.fromkeys(NAMES, "parts")], ids=["whole", "parts"])
def test_values_share_the_sizes_of_what_they_replace(
    agent: AgentClient, tmp_path: Path, ways: Mapping[str, Way]
) -> None:
    regions = agent.capture(tmp_path / "model.py", TEXT, covered_ops(), whole=True, ways=ways)
    assert [region.symbol for region in regions] == list(NAMES)
    for region in regions:
        assert region.task is not None, region.reason
        given = {item.expression: item.spec.shape for item in region.task.graph.inputs}
        assert given["values"] == (*given["where"], given["x"][1])
