"""Windows over arrays in NumPy, and the sizes of their results as expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from hypothesis import strategies as st


@frozen
class Axis:
    """Taps, stride, padding, dilation of one dimension, and whether the result's length is rounded up."""

    taps: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    ceils: bool = False

    @property
    def reach(self) -> int:
        return (self.taps - 1) * self.dilation + 1

    @property
    def least(self) -> int:
        """The least input."""
        return max(1, self.reach - 2 * self.padding)

    def length(self, size: int) -> int:
        """Of the result, as PyTorch computes it."""
        over = self.stride - 1 if self.ceils else 0
        found = (size + 2 * self.padding - self.reach + over) // self.stride + 1
        if self.ceils and (found - 1) * self.stride >= size + self.padding:
            found -= 1
        return found

    def expression(self, name: str) -> str:
        """The length where it is not rounded up."""
        assert not self.ceils
        return f"(({name} + {2 * self.padding - self.reach}) // {self.stride} + 1)"


def taken(x: Any, axes: Sequence[Axis], outside: float) -> Any:
    """Every window's elements, in as many new dimensions at the end."""
    sizes = x.shape[-len(axes) :]
    wide = []
    for axis, size in zip(axes, sizes, strict=True):
        needed = (axis.length(size) - 1) * axis.stride + axis.reach
        wide.append((axis.padding, max(0, needed - size - axis.padding)))
    padded = np.pad(x, [(0, 0)] * (x.ndim - len(axes)) + wide, constant_values=outside)
    for number, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
        dim = x.ndim - len(axes) + number
        places = np.arange(axis.length(size))[:, None] * axis.stride + np.arange(axis.taps) * axis.dilation
        padded = np.moveaxis(np.take(padded, places, axis=dim), dim + 1, -1)
    return padded


def over(axes: Sequence[Axis]) -> tuple[int, ...]:
    """The dimensions of the taps."""
    return tuple(range(-len(axes), 0))


def each(axes: Sequence[Axis], field: str) -> tuple[int, ...]:
    """One number of every axis."""
    return tuple(getattr(axis, field) for axis in axes)


def names_of(axes: Sequence[Axis]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Symbols for the input's lengths, and the result's."""
    names = ("d", "h", "w")[-len(axes) :]
    return names, tuple(axis.expression(name) for axis, name in zip(axes, names, strict=True))


def sizes_of(axes: Sequence[Axis], rng: Any) -> Iterator[dict[str, int]]:
    """The least sizes, and some more."""
    names = names_of(axes)[0]
    for most in (0, 5, 30, 150):
        room = (min(most, 12), most, most)[-len(axes) :] if len(axes) < 3 or most < 100 else (3, 8, most)
        lengths = (axis.least + int(rng.integers(0, more + 1)) for axis, more in zip(axes, room, strict=True))
        yield {"n": int(rng.integers(1, 4)), **dict(zip(names, lengths, strict=True))}


@st.composite
def some_axes(
    draw: Any, dilates: bool = True, pads_more: bool = False, strides: tuple[int, ...] = (1, 1, 2, 3, 40)
) -> tuple[Axis, ...]:
    """One to three dimensions."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        taps = draw(st.sampled_from([1, 2, 3, 3, 4, 5, 8]))
        stride = draw(st.sampled_from((*strides, taps)))
        dilation = draw(st.sampled_from([1, 1, 2, 3])) if dilates else 1
        most = taps + 1 if pads_more else taps // 2  # PyTorch pools with no more
        found.append(Axis(taps, stride, draw(st.sampled_from([0, 0, 1, most])) if most else 0, dilation))
    return tuple(found)
