"""Lowering rules of reductions over trailing dimensions, and of what PyTorch builds on them."""

from __future__ import annotations

import math
from typing import TypeGuard

from evokernel_core.compiler.lowering import numerics
from evokernel_core.compiler.lowering.call import Call, Rule
from evokernel_core.compiler.lowering.values import Operand, Value
from evokernel_core.compiler.shapes.sizes import extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import literal


def reduced_dims(call: Call, position: int = 1, name: str = "dim") -> tuple[int, ...]:
    """The non-negative dimensions that the call reduces; None and () mean all."""
    rank = call.spec_of(call.tensor()).rank
    value = call.argument(position, name, None)
    if isinstance(value, int):
        value = (value,)
    if value is None or value == ():
        return tuple(range(rank))
    if not isinstance(value, tuple):
        raise PlanError("{op} reduces over dimensions that are not literals.", op=call.node.op)
    return tuple(sorted(literal(dim) % rank if rank else 0 for dim in value))


def _operand(call: Call, position: int = 1) -> Operand:
    return call.b.as_number(call.evaluate_rows(call.tensor(), reduced_dims(call, position)))


def _length(call: Call, dims: tuple[int, ...]) -> Operand:
    shape = call.spec_of(call.tensor()).shape
    return call.size(product(extent(shape[dim]) for dim in dims if dim < len(shape)))


def _mean_of(call: Call, x: Operand, dims: tuple[int, ...]) -> Operand:
    return call.b.mul(call.b.reduce("sum", x), call.b.div(1.0, _length(call, dims)))


def _sum(call: Call) -> Operand:
    """Of a log softmax, the sum of what is below the largest and as many times what all have in common: these
    have one sign, so that nothing cancels, and a pass over the row is spared."""
    x = _operand(call)
    if not _is_log_softmax(x):
        return call.b.reduce("sum", x)
    shifted, common = x.args
    below = call.b.reduce("sum", shifted)
    return call.b.sub(below, call.b.mul(_length(call, reduced_dims(call)), common))


def _is_log_softmax(x: Operand) -> TypeGuard[Value]:
    """Whether a value is what ``_log_softmax`` makes."""
    match x:
        case Value(op="sub", args=(Value(op="sub", args=(_, Value(op="reduce_max"))) as shifted, common)):
            match common:
                case Value(op="ln", args=(Value(op="reduce_sum", args=(Value(op="exp", args=(given,)),)),)):
                    return given is shifted
    return False


def _reducing(op: str) -> Rule:
    return lambda call: call.b.reduce(op, _operand(call))


def _mean(call: Call) -> Operand:
    return _mean_of(call, _operand(call), reduced_dims(call))


def _values_of(op: str) -> Rule:
    """Of a result with indices the values alone."""

    def rule(call: Call) -> Operand:
        if call.output != 0:
            raise PlanError("The indices of {op} are used; only its values are covered.", op=call.node.op)
        return call.b.reduce(op, _operand(call))

    return rule


def _vector_norm(call: Call) -> Operand:
    order = call.number(1, "ord", 2.0)
    x = _operand(call, 2)
    if order == 2.0:
        return call.b.sqrt(call.b.reduce("sum", call.b.mul(x, x)))
    if order == 1.0:
        return call.b.reduce("sum", call.b.abs(x))
    if math.isinf(order):
        return call.b.reduce("max" if order > 0 else "min", call.b.abs(x))
    raise PlanError(
        "A vector norm of order {order} is not covered; orders 1, 2 and infinity are.", order=f"{order:g}"
    )


def _logsumexp(call: Call) -> Operand:
    x = _operand(call)
    largest = call.b.reduce("max", x)
    total = call.b.reduce("sum", call.b.exp(call.b.sub(x, largest)))
    # an infinite largest element, such as that of a row which is masked out, is the result
    result = call.b.add(call.b.ln(total), largest)
    for mode, limit in (("GT", numerics.LARGEST), ("LT", -numerics.LARGEST)):
        result = call.b.select(call.b.compare(mode, largest, limit), math.copysign(math.inf, limit), result)
    return result


def _softmax(call: Call) -> Operand:
    x = _operand(call)
    exponential = call.b.exp(call.b.sub(x, call.b.reduce("max", x)))
    return call.b.div(exponential, call.b.reduce("sum", exponential))


def _log_softmax(call: Call) -> Operand:
    x = _operand(call)
    shifted = call.b.sub(x, call.b.reduce("max", x))
    return call.b.sub(shifted, call.b.ln(call.b.reduce("sum", call.b.exp(shifted))))


def _moments(call: Call, x: Operand, dims: tuple[int, ...]) -> tuple[Operand, Operand, Operand]:
    """The mean, the centred values and the sum of their squares."""
    mean = _mean_of(call, x, dims)
    centred = call.b.sub(x, mean)
    return mean, centred, call.b.reduce("sum", call.b.mul(centred, centred))


def _variance(call: Call) -> Operand:
    dims = reduced_dims(call)
    mean, _, squares = _moments(call, _operand(call), dims)
    if call.output == 1:
        return mean
    correction = call.number(2, "correction", 1.0)
    return call.b.div(squares, call.b.add(_length(call, dims), -correction))


def _standard_deviation(call: Call) -> Operand:
    return call.b.sqrt(_variance(call))


def _layer_norm(call: Call) -> Operand:
    shape = call.argument(1, "normalized_shape")
    rank = call.spec_of(call.tensor()).rank
    if not isinstance(shape, tuple):
        raise PlanError("native_layer_norm has a normalised shape that is not a literal list.")
    dims = tuple(range(rank - len(shape), rank))
    x = call.b.as_number(call.evaluate_rows(call.tensor(), dims))
    mean, centred, squares = _moments(call, x, dims)
    variance = call.b.div(squares, _length(call, dims))
    scale = numerics.rsqrt(call.b, call.b.add(variance, call.number(4, "eps", 1e-5)))
    if call.output != 0:
        return mean if call.output == 1 else scale
    result = call.b.mul(centred, scale)
    if call.has(2, "weight"):
        result = call.b.mul(result, call.x(2))
    return call.b.add(result, call.x(3)) if call.has(3, "bias") else result


REDUCTIONS: dict[str, Rule] = {
    "aten.amax.default": _reducing("max"),
    "aten.amin.default": _reducing("min"),
    "aten.linalg_vector_norm.default": _vector_norm,
    "aten.logsumexp.default": _logsumexp,
    "aten.max.default": _reducing("max"),
    "aten.max.dim": _values_of("max"),
    "aten.mean.default": _mean,
    "aten.mean.dim": _mean,
    "aten.min.default": _reducing("min"),
    "aten.min.dim": _values_of("min"),
    "aten.native_layer_norm.default": _layer_norm,
    "aten.prod.dim_int": _reducing("prod"),
    "aten.std.correction": _standard_deviation,
    "aten.sum.default": _sum,
    "aten.sum.dim_IntList": _sum,
    "aten.var.correction": _variance,
    "aten.var_mean.correction": _variance,
    "aten._log_softmax.default": _log_softmax,
    "aten._softmax.default": _softmax,
}
"""By ATen name, how a reduction (or what is built on one) is computed in float32."""


def dims_of(call: Call) -> tuple[int, ...]:
    """The reduced dimensions of any rule of this module, to choose the iteration space by."""
    match call.node.op:
        case "aten.linalg_vector_norm.default":
            return reduced_dims(call, 2)
        case "aten.native_layer_norm.default":
            shape = call.argument(1, "normalized_shape")
            rank = call.spec_of(call.tensor()).rank
            return tuple(range(rank - len(shape), rank)) if isinstance(shape, tuple) else ()
        case "aten.max.default" | "aten.min.default" | "aten.mean.default" | "aten.sum.default":
            return tuple(range(call.spec_of(call.tensor()).rank))
    return reduced_dims(call)
