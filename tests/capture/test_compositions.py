"""Composite ops said in simpler ones: the same values as PyTorch's own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from evokernel_core.capture.agent.compositions import is_nan, x_log_y  # noqa: E402

ODD = [0.0, 1.0, -2.0, float("inf"), float("nan")]


def test_logarithms_times_zero_are_zero() -> None:
    x, y = torch.tensor(ODD).repeat_interleave(5), torch.tensor(ODD * 5)
    torch.testing.assert_close(x_log_y(x, y), torch.xlogy(x, y), equal_nan=True)
    torch.testing.assert_close(x_log_y(x, x), torch.xlogy(x, x), equal_nan=True)


def test_only_what_is_no_number_differs_from_itself() -> None:
    x = torch.tensor(ODD)
    assert is_nan(x).tolist() == torch.isnan(x).tolist()
