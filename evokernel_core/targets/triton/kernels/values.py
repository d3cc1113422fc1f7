"""The values of a ``Plan`` as statements of Triton, a line each.

Values are float32 in registers; a mask is a truth value of one bit. A value has the dimensions of the tile
that it differs along, and Triton broadcasts where it meets another; what is reduced, or lies in a loop, is
given the tile's full shape by whoever calls.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping

from attrs import define, field

from evokernel_core.compiler.lowering.values import Kind, Operand, Value
from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.triton.kernels.function import JitFunction
from evokernel_core.targets.triton.kernels.helpers import HELPERS
from evokernel_core.targets.triton.kernels.text import DTYPES

_COMPARE: Mapping[str, str] = {"LT": "<", "GT": ">", "EQ": "==", "LE": "<=", "GE": ">=", "NE": "!="}
_CALLS: Mapping[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "exp": "tl.exp({0})",
    "ln": "tl.log({0})",
    "sqrt": "tl.sqrt_rn({0})",
    "abs": "tl.abs({0})",
    "div": "divided({0}, {1})",
    "max": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "min": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "relu": "tl.maximum({0}, 0.0, propagate_nan=tl.PropagateNan.ALL)",
    "select": "tl.where({0}, {1}, {2})",
    "to_number": "tl.where({0}, 1.0, 0.0)",
    "not": "{0} == 0",
    "fill": "{0}",
    "widen": "{0}",
}
_ROUND: Mapping[str, str] = {
    "CAST_FLOOR": "tl.floor({0})",
    "CAST_CEIL": "tl.ceil({0})",
    "CAST_RINT": "rounded_to_even({0})",
    "CAST_TRUNC": "truncated({0})",
}
_VECTORS = frozenset({"exp", "ln", "sqrt", "abs", "round", "rounded", "relu", "max", "min", "compare"})
"""What takes no literal in its first place."""
_TENSORS = frozenset({"div", "fill", "widen"})
"""What takes no literal at all."""
_RESERVED = frozenset(
    {*keyword.kwlist, "tl", "triton", "row", "column", "step", "inside", "range", "float", "int"}
)


@define
class Statements:
    """Prints values; ``load`` gives the expression of one that is loaded. ``names`` are those of values that
    stand already, by their index; ``taken`` those that no value may have; numbers of the call are
    parameters of ``function``."""

    load: Callable[[Value], str]
    taken: set[str]
    function: JitFunction
    names: dict[int, str] = field(factory=dict)
    helpers: set[str] = field(factory=set)

    def line(self, value: Value) -> str:
        """The statement that makes a value, which has a name from then on."""
        text = self.expression(value)
        name = self.names.setdefault(value.index, self._name(value))
        return f"{name} = {text}"

    def word(self, operand: Operand) -> str:
        """An operand in an expression: a name or a literal."""
        if isinstance(operand, Value):
            return self.names[operand.index]
        return literal(operand)

    def reserve(self, stem: str) -> str:
        """A name that nothing has yet."""
        stem = re.sub(r"\W+", "_", stem).strip("_").lower() or "value"
        stem = stem if stem[0].isalpha() else f"value_{stem}"
        name, count = stem, 2
        while name in self.taken or name in _RESERVED or name in HELPERS:
            name, count = f"{stem}_{count}", count + 1
        self.taken.add(name)
        return name

    def _name(self, value: Value) -> str:
        stem = value.detail.partition("@")[0] if value.op == "load" else value.origin or value.op
        return self.reserve(f"{stem}_in" if stem in self.taken and value.op == "load" else stem)

    def expression(self, value: Value) -> str:
        """The right side of a value's statement. Raises PlanError for what Triton's author does not write."""
        if value.op == "load":
            return self.load(value)
        if value.op == "scalar":
            return self.function.scalar(value.detail)
        template = _template(value)
        self.helpers |= {name for name in HELPERS if f"{name}(" in template}
        return template.format(*(self._argument(value, place) for place in range(len(value.args))))

    def _argument(self, value: Value, place: int) -> str:
        operand = value.args[place]
        if isinstance(operand, float) and (value.op in _TENSORS or (place == 0 and value.op in _VECTORS)):
            return f"tl.full((), {literal(operand)}, tl.float32)"
        return self.word(operand)


def _template(value: Value) -> str:
    """The expression of a value, its operands numbered. Raises PlanError for an operation without one."""
    if is_plain_quotient(value):
        return "{0} / {1}"
    if value.op in _CALLS:
        return _CALLS[value.op]
    match value.op:
        case "size":
            result = f"1.0 * ({value.detail.replace('/', '//')})"
        case "compare":
            result = f"{{0}} {_COMPARE[value.detail]} {{1}}"
        case "leaky_relu":
            result = f"tl.where({{0}} > 0, {{0}}, {{0}} * {literal(value.number)})"
        case "rounded":
            result = f"{{0}}.to({DTYPES[value.detail]}).to(tl.float32)"
        case "round":
            result = _ROUND[value.detail]
        case _:
            raise PlanError("{op} is not written in Triton.", op=value.op)
    return result


def is_plain_quotient(value: Value) -> bool:
    """Whether a value is a quotient by 1 + exp(x), as sigmoids have it: there the plain one, off by two units
    in the last place at the most, rounds no more than the power does. The exact one takes several times as
    many instructions, and branches for each element."""
    below = value.args[1] if value.op == "div" else None
    if not isinstance(below, Value) or below.op != "add" or 1.0 not in below.args:
        return False
    return any(one.op == "exp" for one in below.values())


def literal(number: float) -> str:
    """A number as Triton reads it."""
    if math.isnan(number) or math.isinf(number):
        return f'float("{number}")'
    return repr(number)


def as_stored(word: str, value: Operand, dtype: str) -> str:
    """A value as an output of a dtype takes it."""
    if dtype == "float32":
        return word
    if dtype == "bool":
        is_mask = isinstance(value, Value) and value.kind is Kind.MASK
        return word if is_mask else f"{word} != 0"
    return f"{word}.to({DTYPES[dtype]})"
