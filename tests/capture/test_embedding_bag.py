"""Bags of embeddings with the same number of rows each: said in rows, they are what PyTorch gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from evokernel_core.capture.agent.decompositions.embedding_bag import BagsOfRows
from evokernel_core.capture.agent.reference.bounded_inputs import boundaries
from evokernel_core.capture.agent.reference.index_ranges import Range
from evokernel_core.capture.agent.reference.reference import draw


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "sum"},
        {"mode": "mean"},
        {"mode": "max"},
        {"mode": "sum", "padding_idx": 2},
        {"mode": "mean", "padding_idx": 2},
        {"mode": "max", "padding_idx": 2},
        {"mode": "mean", "padding_idx": -1},
    ],
)
def test_rows_that_are_read_and_reduced(options: Mapping[str, Any]) -> None:
    torch.manual_seed(3)
    index, table = torch.randint(0, 5, (60, 3)), torch.randn(5, 7)
    expected = torch.nn.functional.embedding_bag(index, table, **options)
    with BagsOfRows():
        found = torch.nn.functional.embedding_bag(index, table, **options)
    torch.testing.assert_close(found, expected)


def test_weights() -> None:
    index, table, weights = torch.randint(0, 5, (6, 3)), torch.randn(5, 7), torch.rand(6, 3)
    layer = torch.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    expected = layer(index, per_sample_weights=weights)
    with BagsOfRows():
        torch.testing.assert_close(layer(index, per_sample_weights=weights), expected)


def test_bags_with_offsets_stay_one_operation() -> None:
    index, table, offsets = torch.randint(0, 5, (6,)), torch.randn(5, 7), torch.tensor([0, 2])
    with BagsOfRows():
        found = torch.nn.functional.embedding_bag(index, table, offsets, mode="sum")
    torch.testing.assert_close(found, torch.stack([table[index[:2]].sum(0), table[index[2:]].sum(0)]))


@pytest.mark.parametrize("distribution", ["normal", "structured"])
def test_offsets_are_in_order(distribution: str) -> None:
    generator = torch.Generator().manual_seed(1)
    found = draw((50,), "int64", distribution, generator, Range(0, 20, offsets=True))
    assert found[0] == 0 and bool((found[1:] >= found[:-1]).all()) and 0 < int(found[-1]) < 20


def test_boundaries_are_known_through_views() -> None:
    graph = {
        "inputs": [{"name": "x"}, {"name": "limits"}],
        "nodes": [
            {
                "name": "row",
                "op": "aten.view.default",
                "args": [{"ref": "limits", "index": 0}, [9]],
                "kwargs": [],
            },
            {
                "name": "place",
                "op": "aten.bucketize.Tensor",
                "args": [{"ref": "x", "index": 0}, {"ref": "row", "index": 0}],
                "kwargs": [],
            },
        ],
    }
    assert boundaries(graph, {}) == {"limits"}


@pytest.mark.parametrize("distribution", ["uniform", "structured", "rows"])
def test_single_numbers_are_drawn(distribution: str) -> None:
    """A 0-dimensional tensor of integers has no first element of a row."""
    generator = torch.Generator().manual_seed(3)
    assert draw((), "int8", distribution, generator, Range(0, 5)).shape == ()
