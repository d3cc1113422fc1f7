"""Integer expressions of a kernel: sizes that the host knows, fields of the tiling, loop variables.

One expression serves three readers: ``cpp`` writes it for the host or the device, ``evaluate`` computes it
for a cost or a limit, and ``walk`` finds what it is made of, from which tiling and constants are derived.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any

from attrs import field, fields, frozen

from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.compiler.shapes.sums import Sum

CORES = "coreNum()"
"""Under which the number of cores is among values; no variable or symbol is called so."""
U32 = "uint32_t"
U64 = "uint64_t"


class Side(Enum):
    """Where an expression is written: ComputeTiling on the host, or the kernel."""

    HOST = "tiling."
    DEVICE = "tiling_."


class Expr(ABC):
    """An integer; operators with integers and other expressions give expressions."""

    def __add__(self, other: Index) -> Expr:
        return binary("+", self, other)

    def __radd__(self, other: Index) -> Expr:
        return binary("+", other, self)

    def __sub__(self, other: Index) -> Expr:
        return binary("-", self, other)

    def __mul__(self, other: Index) -> Expr:
        return binary("*", self, other)

    def __rmul__(self, other: Index) -> Expr:
        return binary("*", other, self)

    def __floordiv__(self, other: Index) -> Expr:
        return binary("/", self, other)

    def __mod__(self, other: Index) -> Expr:
        return binary("%", self, other)

    def __lshift__(self, other: Index) -> Expr:
        return binary("<<", self, other)

    def __rlshift__(self, other: Index) -> Expr:
        return binary("<<", other, self)

    def __rshift__(self, other: Index) -> Expr:
        return binary(">>", self, other)

    @abstractmethod
    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        """C++ text, in parentheses where operators around it bind more tightly than ``tightness``."""

    @abstractmethod
    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value, given those of symbols and variables by name. Raises KeyError for one not given."""

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions that this one is made of: those in its fields."""
        return tuple(getattr(self, name) for name in _expressions_in(type(self)))

    def walk(self) -> Iterator[Expr]:
        """This expression and all below it, the deepest first."""
        for part in self.parts:
            yield from part.walk()
        yield self


@cache
def _expressions_in(kind: Any) -> tuple[str, ...]:
    """The fields of a kind of expression that are expressions."""
    return tuple(one.name for one in fields(kind) if one.type == "Expr")


Index = Expr | int


@frozen
class Int(Expr):
    """A number."""

    value: int

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return str(self.value)

    def evaluate(self, values: Mapping[str, int]) -> int:
        return self.value


@frozen
class Constant(Expr):
    """A named number of the schedule: ``constexpr`` in tiling.h."""

    name: str
    value: int
    note: str = ""

    @property
    def ctype(self) -> str:
        return U32 if self.value < 1 << 32 else U64

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return self.name

    def evaluate(self, values: Mapping[str, int]) -> int:
        return self.value


@frozen
class Size(Expr):
    """A size of the task, or a sum of sizes, exact in its symbols; only the host knows it."""

    extent: Extent | Sum

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return f"static_cast<uint64_t>({self.extent.cpp()})"

    def evaluate(self, values: Mapping[str, int]) -> int:
        return self.extent.evaluate(values)


@frozen
class CoreCount(Expr):
    """How many cores a call has, which ComputeTiling is told."""

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return "coreNum"

    def evaluate(self, values: Mapping[str, int]) -> int:
        return values[CORES]


@frozen
class VectorCore(Expr):
    """Which of a cube core's two vector cores this one is, 0 or 1."""

    ctype: str = U32

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return "GetSubBlockIdx()"

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Estimates take it for the first, which has as much to do or more."""
        return 0


@frozen(cache_hash=True)  # fields are made of fields
class Param(Expr):
    """A field of OpTiling, which ComputeTiling computes; ``is_local``: a number that only ComputeTiling
    knows, on the way to fields."""

    name: str
    value: Expr
    note: str = ""
    ctype: str = U64
    is_local: bool = False

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        if not self.is_local:
            return f"{side.value}{self.name}"
        if side is Side.DEVICE:
            raise TypeError(f"Only ComputeTiling knows {self.name}.")
        return self.name

    @property
    def key(self) -> str:
        """Under which its value may be among those of variables, so that it is computed once."""
        return f"tiling.{self.name}"

    @property
    def parts(self) -> tuple[Expr, ...]:
        """None: a field is known by its name."""
        return ()

    def evaluate(self, values: Mapping[str, int]) -> int:
        known = values.get(self.key)
        return self.value.evaluate(values) if known is None else known


@frozen
class Cheapest(Expr):
    """The value of ``var`` from ``first`` to ``last`` for which ``cost`` is least, the first of those alike:
    what a field of OpTiling may be, for which ComputeTiling tries them all. ``given``: local constants that
    the cost is made of, in their order."""

    var: Var
    first: Expr
    last: Expr
    cost: Expr
    given: tuple[tuple[Var, Expr], ...] = ()

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        raise TypeError("A search is the value of a field of its own.")

    def evaluate(self, values: Mapping[str, int]) -> int:
        tried = range(self.first.evaluate(values), self.last.evaluate(values) + 1)
        return min(tried, key=lambda value: self._cost({**values, self.var.name: value}))

    def _cost(self, values: dict[str, int]) -> int:
        for var, value in self.given:
            values[var.name] = value.evaluate(values)
        return self.cost.evaluate(values)

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.first, self.last, self.cost, *(value for _, value in self.given))


@frozen
class TilingField(Expr):
    """A field of OpTiling that is not the kernel's own: another text declares and computes it."""

    name: str
    ctype: str = U64

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return f"{side.value}{self.name}"

    def evaluate(self, values: Mapping[str, int]) -> int:
        return values[f"tiling.{self.name}"]


@frozen
class Table:
    """Several fields of OpTiling under one name, an array, of which a kernel chooses one by its number."""

    name: str
    values: tuple[Expr, ...]
    note: str = ""
    ctype: str = U64

    def __getitem__(self, index: Index) -> Expr:
        return Entry(self, expr(index))


@frozen
class Entry(Expr):
    """The field of a table that has a number."""

    table: Table
    index: Expr

    @property
    def ctype(self) -> str:
        return self.table.ctype

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return f"{side.value}{self.table.name}[{self.index.cpp(side)}]"

    def evaluate(self, values: Mapping[str, int]) -> int:
        return self.table.values[self.index.evaluate(values)].evaluate(values)


@frozen
class Var(Expr):
    """A loop variable, or a local constant of the kernel."""

    name: str
    ctype: str = U32

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return self.name

    def evaluate(self, values: Mapping[str, int]) -> int:
        return values[self.name]


@frozen
class State(Expr):
    """A variable of a core that nodes assign to (Assign), and ``first`` before any does. Estimates take it
    for what they came to last."""

    name: str
    first: int = 0
    note: str = ""
    ctype: str = U64

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return self.name

    def evaluate(self, values: Mapping[str, int]) -> int:
        return values.get(self.name, self.first)


FIRST_OF_CORE = Var("firstOfCore", U64)
"""The first value of a core in a loop of which each core has values that follow each other (For)."""
LAST_OF_CORE = Var("lastOfCore", U64)
"""What those values are below."""

_SHIFTS = ("<<", ">>")
_ZERO = Int(0)
_TIGHTNESS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_COMPUTED: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "min": min,
    "max": max,
}
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@frozen
class Binary(Expr):
    """``left op right`` of non-negative integers; ``/`` rounds down, ``min`` and ``max`` are written as a
    choice."""

    op: str
    left: Expr
    right: Expr

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        mine = _TIGHTNESS.get(self.op, 0)
        if self.op in _SHIFTS:
            text = f"{self.left.cpp(side, 3)} {self.op} {self.right.cpp(side, 3)}"
            return f"({text})" if tightness else text
        if not mine:
            left, right = self.left.cpp(side, 1), self.right.cpp(side, 1)
            sign = "<" if self.op == "min" else ">"
            text = f"{left} {sign} {right} ? {left} : {right}"
            return f"({text})" if tightness else text
        # What is right of an operator is evaluated before it only if it binds more tightly.
        text = f"{self.left.cpp(side, mine)} {self.op} {self.right.cpp(side, mine + 1)}"
        return f"({text})" if mine < tightness else text

    def evaluate(self, values: Mapping[str, int]) -> int:
        return _COMPUTED[self.op](self.left.evaluate(values), self.right.evaluate(values))


@frozen
class Condition:
    """``left sign right``, ``sign`` being one of C++'s comparisons."""

    left: Expr
    sign: str
    right: Expr

    def cpp(self, side: Side = Side.DEVICE) -> str:
        return f"{self.left.cpp(side, 1)} {self.sign} {self.right.cpp(side, 1)}"


@frozen
class CubeSpan:
    """``count`` rows or columns from ``start`` on, of ``of`` in all."""

    start: Expr
    count: Expr
    of: Expr


def compared(left: Expr, sign: str, right: Expr, values: Mapping[str, int]) -> bool:
    """Whether ``left sign right`` holds. Raises KeyError for a variable not given."""
    return _COMPARED[sign](left.evaluate(values), right.evaluate(values))


@frozen
class Choice(Expr):
    """``then`` where ``left sign right`` holds, else ``otherwise``."""

    left: Expr
    sign: str
    right: Expr
    then: Expr
    otherwise: Expr

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        condition = f"{self.left.cpp(side, 1)} {self.sign} {self.right.cpp(side, 1)}"
        text = f"{condition} ? {self.then.cpp(side, 1)} : {self.otherwise.cpp(side, 1)}"
        return f"({text})" if tightness else text

    def evaluate(self, values: Mapping[str, int]) -> int:
        holds = compared(self.left, self.sign, self.right, values)
        return (self.then if holds else self.otherwise).evaluate(values)


@frozen
class Function:
    """An integer function of the kernel, written as a method."""

    name: str
    parameters: tuple[Var, ...]
    result: Expr
    note: str = ""
    ctype: str = U32

    def __call__(self, *arguments: Index) -> Expr:
        return CallExpr(self, tuple(map(expr, arguments)))

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The named numbers that the function mentions."""
        return tuple(node for node in self.result.walk() if isinstance(node, Constant))


@frozen
class CallExpr(Expr):
    """A function's value for arguments."""

    function: Function
    arguments: tuple[Expr, ...] = field()

    @arguments.validator
    def _as_many_as_parameters(self, _: object, value: tuple[Expr, ...]) -> None:
        if len(value) != len(self.function.parameters):
            raise TypeError(f"{self.function.name} takes {len(self.function.parameters)} arguments.")

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        return f"{self.function.name}({', '.join(argument.cpp(side) for argument in self.arguments)})"

    def evaluate(self, values: Mapping[str, int]) -> int:
        given = (argument.evaluate(values) for argument in self.arguments)
        names = (parameter.name for parameter in self.function.parameters)
        return self.function.result.evaluate(dict(zip(names, given, strict=True)))

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (*self.arguments, *self.function.constants)


def is_open(value: Expr) -> bool:
    """Whether only the call or the kernel knows it."""
    unknown = (CoreCount, Entry, Param, Size, TilingField, VectorCore, Var)
    return any(isinstance(node, unknown) for node in value.walk())


def is_narrow(value: Expr) -> bool:
    """Whether C++ computes it in 32 bits."""
    typed = (Constant, Entry, Param, Size, State, TilingField, VectorCore, Var)
    leaves = [node for node in value.walk() if isinstance(node, typed)]
    return all(not isinstance(leaf, Size) and leaf.ctype == U32 for leaf in leaves)


def expr(value: Index) -> Expr:
    """The expression of a number or an expression."""
    return Int(value) if isinstance(value, int) else value


def binary(op: str, left: Index, right: Index) -> Expr:
    """``left op right``; numbers are folded, neutral elements dropped, names of constants kept."""
    left, right = expr(left), expr(right)
    a = left.value if isinstance(left, Int) else None
    b = right.value if isinstance(right, Int) else None
    if a is not None and b is not None:
        return Int(_COMPUTED[op](a, b))
    if (op in "+-" and b == 0) or (op in "*/" and b == 1) or (op in _SHIFTS and b == 0):
        return left
    if (op == "+" and a == 0) or (op == "*" and a == 1):
        return right
    if (op == "*" and (a == 0 or b == 0)) or (op == "%" and b == 1):
        return _ZERO
    return Binary(op, left, right)


def least(left: Index, right: Index) -> Expr:
    """The smaller of two."""
    return binary("min", left, right)


def greatest(left: Index, right: Index) -> Expr:
    """The larger of two."""
    return binary("max", left, right)


def ceil_div(value: Index, divisor: Index) -> Expr:
    """The quotient, rounded up."""
    if expr(divisor) == Int(1):
        return expr(value)
    return (expr(value) + divisor - 1) // divisor


def round_up(value: Index, unit: Index) -> Expr:
    """The next multiple of a unit."""
    return binary("*", ceil_div(value, unit), unit)


def equal(length: Index, most: Index) -> Expr:
    """The length of equal pieces of at most ``most``."""
    return ceil_div(length, ceil_div(length, most))
