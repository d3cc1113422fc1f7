"""How fast a task could be computed: the bound of its bytes and operations, by what takes least of them."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.legalise import legalised
from evokernel_core.compiler.ops import DIALECT, Sizes
from evokernel_core.compiler.target import Target
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device
from evokernel_core.hardware.indexed import chosen_bytes
from evokernel_core.hardware.products import multiply_adds
from evokernel_core.hardware.roofline import NodeWork, roofline_us


@frozen
class KernelBound:
    """One kernel of a plan: its family, the operations in it, how often it is launched, and for one launch
    the modelled microseconds of its schedule and those that no kernel of it can be below."""

    family: str
    ops: tuple[str, ...]
    launches: int
    estimate_us: float
    bound_us: float


def least_us(task: KernelTask, device: Device, target: Target) -> float:
    """Modelled lower bound in microseconds of a captured task: of its graph as it was written or as rewrites
    say it, whichever is lower. A mean in front of a product takes fewer operations than one behind it."""
    written = roofline_us(task, device)
    try:
        return min(written, bound_us(legalised(task, device, target), device))
    except PlanError:
        return written


def bound_us(task: KernelTask, device: Device) -> float:
    """Modelled lower bound in microseconds of a kernel of a task in ATen and the dialect: bytes at the rate
    of the memory, multiply-adds at that of the matrix units, elements at that of the workers."""
    return roofline_us(task, device, work=_WORK)


def _chosen_bytes(node: Node, ref: ValueRef, graph: Graph, sizes: Sizes) -> int | None:
    op = DIALECT.get(node.op)
    return chosen_bytes(node, ref, graph, sizes) if op is None else op.read_bytes(node, ref, graph, sizes)


def _multiply_adds(node: Node, graph: Graph, sizes: Sizes) -> int:
    op = DIALECT.get(node.op)
    if op is None:
        return multiply_adds(node, graph, sizes)
    return op.flops(node, graph, sizes) // 2 if op.on_cube else 0


def _vector_elements(node: Node, graph: Graph, sizes: Sizes) -> int:
    op = DIALECT.get(node.op)
    return 0 if op is None or op.on_cube else op.flops(node, graph, sizes)


_WORK = NodeWork(_chosen_bytes, _multiply_adds, _vector_elements)
