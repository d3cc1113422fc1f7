"""Resizing against PyTorch: random sizes, dtypes and modes, whole and broken ratios, few and many planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler import limits
from evokernel_core.targets.ascendc.author import initial
from tests.tables import few

torch = pytest.importorskip("torch")
RANDOM = np.random.default_rng(29)
_OPS = {
    "nearest": "upsample_nearest{}d",
    "nearest-exact": "_upsample_nearest_exact{}d",
    "linear": "upsample_linear1d",
    "bilinear": "upsample_bilinear2d",
    "trilinear": "upsample_trilinear3d",
    "bicubic": "upsample_bicubic2d",
}

# mode, shape, results, corners aligned, scale factors, dtype
CASES = [
    ("bilinear", (1, 11, 9, 14), (18, 28), False, (2.0, 2.0), "float32"),  # phases, planes left over
    ("bicubic", (2, 3, 13, 20), (39, 71), True, (None, None), "float32"),  # gathered
    ("bilinear", (1, 2, 40, 64), (10, 16), False, (None, None), "float16"),  # rows far apart
    ("nearest", (3, 4, 5, 300), (15, 900), None, (None, None), "float32"),  # parts of rows
    ("trilinear", (1, 3, 5, 6, 7), (8, 6, 11), False, (None, None, None), "bfloat16"),
    ("bilinear", (1, 9, 4, 600), (9, 1100), True, (None, None), "float32"),  # parts, gathered
    ("bicubic", (1, 9, 8, 16), (32, 64), False, (4.0, 4.0), "float32"),
    ("bicubic", (1, 8, 33, 47), (11, 17), False, (None, None), "float16"),
    ("bicubic", (1, 1, 1, 1), (7, 5), False, (None, None), "float32"),
    ("bilinear", (2, 8, 16, 700), (8, 350), False, (0.5, 0.5), "float32"),
    ("bilinear", (1, 8, 6, 500), (12, 1000), False, (2.0, 2.0), "float32"),
    ("bilinear", (1, 5, 7, 11), (17, 27), False, (2.5, 2.5), "float32"),
    ("bilinear", (1, 5, 37, 11), (37, 22), False, (1.0, 2.0), "float32"),
    ("bilinear", (1, 5, 11, 40), (33, 40), False, (3.0, 1.0), "float16"),
    ("nearest-exact", (2, 13, 3, 2), (12, 1), None, (4.0, 0.5), "float32"),  # rows phase by phase, woven
    ("bilinear", (1, 9, 7, 300), (14, 600), False, (2.0, 2.0), "float32"),  # of whole rows, not woven
    ("bicubic", (1, 9, 6, 150), (18, 300), False, (3.0, 2.0), "bfloat16"),
    ("bilinear", (2, 3, 7, 5), (14, 7), False, (None, None), "float32"),  # no whole periods in a row
    ("bilinear", (1, 3, 9, 1300), (18, 2600), False, (2.0, 2.0), "float16"),  # parts of them
    ("bilinear", (1, 17, 100, 90), (9, 8), True, (None, None), "float32"),
    ("linear", (3, 7, 129), (33,), False, (None,), "float32"),
    ("linear", (3, 7, 12), (48,), False, (4.0,), "float16"),
    ("linear", (1, 1, 2000), (4001,), True, (None,), "float32"),
    ("nearest", (2, 9, 12, 30), (4, 10), None, (None, None), "float16"),
    ("nearest", (2, 9, 12, 30), (13, 47), None, (None, None), "float32"),
    ("nearest", (1, 3, 7, 9), (28, 36), None, (4.0, 4.0), "bfloat16"),
    ("nearest", (1, 2, 3, 4, 5), (6, 8, 10), None, (None, None, None), "float32"),
    ("nearest-exact", (1, 9, 10, 21), (23, 50), None, (None, None), "float32"),
    ("nearest-exact", (2, 9, 14), (5,), None, (None,), "float32"),
    ("trilinear", (1, 2, 9, 6, 8), (3, 12, 16), True, (None, None, None), "float32"),
    ("bilinear-smooth", (1, 9, 40, 50), (13, 60), False, (None, None), "float32"),
    ("bilinear-smooth", (1, 3, 64, 64), (32, 32), False, (None, None), "float16"),
    ("bilinear-smooth", (1, 9, 20, 60), (15, 20), False, (None, None), "float32"),  # by phases, ends anew
    ("bicubic-smooth", (1, 9, 14, 36), (7, 18), False, (None, None), "float32"),
    ("bicubic-smooth", (1, 3, 6, 40), (12, 100), False, (None, None), "float16"),
    ("bilinear-smooth", (1, 3, 9, 8), (3, 2), False, (None, None), "float32"),  # each result an end
    ("bicubic-smooth", (2, 1, 40, 23), (17, 23), False, (None, None), "float32"),
    ("bicubic-smooth", (2, 8, 9, 23), (19, 11), True, (None, None), "float32"),
]


def expected(mode: str, x: Any, size: Any, aligned: bool | None, scales: Any) -> Any:
    """What PyTorch computes of the half types in float32."""
    kind, _, smooth = mode.partition("-")
    if mode == "nearest-exact":
        kind, smooth = mode, ""
    given = {} if None in scales else {"scale_factor": scales, "recompute_scale_factor": False}
    sizes = {"size": size} if not given else {}
    corners = {} if aligned is None else {"align_corners": aligned}
    more = {"antialias": True} if smooth else {}
    return torch.nn.functional.interpolate(x.float(), mode=kind, **sizes, **given, **corners, **more)


@few(
    ("mode", "shape", "size", "aligned", "scales", "dtype"),
    CASES,
    keep=(0, 1, 3, 4, 14, 18, 31, 33),
)
def test_modes_against_torch(  # noqa: PLR0917 - a table of cases
    builder: Any,
    on_twin: Any,
    mode: str,
    shape: Any,
    size: Any,
    aligned: bool | None,
    scales: Any,
    dtype: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MOST_MULTIPLIED", 0)  # gathers where products would be faster
    b, result = builder(), (*shape[:2], *size)
    op = _OPS.get(mode) or f"_upsample_{mode.partition('-')[0]}2d_aa"
    corners = () if aligned is None else (aligned,)
    call = f"{op.format(len(size))}.default"
    task = b.task(
        b.call(call, b.input("x", shape, dtype), size, *corners, *scales, shape=result, dtype=dtype)
    )
    x = torch.from_numpy(RANDOM.normal(size=shape).astype(np.float32)).to(getattr(torch, dtype))
    strategy = initial(task, on_twin.chip)
    assert "resize" in (strategy.family, *(kernel.family for kernel in strategy.kernels))
    given = x.float().numpy() if dtype == "bfloat16" else x.numpy()
    (found,) = on_twin(task, {"x": given}, strategy)
    close = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}[dtype]
    wanted = expected(mode, x, size, aligned, scales).numpy()
    np.testing.assert_allclose(np.asarray(found, np.float32), wanted, rtol=close, atol=close)
