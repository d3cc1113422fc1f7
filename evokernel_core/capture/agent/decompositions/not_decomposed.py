"""Operations that PyTorch's Python dispatcher takes apart before any table of decompositions is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

aten = torch.ops.aten
_KEYS = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
_RESIZING = (
    aten.upsample_linear1d,
    aten.upsample_bilinear2d,
    aten.upsample_trilinear3d,
    aten.upsample_bicubic2d,
    aten.upsample_nearest1d,
    aten.upsample_nearest2d,
    aten.upsample_nearest3d,
    aten._upsample_nearest_exact1d,
    aten._upsample_nearest_exact2d,
    aten._upsample_nearest_exact3d,
    aten._upsample_bilinear2d_aa,
    aten._upsample_bicubic2d_aa,
)


@contextmanager
def kept_whole(fits: Callable[[str], bool]) -> Iterator[None]:
    """Those that have kernels of their own, by ``fits``, appear in graphs as they are."""
    packets = [packet for packet in _RESIZING if fits(str(packet.default))]
    operations = [getattr(packet, overload) for packet in packets for overload in ("default", "vec")]
    before = [dict(operation.py_kernels) for operation in operations]
    for operation in operations:
        for key in _KEYS:
            operation.py_kernels.pop(key, None)
        operation._dispatch_cache.clear()
    try:
        yield
    finally:
        for operation, kernels in zip(operations, before, strict=True):
            operation.py_kernels.update(kernels)
            operation._dispatch_cache.clear()
