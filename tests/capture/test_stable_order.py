"""Equal elements in order: what kernels are compared with where PyTorch leaves the order open."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from evokernel_core.capture.agent.reference.stable_order import first, in_order, kth  # noqa: E402

X = torch.tensor([[2.0, 1.0, 2.0, 1.0, float("nan")], [0.0, 0.0, 0.0, 0.0, 0.0]])


def test_equal_elements_keep_their_order() -> None:
    assert in_order(X)[1].tolist() == [[1, 3, 0, 2, 4], [0, 1, 2, 3, 4]]
    assert in_order(X, -1, True)[1].tolist() == [[4, 0, 2, 1, 3], [0, 1, 2, 3, 4]]
    assert first(X, 2)[1].tolist() == [[4, 0], [0, 1]]
    assert first(X, 3, -1, False)[1].tolist() == [[1, 3, 0], [0, 1, 2]]


def test_values_are_those_of_pytorch() -> None:
    x = torch.randn(3, 20, 4)
    for dim in range(3):
        torch.testing.assert_close(first(x, 3, dim), tuple(torch.topk(x, 3, dim)))
        torch.testing.assert_close(in_order(x, dim), tuple(torch.sort(x, dim)))
        for keepdim in (False, True):
            torch.testing.assert_close(kth(x, 2, dim, keepdim), tuple(torch.kthvalue(x, 2, dim, keepdim)))
    one = torch.tensor(3.0)
    assert first(one, 1)[0] == kth(one, 1)[0] == one
