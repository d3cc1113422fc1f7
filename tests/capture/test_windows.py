"""Windows of images as columns, back again, and where samples say, against PyTorch's own operations."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from evokernel_core.capture.agent.decompositions.windows import drawn_maximum, folded, unfolded

PAIR = tuple[int, int]
WINDOWS: list[tuple[PAIR, PAIR, PAIR, PAIR, PAIR]] = [
    ((3, 2), (1, 1), (0, 0), (1, 2), (9, 10)),
    ((3, 3), (2, 1), (1, 2), (2, 1), (9, 10)),
    ((4, 4), (1, 1), (0, 0), (4, 4), (16, 22)),
    ((2, 3), (1, 2), (1, 0), (3, 4), (9, 12)),
    ((2, 2), (1, 1), (1, 1), (2, 2), (7, 8)),
    ((5, 1), (1, 1), (6, 0), (2, 3), (11, 6)),
    ((3, 3), (3, 1), (2, 1), (1, 1), (8, 8)),
]
"""Kernel, dilation, padding, stride and the image's size."""


@pytest.mark.parametrize(("kernel", "dilation", "padding", "stride", "size"), WINDOWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_columns_and_back(
    kernel: PAIR, dilation: PAIR, padding: PAIR, stride: PAIR, size: PAIR, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(2, 3, *size, generator=generator).to(dtype)
    columns = functional.unfold(images, kernel, dilation, padding, stride)
    assert torch.equal(unfolded(images, kernel, dilation, padding, stride), columns)
    assert torch.equal(unfolded(images[0], kernel, dilation, padding, stride), columns[0])
    values = torch.randn(columns.shape, generator=generator).to(dtype)
    wanted = functional.fold(values.double(), size, kernel, dilation, padding, stride)
    atol = 4e-3 if dtype == torch.float16 else 1e-5
    for given, right in ((values, wanted), (values[0], wanted[0])):
        found = folded(given, size, kernel, dilation, padding, stride)
        assert found.dtype == dtype
        assert found.is_contiguous()
        torch.testing.assert_close(found.double(), right, rtol=1e-3, atol=atol)


@pytest.mark.parametrize("size", [(5, 7), (1, 9), (13, 16)])
def test_windows_begin_where_samples_say(size: PAIR) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(8):
        images = torch.randn(2, 3, 14, 17, generator=generator)
        samples = torch.rand(2, 3, 2, generator=generator)
        wanted = torch.ops.aten.fractional_max_pool2d(images, (2, 1), size, samples)
        assert all(map(torch.equal, drawn_maximum(images, (2, 1), size, samples), wanted))
        wanted = torch.ops.aten.fractional_max_pool2d(images[0], (2, 1), size, samples[:1])
        assert all(map(torch.equal, drawn_maximum(images[0], (2, 1), size, samples[:1]), wanted))


def test_windows_of_volumes_begin_where_samples_say() -> None:
    generator = torch.Generator().manual_seed(2)
    for _ in range(8):
        images = torch.randn(2, 3, 6, 9, 10, generator=generator)
        samples = torch.rand(2, 3, 3, generator=generator)
        wanted = torch.ops.aten.fractional_max_pool3d(images, (3, 2, 1), (1, 5, 7), samples)
        found = drawn_maximum(images, (3, 2, 1), (1, 5, 7), samples)
        assert all(map(torch.equal, found, wanted))
        assert all(item.is_contiguous() for item in found)  # whoever views them relies on it
