"""The core-ATen operations that the schedule families can fuse."""

from __future__ import annotations

from evokernel_core.ascendc.lowering_pointwise import POINTWISE
from evokernel_core.ascendc.lowering_reduce import REDUCTIONS
from evokernel_core.ascendc.lowering_views import VIEWS


def fusible_ops() -> dict[str, str]:
    """ATen name to ``pointwise``, ``reduction`` or ``view``, for cutting a model into regions."""
    return (
        dict.fromkeys(sorted(POINTWISE), "pointwise")
        | dict.fromkeys(sorted(REDUCTIONS), "reduction")
        | dict.fromkeys(sorted(VIEWS), "view")
    )


def view_ops() -> frozenset[str]:
    """The operations that only rename elements of their operand."""
    return VIEWS
