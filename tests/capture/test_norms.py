"""Norms as kernels are compared with: of many elements PyTorch's own lose digits on a CPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from evokernel_core.capture.agent.reference.norms import vector_norm  # noqa: E402


@pytest.mark.parametrize("power", (0.5, 1, 2, 3))
def test_norms_of_many_elements_keep_their_digits(power: float) -> None:
    x = torch.randn(1 << 21, generator=torch.Generator().manual_seed(5))
    right = torch.linalg.vector_norm(x.double(), power)
    torch.testing.assert_close(vector_norm(x, power).double(), right, rtol=2e-6, atol=0.0)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.bfloat16, torch.float64))
@pytest.mark.parametrize("power", (0, 0.5, 1, 2, 3, -1, float("inf"), -float("inf")))
def test_norms_of_few_elements_are_those_of_pytorch(power: float, dtype: torch.dtype) -> None:
    x = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(6)).to(dtype)
    for dim in (None, [1], [0, 2], [-1]):
        for keepdim in (False, True):
            right = torch.linalg.vector_norm(x, power, dim, keepdim)
            torch.testing.assert_close(vector_norm(x, power, dim, keepdim), right)
    wide = torch.linalg.vector_norm(x.float(), power, dtype=torch.float32)
    torch.testing.assert_close(vector_norm(x.float(), power, dtype=torch.float32), wide)


def test_what_is_beyond_float32_on_the_way_stays_so() -> None:
    assert vector_norm(torch.full((4,), 1e30), 2).isinf()
    assert vector_norm(torch.tensor([1.0, float("nan")]), 2).isnan()
