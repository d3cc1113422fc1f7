"""ReferenceCase: what PyTorch computed for one task, sizes, seed and distribution."""

from __future__ import annotations

import re
from pathlib import Path

from attrs import frozen

DISTRIBUTIONS = (
    "normal", "uniform", "wide", "structured", "ties", "signs", "scales", "sorted", "rows", "large",
    "mixed", "alike", "columns", "peaks", "zeros",
)  # fmt: skip
"""How inputs are drawn. ``normal``: N(0, 1). ``uniform``: [0, 1). ``wide``: [-50, 50] with exact
zeros. ``structured``: ramps, constant rows and repeated extremes. ``ties``: few distinct values, zero among
them. ``signs``: alternating signs along the last dimension. ``scales``: magnitudes from 2**-10 to 2**4.
``sorted``: rows in rising or falling order. ``rows``: another constant in each row. ``large``: N(0, 1) with
one in 64 up to 2000. ``mixed``: rows, or elements where there are few rows, of several of these. ``alike``:
N(0, 1), inputs of one shape so near each other that the difference of their squares has no digit left, with
equals among them. ``columns``: N(0, 1), and beside given numbers whole columns beyond them. ``peaks``:
N(0, 1), with a largest and a least element in each line along each dimension, at all places in turn.
``zeros``: zeros up to a place in the second quarter, then [0, 1)."""
SPECIAL = "special"
"""NaN, infinities, zeros of both signs and denormals among N(0, 1), for tasks that only move elements."""


@frozen
class Values:
    """How inputs are drawn: ordinary values of a distribution, all multiplied by ``2**scale``, around a
    constant of about ``2**offset`` where that is not 0, or at and around the numbers ``near``. The constant
    is below 0 where ``side`` is ``<``, above where it is ``>``, and of each input either where it is ``+``.
    The agent draws milder ones where PyTorch's result is mostly no number, or mostly rounding."""

    base: str
    scale: int = 0
    offset: int = 0
    near: tuple[float, ...] = ()
    side: str = "+"

    def __str__(self) -> str:
        scale = f"*2^{self.scale}" if self.scale else ""
        near = ",".join(repr(number).replace("+", "") for number in self.near)
        return (
            self.base
            + scale
            + (f"{self.side}2^{self.offset}" if self.offset else "")
            + (f"@{near}" if near else "")
        )


def base_of(distribution: str) -> str:
    """The distribution of the ordinary values in the text of ``Values``."""
    return re.split("[@*+<>]", distribution, maxsplit=1)[0]


NANS, INFINITIES = "nans", "infinities"
"""N(0, 1) in which up to 64 elements are NaN, or infinite; parameters have none."""
LOWEST, HIGHEST = "lowest", "highest"
"""The same with infinities, and with lines along each dimension that are all -inf, or all inf."""


@frozen
class ReferenceCase:
    """Inputs and what PyTorch made of them on the CPU in the task's dtypes.

    ``inputs`` are the tensor and parameter inputs in the task's order, ``scalars`` the scalar inputs
    in order, ``outputs`` the graph's outputs. ``precise`` are the same outputs computed in wider
    types: with float32 between the ops where a tensor is of a half type (PyTorch rounds each intermediate to
    the half type, and may overflow there, where a fused kernel does not), in float64 where float32 is summed
    over a long dimension; ``rounded`` are those with the sums moved as float32 may round them, which takes
    several times as long, and are there where they were asked for and ``rounds`` says that there are any.
    Elsewhere they are empty. ``beside`` are the outputs where values next to a step of rounding fall to its
    lower side, and to its upper one; empty where the graph has no step. Files hold raw little-endian
    elements, row-major, without a header; bool takes one byte and bfloat16 two.
    """

    inputs: tuple[Path, ...]
    scalars: tuple[float, ...]
    outputs: tuple[Path, ...]
    precise: tuple[Path, ...] = ()
    rounded: tuple[Path, ...] = ()
    rounds: bool = False
    beside: tuple[tuple[Path, ...], ...] = ()
