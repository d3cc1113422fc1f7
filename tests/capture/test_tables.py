"""Tables of numbers that a forward makes itself: the call makes them as the code did, and passes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from evokernel_core.capture.agent.graph.constant_folding import table
from evokernel_core.domain.region import Region
from tests.capture.test_full_graph import assert_same_model, model

SAME = {
    "a fixed kernel": (
        "k = torch.tensor([[[-1., 0, 1], [-2, 0, 2], [-1, 0, 1]], [[-1., -2, -1], [0, 0, 0], [1, 2, 1]]])\n"
        "k = k[:, None]\nreturn F.conv2d(x, k, padding=1).abs()",
        "torch.randn(2, 1, 9, 9)",
    ),
    "a table that is computed in Python, in another type": (
        "t = torch.tensor([[(i * j % 7) / 7 for i in range(6)] for j in range(5)]).half().to(x.device)\n"
        "return x.half() @ t.T, t * 1",
        "torch.randn(3, 6)",
    ),
    "whole numbers": ("return x[:, torch.tensor([i * 5 % 6 for i in range(20)])] * 2", "torch.randn(3, 6)"),
    "complex numbers": (
        "w = torch.tensor([[1j**i, 0.5 + i] for i in range(9)])\nreturn torch.view_as_real(x[..., None] * w)",
        "torch.randn(3, 9)",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_edited_model_computes_the_same(name: str, whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward, shapes = SAME[name]
    text = model("self.a = 1", forward, shapes)
    (region,) = whole(text)
    assert_same_model(text, region)


def test_a_large_table_stays_in_the_file(whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward = "t = torch.tensor([[i / 3 for i in range(600)]])\nreturn (x * t).relu()"
    regions = whole(model("self.a = 1", forward, "torch.randn(4, 600)"))
    (refused,) = [item for item in regions if item.task is None]
    assert "make it a buffer" in refused.reason
    assert [item.source for item in regions if item.task] == ["(x * t).relu()"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64])
def test_the_text_of_a_table_gives_it_back(dtype: torch.dtype) -> None:
    values = (torch.randn(40, dtype=torch.float64, generator=torch.manual_seed(1)) * 1000).to(dtype)
    text = table(values.view(5, 8), "'cpu'")
    assert torch.equal(eval(text), values.view(5, 8))
    assert "99999" not in table(torch.tensor([0.1, 1.7, -2.0]), "'cpu'")
