"""Where a node lies."""

from __future__ import annotations

from evokernel_core.targets.ascendc.audit.kinds import CursorKind
from evokernel_core.targets.ascendc.audit.unit import Node


def is_launcher_node(node: Node) -> bool:
    """Whether a node belongs to the launcher, whose shape a rule of its own fixes word by word."""
    return node.in_launcher


def call_around(node: Node) -> Node | None:
    """The nearest call that has the node among its arguments."""
    below = node
    for above in node.ancestors():
        if above.kind >= CursorKind.FIRST_STATEMENT:
            return None
        if above.kind == CursorKind.CALL and above.children and above.children[0] is not below:
            return above
        below = above
    return None


def is_in_call_of(node: Node, name: str) -> bool:
    """Whether a node lies, at any depth, in an argument of a call of AscendC's ``name``."""
    around = call_around(node)
    while around is not None:
        if around.name == name or (around.declaration is not None and around.declaration.name == name):
            return around.declaration is None or around.declaration.origin == "twin"
        around = call_around(around)
    return False
