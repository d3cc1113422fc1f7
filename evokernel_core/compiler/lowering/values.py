"""The expression graph that the families compile: float32 values over an iteration space.

A value lives in one of four domains of the iteration space rows x columns: a single number, one
number a row, one number a column, or every point. Equal expressions are one value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from enum import IntEnum, StrEnum

from attrs import define, field, frozen


class Domain(IntEnum):
    """Which points of rows x columns a value differs at."""

    SCALAR = 0
    ROW = 1
    COLUMN = 2
    FULL = 3

    def join(self, other: Domain) -> Domain:
        """The domain of an element-wise operation on both."""
        return Domain(self.value | other.value)


class Kind(StrEnum):
    NUMBER = "number"
    """A float32."""
    MASK = "mask"
    """A truth value, one bit in the unified buffer."""


BINARY = frozenset({"add", "sub", "mul", "div", "max", "min"})
REDUCTIONS = frozenset({"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"})
HALF = frozenset({"float16", "bfloat16"})
DECIDES = 1.0
"""The ``number`` of a rounding that no schedule may leave out."""
_SCALAR_OPS = frozenset({"add", "sub", "mul", "div"})
"""What the scalar unit computes on single numbers; all else is done on vectors."""


@define(frozen=True, eq=False)
class Value:
    """One operation. ``args`` are values or literal numbers, ``number`` an immediate (a slope),
    ``detail`` a comparison mode, a rounding mode, an input name or a size expression.
    ``origin`` is the graph node that it was lowered from."""

    index: int
    op: str
    args: tuple[Operand, ...]
    domain: Domain
    kind: Kind = Kind.NUMBER
    number: float = 0.0
    detail: str = ""
    origin: str = ""

    def values(self) -> tuple[Value, ...]:
        """The operands that are not literals."""
        return tuple(arg for arg in self.args if isinstance(arg, Value))


Operand = Value | float


def _never(value: Value) -> bool:
    return False


def needed(roots: Iterable[Operand], known: Callable[[Value], bool] = _never) -> tuple[Value, ...]:
    """The values that ``roots`` depend on, operands first, without those that are ``known`` and without
    what only these depend on."""
    result: dict[int, Value] = {}
    waiting = [root for root in roots if isinstance(root, Value)]
    while waiting:
        value = waiting.pop()
        if value.index not in result and not known(value):
            result[value.index] = value
            waiting += [arg for arg in value.args if isinstance(arg, Value)]
    return tuple(result[index] for index in sorted(result))


@frozen
class Stripe:
    """Every so many rows of an input, from the row of the number ``first`` on: what a slice is that begins at
    a multiple of its length, where rows are as long as it is."""

    every: int
    first: int


WHOLE = Stripe(1, 0)


@frozen
class Load:
    """A tensor input read at a set of atoms of the iteration space (indices, in order); of a stripe, the last
    ones are its ``columns``."""

    source: str
    atoms: tuple[int, ...]
    stripe: Stripe = WHOLE
    columns: tuple[int, ...] = ()

    def treats(self, atom: int) -> int:
        """What tells atoms apart that do not make up one loop."""
        return (atom in self.atoms) + (atom in self.columns)


def domain_of(operand: Operand) -> Domain:
    return operand.domain if isinstance(operand, Value) else Domain.SCALAR


@define
class Builder:
    """Makes values, folds literals and merges equal expressions."""

    values: list[Value] = field(factory=list)
    origin: str = ""
    _known: dict[tuple[object, ...], Value] = field(factory=dict)
    _loads: dict[int, Load] = field(factory=dict)
    _quotients: dict[int, tuple[Value, float]] = field(factory=dict)
    """Of products by the inverse of a literal, what was divided and by what."""

    def emit(
        self,
        op: str,
        *args: Operand,
        domain: Domain | None = None,
        kind: Kind = Kind.NUMBER,
        number: float = 0.0,
        detail: str = "",
    ) -> Value:
        if domain is None:
            domain = Domain.SCALAR
            for arg in args:
                domain = domain.join(domain_of(arg))
        names = tuple(arg.index if isinstance(arg, Value) else repr(arg) for arg in args)
        key = (op, names, domain, kind, repr(number), detail)
        if key not in self._known:
            value = Value(len(self.values), op, args, domain, kind, number, detail, self.origin)
            self._known[key] = value
            self.values.append(value)
        return self._known[key]

    def load(self, load: Load, domain: Domain, dtype: str) -> Value:
        """An input at an access; a bool input is a number, 0 or 1."""
        part = f"/{load.stripe.first}of{load.stripe.every}" if load.columns else ""
        detail = f"{load.source}@{','.join(map(str, load.atoms))}:{dtype}{part}"
        value = self.emit("load", domain=domain, detail=detail)
        self._loads[value.index] = load
        return value

    @property
    def loads(self) -> dict[int, Load]:
        return dict(self._loads)

    # -- arithmetic ---------------------------------------------------------------------------

    def add(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, float):
            a, b = b, a
        if isinstance(a, float) and isinstance(b, float):
            return a + b
        return a if b == 0.0 else self._binary("add", a, b)

    def sub(self, a: Operand, b: Operand) -> Operand:
        if isinstance(b, float):
            return self.add(a, -b)
        return self._binary("sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, float):
            a, b = b, a
        if isinstance(a, float) and isinstance(b, float):
            return a * b
        return a if b == 1.0 else self._binary("mul", a, b)

    def div(self, a: Operand, b: Operand) -> Operand:
        if isinstance(b, float):
            product = self.mul(a, _reciprocal(b))
            if isinstance(a, Value) and isinstance(product, Value) and product is not a:
                self._quotients[product.index] = (a, b)
            return product
        return self._binary("div", a, b)

    def divided(self, a: Operand) -> Operand:
        """``a`` itself, or the quotient that it is but for its last bit, where lowering takes the inverse of
        a literal or of a row's number. What is rounded to a whole number, or compared for equality, is to be
        the quotient that division gives."""
        if not isinstance(a, Value):
            return a
        if a.op == "div" and isinstance(a.args[1], Value) and a.args[1].domain is not Domain.FULL:
            dividend, row = a.args
            return self.emit("div", dividend, self.emit("widen", row, domain=Domain.FULL))
        if a.index not in self._quotients:
            return a
        dividend, divisor = self._quotients[a.index]
        if math.frexp(divisor)[0] in (0.5, -0.5):
            return a
        return self._binary("div", dividend, self.spread(divisor))

    def max(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, float) and isinstance(b, float):
            return max(a, b)
        return self._binary("max", b, a) if isinstance(a, float) else self._binary("max", a, b)

    def min(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, float) and isinstance(b, float):
            return min(a, b)
        return self._binary("min", b, a) if isinstance(a, float) else self._binary("min", a, b)

    def neg(self, a: Operand) -> Operand:
        return self.mul(a, -1.0)

    def _binary(self, op: str, a: Operand, b: Operand) -> Value:
        if domain_of(a).join(domain_of(b)) is Domain.SCALAR and op not in _SCALAR_OPS:
            a = self.spread(a)
        return self.emit(op, a, b)

    def spread(self, a: Operand) -> Value:
        """A single number at every point, where the scalar unit cannot go on."""
        if isinstance(a, Value) and a.domain is not Domain.SCALAR:
            return a
        return self.emit("fill", a, domain=Domain.FULL)

    # -- vector functions ---------------------------------------------------------------------

    def exp(self, a: Operand) -> Operand:
        return math.exp(a) if isinstance(a, float) and a < 88.0 else self._unary("exp", a)

    def ln(self, a: Operand) -> Operand:
        return math.log(a) if isinstance(a, float) and a > 0.0 else self._unary("ln", a)

    def sqrt(self, a: Operand) -> Operand:
        return math.sqrt(a) if isinstance(a, float) and a >= 0.0 else self._unary("sqrt", a)

    def abs(self, a: Operand) -> Operand:
        return abs(a) if isinstance(a, float) else self._unary("abs", a)

    def relu(self, a: Operand) -> Operand:
        return max(a, 0.0) if isinstance(a, float) else self._unary("relu", a)

    def leaky_relu(self, a: Operand, slope: float) -> Operand:
        return self._unary("leaky_relu", a, number=slope)

    def round(self, a: Operand, mode: str) -> Operand:
        """Round to an integral value; ``mode`` is a RoundMode of Cast such as ``CAST_FLOOR``."""
        return self._unary("round", a, detail=mode)

    def _unary(self, op: str, a: Operand, number: float = 0.0, detail: str = "") -> Value:
        return self.emit(op, self.spread(a), number=number, detail=detail)

    def rounded(self, a: Operand, dtype: str) -> Operand:
        """The nearest number of a 16-bit type."""
        if not isinstance(a, Value) or a.domain is Domain.SCALAR or a.kind is Kind.MASK:
            return a
        return self.emit("rounded", a, detail=dtype)

    def decided(self, a: Operand, dtype: str) -> Operand:
        """The same for an operand of what jumps between numbers that lie side by side, whose rounding no
        schedule may leave out; ``a`` itself for other types."""
        if not isinstance(a, Value) or dtype not in HALF:
            return a
        return self.emit("rounded", self.spread(a), detail=dtype, number=DECIDES)

    # -- masks --------------------------------------------------------------------------------

    def compare(self, mode: str, a: Operand, b: Operand) -> Value:
        """``mode`` is one of LT GT EQ LE GE NE; the first operand becomes a vector."""
        if isinstance(a, float):
            a, b, mode = b, a, MIRRORED[mode]
        if domain_of(a) is Domain.SCALAR and domain_of(b) is not Domain.SCALAR:
            a, b, mode = b, a, MIRRORED[mode]
        return self.emit("compare", self.spread(a), b, kind=Kind.MASK, detail=mode)

    def as_mask(self, a: Operand) -> Value:
        """Truth of a number: not equal to zero."""
        if isinstance(a, Value) and a.kind is Kind.MASK:
            return a
        if isinstance(a, Value) and a.op == "to_number":
            return a.values()[0]
        return self.compare("NE", a, 0.0)

    def as_number(self, a: Operand) -> Operand:
        """A mask as 0 and 1; numbers are unchanged."""
        if isinstance(a, Value) and a.kind is Kind.MASK:
            return self.emit("to_number", a, domain=a.domain)
        return a

    def logical(self, op: str, *masks: Value) -> Value:
        """``op`` is ``and``, ``or`` or ``not`` of masks."""
        return self.emit(op, *masks, kind=Kind.MASK)

    def select(self, mask: Value, a: Operand, b: Operand) -> Operand:
        """``a`` where the mask is set, else ``b``."""
        if domain_of(a) is Domain.SCALAR and domain_of(b) is Domain.SCALAR:
            a = self.emit("fill", a, domain=mask.domain)
        if domain_of(a) is Domain.SCALAR and mask.op == "compare" and mask.detail in _OPPOSITE:
            # Select takes a scalar in its second place only.
            opposite = self.compare(_OPPOSITE[mask.detail], *mask.args)
            return self.emit("select", opposite, b, a)
        return self.emit("select", mask, a, b)

    # -- reductions ---------------------------------------------------------------------------

    def reduce(self, op: str, a: Operand) -> Value:
        """``op`` is ``sum``, ``prod``, ``max`` or ``min`` over the columns of each row."""
        if domain_of(a) is not Domain.FULL:
            a = self.emit("widen", a, domain=Domain.FULL)
        return self.emit(f"reduce_{op}", a, domain=Domain.ROW)


_OPPOSITE = {"EQ": "NE", "NE": "EQ"}
"""Comparisons that are each other's complement for NaN too."""
MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
"""The comparison that holds for exchanged operands."""


def _reciprocal(value: float) -> float:
    return 1.0 / value if value else math.copysign(math.inf, value)
