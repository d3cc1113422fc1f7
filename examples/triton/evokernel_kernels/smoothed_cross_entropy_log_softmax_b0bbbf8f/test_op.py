"""Checks torch.ops.evokernel.smoothed_cross_entropy_log_softmax_b0bbbf8f against its reference: run with ``pytest test_op.py``."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import evokernel_kernels.smoothed_cross_entropy_log_softmax_b0bbbf8f  # noqa: E402, F401
from evokernel_kernels import guards  # noqa: E402
from evokernel_kernels.smoothed_cross_entropy_log_softmax_b0bbbf8f.reference import reference  # noqa: E402

SIZES = [
    {'s0': 3, 's1': 3},
    {'s0': 17, 's1': 17},
]


def arguments(sizes, device):
    generator = torch.Generator().manual_seed(0)

    def tensor(shape, dtype):
        if not dtype.is_floating_point:  # 0 and 1 are indices of any dimension that has them
            return torch.randint(0, 2, shape, generator=generator).to(dtype).to(device)
        return torch.randn(shape, generator=generator).to(dtype).to(device)

    return [
        tensor((sizes["s0"], sizes["s1"],), torch.float32),
        tensor((sizes["s0"], sizes["s1"],), torch.float32),
        1.5,
        1.5,
    ]


@pytest.mark.skipif(not guards.has_gpu(), reason="the kernel runs on a GPU with triton only")
@pytest.mark.parametrize("sizes", SIZES)
def test_matches_the_reference(sizes):
    given = arguments(sizes, "cuda")
    results = torch.ops.evokernel.smoothed_cross_entropy_log_softmax_b0bbbf8f(*given)
    expected = reference(*given)
    torch.testing.assert_close(results, expected, rtol=0.0001, atol=0.0001, equal_nan=True)
