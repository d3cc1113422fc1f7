"""The phases of a transposed convolution in the IR: which taps the outputs of one have, and where each reads.

A phase is a number along each dimension. Its taps are ``step`` apart from the first one on, and each reads
``delta`` places below the one before.
"""

from __future__ import annotations

from attrs import frozen

from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    Choice,
    Expr,
    Int,
    Param,
    Table,
    binary,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import ConvTransposeAxis


@frozen
class Along:
    """One dimension. Of each phase ``taps`` are how many it has, ``below`` those of the phases whose packed
    weights lie in front, ``at`` where the first one reads, seen from the lowest place that any tap of any
    phase reads; ``span`` is how far that lies below the ``highest``."""

    axis: ConvTransposeAxis
    kernel: Expr
    span: Param
    taps: Table
    below: Table
    at: Table

    @property
    def phases(self) -> int:
        return self.axis.stride

    @property
    def delta(self) -> int:
        """Places from what a tap reads down to what the next one of the phase does."""
        return self.axis.tap_step * self.axis.dilation // self.axis.stride

    @property
    def highest(self) -> int:
        return self.axis.highest


def along(k: Builder, axis: ConvTransposeAxis, letter: str, kernel: Param) -> Along:
    """The fields of a dimension, which ComputeTiling fills from the kernel's size."""
    reach = axis.highest * axis.stride - axis.padding + binary("*", kernel - 1, axis.dilation)
    note = "places from the lowest that a tap reads to the highest"
    span = k.param(f"span{letter}", reach // axis.stride, note, U32)
    first = [_first(axis, phase) for phase in range(axis.stride)]
    taps = [_taps(axis, item, kernel) for item in first]
    at = [span - (axis.highest - _place(axis, phase, item)) for phase, item in enumerate(first)]
    below = [_below(axis, item, kernel) for item in first]
    return Along(
        axis,
        kernel,
        span,
        k.table(f"taps{letter}", taps, "of each phase", U32),
        k.table(f"below{letter}", below, "taps of the phases whose weights lie in front", U32),
        k.table(f"at{letter}", at, "where the first tap of a phase reads", U32),
    )


def phases_with_taps(along: Along) -> Expr:
    """How many phases have any tap."""
    total: Expr = Int(0)
    for place in range(along.phases):
        total = total + Choice(along.taps.values[place], ">", Int(0), Int(1), Int(0))
    return total


def _first(axis: ConvTransposeAxis, phase: int) -> int | None:
    """The first tap of a phase in a kernel that is large enough; None where no kernel is."""
    result = (
        tap for tap in range(axis.tap_step) if (phase + axis.padding - tap * axis.dilation) % axis.stride == 0
    )
    return next(result, None)


def _place(axis: ConvTransposeAxis, phase: int, first: int | None) -> int:
    return axis.highest if first is None else (phase + axis.padding - first * axis.dilation) // axis.stride


def _taps(axis: ConvTransposeAxis, first: int | None, kernel: Expr) -> Expr:
    if first is None:
        return Int(0)
    return Choice(kernel, ">", Int(first), ceil_div(kernel - first, axis.tap_step), Int(0))


def _below(axis: ConvTransposeAxis, first: int | None, kernel: Expr) -> Expr:
    """Taps whose rest by the step is smaller than that of the phase."""
    rest = first or 0
    return kernel // axis.tap_step * rest + least(Int(rest), kernel % axis.tap_step)
