"""Views: operations that only rename the points of the iteration space."""

from __future__ import annotations

from evokernel_core.compiler.shapes.space import Access, Space, broadcast, flatten
from evokernel_core.domain.graph import Node
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import TensorSpec

SAME_ORDER = (
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten.unsqueeze.default",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.alias.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.detach.default",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
    "aten.lift_fresh_copy.default",
)
BROADCASTS = ("aten.expand.default", "aten.broadcast_to.default")
PERMUTATIONS = frozenset({"aten.t.default", "aten.transpose.int", "aten.permute.default"})

VIEWS = frozenset(SAME_ORDER + BROADCASTS)
"""The views that cost nothing: they keep the row-major order of the elements, or repeat them."""


def operand_access(space: Space, node: Node, access: Access, operand: TensorSpec) -> Access:
    """How the operand of a view is read where its result is read at ``access``."""
    if node.op in BROADCASTS:
        return broadcast(access, node.outputs[0].shape, operand.shape)
    return space.regroup(flatten(access), operand.shape, Sentence("the operand of {name}", name=node.name))
