"""Images sampled where a grid says: runs of channels that indices choose, in weighted sums."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.ascendc.rewrites.elementwise import apply, cast, part
from evokernel_core.ascendc.rewrites.indexing import take, tensor
from evokernel_core.ascendc.rewrites.picking import numbers, view
from evokernel_core.ascendc.rewrites.split_reductions import size
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.ascendc.shapes.sizes import times
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.tensor import Dim

_LINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1
"""PyTorch's numbers of the modes and paddings; 2 is cubic, and reflection."""


@frozen
class _Tap:
    """One neighbour along a dimension: its index, inside of the image, and its weight."""

    index: ValueRef
    weight: ValueRef | None


@frozen
class _Axis:
    """A dimension of ``size`` elements, of which the grid has places between -1 and 1."""

    writer: GraphWriter
    size: Dim
    padding: int
    aligned: bool

    def call(self, op: str, *args: ValueRef | float, dtype: str = "float32") -> ValueRef:
        return apply(self.writer, op, *args, dtype=dtype)

    @property
    def last(self) -> ValueRef:
        return self.call("sub.Scalar", size(self.writer, (self.size,)), 1.0)

    def place(self, grid: ValueRef) -> ValueRef:
        """From -1 to 1 to the number of an element."""
        ahead = self.call("add.Scalar", grid, 1.0)
        if self.aligned:
            found = self.call("mul.Scalar", self.call("mul.Tensor", ahead, self.last), 0.5)
        else:
            wide = self.call("mul.Tensor", ahead, size(self.writer, (self.size,)))
            found = self.call("mul.Scalar", self.call("sub.Scalar", wide, 1.0), 0.5)
        return self.inside(found) if self.padding == _BORDER else found

    def inside(self, x: ValueRef) -> ValueRef:
        return self.call("minimum.default", self.call("clamp_min.default", x, 0.0), self.last)

    def tap(self, at: ValueRef, weight: ValueRef | None) -> _Tap:
        """Outside of an image that zeros surround, the weight is zero."""
        within = self.inside(at)
        if self.padding == _ZEROS:
            same = self.call("eq.Tensor", within, at, dtype="bool")
            weight = self.call("where.ScalarOther", same, 1.0 if weight is None else weight, 0.0)
        return _Tap(cast(self.writer, within, "int64"), weight)

    def taps(self, grid: ValueRef, mode: int) -> list[_Tap]:
        place = self.place(grid)
        if mode == _NEAREST:
            return [self.tap(self.call("round.default", place), None)]
        first = self.call("floor.default", place)
        share = self.call("sub.Tensor", place, first)
        rest = self.call("rsub.Scalar", share, 1.0)
        return [self.tap(first, rest), self.tap(self.call("add.Scalar", first, 1.0), share)]


def _sampled(dims: int) -> Rewrite:
    """The rewrite of sampling along ``dims`` dimensions."""

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        x, grid = tensor(node, 0), cast(writer, tensor(node, 1), "float32")
        mode, padding, aligned = (int(_number(arg)) for arg in node.args[2:5])
        if mode > _NEAREST or padding > _BORDER:
            raise PlanError(
                "Sampling with cubic interpolation or reflection at the border is not covered: "
                "use bilinear or nearest, and zeros or border."
            )
        shape, chosen = writer.shape(x), writer.shape(grid)
        images, channels, sizes = shape[0], shape[1], shape[2:]
        count = times(chosen[1:-1])
        places = view(writer, grid, (images, count, dims))
        axes = [
            _Axis(writer, sizes[i], padding, bool(aligned)).taps(part(writer, places, 2, dims - 1 - i), mode)
            for i in range(dims)
        ]
        behind = (0, *range(2, dims + 2), 1)
        turned = writer.call(
            "aten.permute.default",
            x,
            behind,
            shape=tuple(shape[i] for i in behind),
            dtype=writer.spec(x).dtype,
        )
        whole = (images, *sizes, 1, channels)
        total: ValueRef | None = None
        for taps in itertools.product(*axes):
            runs = take(writer, turned, [tap.index for tap in taps], whole, count, wraps=False)
            found = cast(writer, view(writer, runs, (images, count, channels)), "float32")
            for tap in taps:
                if tap.weight is not None:
                    found = apply(writer, "mul.Tensor", found, tap.weight)
            total = found if total is None else apply(writer, "add.Tensor", total, found)
        assert total is not None
        total = cast(writer, total, node.outputs[0].dtype)
        back = writer.call(
            "aten.permute.default",
            total,
            (0, 2, 1),
            shape=(images, channels, count),
            dtype=node.outputs[0].dtype,
        )
        return (view(writer, back, node.outputs[0].shape),)

    return rewrite


def _number(arg: object) -> int:
    if not isinstance(arg, int):
        raise PlanError("A mode of sampling is not a literal.")
    return int(arg)


def _affine_grid(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """Places of [images, *sizes, dims]: each is a matrix's row times the place of its element."""
    theta, shape = tensor(node, 0), node.outputs[0].shape
    dims, aligned = len(shape) - 2, bool(node.args[2])
    dtype = writer.spec(theta).dtype
    theta = cast(writer, theta, "float32")
    ones = (1,) * dims
    total: ValueRef | None = None
    for i in range(dims):  # the last dimension is the first coordinate
        axis = dims - 1 - i
        place = _steps(writer, shape[1 + axis], aligned)
        along = view(writer, place, (1, *ones[:axis], shape[1 + axis], *ones[axis + 1 :], 1))
        factor = _coefficient(writer, theta, i, (shape[0], *ones, dims))
        product = apply(writer, "mul.Tensor", factor, along)
        total = product if total is None else apply(writer, "add.Tensor", total, product)
    shift = _coefficient(writer, theta, dims, (shape[0], *ones, dims))
    return (cast(writer, apply(writer, "add.Tensor", total, shift), dtype),)


def _coefficient(writer: GraphWriter, theta: ValueRef, column: int, shape: tuple[Dim, ...]) -> ValueRef:
    """A column of every matrix."""
    return view(writer, part(writer, theta, 2, column), shape)


def _steps(writer: GraphWriter, count: Dim, aligned: bool) -> ValueRef:
    """The places of ``count`` elements between -1 and 1, which are the outermost ones where ``aligned``.

    They are counted from the nearer end, as torch.linspace does: a grid magnifies what rounding leaves.
    """
    number, total = numbers(writer, count), size(writer, (count,))
    if count == 1:
        return apply(writer, "mul.Scalar", number, 0.0)
    last = apply(writer, "sub.Scalar", total, 1.0)
    step = apply(writer, "div.Tensor", size(writer, (2,)), apply(writer, "clamp_min.default", last, 1.0))
    left = apply(writer, "sub.Scalar", apply(writer, "mul.Tensor", number, step), 1.0)
    behind = apply(writer, "sub.Tensor", last, number)
    right = apply(writer, "rsub.Scalar", apply(writer, "mul.Tensor", behind, step), 1.0)
    nearer = apply(writer, "lt.Tensor", number, behind, dtype="bool")
    place = apply(writer, "where.self", nearer, left, right)
    if aligned:
        return place
    return apply(writer, "div.Tensor", apply(writer, "mul.Tensor", place, last), total)


REWRITES: Mapping[str, Rewrite] = {
    "aten.affine_grid_generator.default": _affine_grid,
    "aten.grid_sampler_2d.default": _sampled(2),
    "aten.grid_sampler_3d.default": _sampled(3),
}
