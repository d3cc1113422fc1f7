"""float32 products of numbers that a half type holds: cube cores multiply those four times as fast, and add
them up in float32 all the same."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from evokernel_core.compiler.rewrites.picking import producer
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.compiler.shapes.views import PERMUTATIONS, VIEWS
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip

_CAST = "aten._to_copy.default"
_PRODUCTS = ("aten.mm.default", "aten.bmm.default")
_SHORT = frozenset({"int8", "uint8", "bool"})
_HOLDS: Mapping[str, frozenset[str]] = {"float16": _SHORT | {"float16"}, "bfloat16": _SHORT | {"bfloat16"}}
"""By half type, the types all of whose numbers it holds."""


def half_operands(task: KernelTask, chip: Chip) -> KernelTask:
    """The task where both operands of a float32 product are of a half type if they were converted from one,
    or from integers of eight bits."""
    return rewritten(task, dict.fromkeys(_PRODUCTS, _narrow), chip)


def _narrow(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    operands = tuple(node.operands())
    if node.outputs[0].dtype != "float32" or any(writer.spec(ref).dtype != "float32" for ref in operands):
        return None
    chains = [_chain(ref, writer) for ref in operands]
    sources = [writer.spec(source).dtype for source, _ in chains]
    half = next((name for name, held in _HOLDS.items() if held.issuperset(sources)), None)
    if half is None:
        return None
    narrow = tuple(_moved(source, views, half, writer) for source, views in chains)
    return writer.keep(evolve(node, args=(*narrow, *node.args[len(narrow) :])))


def _chain(ref: ValueRef, writer: GraphWriter) -> tuple[ValueRef, list[Node]]:
    """What an operand was converted from, and the views between, the last one first."""
    views: list[Node] = []
    below = producer(writer, ref)
    while below is not None and below.op in VIEWS | PERMUTATIONS:
        views.append(below)
        ref = next(iter(below.operands()))
        below = producer(writer, ref)
    while below is not None and below.op == _CAST:
        ref = next(iter(below.operands()))
        if writer.spec(ref).dtype != "float32":
            break
        below = producer(writer, ref)
    return ref, views


def _moved(source: ValueRef, views: list[Node], half: str, writer: GraphWriter) -> ValueRef:
    """The operand in a half type."""
    if writer.spec(source).dtype != half:
        source = writer.call(_CAST, source, shape=writer.shape(source), dtype=half)
    for node in reversed(views):
        shape, kwargs = node.outputs[0].shape, dict(node.kwargs)
        source = writer.call(node.op, source, *node.args[1:], shape=shape, dtype=half, **kwargs)
    return source
