"""From values to vector instructions: operands become tensors or scalar expressions.

The tile form decides what a value of one row is. In the packed form a tile has several rows and
row values are vectors that must be spread over the columns; in the single form a tile is (part of)
one row and a row value is a number in a scalar register.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

from attrs import define, field, frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput
from evokernel_core.compiler.lowering.values import (
    BINARY,
    DECIDES,
    MIRRORED,
    REDUCTIONS,
    Domain,
    Kind,
    Operand,
    Value,
    needed,
)
from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.ir.expr import Expr, State, Var
from evokernel_core.targets.ascendc.ir.floats import (
    FLOAT,
    Arithmetic,
    Inverse,
    Literal,
    Negative,
    float_field,
    float_var,
    negated,
)

_WITH_SCALAR = {"add": "Adds", "mul": "Muls", "max": "Maxs", "min": "Mins"}
_COMMUTATIVE = frozenset({"add", "mul", "max", "min"})
_UNARY = {"exp": "Exp", "ln": "Ln", "sqrt": "Sqrt", "abs": "Abs", "relu": "Relu"}
_MASK_OPS = {"and": "And", "or": "Or", "not": "Not"}
OUT_OF_PLACE = frozenset({"expand_rows", "expand_columns", "Select", "SelectScalar", "cast_in", *REDUCTIONS})
"""Instructions whose result must not share memory with an operand."""


@define(frozen=True, eq=False)
class Virtual:
    """A tensor before registers are assigned. ``home`` names the queue tensor that already holds
    it. ``initialised`` asks for a register in which lanes behind the tile hold defined numbers."""

    index: int
    domain: Domain
    kind: Kind = Kind.NUMBER
    home: str = ""
    name: str = ""


@frozen
class Instruction:
    """``op`` is an AscendC name or an operation of the families; ``scalar`` the number that it takes, or the
    variable that it gives a number to."""

    op: str
    target: Virtual | None
    sources: tuple[Virtual, ...] = ()
    scalar: Expr | None = None
    detail: str = ""
    origin: str = ""
    domain: Domain = Domain.FULL


@define
class Lowerer:
    """Appends instructions for values on demand. ``packed`` is the form with several rows a tile;
    ``eager`` rounds intermediate results to 16 bits where PyTorch does, op by op. ``kept`` names
    the column inputs that are repeated over the rows of a tile once and for all. ``dtype`` is what numbers
    are computed in."""

    plan: Plan
    packed: bool
    eager: bool
    kept: frozenset[str] = frozenset()
    dtype: str = "float32"
    instructions: list[Instruction] = field(factory=list)
    inputs: dict[int, PlanInput] = field(factory=dict)
    initialised: set[int] = field(factory=set)
    _tensors: dict[int, Virtual] = field(factory=dict)
    _spread: dict[int, Virtual] = field(factory=dict)
    _scalars: dict[int, Expr] = field(factory=dict)
    _fills: dict[tuple[Expr, Domain], Virtual] = field(factory=dict)
    _reciprocals: dict[int, Virtual] = field(factory=dict)
    _names: set[str] = field(factory=set)
    _next: int = 0
    origin: str = ""
    row_suffix: ClassVar[str] = "Rows"
    """Of the operations that take a row value in turn for every element that it belongs to."""
    column_suffix: ClassVar[str] = "Columns"
    """Of those that take the value of a column."""

    def __attrs_post_init__(self) -> None:
        self.inputs = {operand.value.index: operand for operand in self.plan.inputs}

    # -- plumbing -----------------------------------------------------------------------------

    def virtual(self, domain: Domain, kind: Kind = Kind.NUMBER, home: str = "", name: str = "") -> Virtual:
        self._next += 1
        return Virtual(self._next, domain, kind, home, name)

    def emit(
        self, op: str, target: Virtual, *sources: Virtual, scalar: Expr | None = None, detail: str = ""
    ) -> Virtual:
        domain = Domain.FULL if op in REDUCTIONS else target.domain
        self.instructions.append(Instruction(op, target, sources, scalar, detail, self.origin, domain))
        return target

    def row_name(self, value: Value) -> str:
        suffix = {"reduce_max": "Max", "reduce_min": "Min", "reduce_sum": "Sum", "reduce_prod": "Product",
                  "sqrt": "Root"}  # fmt: skip
        base = camel(value.origin) + suffix.get(value.op, "Row")
        name, count = base, 2
        while name in self._names:
            name, count = f"{base}{count}", count + 1
        self._names.add(name)
        return name

    def forget_tile(self) -> None:
        """Start a new pass: what was in tile registers is gone, row tensors and scalars stay."""
        self.instructions = []
        self._tensors = {key: value for key, value in self._tensors.items() if value.domain is Domain.ROW}
        self._spread.clear()
        self._fills.clear()

    def shifted(self, source: Virtual, rows: Sequence[Virtual], running: Virtual) -> Virtual:
        """The source less a number that the row's first tile gives. ``rows`` hold the sum and the squares in
        the end, ``running`` is where the sum is accumulated."""
        shift = State(f"{rows[1].name}Shift", ctype=FLOAT)
        held = (rows[1], source, rows[0])
        self.instructions.append(Instruction("shift", None, held, shift, "", self.origin))
        return self.emit("Adds", self.virtual(Domain.FULL), source, scalar=Negative(shift))

    def hold(self, value: Value) -> Virtual:
        """A row tensor that something outside the instructions fills (an accumulated reduction)."""
        self._tensors[value.index] = self.virtual(Domain.ROW, name=self.row_name(value))
        return self._tensors[value.index]

    def plain(self, operand: Operand) -> Operand:
        """The operand itself, or what it rounds where the schedule keeps float32."""
        return self._plain_value(operand) if isinstance(operand, Value) else operand

    def _plain_value(self, value: Value) -> Value:
        while value.op == "rounded" and (
            value.detail == self.dtype or (not self.eager and value.number != DECIDES)
        ):
            value = value.values()[0]
        return value

    # -- scalars ------------------------------------------------------------------------------

    def scalar(self, operand: Operand) -> Expr | None:
        """The number where the operand is one number for the tile, else None."""
        operand = self.plain(operand)
        if isinstance(operand, float):
            return Literal(operand)
        if operand.domain is Domain.SCALAR:
            return self._scalar_expression(operand)
        if operand.domain is Domain.ROW and not self.packed:
            return self._row_scalar(operand)
        return None

    def _scalar_expression(self, value: Value) -> Expr:
        if value.op == "scalar":
            return float_field(f"{camel(value.detail)}Scalar")
        if value.op == "size":
            return float_field(size_field(value.detail))
        if value.op == "load":
            return float_var(f"{camel(self.inputs[value.index].name)}Value")
        if value.op not in BINARY:
            raise PlanError("{op} of a single number is not covered.", op=value.op)
        left, right = (self.scalar(arg) for arg in value.args)
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[value.op]
        assert left is not None and right is not None
        return Arithmetic(sign, left, right)

    def _row_scalar(self, value: Value) -> Expr:
        if value.op == "load":
            return float_var(f"{camel(self.inputs[value.index].name)}Value")
        if value.index not in self._scalars:
            tensor = self.tensor(value)
            self._scalars[value.index] = self._read(tensor)
        return self._scalars[value.index]

    def number_of(self, name: str) -> Var | State:
        """What a number of a row becomes that the scalar unit reads."""
        return float_var(name)

    def _read(self, row: Virtual) -> Var | State:
        """The number of a row tensor, which the scalar unit reads."""
        number = self.number_of(f"{row.name}Value")
        self.instructions.append(Instruction("get_value", None, (row,), number, "", self.origin, Domain.ROW))
        return number

    # -- tensors ------------------------------------------------------------------------------

    def lower(self, roots: Iterable[Operand]) -> None:
        """Instructions for every tensor value that the roots still need, in graph order."""
        for value in needed(roots, lambda value: value.index in self._tensors):
            if value.domain is not Domain.SCALAR and value.op != "load" and self.plain(value) is value:
                self.tensor(value)

    def tensor(self, value: Value) -> Virtual:
        """The tensor of a value in its own domain."""
        value = self._plain_value(value)
        if value.index not in self._tensors:
            self.origin = value.origin or self.origin
            self._tensors[value.index] = self._make(value)
        return self._tensors[value.index]

    def at(self, operand: Operand, domain: Domain) -> Virtual:
        """A tensor of an operand in the given domain (ROW or FULL)."""
        operand = self.plain(operand)
        scalar = self.scalar(operand) if domain is Domain.FULL or not _is_vector_row(operand) else None
        if scalar is not None:
            return self._fill(scalar, domain)
        assert isinstance(operand, Value)
        tensor = self.tensor(operand)
        if tensor.domain is domain or (tensor.domain is Domain.COLUMN and not self.packed):
            return tensor
        if domain is Domain.ROW:
            raise PlanError(
                "A number that comparisons choose is no value of each row: it takes a kernel of its own."
            )
        if operand.index not in self._spread:
            self.origin = operand.origin or self.origin
            op = "expand_rows" if tensor.domain is Domain.ROW else "expand_columns"
            target = self.virtual(Domain.FULL, name=self._kept_name(operand))
            self._spread[operand.index] = self.emit(op, target, tensor)
        return self._spread[operand.index]

    def _kept_name(self, operand: Value) -> str:
        if operand.op != "load" or self.inputs[operand.index].name not in self.kept:
            return ""
        return f"{camel(self.inputs[operand.index].name)}Tile"

    def _fill(self, scalar: Expr, domain: Domain) -> Virtual:
        return self.emit("Duplicate", self._new(domain, None), scalar=scalar)

    def _new(self, domain: Domain, value: Value | None, kind: Kind = Kind.NUMBER) -> Virtual:
        if domain is not Domain.ROW:
            return self.virtual(Domain.FULL, kind)
        name = self.row_name(value) if value is not None else self._row_temporary()
        return self.virtual(Domain.ROW, kind, name=name)

    def _row_temporary(self) -> str:
        name = f"row{len(self._names)}"
        self._names.add(name)
        return name

    def _make(self, value: Value) -> Virtual:
        domain = Domain.ROW if value.domain is Domain.ROW else Domain.FULL
        if value.op == "load":
            return self._load(value)
        if value.op in REDUCTIONS:
            source = self.at(value.args[0], Domain.FULL)
            return self.emit(value.op, self._new(Domain.ROW, value), source)
        make = {
            **dict.fromkeys(BINARY, self._binary),
            **dict.fromkeys(_MASK_OPS, self._logical),
            "fill": self._copy,
            "widen": self._copy,
            "compare": self._compare,
            "select": self._select,
            "to_number": self._to_number,
        }
        return make.get(value.op, self._unary)(value, domain)

    def _logical(self, value: Value, domain: Domain) -> Virtual:
        masks = [self._mask(arg, domain) for arg in value.args]
        return self.emit(_MASK_OPS[value.op], self._new(domain, value, Kind.MASK), *masks)

    def _load(self, value: Value) -> Virtual:
        operand = self.inputs[value.index]
        queued = self.virtual(value.domain, home=operand.name)
        if operand.dtype == self.dtype:
            return queued
        if value.domain is Domain.FULL:
            return self.emit("cast_in", self.virtual(Domain.FULL), queued, detail=operand.dtype)
        target = self.virtual(value.domain, name=f"{camel(operand.name)}Float", home="")
        return self.emit("cast_in", target, queued, detail=operand.dtype)

    def _operands(self, value: Value, domain: Domain) -> tuple[list[Expr | None], list[Virtual | None]]:
        """For each argument its number or its tensor."""
        scalars = [self._usable_scalar(arg, domain) for arg in value.args]
        tensors = [
            None if number is not None else self.at(arg, domain)
            for arg, number in zip(value.args, scalars, strict=True)
        ]
        return scalars, tensors

    def _usable_scalar(self, operand: Operand, domain: Domain) -> Expr | None:
        operand = self.plain(operand)
        if domain is Domain.ROW and _is_vector_row(operand):
            return None
        return self.scalar(operand)

    def _narrow(self, operand: Operand) -> Virtual | None:
        """The tensor of one value a row or a column that a packed tile need not spread first."""
        operand = self.plain(operand)
        if not isinstance(operand, Value) or not self.packed or self._kept_name(operand):
            return None
        if operand.domain is Domain.ROW or (operand.domain is Domain.COLUMN and operand.op == "load"):
            return self.tensor(operand)
        return None

    def _with_narrow(self, value: Value) -> Virtual | None:
        """The operation with its second operand taken by rows or columns, where it has such a one."""
        wide, operand = value.args
        narrow = self._narrow(operand)
        if narrow is None and value.op in _COMMUTATIVE:
            wide, operand = operand, wide
            narrow = self._narrow(operand)
        if narrow is None or self.scalar(wide) is not None:
            return None
        op, a = value.op, self.at(wide, Domain.FULL)
        if op == "div" and narrow.domain is Domain.ROW:
            op, narrow = "mul", self._reciprocal(operand, narrow)
        suffix = self.row_suffix if narrow.domain is Domain.ROW else self.column_suffix
        return self.emit(f"{op.capitalize()}{suffix}", self._new(Domain.FULL, value), a, narrow)

    def _reciprocal(self, operand: Operand, row: Virtual) -> Virtual:
        """1 / row, once for all its uses: a division a row is cheaper than one an element."""
        assert isinstance(operand, Value)
        key = self._plain_value(operand).index
        if key not in self._reciprocals:
            ones = self._fill(Literal(1.0), Domain.ROW)
            self._reciprocals[key] = self.emit("Div", self._new(Domain.ROW, None), ones, row)
        return self._reciprocals[key]

    def _binary(self, value: Value, domain: Domain) -> Virtual:
        if domain is Domain.FULL and (narrow := self._with_narrow(value)) is not None:
            return narrow
        (left, right), (a, b) = self._operands(value, domain)
        if left is not None and right is not None:
            a, left = self._fill(left, domain), None
        target = self._new(domain, value)
        if a is not None and b is not None:
            return self.emit(value.op.capitalize(), target, a, b)
        if a is not None and right is not None:
            return self._with_scalar(value.op, target, a, right)
        assert b is not None and left is not None
        return self._scalar_first(value.op, target, left, b, domain)

    def _with_scalar(self, op: str, target: Virtual, a: Virtual, scalar: Expr) -> Virtual:
        if op == "sub":
            return self.emit("Adds", target, a, scalar=negated(scalar))
        if op == "div":
            return self.emit("Muls", target, a, scalar=Inverse(scalar))
        return self.emit(_WITH_SCALAR[op], target, a, scalar=scalar)

    def _scalar_first(self, op: str, target: Virtual, scalar: Expr, b: Virtual, domain: Domain) -> Virtual:
        if op == "sub":
            negative = self.emit("Muls", self._new(domain, None), b, scalar=Literal(-1.0))
            return self.emit("Adds", target, negative, scalar=scalar)
        if op == "div":
            return self.emit("Div", target, self._fill(scalar, domain), b)
        return self.emit(_WITH_SCALAR[op], target, b, scalar=scalar)

    def _unary(self, value: Value, domain: Domain) -> Virtual:
        source = self.at(value.args[0], domain)
        target = self._new(domain, value)
        if value.op == "leaky_relu":
            return self.emit("LeakyRelu", target, source, scalar=Literal(value.number))
        if value.op == "rounded":
            return self.emit("rounded", target, source, detail=value.detail)
        if value.op == "round":
            return self.emit("Round", target, source, detail=value.detail)
        return self.emit(_UNARY[value.op], target, source)

    def _copy(self, value: Value, domain: Domain) -> Virtual:
        operand = value.args[0]
        scalar = self._usable_scalar(operand, domain)
        if scalar is not None:
            return self.emit("Duplicate", self._new(domain, value), scalar=scalar)
        return self.at(operand, domain)

    # -- masks --------------------------------------------------------------------------------

    def _readable(self, operand: Operand, domain: Domain) -> Virtual:
        """A tensor that Compare may read in whole repeats: never a queue's, whose tail is not set."""
        source = self.at(operand, domain)
        if source.home:
            source = self.emit("Adds", self._new(domain, None), source, scalar=Literal(0.0))
        self.initialised.add(source.index)
        return source

    def _compare(self, value: Value, domain: Domain) -> Virtual:
        (left, right), mode = value.args, value.detail
        if self._usable_scalar(left, domain) is not None and self._usable_scalar(right, domain) is None:
            left, right, mode = right, left, MIRRORED[mode]
        a = self._readable(left, domain)
        scalar = self._usable_scalar(right, domain)
        if scalar is not None:
            target = self._new(domain, value, Kind.MASK)
            return self.emit("CompareScalar", target, a, scalar=scalar, detail=mode)
        b = self._readable(right, domain)
        return self.emit("Compare", self._new(domain, value, Kind.MASK), a, b, detail=mode)

    def _mask(self, value: Operand, domain: Domain) -> Virtual:
        assert isinstance(value, Value)
        mask = self.tensor(value)
        if mask.domain is domain:
            return mask
        ones = self._fill(Literal(1.0), mask.domain)
        number = self.emit("SelectScalar", self._new(mask.domain, None), mask, ones, scalar=Literal(0.0))
        spread = self._spread_row(number)
        self.initialised.add(spread.index)
        return self.emit(
            "CompareScalar", self._new(domain, None, Kind.MASK), spread, scalar=Literal(0.0), detail="NE"
        )

    def _spread_row(self, row: Virtual) -> Virtual:
        """A row tensor at every point of the tile."""
        if self.packed:
            return self.emit("expand_rows", self.virtual(Domain.FULL), row)
        return self._fill(self._read(row), Domain.FULL)

    def _select(self, value: Value, domain: Domain) -> Virtual:
        condition, chosen, other = value.args
        mask = self._mask(condition, domain)
        scalar = self._usable_scalar(other, domain)
        a = self.at(chosen, domain)
        if scalar is not None:
            return self.emit("SelectScalar", self._new(domain, value), mask, a, scalar=scalar)
        return self.emit("Select", self._new(domain, value), mask, a, self.at(other, domain))

    def _to_number(self, value: Value, domain: Domain) -> Virtual:
        mask = self._mask(value.args[0], domain)
        ones = self._fill(Literal(1.0), domain)
        return self.emit("SelectScalar", self._new(domain, value), mask, ones, scalar=Literal(0.0))


def _is_vector_row(operand: Operand) -> bool:
    """A row value that is computed in a row tensor, as against one that is loaded as a number."""
    return isinstance(operand, Value) and operand.domain is Domain.ROW and operand.op != "load"


@lru_cache(maxsize=4096)
def camel(name: str) -> str:
    """``layer_norm_1`` becomes ``layerNorm1``."""
    first, *rest = [part for part in name.split("_") if part] or ["value"]
    return first[0].lower() + first[1:] + "".join(part[0].upper() + part[1:] for part in rest)


def size_field(expression: str) -> str:
    """The tiling field that holds a size expression as a float."""
    return "size" + "".join(part if part.isalnum() else "_" for part in expression.replace(" ", ""))


def used_inputs(plan: Plan, values: Sequence[Value]) -> tuple[PlanInput, ...]:
    """The inputs whose loads are among the values, in plan order."""
    indices = {value.index for value in values}
    return tuple(operand for operand in plan.inputs if operand.value.index in indices)
