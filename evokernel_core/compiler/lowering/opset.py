"""The core-ATen operations that the fused family computes."""

from __future__ import annotations

from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.compiler.lowering.reductions import REDUCTIONS
from evokernel_core.compiler.shapes.views import VIEWS


def fused_ops() -> dict[str, str]:
    """ATen name to ``pointwise``, ``reduction`` or ``view``."""
    return (
        dict.fromkeys(sorted(POINTWISE), "pointwise")
        | dict.fromkeys(sorted(REDUCTIONS), "reduction")
        | dict.fromkeys(sorted(VIEWS), "view")
    )
