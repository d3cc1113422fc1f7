"""Lowering rules of the core-ATen element-wise operations."""

from __future__ import annotations

import math
from collections.abc import Callable

from evokernel_core.compiler.lowering import numerics, remainders
from evokernel_core.compiler.lowering.call import Call, Rule
from evokernel_core.compiler.lowering.integers import INTEGERS, ORDERS, SHORT
from evokernel_core.compiler.lowering.special import SPECIAL, SPECIAL_BOOL, overloads, unary
from evokernel_core.compiler.lowering.values import Builder, Operand
from evokernel_core.compiler.ops import SIZE
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import SymbolicInt


def _binary(name: str) -> Rule:
    return lambda call: getattr(call.b, name)(call.x(0), call.x(1))


def _compare(mode: str) -> Rule:
    if mode not in ("EQ", "NE"):
        return lambda call: call.b.compare(mode, call.x(0), call.x(1))
    return lambda call: call.b.compare(mode, call.b.divided(call.x(0)), call.b.divided(call.x(1)))


def _sum(op: str, first: int = 0, second: int = 1) -> Rule:
    """A sum or difference of an operand and ``alpha`` times another."""
    return lambda call: getattr(call.b, op)(
        call.x(first), call.b.mul(call.x(second), call.number(2, "alpha", 1.0))
    )


def _div_mode(call: Call) -> Operand:
    b, x, y = call.b, call.x(0), call.x(1)
    # PyTorch computes with a literal in float32, and rounds each step beside a 16-bit tensor.
    dtype = "float32" if isinstance(y, float) else call.node.outputs[0].dtype
    match call.argument(2, "rounding_mode", None):
        case None:
            return b.div(x, y)
        case "floor":
            return remainders.floor_quotient(b, x, y, dtype)
        case "trunc":
            return b.round(b.decided(b.divided(b.div(x, y)), dtype), "CAST_TRUNC")
    raise PlanError("div has a rounding mode other than floor and trunc.")


def _whole(mode: str) -> Rule:
    return lambda call: call.b.round(call.b.divided(call.x()), mode)


def _added(op: str) -> Rule:
    """A sum of an operand and ``value`` times a product or quotient of two others."""

    def rule(call: Call) -> Operand:
        start, other = call.x(0), getattr(call.b, op)(call.x(1), call.x(2))
        return call.b.add(start, call.b.mul(other, call.number(3, "value", 1.0)))

    return rule


def _lerp(call: Call) -> Operand:
    start = call.x(0)
    return call.b.add(start, call.b.mul(call.b.sub(call.x(1), start), call.x(2)))


def _clamp(call: Call) -> Operand:
    result = call.x()
    if call.has(1, "min"):
        result = call.b.max(result, call.x(1, "min"))
    if call.has(2, "max"):
        result = call.b.min(result, call.x(2, "max"))
    return result


def _hardtanh(call: Call) -> Operand:
    lower, upper = call.number(1, "min_val", -1.0), call.number(2, "max_val", 1.0)
    return call.b.min(call.b.max(call.x(), lower), upper)


def _relu6(b: Builder, x: Operand) -> Operand:
    return b.min(b.max(x, 0.0), 6.0)


def _hardsigmoid(b: Builder, x: Operand) -> Operand:
    return b.mul(_relu6(b, b.add(x, 3.0)), 1.0 / 6.0)


def _gelu(call: Call) -> Operand:
    approximate = call.argument(1, "approximate", "none")
    if approximate == "tanh":
        return numerics.gelu_tanh(call.b, call.x())
    return numerics.gelu(call.b, call.x(), half=call.node.outputs[0].dtype != "float32")


def _elu(call: Call) -> Operand:
    alpha, scale = call.number(1, "alpha", 1.0), call.number(2, "scale", 1.0)
    input_scale = call.number(3, "input_scale", 1.0)
    return numerics.elu(call.b, call.x(), alpha, scale, input_scale, _is_float16(call))


def _is_float16(call: Call) -> bool:
    """Whether results have no digits below 2 ** -24."""
    return call.node.outputs[0].dtype == "float16"


def _saturating(function: Callable[[Builder, Operand, bool], Operand]) -> Rule:
    return lambda call: function(call.b, call.x(), _is_float16(call))


def _softplus(call: Call) -> Operand:
    beta, threshold = call.number(1, "beta", 1.0), call.number(2, "threshold", 20.0)
    return numerics.softplus(call.b, call.x(), beta, threshold)


def _where(call: Call) -> Operand:
    mask, a, c = call.mask(0), call.raw(1), call.raw(2)
    if call.node.outputs[0].dtype != "bool":
        return call.b.select(mask, call.b.as_number(a), call.b.as_number(c))
    chosen = call.b.logical("and", mask, call.b.as_mask(a))
    other = call.b.logical("and", call.b.logical("not", mask), call.b.as_mask(c))
    return call.b.logical("or", chosen, other)


def _masked_fill(call: Call) -> Operand:
    return call.b.select(call.mask(1), call.x(2), call.x(0))


def _logical(op: str) -> Rule:
    return lambda call: call.b.logical(op, call.mask(0), call.mask(1))


def _logical_xor(call: Call) -> Operand:
    a, c = call.mask(0), call.mask(1)
    either, both = call.b.logical("or", a, c), call.b.logical("and", a, c)
    return call.b.logical("and", either, call.b.logical("not", both))


def _power_of_scalar(call: Call) -> Operand:
    base = call.number(0, "self", 0.0)
    if base <= 0.0:
        raise PlanError("pow with a base that is not positive is not covered.")
    return call.b.exp(call.b.mul(call.x(1), math.log(base)))


def _cast(call: Call) -> Operand:
    dtype = call.node.outputs[0].dtype
    if dtype == "bool":
        return call.mask(0)
    if dtype in INTEGERS | SHORT and call.spec_of(call.tensor()).dtype != "bool":
        return to_integer(call.b, call.x(), dtype)
    return call.x()


def _constant(position: int) -> Rule:
    return lambda call: call.number(position, "fill_value", 0.0)


def _size(call: Call) -> Operand:
    """The number of elements along some dimensions."""
    value = call.argument(0, "size")
    if not isinstance(value, (int, SymbolicInt)):
        raise PlanError("A size is neither a number nor an expression.")
    return call.size(extent(value if isinstance(value, int) else value.expression))


def _logarithm(base: float) -> Rule:
    return lambda call: call.b.mul(call.b.ln(call.x()), 1.0 / math.log(base))


def _exponential(base: float) -> Rule:
    return lambda call: call.b.exp(call.b.mul(call.x(), math.log(base)))


def _product(call: Call) -> Operand:
    """Truth values multiply as 0 and 1."""
    if call.node.outputs[0].dtype == "bool":
        return call.b.logical("and", call.mask(0), call.mask(1))
    return call.b.mul(call.x(0), call.x(1))


POINTWISE: dict[str, Rule] = {
    **SPECIAL,
    SIZE.name: _size,
    **unary(Builder.abs, Builder.exp, Builder.neg, Builder.relu, Builder.sqrt, numerics.cos, numerics.expm1),
    **unary(numerics.log1p, numerics.mish, numerics.reciprocal, numerics.rsqrt, numerics.sigmoid),
    **unary(numerics.sign, numerics.silu, numerics.sin),
    **overloads(
        "Scalar Tensor", add=_sum("add"), sub=_sum("sub"), rsub=_sum("sub", 1, 0), div=_binary("div")
    ),
    **overloads("Scalar Tensor", lerp=_lerp, masked_fill=_masked_fill),
    **overloads("Scalar Tensor", **{mode: _compare(mode.upper()) for mode in ORDERS}),
    **overloads("Tensor default", clamp=_clamp, clamp_max=_binary("min"), clamp_min=_binary("max")),
    **overloads("ScalarOther ScalarSelf Scalar self", where=_where),
    "aten.addcdiv.default": _added("div"),
    "aten.addcmul.default": _added("mul"),
    "aten.bitwise_and.Tensor": _logical("and"),
    "aten.bitwise_not.default": lambda call: call.b.logical("not", call.mask(0)),
    "aten.bitwise_or.Tensor": _logical("or"),
    "aten.bitwise_xor.Tensor": _logical_xor,
    "aten.ceil.default": _whole("CAST_CEIL"),
    "aten.div.Tensor_mode": _div_mode,
    "aten.elu.default": _elu,
    "aten.erf.default": _saturating(numerics.erf),
    "aten.erfc.default": lambda call: call.b.add(call.b.neg(numerics.erf(call.b, call.x())), 1.0),
    "aten.exp2.default": _exponential(2.0),
    "aten.fill.Scalar": _constant(1),
    "aten.floor.default": _whole("CAST_FLOOR"),
    "aten.full.default": _constant(1),
    "aten.full_like.default": _constant(1),
    "aten.gelu.default": _gelu,
    "aten.hardsigmoid.default": lambda call: _hardsigmoid(call.b, call.x()),
    "aten.hardswish.default": lambda call: call.b.mul(call.x(), _hardsigmoid(call.b, call.x())),
    "aten.hardtanh.default": _hardtanh,
    "aten.leaky_relu.default": lambda call: call.b.leaky_relu(
        call.x(), call.number(1, "negative_slope", 0.01)
    ),
    "aten.log.default": lambda call: call.b.ln(call.x()),
    "aten.log10.default": _logarithm(10.0),
    "aten.log2.default": _logarithm(2.0),
    "aten.logical_and.default": _logical("and"),
    "aten.logical_not.default": lambda call: call.b.logical("not", call.mask(0)),
    "aten.logical_or.default": _logical("or"),
    "aten.logical_xor.default": _logical_xor,
    "aten.maximum.default": _binary("max"),
    "aten.minimum.default": _binary("min"),
    "aten.mul.Scalar": _binary("mul"),
    "aten.mul.Tensor": _product,
    "aten.ones_like.default": lambda call: 1.0,
    "aten.pow.Scalar": _power_of_scalar,
    "aten.pow.Tensor_Tensor": lambda call: numerics.power_of(call.b, call.x(0), call.x(1)),
    "aten.pow.Tensor_Scalar": lambda call: numerics.power(
        call.b, call.x(), call.number(1, "exponent", 1.0), call.node.outputs[0].dtype
    ),
    "aten.relu6.default": lambda call: _relu6(call.b, call.x()),
    "aten.round.default": _whole("CAST_RINT"),
    "aten.scalar_tensor.default": _constant(0),
    "aten.softplus.default": _softplus,
    "aten.square.default": lambda call: call.b.mul(call.x(), call.x()),
    "aten.tanh.default": _saturating(numerics.tanh),
    "aten.trunc.default": _whole("CAST_TRUNC"),
    "aten.zeros_like.default": lambda call: 0.0,
    "aten._to_copy.default": _cast,
}
"""By ATen name, how an element-wise operation is computed in float32."""

BOOL_RESULTS = frozenset(
    {"aten.bitwise_and.Tensor", "aten.bitwise_not.default", "aten.bitwise_or.Tensor"}
    | {"aten.bitwise_xor.Tensor", "aten.where.self", "aten._to_copy.default", "aten.mul.Tensor"}
    | SPECIAL_BOOL
    | {name for name in POINTWISE if name.startswith("aten.logical_")}
    | {name for name in POINTWISE if name.split(".")[1] in ORDERS}
)
"""The operations whose result may be bool; arithmetic on bool tensors means something else."""

_EXACT = (
    "abs ceil clamp clamp_max clamp_min copysign floor fmax fmin hardtanh masked_fill maximum minimum neg "
    "relu relu6 round sign trunc where amax amin max min full full_like ones_like zeros_like "
    "scalar_tensor fill"
)
KEEPS_PRECISION = frozenset(
    f"aten.{name}.{overload}"
    for name in _EXACT.split()
    for overload in ("default", "Tensor", "Scalar", "self", "ScalarSelf", "ScalarOther", "dim")
)
"""Operations whose result has no more digits than their operands: no rounding follows them."""


_WIDE = {"int32": 2.0**31, "int64": 2.0**63}
_NARROW = {"int16": (2.0**16, 2.0**15), "int8": (2.0**8, 2.0**7), "uint8": (2.0**8, 0.0)}
"""Of the narrower types: how many numbers they have, and how many of them are below 0."""


def to_integer(b: Builder, x: Operand, dtype: str) -> Operand:
    """``x`` without its fraction as a whole number that ``dtype`` holds."""
    whole = b.round(b.divided(x), "CAST_TRUNC")
    count, below = _NARROW.get(dtype, (0.0, _WIDE.get(dtype, 0.0)))
    least, most = _bounds(x)
    if -below - 1.0 < least and most < (count - below if count else below):
        return whole
    if not count:
        return b.select(b.compare("LT", b.abs(whole), below), whole, -below)
    wrapped = b.round(b.mul(b.add(whole, below), 1.0 / count), "CAST_FLOOR")
    low = b.sub(whole, b.mul(wrapped, count))
    return b.select(b.compare("LT", b.abs(whole), _WIDE["int32"]), low, 0.0)


def _bounds(x: Operand) -> tuple[float, float]:
    """Between which numbers an operand surely lies."""
    if isinstance(x, float):
        return x, x
    if x.op in ("round", "rounded"):
        return _bounds(x.args[0])
    if x.op == "to_number":
        return 0.0, 1.0
    if x.op not in ("min", "max"):
        return _UNBOUNDED
    choose = min if x.op == "min" else max
    (a_least, a_most), (c_least, c_most) = (_bounds(arg) for arg in x.args)
    return choose(a_least, c_least), choose(a_most, c_most)


_UNBOUNDED = (-float("inf"), float("inf"))
