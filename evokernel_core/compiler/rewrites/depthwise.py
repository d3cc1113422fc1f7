"""Depthwise convolutions whose zeros in front and behind differ, as causal ones have them.

PyTorch writes these as a padding before the convolution, or as a slice of one that is padded on both
sides. A window may start and end anywhere, so the kernel reads what exists and writes what is kept.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from evokernel_core.compiler.aten import CONVOLUTION
from evokernel_core.compiler.ops import DEPTHWISE
from evokernel_core.compiler.rewrites.picking import argument, producer, read_once
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.device import Device

_PAD = "aten.constant_pad_nd.default"
_SLICE = "aten.slice.Tensor"


def trimmed_depthwise(task: KernelTask, device: Device) -> KernelTask:
    """The task with depthwise convolutions that have the zeros in front of their input, and the slices of
    their result, if nothing else reads it."""
    if not any(_is_depthwise(node) for node in task.graph.nodes):
        return task
    alone = read_once(task)

    def trimmed(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        result = _padded(node, writer) if node.op == CONVOLUTION else _sliced(node, writer, alone)
        if result is not None and node.name in alone:
            alone.update(ref.name for ref in result)
        return result

    return rewritten(task, {CONVOLUTION: trimmed, _SLICE: trimmed}, device)


def _is_depthwise(node: Node) -> bool:
    """Whether a node is a convolution of as many groups as its weights have, which may still turn out to
    read several channels."""
    return node.op == CONVOLUTION and not node.args[6] and node.args[8] != 1


def _padded(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """The convolution of what a padding with zeros reads."""
    x, weight = node.args[:2]
    assert isinstance(x, ValueRef)
    assert isinstance(weight, ValueRef)
    if not _is_depthwise(node) or writer.shape(weight)[1] != 1:
        return None
    maker = producer(writer, x)
    if maker is None or maker.op != _PAD or argument(maker, 2, "value", 0) != 0:
        return None
    rank = len(writer.shape(x)) - 2
    pads = _numbers(maker.args[1])
    if pads is None or len(pads) > 2 * rank or min(pads) < 0:
        return None
    more = [0] * (rank - len(pads) // 2) + list(pads[-2::-2])
    return _with_padding(node, writer, maker.args[0], more, node.outputs[0].shape)


def _sliced(node: Node, writer: GraphWriter, alone: Set[str]) -> tuple[ValueRef, ...] | None:
    """The convolution of fewer windows than it had."""
    source = node.args[0]
    maker = producer(writer, source) if isinstance(source, ValueRef) else None
    if maker is None or maker.name not in alone or not (maker.op == DEPTHWISE.name or _is_depthwise(maker)):
        return None
    weight = maker.args[1]
    assert isinstance(weight, ValueRef)
    kernel = writer.shape(weight)
    dim = literal(argument(node, 1, "dim", 0)) % len(kernel)
    start, step = argument(node, 2, "start", 0) or 0, argument(node, 4, "step", 1)
    if kernel[1] != 1 or dim < 2 or kernel[dim] == 1 or not isinstance(start, int) or step != 1:
        return None
    rank = len(kernel) - 2
    stride, padding = _each(maker.args[3], rank), _each(maker.args[4], rank)
    if stride is None or padding is None or not 0 <= start * stride[dim - 2] <= padding[dim - 2]:
        return None
    fewer = [0] * rank
    fewer[dim - 2] = -start * stride[dim - 2]
    return _with_padding(maker, writer, maker.args[0], fewer, node.outputs[0].shape)


def _with_padding(
    node: Node, writer: GraphWriter, x: object, more: Sequence[int], shape: tuple[Dim, ...]
) -> tuple[ValueRef, ...] | None:
    """The convolution of ``x`` with ``more`` zeros in front of each dimension and a result of ``shape``."""
    assert isinstance(x, ValueRef)
    padding = _each(node.args[4], len(more))
    if padding is None:
        return None
    before = tuple(old + new for old, new in zip(padding, more, strict=True))
    _, weight, bias, stride, _, *rest = node.args
    dtype = node.outputs[0].dtype
    return (writer.call(DEPTHWISE.name, x, weight, bias, stride, before, *rest, shape=shape, dtype=dtype),)


def _numbers(value: object) -> tuple[int, ...] | None:
    """A tuple of whole numbers, None where some depend on sizes."""
    if not isinstance(value, tuple) or not all(isinstance(element, int) for element in value):
        return None
    return value


def _each(value: object, rank: int) -> tuple[int, ...] | None:
    """One number for each spatial dimension."""
    numbers = _numbers(value)
    return numbers * rank if numbers is not None and len(numbers) == 1 else numbers
