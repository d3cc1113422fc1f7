"""Convolutions as the cube family takes them: padded, with W cut into phases, and the bias added behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evokernel_core.ascendc.families.conv_geometry import CONVOLUTION
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef


def rewrite_convolution(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """``aten.convolution``; depthwise ones stay as they are."""
    x, weight, bias, stride, padding, dilation, transposed, _, groups = node.args
    assert isinstance(x, ValueRef)
    assert isinstance(weight, ValueRef)
    if transposed or _is_depthwise(writer, weight, groups):
        return None
    rank = len(writer.shape(weight)) - 2
    steps, gaps = (_each(arg, rank) for arg in (stride, dilation))
    if steps[-1] > 1 or any(_each(padding, rank)):
        raise PlanError("A convolution with padding or a step along its last dimension is not covered yet.")
    spec = node.outputs[0]
    made = writer.call(
        CONVOLUTION, x, weight, tuple(steps), tuple(gaps), groups, 1, shape=spec.shape, dtype=spec.dtype
    )
    return (made if bias is None else _with_bias(writer, made, bias),)


def _is_depthwise(writer: GraphWriter, weight: ValueRef, groups: object) -> bool:
    return groups != 1 and writer.shape(weight)[1] == 1


def _each(arg: object, rank: int) -> Sequence[int]:
    """One number for each spatial dimension."""
    assert isinstance(arg, tuple)
    return [int(item) for item in arg] * (rank if len(arg) == 1 else 1)


def _with_bias(writer: GraphWriter, made: ValueRef, bias: object) -> ValueRef:
    assert isinstance(bias, ValueRef)
    spec = writer.spec(made)
    shape = (writer.shape(bias)[0], *[1] * (spec.rank - 2))
    column = writer.call("aten.view.default", bias, shape, shape=shape, dtype=spec.dtype)
    return writer.call("aten.add.Tensor", made, column, shape=spec.shape, dtype=spec.dtype)


REWRITES: Mapping[str, Rewrite] = {"aten.convolution.default": rewrite_convolution}
