"""Gradients of convolutions said as convolutions: the same values as PyTorch's own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from evokernel_core.capture.agent.decompositions.gradients import convolution_backward  # noqa: E402

CALLS = [
    # rank, size, kernel, stride, padding, dilation, groups, transposed, output padding
    (1, 17, 3, 1, 0, 1, 1, False, 0),
    (1, 18, 4, 3, 2, 1, 2, False, 0),
    (2, 11, 3, 1, 1, 1, 1, False, 0),
    (2, 12, 3, 2, 1, 2, 3, False, 0),
    (2, 9, 2, 3, 0, 1, 1, False, 0),
    (3, 7, 3, 2, 1, 1, 1, False, 0),
    (3, 6, 2, 1, 0, 2, 6, False, 0),
    (1, 9, 3, 2, 1, 1, 1, True, 1),
    (2, 7, 3, 2, 1, 2, 3, True, 0),
    (3, 4, 2, 1, 0, 1, 2, True, 0),
]


@pytest.mark.parametrize("call", CALLS)
def test_gradients_are_those_of_pytorch(call: tuple[int, ...]) -> None:
    rank, size, kernel, stride, padding, dilation, groups, transposed, more = call
    generator = torch.Generator().manual_seed(sum(call))
    x = torch.randn(2, 6, *range(size, size + rank), generator=generator, dtype=torch.float64)
    shape = (6, 12 // groups) if transposed else (12, 6 // groups)
    weight = torch.randn(*shape, *(kernel,) * rank, generator=generator, dtype=torch.float64)
    each = ([stride] * rank, [padding] * rank, [dilation] * rank, transposed, [more] * rank, groups)
    made = torch.ops.aten.convolution(x, weight, None, *each)
    gradient = torch.randn(made.shape, generator=generator, dtype=torch.float64)
    for asked in ([True] * 3, [False, True, False], [True, False, False]):
        right = torch.ops.aten.convolution_backward(gradient, x, weight, [12], *each, asked)
        for found, wanted, is_asked in zip(
            convolution_backward(gradient, x, weight, [12], *each, asked), right, asked, strict=True
        ):
            assert (found is not None) == is_asked
            if is_asked:
                torch.testing.assert_close(found, wanted)
