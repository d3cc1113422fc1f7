"""A graph node as a lowering rule sees it: operands already in the iteration space."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from evokernel_core.compiler.lowering import literals
from evokernel_core.compiler.lowering.values import Builder, Operand, Value
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef
from evokernel_core.domain.tensor import TensorSpec

_MISSING = object()


@frozen
class Call:
    """``evaluate`` gives an operand at the access that element-wise broadcasting asks for;
    ``evaluate_row`` gives an operand of a reduction over ``dims``, with all columns present."""

    node: Node
    b: Builder
    evaluate: Callable[[ValueRef], Operand]
    evaluate_rows: Callable[[ValueRef, tuple[int, ...]], Operand]
    spec_of: Callable[[ValueRef], TensorSpec]
    output: int = 0

    def argument(self, position: int, name: str, default: object = _MISSING) -> Arg:
        """A raw argument by position or keyword."""
        if position < len(self.node.args):
            return self.node.args[position]
        for key, value in self.node.kwargs:
            if key == name:
                return value
        if default is _MISSING:
            raise PlanError("{op} is called without its argument {name}.", op=self.node.op, name=repr(name))
        return default  # type: ignore[return-value]

    def number(self, position: int, name: str, default: float) -> float:
        """A literal number; None means the default."""
        value = self.argument(position, name, default)
        if value is None:
            return default
        if isinstance(value, bool | int | float):
            return self._literal(value)
        raise PlanError("{op} needs a literal number for {name}.", op=self.node.op, name=repr(name))

    def _literal(self, value: float) -> float:
        """A literal beside 16-bit tensors, rounded where PyTorch rounds it."""
        if self.node.op.split(".")[1] not in literals.ROUNDED:
            return float(value)
        tensor = next(iter(self.node.operands()), None)
        return literals.in_dtype(float(value), "" if tensor is None else self.spec_of(tensor).dtype)

    def raw(self, position: int, name: str = "", default: object = _MISSING) -> Operand:
        """An operand as it is: a number or a mask."""
        value = self.argument(position, name, default)
        if isinstance(value, ValueRef):
            return self.evaluate(value)
        if isinstance(value, SymbolicInt):
            return self.size(extent(value.expression))
        if isinstance(value, bool | int | float):
            return self._literal(value)
        raise PlanError(
            "{op} has an argument {name} that is not a tensor or number.",
            op=self.node.op,
            name=name or position,
        )

    def x(self, position: int = 0, name: str = "") -> Operand:
        """An operand as a number."""
        return self.b.as_number(self.raw(position, name))

    def mask(self, position: int) -> Value:
        """An operand as a truth value."""
        return self.b.as_mask(self.raw(position))

    def has(self, position: int, name: str) -> bool:
        """Whether an optional argument is given and not None."""
        return self.argument(position, name, None) is not None

    def size(self, size: Extent) -> Operand:
        """A size as a number, a literal where it is constant."""
        if size.constant is not None:
            return float(size.constant)
        return self.b.emit("size", detail=size.cpp())

    def tensor(self, position: int = 0) -> ValueRef:
        value = self.argument(position, "self")
        if not isinstance(value, ValueRef):
            raise PlanError("{op} is called on something that is not a tensor.", op=self.node.op)
        return value


Rule = Callable[[Call], Operand]
