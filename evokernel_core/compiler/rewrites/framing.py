"""Convolutions that frame the images they read: padding and phases beside the products.

A kernel of its own writes framed images to memory and reads them back. Where that is much and the vector
cores have nothing to do behind the convolution, they frame images in L2 while the cube cores multiply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from evokernel_core.compiler.aten import RELU
from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.compiler.ops import CONVOLUTION, SPACE_TO_DEPTH
from evokernel_core.compiler.rewrites.writer import alive
from evokernel_core.compiler.shapes.views import SAME_ORDER
from evokernel_core.domain.graph import Node, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device

_LEAST_SHARE = 4
"""Framed images of this part of L2 are so large that chunks are many and long beside the barriers between
them."""
_MOST_PHASES = 16


def framed_beside(task: KernelTask, device: Device) -> KernelTask:
    """The task with frames that convolutions make themselves; the same task where there are none."""
    graph = task.graph
    makers = {node.name: node for node in graph.nodes if node.op == SPACE_TO_DEPTH.name}
    if not makers:
        return task
    nodes = [
        _with_frame(node, makers) if _gains(node, makers, task, device) else node for node in graph.nodes
    ]
    return evolve(task, graph=graph.computed_by(alive(nodes, graph.outputs), graph.outputs))


def _with_frame(node: Node, makers: Mapping[str, Node]) -> Node:
    maker = makers[next(iter(node.operands())).name]
    x, before = maker.args[:2]
    return evolve(node, args=(x, *node.args[1:], before))


def _gains(node: Node, makers: Mapping[str, Node], task: KernelTask, device: Device) -> bool:
    if node.op != CONVOLUTION.name:
        return False
    x, weight = tuple(node.operands())[:2]
    maker = makers.get(x.name)
    if maker is None or len(task.graph.readers[x.name]) != 1 or bool(node.args[6]):
        return False
    phases = literal(node.args[5])
    is_wide = (
        phases > 1 or task.graph.spec(weight).shape[-1] != 1
    )  # else rows are joined, which frames are not
    is_large = maker.outputs[0].nbytes(task.sizes) >= device.l2_bytes // _LEAST_SHARE
    return is_wide and is_large and phases <= _MOST_PHASES and not _is_changed(node, task.graph.readers)


def _is_changed(node: Node, readers: Mapping[str, Sequence[Node]]) -> bool:
    """Whether vector cores take the result up: it is changed element by element, by more than a ReLU."""
    after = list(_behind(node, readers))
    if len(after) == 1 and after[0].op == RELU:
        after = list(_behind(after[0], readers))
    return any(reader.op in POINTWISE for reader in after)


def _behind(node: Node, readers: Mapping[str, Sequence[Node]]) -> Iterable[Node]:
    """What reads a value, also through views."""
    for reader in readers.get(node.name, ()):
        if reader.op in SAME_ORDER:
            yield from _behind(reader, readers)
        else:
            yield reader
