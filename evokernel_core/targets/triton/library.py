"""Operations of PyTorch that a kernel may call as a stage: cuBLAS, cuDNN and fused attention."""

from __future__ import annotations

OPERATIONS = frozenset(
    {
        "aten.convolution.default",
        "aten.mm.default",
        "aten.bmm.default",
        "aten.scaled_dot_product_attention.default",
    }
)
"""Pure functions of dense tensors that write one new tensor; nothing of a candidate runs in them."""
