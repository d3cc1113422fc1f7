"""Composite ops said in simpler ones: the same values as PyTorch's own."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from evokernel_core.capture.agent.decompositions.compositions import TABLE, is_nan, x_log_y  # noqa: E402

ODD = [0.0, 1.0, -2.0, float("inf"), float("nan")]


def test_logarithms_times_zero_are_zero() -> None:
    x, y = torch.tensor(ODD).repeat_interleave(5), torch.tensor(ODD * 5)
    torch.testing.assert_close(x_log_y(x, y), torch.xlogy(x, y), equal_nan=True)
    torch.testing.assert_close(x_log_y(x, x), torch.xlogy(x, x), equal_nan=True)


def test_only_what_is_no_number_differs_from_itself() -> None:
    x = torch.tensor(ODD)
    assert is_nan(x).tolist() == torch.isnan(x).tolist()


aten = torch.ops.aten
SCALES, ZEROS = torch.tensor([0.1, 0.03, 2.0]), torch.tensor([0, 100, 7], dtype=torch.int32)
X = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0)) * 4


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        (aten.fake_quantize_per_tensor_affine_cachemask.default, (X, 0.05, 128, 0, 255)),
        (aten.fake_quantize_per_tensor_affine_cachemask.default, (X, 0.5, 0, -8, 7)),
        (aten.fake_quantize_per_channel_affine_cachemask.default, (X, SCALES, ZEROS, 1, 0, 127)),
        (
            aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default,
            (X, SCALES[1], ZEROS[1], torch.ones(1, dtype=torch.int64), 0, 127),
        ),
        (
            aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default,
            (X, SCALES[1], ZEROS[1], torch.zeros(1, dtype=torch.int64), 0, 127),
        ),
        (aten.eye.default, (300,)),
        (aten.eye.m, (2, 5)),
    ],
)
def test_what_is_said_in_simpler_operations_is_the_same(operation: Any, arguments: Any) -> None:
    torch.testing.assert_close(TABLE[operation](*arguments), operation(*arguments))
