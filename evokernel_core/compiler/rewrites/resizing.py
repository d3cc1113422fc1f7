"""Resized images: one kernel for rows and columns of known sizes, which weighs the taps of each result.

Where sizes are known only in the call, or tables would not fit, one product with a matrix of weights for each
dimension that changes. Linear and cubic interpolation are separable, and the matrix of a dimension is made
on the device from the numbers of its rows and columns. Products are float32, as PyTorch computes them for
the half types too. There the nearest elements are repeated, or are every so many of a dimension; at other
ratios an index chooses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import frozen

from evokernel_core.compiler import limits
from evokernel_core.compiler.ops import FLOATS, NEAREST, RESIZE
from evokernel_core.compiler.rewrites.elementwise import apply, cast
from evokernel_core.compiler.rewrites.indexing import expanded, tensor
from evokernel_core.compiler.rewrites.picking import argument, numbers, view
from evokernel_core.compiler.rewrites.split_reductions import size
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent, times
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.tensor import Dim, TensorSpec

_CUBIC, _CUBIC_ANTIALIASED = -0.75, -0.5
"""The coefficient of Keys' kernel that PyTorch takes."""


@frozen
class Weights:
    """Writes the matrix of [results, sources] that resizes one dimension. ``given``: how many elements a
    result steps over, given by the caller or None."""

    writer: GraphWriter
    sources: Dim
    results: Dim
    aligned: bool
    given: float | None

    # -- numbers ------------------------------------------------------------------------------

    def call(self, op: str, *args: Arg, dtype: str = "float32") -> ValueRef:
        """An element-wise operation whose operands are broadcast."""
        return apply(self.writer, op, *args, dtype=dtype)

    def row(self) -> ValueRef:
        """The number of each result, [results, 1]."""
        return view(self.writer, numbers(self.writer, self.results), (self.results, 1))

    def column(self) -> ValueRef:
        """The number of each source."""
        return numbers(self.writer, self.sources)

    def step(self) -> float | ValueRef:
        """How many sources a result steps over."""
        if self.aligned and self.results == 1:
            return 0.0
        if not self.aligned and self.given is not None:
            return float(np.float32(1.0 / self.given))
        less = 1 if self.aligned else 0
        if isinstance(self.sources, int) and isinstance(self.results, int):
            return float(np.float32(self.sources - less) / np.float32(self.results - less))
        return self._symbolic_step(less)

    def known_step(self) -> float | None:
        """The same where both sizes are known."""
        if isinstance(self.sources, int) and isinstance(self.results, int):
            step = self.step()
            return step if isinstance(step, float) else None
        return None

    def scaled(self, x: ValueRef) -> ValueRef:
        """``x`` times the step from result to result."""
        step = self.step()
        return self.call("mul.Scalar" if isinstance(step, float) else "mul.Tensor", x, step)

    def _symbolic_step(self, less: int) -> ValueRef:
        above, below = size(self.writer, (self.sources,)), size(self.writer, (self.results,))
        if less:
            above, below = self.call("sub.Scalar", above, 1.0), self.call("sub.Scalar", below, 1.0)
            # of a single result the step does not matter, but must be a number
            below = self.call("clamp_min.default", below, 1.0)
        return self.call("div.Tensor", above, below)

    def source(self) -> ValueRef:
        """Where each result lies between the sources, [results, 1]."""
        if self.aligned:
            return self.scaled(self.row())
        return self.call("sub.Scalar", self.scaled(self.call("add.Scalar", self.row(), 0.5)), 0.5)

    # -- matrices -----------------------------------------------------------------------------

    def linear(self) -> ValueRef:
        """A triangle around each place, which is never outside of the sources."""
        last = self.call("sub.Scalar", size(self.writer, (self.sources,)), 1.0)
        place = self.call("clamp_min.default", self.source(), 0.0)
        place = self.call("minimum.default", place, last)
        apart = self.call("sub.Tensor", place, self.column())
        return self.triangle(apart)

    def triangle(self, apart: ValueRef) -> ValueRef:
        distance = self.call("abs.default", apart)
        return self.call("relu.default", self.call("rsub.Scalar", distance, 1.0))

    def cubic(self) -> ValueRef:
        """Keys' kernel around each place; the first and the last source stand for those beyond them."""
        place, column = self.source(), self.column()
        inner = self.keys(self.call("sub.Tensor", place, column), _CUBIC)
        before = self._two(self.call("add.Scalar", place, 1.0), 1.0)
        count = size(self.writer, (self.sources,))
        behind = self._two(self.call("sub.Tensor", place, count), -1.0)
        first = self.call("eq.Scalar", column, 0.0, dtype="bool")
        last = self.call("eq.Tensor", column, self.call("sub.Scalar", count, 1.0), dtype="bool")
        total = self.call("add.Tensor", inner, self.call("where.ScalarOther", first, before, 0.0))
        return self.call("add.Tensor", total, self.call("where.ScalarOther", last, behind, 0.0))

    def _two(self, apart: ValueRef, further: float) -> ValueRef:
        """The weights of two sources that lie beyond the border."""
        next_one = self.call("add.Scalar", apart, further)
        return self.call("add.Tensor", self.keys(apart, _CUBIC), self.keys(next_one, _CUBIC))

    def keys(self, apart: ValueRef, a: float) -> ValueRef:
        """Keys' cubic convolution kernel, which is zero from a distance of 2 on."""
        d = self.call("clamp_max.default", self.call("abs.default", apart), 2.0)
        near = self.call("sub.Scalar", self.call("mul.Scalar", d, a + 2), a + 3)
        near = self.call("mul.Tensor", near, self.call("mul.Tensor", d, d))
        near = self.call("add.Scalar", near, 1.0)
        far = self.call("sub.Scalar", self.call("mul.Scalar", d, a), 5 * a)
        far = self.call("add.Scalar", self.call("mul.Tensor", far, d), 8 * a)
        far = self.call("sub.Scalar", self.call("mul.Tensor", far, d), 4 * a)
        return self.call("where.self", self.call("le.Scalar", d, 1.0, dtype="bool"), near, far)

    def antialiased(self, kernel: Callable[[ValueRef], ValueRef]) -> ValueRef:
        """The kernel, as wide as a result where results are wider than sources, in shares of its sum."""
        middle = self.scaled(self.call("add.Scalar", self.row(), 0.5))
        apart = self.call("sub.Tensor", self.call("add.Scalar", self.column(), 0.5), middle)
        step = self.step()
        if isinstance(step, float):
            apart = self.call("div.Scalar", apart, max(step, 1.0))
        else:
            apart = self.call("div.Tensor", apart, self.call("clamp_min.default", step, 1.0))
        weights = kernel(apart)
        shape = (self.results, 1)
        total = self.writer.call("aten.sum.dim_IntList", weights, (1,), True, shape=shape, dtype="float32")
        if self.given is not None:  # which may place results where no source is: those are zero
            is_none = self.call("eq.Scalar", total, 0.0, dtype="bool")
            total = self.call("where.ScalarSelf", is_none, 1.0, total)
        return self.call("div.Tensor", weights, total)

    def linear_antialiased(self) -> ValueRef:
        return self.antialiased(self.triangle)

    def cubic_antialiased(self) -> ValueRef:
        return self.antialiased(lambda apart: self.keys(apart, _CUBIC_ANTIALIASED))


_PLANE_COST = 4
"""About how many times a depth's."""

_MATRICES: Mapping[str, Callable[[Weights], ValueRef]] = {
    "linear": Weights.linear,
    "cubic": Weights.cubic,
    "smooth_linear": Weights.linear_antialiased,
    "smooth_cubic": Weights.cubic_antialiased,
}


def _resized(kind: str, dims: int) -> Rewrite:
    """The rewrite of an operation on the last ``dims`` dimensions."""
    matrix = _MATRICES[kind]

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        x, spec = tensor(node, 0), node.outputs[0]
        aligned = bool(argument(node, 2, "align_corners", False))
        first = len(spec.shape) - dims
        steps = _known_steps(node, writer, dims, aligned, argument_of_first_scale=3)
        sides = tuple(zip(writer.shape(x)[first:], spec.shape[first:], strict=True))
        if (
            steps is not None
            and _fits(kind, steps, spec, writer)
            and not _multiplied(kind, aligned, steps, sides)
        ):
            return (_in_planes(writer, x, spec, kind, aligned, steps),)
        x = cast(writer, x, "float32")
        for axis in _order(writer.shape(x), spec, first, writer.sizes):
            weights = _weights_of(node, writer, x, axis, aligned, 3 + axis - first)
            if weights.sources == weights.results and (aligned or weights.given in (None, 1.0)):
                continue
            x = product_along(writer, x, axis, matrix(weights))
        return (cast(writer, x, spec.dtype),)

    return rewrite


def _weights_of(
    node: Node, writer: GraphWriter, x: ValueRef, axis: int, aligned: bool, position: int
) -> Weights:
    """The weights along a dimension of ``x``, whose scale is the argument at ``position``."""
    scale = argument(node, position, "scales")
    given = float(str(scale)) if scale is not None else None
    return Weights(writer, writer.shape(x)[axis], node.outputs[0].shape[axis], aligned, given)


def _known_steps(
    node: Node, writer: GraphWriter, dims: int, aligned: bool, argument_of_first_scale: int
) -> tuple[float, ...] | None:
    """How many sources a result steps over along each of the last ``dims`` dimensions; None where sizes are
    known only in the call."""
    x, spec = tensor(node, 0), node.outputs[0]
    steps = []
    for i in range(dims):
        axis = len(spec.shape) - dims + i
        step = _weights_of(node, writer, x, axis, aligned, argument_of_first_scale + i).known_step()
        if step is None:
            return None
        steps.append(step)
    return tuple(steps)


def _fits(kind: str, steps: Sequence[float], spec: TensorSpec, writer: GraphWriter) -> bool:
    """Whether a tile holds what a kernel needs for a result."""
    rows = [dim for dim in spec.shape[-len(steps) :][:-1] if isinstance(dim, int)]
    is_small = max(rows, default=1) <= limits.MOST_RESIZED_ROWS
    return is_small and max(steps) <= limits.MOST_RESIZED_STEP[kind] and spec.dtype in FLOATS


def _multiplied(kind: str, aligned: bool, steps: Sequence[float], sides: Sequence[tuple[Dim, Dim]]) -> bool:
    """Whether products are faster: of many taps, where no results of one period are weighted alike.
    ``sides``: sources and results of each dimension."""
    if kind in (*NEAREST, "linear"):
        return False
    regular = not aligned and all(_is_regular(step) for step in steps)
    if kind != "cubic":
        known = zip(sides, steps, strict=True)
        regular = regular and all(
            made * step == have for (have, made), step in known if isinstance(made, int)
        )
    return not regular and max(have for have, _ in sides if isinstance(have, int)) <= limits.MOST_MULTIPLIED


def _is_regular(step: float) -> bool:
    return any((step * p).is_integer() for p in (1, 2, 4, 8))


def _in_planes(
    writer: GraphWriter, x: ValueRef, spec: TensorSpec, kind: str, aligned: bool, steps: Sequence[float]
) -> ValueRef:
    """Rows and columns in one kernel, a depth in one of its own, on the side where it has less to do."""
    shape, made = writer.shape(x), spec.shape
    dims = len(steps)
    outer, (height, width) = times(shape[: len(shape) - dims]), made[-2:]
    if dims == 1:
        columns = _planes(
            writer, view(writer, x, (outer, 1, shape[-1])), (1, width), kind, aligned, (1.0, *steps)
        )
        return view(writer, columns, made)
    if dims == 2:
        planes = view(writer, x, (outer, *shape[-2:]))
        return view(writer, _planes(writer, planes, (height, width), kind, aligned, steps), made)
    (before, after), across, final = (shape[-3], made[-3]), shape[-2:], (height, width)
    is_first = depth_is_first(
        *(extent(times(d)).evaluate(writer.sizes) for d in ((before,), (after,), across, final))
    )
    for is_depth in (is_first, not is_first):
        area = times(across if is_first == is_depth else final)
        if is_depth:
            rows = view(writer, x, (outer, before, area))
            x = _planes(writer, rows, (after, area), kind, aligned, (steps[0], 1.0))
        else:
            planes = view(writer, x, (times((outer, after if is_first else before)), *across))
            x = _planes(writer, planes, final, kind, aligned, steps[1:])
    return view(writer, x, made)


def depth_is_first(before: int, after: int, across: int, final: int) -> bool:
    """Whether to resize ``before`` planes to ``after`` in front of each from so many elements to others. A
    result of a plane takes several times what one of a depth does, whose rows are as they lie in memory."""
    deep = after * (across + _PLANE_COST * final)
    return deep <= final * (_PLANE_COST * before + after)


def _planes(
    writer: GraphWriter,
    x: ValueRef,
    sizes: Sequence[Dim],
    kind: str,
    aligned: bool,
    steps: Sequence[float],
) -> ValueRef:
    """Planes resized to so many rows and columns; as they are where neither changes."""
    shape = writer.shape(x)
    if shape[1:] == tuple(sizes) and all(step == 1.0 for step in steps):
        return x
    made = (shape[0], *sizes)
    return writer.call(RESIZE.name, x, kind, aligned, *steps, shape=made, dtype=writer.spec(x).dtype)


def _order(shape: tuple[Dim, ...], spec: TensorSpec, first: int, sizes: Mapping[str, int]) -> list[int]:
    """The dimensions to resize, the one that leaves least to do first."""

    def growth(axis: int) -> float:
        return extent(spec.shape[axis]).evaluate(sizes) / extent(shape[axis]).evaluate(sizes)

    return sorted(range(first, len(shape)), key=lambda axis: (growth(axis), -axis))


def product_along(writer: GraphWriter, x: ValueRef, axis: int, matrix: ValueRef) -> ValueRef:
    """``x`` with its dimension ``axis`` taken through a matrix of [results, sources]."""
    shape, (results, sources) = writer.shape(x), writer.shape(matrix)
    outer, inner = times(shape[:axis]), times(shape[axis + 1 :])
    whole = (*shape[:axis], results, *shape[axis + 1 :])
    if extent(inner).is_one:
        turned = writer.call(
            "aten.permute.default", matrix, (1, 0), shape=(sources, results), dtype="float32"
        )
        rows = view(writer, x, (outer, sources))
        result = writer.call("aten.mm.default", rows, turned, shape=(outer, results), dtype="float32")
        return view(writer, result, whole)
    if extent(outer).is_one:
        columns = view(writer, x, (sources, inner))
        result = writer.call("aten.mm.default", matrix, columns, shape=(results, inner), dtype="float32")
        return view(writer, result, whole)
    left = expanded(writer, view(writer, matrix, (1, results, sources)), (outer, results, sources))
    right = view(writer, x, (outer, sources, inner))
    result = writer.call("aten.bmm.default", left, right, shape=(outer, results, inner), dtype="float32")
    return view(writer, result, whole)


# -- nearest elements -----------------------------------------------------------------------------


def _nearest(dims: int, centred: bool) -> Rewrite:
    """The rewrite of taking the nearest element along the last ``dims`` dimensions: the one that a result's
    lower end lies in, or where ``centred`` its middle."""
    kind = "nearest_exact" if centred else "nearest"

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
        x, spec = tensor(node, 0), node.outputs[0]
        steps = _known_steps(node, writer, dims, False, argument_of_first_scale=2)
        if steps is not None and _fits(kind, steps, spec, writer):
            return (_in_planes(writer, x, spec, kind, False, steps),)
        first = len(spec.shape) - dims
        for axis in _order(writer.shape(x), spec, first, writer.sizes):
            weights = _weights_of(node, writer, x, axis, False, 2 + axis - first)
            x = _chosen_along(weights, x, axis, centred)
        return (x,)

    return rewrite


def _chosen_along(weights: Weights, x: ValueRef, axis: int, centred: bool) -> ValueRef:
    """``x`` with the nearest of the elements of one dimension for each result."""
    writer, sources, results = weights.writer, weights.sources, weights.results
    if isinstance(sources, int) and isinstance(results, int):
        known = _nearest_places(weights, sources, results, centred)
        result = _regular(writer, x, axis, known)
        if result is not None:
            return result
    row = numbers(writer, results)
    place = weights.scaled(weights.call("add.Scalar", row, 0.5) if centred else row)
    last = weights.call("sub.Scalar", size(writer, (sources,)), 1.0)
    whole = weights.call("minimum.default", weights.call("floor.default", place), last)
    index = cast(writer, whole, "int64")
    spec = writer.spec(x)
    shape = (*spec.shape[:axis], results, *spec.shape[axis + 1 :])
    return writer.call("aten.index_select.default", x, axis, index, shape=shape, dtype=spec.dtype)


def _nearest_places(weights: Weights, sources: int, results: int, centred: bool) -> list[int]:
    """The element of each result, rounded as PyTorch rounds it."""
    scale = weights.step()
    assert isinstance(scale, float)
    step = np.float32(scale)
    number = np.arange(results, dtype=np.float32) + np.float32(0.5 if centred else 0.0)
    return [int(place) for place in np.minimum(np.floor(number * step), sources - 1)]


def _regular(writer: GraphWriter, x: ValueRef, axis: int, places: Sequence[int]) -> ValueRef | None:
    """Every element as often as every other, or every so many-th element; None for any other places."""
    spec = writer.spec(x)
    sources, results = spec.shape[axis], len(places)
    assert isinstance(sources, int)
    before, behind = spec.shape[:axis], spec.shape[axis + 1 :]
    times_each = max(1, results // sources)
    if list(places) == [index // times_each for index in range(times_each * sources)]:
        if times_each == 1:
            return x
        wide = (*before, sources, times_each, *behind)
        repeated = expanded(writer, view(writer, x, (*before, sources, 1, *behind)), wide)
        return view(writer, repeated, (*before, results, *behind))
    step = places[1] - places[0] if results > 1 else 1
    if step > 0 and list(places) == list(range(places[0], places[-1] + 1, step)):
        shape = (*before, results, *behind)
        bounds = (axis, places[0], places[-1] + 1, step)
        return writer.call("aten.slice.Tensor", x, *bounds, shape=shape, dtype=spec.dtype)
    return None


REWRITES: Mapping[str, Rewrite] = {
    **{f"aten.upsample_nearest{dims}d.default": _nearest(dims, False) for dims in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{dims}d.default": _nearest(dims, True) for dims in (1, 2, 3)},
    "aten.upsample_linear1d.default": _resized("linear", 1),
    "aten.upsample_bilinear2d.default": _resized("linear", 2),
    "aten.upsample_trilinear3d.default": _resized("linear", 3),
    "aten.upsample_bicubic2d.default": _resized("cubic", 2),
    "aten._upsample_bilinear2d_aa.default": _resized("smooth_linear", 2),
    "aten._upsample_bicubic2d_aa.default": _resized("smooth_cubic", 2),
}
