"""What shapes the operations of ATen take and give, at the sizes of the user's file.

A task may come from elsewhere: what rewrites and families read of a node, they may rely on once every call
fits these rules. An operation without a rule of its own works element by element on operands that are
broadcast.
"""

from evokernel_core.compiler.rewrites.call_shapes.check import check_calls

__all__ = ["check_calls"]
