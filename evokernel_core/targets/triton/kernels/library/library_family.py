"""Family library: one operation that PyTorch's own libraries compute faster than a kernel of ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from evokernel_core.compiler.family import Move
from evokernel_core.compiler.problems.reading import below_views, one_node
from evokernel_core.compiler.problems.strided import Group, behind_views
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent
from evokernel_core.compiler.shapes.views import PERMUTATIONS, SAME_ORDER
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.attention import attention_family
from evokernel_core.targets.triton.kernels.convolution import convolution_family
from evokernel_core.targets.triton.kernels.function import expression
from evokernel_core.targets.triton.kernels.library.library_cost import library_us
from evokernel_core.targets.triton.kernels.matmul import matmul_family
from evokernel_core.targets.triton.kernels.pooling import pooling_family
from evokernel_core.targets.triton.kernels.searching import GpuFamily
from evokernel_core.targets.triton.kernels.text import TritonKernel
from evokernel_core.targets.triton.launch import LibraryCall, Literal, View, tensor_names
from evokernel_core.targets.triton.library import OPERATIONS

_OURS: Mapping[str, tuple[GpuFamily[Any, Any], ...]] = {
    "aten.mm.default": (matmul_family.FAMILY,),
    "aten.bmm.default": (matmul_family.FAMILY,),
    "aten.scaled_dot_product_attention.default": (attention_family.FAMILY,),
    "aten.convolution.default": (pooling_family.FAMILY, convolution_family.FAMILY),
}
"""Families of ours that compute the same."""
_VIEWS = sorted({*PERMUTATIONS, *SAME_ORDER})


@frozen
class LibraryFamily:
    """A call of PyTorch's, on tensors as they lie in memory."""

    name: str = field(default="library", init=False)
    strategies: frozenset[str] = field(default=frozenset({"library"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(OPERATIONS), "kernel") | dict.fromkeys(_VIEWS, "view")

    def check(self, task: KernelTask, gpu: Gpu) -> None:
        node = _node(task)
        _call(task, node)
        library = library_us(task, node, gpu)
        if any(_estimate_us(family, task, gpu) <= library for family in _OURS.get(node.op, ())):
            raise PlanError("A generated kernel is estimated to be as fast as the library.")

    def initial(self, task: KernelTask, gpu: Gpu) -> Strategy:
        op = _node(task).op
        note = Sentence("{op} by PyTorch's library.", op=op)
        return Strategy(self.name, {}, (note,), descriptor=_CELL)

    def moves(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> tuple[Move, ...]:
        return ()

    def descriptor(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> Descriptor:
        return _CELL

    def estimate_us(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> float:
        return library_us(task, _node(task), gpu)

    def text(self, task: KernelTask, strategy: Strategy, gpu: Gpu, name: str) -> TritonKernel:
        return TritonKernel((), (_call(task, _node(task)),))

    def why_illegal(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> str | None:
        return None

    def adapt(self, task: KernelTask, strategy: Strategy, gpu: Gpu) -> Strategy | None:
        return self.initial(task, gpu)


_CELL = Descriptor(Dataflow.BLOCKS, "SHARED", Split.TILES, Algorithm.MATRIX_PRODUCT, Overlap.PIPELINED)


def _node(task: KernelTask) -> Node:
    """The one operation of the task that is no view. Raises PlanError."""
    reason = Sentence("The kernel is not exactly one operation of a library.")
    node, outputs = one_node(task, OPERATIONS, reason), task.graph.outputs
    if len(outputs) != 1 or below_views(task.graph, outputs[0]) != ValueRef(node.name):
        raise PlanError(reason)
    return node


def _estimate_us(family: GpuFamily[Any, Any], task: KernelTask, gpu: Gpu) -> float:
    """Estimated microseconds of a family's first schedule; infinite where it does not compute the task."""
    try:
        return family.estimate_us(task, family.initial(task, gpu), gpu)
    except PlanError:
        return math.inf


def _call(task: KernelTask, node: Node) -> LibraryCall:
    (output,) = tensor_names(task)[2]
    arguments = tuple(_argument(task, arg) for arg in node.args)
    shape = tuple(expression(extent(dim)) for dim in node.outputs[0].shape)
    if node.kwargs:
        raise PlanError("The operation has keyword settings, which no library call takes.")
    return LibraryCall(node.op, arguments, output, shape)


def _argument(task: KernelTask, arg: Arg) -> View | Literal:
    if isinstance(arg, ValueRef):
        name, groups = behind_views(task, arg)
        shape = task.graph.spec(arg).shape
        return View(name, tuple(expression(extent(dim)) for dim in shape), _strides(groups, shape))
    if isinstance(arg, tuple | list):
        return tuple(_literal(one) for one in arg)
    return _literal(arg)


def _literal(arg: Arg) -> Literal:
    if arg is None or isinstance(arg, bool | int | float):
        return arg
    raise PlanError("An argument of the operation is no number.")


def _strides(groups: tuple[Group, ...], shape: tuple[Dim, ...]) -> tuple[str, ...]:
    """The stride of each dimension. Raises PlanError where a dimension steps unevenly."""
    result = []
    for group, _ in zip(groups, shape, strict=True):
        if len(group) > 1:
            raise PlanError("An operand of a library's operation is no strided tensor.")
        stride: Extent = group[0].stride if group else ONE
        result.append(expression(stride))
    return tuple(result)
