"""Whether a 16-bit graph's results jump with the last bit of what lies between its operations.

PyTorch rounds between operations, and a comparison, a whole part or a remainder turns a rounding into another
result: of ``s == s.amax()`` the equal elements are those that are equal in bfloat16.
"""

from __future__ import annotations

from evokernel_core.compiler.lowering.integers import INTEGERS, ORDERS, SHORT
from evokernel_core.compiler.lowering.pointwise import KEEPS_PRECISION
from evokernel_core.compiler.lowering.values import HALF
from evokernel_core.compiler.shapes.views import VIEWS
from evokernel_core.domain.graph import Graph, Node

_WHOLE = frozenset(["floor", "ceil", "round", "trunc", "fmod", "remainder"])


def rounding_decides(graph: Graph) -> bool:
    """Whether an operation that jumps depends on a result that PyTorch rounds to 16 bits."""
    rounded: set[str] = set()
    for node in graph.nodes:
        depends = any(ref.name in rounded for ref in node.operands())
        if depends and _jumps(node):
            return True
        if depends or _rounds(node):
            rounded.add(node.name)
    return False


def _rounds(node: Node) -> bool:
    return any(
        spec.dtype in HALF and node.op not in KEEPS_PRECISION and node.op not in VIEWS
        for spec in node.outputs
    )


def _jumps(node: Node) -> bool:
    packet = node.op.split(".")[1]
    if packet in ORDERS:
        return not any(isinstance(arg, int | float) and arg == 0 for arg in node.args)  # no sign is lost
    if packet == "div":
        return any(name == "rounding_mode" and value is not None for name, value in node.kwargs)
    return packet in _WHOLE or (packet == "_to_copy" and node.outputs[0].dtype in INTEGERS | SHORT)
