"""Flags of PyTorch that decide how products and convolutions are computed: each system runs under its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.measuring.classes import AS_LEFT

NONE: Mapping[str, bool] = {"tf32_matmul": False, "tf32_cudnn": False, "cudnn_benchmark": False}


def of_class(name: str) -> dict[str, bool]:
    """As PyTorch leaves them, or without TF32."""
    return {**NONE, "tf32_cudnn": name == AS_LEFT}


def write(torch: Any, flags: Mapping[str, bool]) -> None:
    """Sets all flags of ``NONE``, whoever changed them by whichever interface. That of products is left as in
    a new process where it is off: torch.compile looks its cache up by it."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    cudnn.allow_tf32, cudnn.benchmark = flags["tf32_cudnn"], flags["cudnn_benchmark"]
    torch.set_float32_matmul_precision("high" if flags["tf32_matmul"] else "highest")
    if not flags["tf32_matmul"]:
        matmul.fp32_precision = "none"


def switched_on(torch: Any) -> dict[str, bool]:
    """Those that are on."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    found = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)
    return {name: True for name, on in zip(NONE, found, strict=True) if on}
