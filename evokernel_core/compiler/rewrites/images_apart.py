"""Norms over each channel of each image, in the shape of the images.

PyTorch computes an instance norm as a batch norm of one image that has the channels of all. What is done to
that view is done to the images themselves here, which stay apart: programs can then take them in chunks.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.compiler.rewrites.merge import merged
from evokernel_core.compiler.rewrites.picking import view
from evokernel_core.compiler.rewrites.split_reductions import reduced_dims
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.compiler.shapes.sizes import extent, product
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.device import Device

_VIEWS = ("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
_MOMENTS = "aten.var_mean.correction"


def images_apart(task: KernelTask, device: Device) -> KernelTask:
    """The task with instance norms in the shape of their images; the same task where there are none."""
    if not any(_joins_images(node, task.graph.spec(ref).shape) for node, ref in _views(task)):
        return task
    apart = _Apart()
    table: dict[str, Rewrite] = {
        **dict.fromkeys(POINTWISE, apart.pointwise),
        **dict.fromkeys(_VIEWS, apart.view),
        _MOMENTS: apart.moments,
    }
    return merged(rewritten(task, table, device))


def _views(task: KernelTask) -> list[tuple[Node, ValueRef]]:
    return [(node, next(node.operands())) for node in task.graph.nodes if node.op in _VIEWS]


def _joins_images(node: Node, shape: tuple[Dim, ...]) -> bool:
    """Whether a view of [images, channels, *sizes] is [1, images * channels, *sizes]."""
    made = node.outputs[0].shape
    if len(shape) < 3 or len(made) != len(shape) or made[0] != 1 or shape[0] == 1 or made[2:] != shape[2:]:
        return False
    return extent(made[1]) == product(map(extent, shape[:2]))


@frozen
class _Apart:
    """``values``: of values of one image, the same of the images."""

    values: dict[ValueRef, ValueRef] = field(factory=dict)

    def view(self, node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        x = next(node.operands())
        if x in self.values and writer.shape(self.values[x]) == node.outputs[0].shape:
            return (self.values[x],)
        if not _joins_images(node, writer.shape(x)):
            return None
        (found,) = writer.keep(node)
        self.values[found] = x
        return (found,)

    def moments(self, node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        """Variance and mean of each channel of each image."""
        x = next(node.operands())
        given = dict(node.kwargs)
        if x not in self.values or not given.get("keepdim") or "dim" in given:
            return None
        dims = tuple(dim for dim in reduced_dims(node, len(writer.shape(x))) or () if dim)  # of one image
        if not dims or 1 in dims:
            return None
        images = self.values[x]
        specs = tuple(evolve(spec, shape=self._shape(writer, images, spec.shape)) for spec in node.outputs)
        made = writer.call_many(node.op, images, dims, outputs=specs, **given)
        return tuple(
            self._joined(writer, ref, spec.shape) for ref, spec in zip(made, node.outputs, strict=True)
        )

    def pointwise(self, node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        """An operation on such values and numbers."""
        refs = tuple(node.operands())
        known = [ref for ref in refs if ref in self.values]
        rank = len(node.outputs[0].shape)
        if not known or len(node.outputs) != 1 or any(len(writer.shape(ref)) != rank for ref in known):
            return None
        if any(ref not in self.values and writer.shape(ref) for ref in refs):
            return None
        args = tuple(self.values.get(arg, arg) if isinstance(arg, ValueRef) else arg for arg in node.args)
        (spec,) = node.outputs
        shape = self._shape(writer, self.values[known[0]], spec.shape)
        result = writer.call(node.op, *args, shape=shape, dtype=spec.dtype, **dict(node.kwargs))
        return (self._joined(writer, result, spec.shape),)

    @staticmethod
    def _shape(writer: GraphWriter, images: ValueRef, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return (*writer.shape(images)[:2], *shape[2:])

    def _joined(self, writer: GraphWriter, images: ValueRef, shape: tuple[Dim, ...]) -> ValueRef:
        result = view(writer, images, shape)
        self.values[result] = images
        return result
