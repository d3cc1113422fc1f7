"""Writing by index: what is written has the sizes of its place, in parts of functions as in whole ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from evokernel_core.capture.agent.decompositions import index_put
from evokernel_core.capture.client import AgentClient, Way
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC

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
    regions = agent.capture(tmp_path / "model.py", TEXT, covered_ops(ASCENDC), whole=True, ways=ways)
    assert [region.symbol for region in regions] == list(NAMES)
    for region in regions:
        assert region.task is not None, region.reason
        given = {item.expression: item.spec.shape for item in region.task.graph.inputs}
        assert given["values"] == (*given["where"], given["x"][1])


@pytest.mark.parametrize("includes", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_reductions_at_indices_of_slices(reduce: str, includes: bool) -> None:
    torch.manual_seed(0)
    x, values, where = torch.randn(4, 9, 3), torch.randn(4, 20, 3), torch.randint(0, 9, (20,))
    expected = x.index_reduce(1, where, values, reduce, include_self=includes)
    found = index_put.reduced(x, 1, where, values, reduce, include_self=includes)
    torch.testing.assert_close(found, expected)


def test_sizes_of_slices_must_fit() -> None:
    x, values, where = torch.randn(4, 9), torch.randn(4, 20), torch.zeros(19, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="does not fit"):
        index_put.reduced(x, 1, where, values, "amax")


def test_places_that_count_through_all_elements() -> None:
    x, values, where = torch.randn(4, 9), torch.randn(5, 2), torch.randint(-36, 36, (5, 2))
    expected = x.put(where, values, accumulate=True)
    torch.testing.assert_close(index_put.written(x, where, values, True), expected)


@pytest.mark.parametrize("shape", [(4, 9), (9,), (4, 1)])
def test_elements_in_turn_where_a_mask_holds(shape: tuple[int, ...]) -> None:
    x, mask, values = torch.randn(4, 9), torch.rand(shape) < 0.5, torch.randn(50)
    torch.testing.assert_close(index_put.taken_by_mask(x, mask, values), x.masked_scatter(mask, values))


def test_infinite_numbers_fill_tensors(agent: AgentClient, tmp_path: Path) -> None:
    """A number that JSON has no word for is no value of the graph."""
    text = (
        "import torch\n\n# evokernel: x=f32[9,17]\ndef f(x):\n"
        "    least = torch.full((x.shape[0], x.shape[1]), float('-inf'))\n"
        "    return torch.maximum(torch.where(x > 0, x, least), torch.full_like(x, float('-inf')))\n"
    )
    (region,) = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    assert region.task is not None, region.reason
    fills = [node for node in region.task.graph.nodes if node.op.startswith("aten.full")]
    assert fills and all(float(str(node.args[1])) == float("-inf") for node in fills)
