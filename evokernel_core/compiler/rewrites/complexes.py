"""Operations on complex numbers, in terms of their real and imaginary parts.

Captured graphs take and give real tensors, so every complex value is made of real ones inside of the graph
and ends in real ones: this pass leaves none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from evokernel_core.compiler.limits import sharing
from evokernel_core.compiler.ops import COMPLEX_MULTIPLY
from evokernel_core.compiler.rewrites.complex_parts import (
    REAL,
    Complex,
    Part,
    Parts,
    separated,
    side_by_side,
)
from evokernel_core.compiler.rewrites.elementwise import cast
from evokernel_core.compiler.rewrites.layout import viewed
from evokernel_core.compiler.rewrites.picking import as_arg
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, alive
from evokernel_core.compiler.shapes.boxes import dimension_order
from evokernel_core.compiler.shapes.views import BROADCASTS, PERMUTATIONS, SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.hardware.device import Device

COMPLEX = "complex64"
OF_COMPLEX = "(complex)"
"""Ends the name of an operation as it is offered to capture for complex operands."""


def complex_in_parts(task: KernelTask, device: Device) -> KernelTask:
    """The task with two real values for each complex one. Raises PlanError for an operation that has no
    rule here."""
    if not any(spec.dtype == COMPLEX for node in task.graph.nodes for spec in node.outputs):
        return task
    return _Pass(task, device).run()


@define
class _Pass:
    """Writes the graph anew; ``values`` are what its results have become."""

    task: KernelTask
    device: Device
    values: dict[ValueRef, ValueRef | Complex] = field(factory=dict)
    writer: GraphWriter = field(init=False)
    parts: Parts = field(init=False)
    specs: dict[ValueRef, TensorSpec] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.writer = GraphWriter(self.task, {}, self.device)
        self.parts = Parts(self.writer)
        self.specs = {ValueRef(operand.name): operand.spec for operand in self.task.graph.inputs}

    def run(self) -> KernelTask:
        for node in self.task.graph.nodes:
            self.writer.at(node.line)
            results = self._results(node)
            for index, result in enumerate(results):
                ref = ValueRef(node.name, index)
                self.specs[ref] = node.outputs[index]
                self.values[ref] = result
        outputs = tuple(self._real(ref) for ref in self.task.graph.outputs)
        nodes = alive(self.writer.nodes, outputs)
        return evolve(self.task, graph=self.task.graph.computed_by(nodes, outputs))

    def _results(self, node: Node) -> tuple[ValueRef | Complex, ...]:
        reads = any(isinstance(self.values.get(ref), Complex) for ref in node.operands())
        if not reads and all(spec.dtype != COMPLEX for spec in node.outputs):
            return self.writer.keep(evolve(node, args=self._moved(node.args), kwargs=self._kwargs(node)))
        if node.op in _BY_PART:
            return self._by_part(node)
        rule = _RULES.get(node.op)
        if rule is None:
            raise PlanError("{op} of complex numbers is computed by no kernel.", op=node.op)
        return (rule(self, node),)

    def _by_part(self, node: Node) -> tuple[Complex, ...]:
        """The same operation on either part."""
        result = []
        for place in ("re", "im"):
            outputs = tuple(evolve(spec, dtype=REAL) for spec in node.outputs)
            args = tuple(self._part_of(arg, place) for arg in node.args)
            kwargs = {key: self._part_of(arg, place) for key, arg in node.kwargs if key != "dtype"}
            result.append(self.writer.call_many(node.op, *args, outputs=outputs, **kwargs))
        source = _operand(node)
        pairs = pairs_of(self.writer, node, self.value(source), len(self.specs[source].shape))
        return tuple(map(Complex, *result, [pairs] * len(node.outputs)))

    def _part_of(self, arg: Arg, place: str) -> Arg:
        if isinstance(arg, tuple):
            return tuple(self._part_of(item, place) for item in arg)
        if not isinstance(arg, ValueRef):
            return arg
        if self.specs[arg].dtype in ("bool", "int64", "int32"):  # what chooses, for both parts
            return self._real(arg)
        return self.parts.tensor(getattr(self.value(arg), place), self.specs[arg].shape)

    def _moved(self, arg: Any) -> Any:
        if isinstance(arg, ValueRef):
            return self._real(arg)
        return tuple(map(self._moved, arg)) if isinstance(arg, tuple) else arg

    def _kwargs(self, node: Node) -> tuple[tuple[str, Arg], ...]:
        return tuple((key, self._moved(arg)) for key, arg in node.kwargs)

    def _real(self, ref: ValueRef) -> ValueRef:
        value = self.values.get(ref, ref)
        if isinstance(value, Complex):
            raise PlanError("A complex value is a result, where its real and imaginary parts have to be.")
        return value

    def value(self, arg: Arg) -> Complex:
        """An operand or number as a complex value."""
        if isinstance(arg, ValueRef):
            value = self.values.get(arg, arg)
            return value if isinstance(value, Complex) else Complex(self._as_float(value), 0.0)
        if isinstance(arg, bool | int | float):
            return Complex(float(arg), 0.0)
        raise PlanError("{arg} is no operand of complex arithmetic.", arg=arg)

    def _as_float(self, ref: ValueRef) -> ValueRef:
        """PyTorch converts real operands of complex operations first."""
        return cast(self.writer, ref, REAL)

    def fitted(self, value: Complex, node: Node) -> Complex:
        """A result with the shape that its node has."""
        shape = node.outputs[0].shape
        return Complex(self.parts.fitted(value.re, shape), self.parts.fitted(value.im, shape))

    def product(self, a: Complex, b: Complex) -> Complex:
        parts = self.parts
        re = parts.sub(parts.mul(a.re, b.re), parts.mul(a.im, b.im))
        return Complex(re, parts.add(parts.mul(a.re, b.im), parts.mul(a.im, b.re)))

    def magnitude(self, value: Complex) -> Part:
        if value.im == 0 and isinstance(value.re, ValueRef):
            return self.parts.apply("abs.default", value.re)
        return self.parts.apply("hypot.default", value.re, value.im)


Rule = Callable[[_Pass, Node], "ValueRef | Complex"]


def _view_as_complex(state: _Pass, node: Node) -> Complex:
    return separated(state.writer, state._real(_operand(node)))


def _view_as_real(state: _Pass, node: Node) -> ValueRef:
    return side_by_side(state.parts, state.value(node.args[0]), node.outputs[0].shape[:-1])


def _complex(state: _Pass, node: Node) -> Complex:
    re, im = (state.value(arg).re for arg in node.args)
    return state.fitted(Complex(re, im), node)


def _polar(state: _Pass, node: Node) -> Complex:
    length, angle = (state.value(arg).re for arg in node.args)
    return state.fitted(_turned(state, length, angle), node)


def _turned(state: _Pass, length: Part, angle: Part) -> Complex:
    """``length`` times (cos, sin) of the angle."""
    re, im = (state.parts.mul(length, state.parts.apply(op, angle)) for op in ("cos.default", "sin.default"))
    return Complex(re, im)


def _filled(state: _Pass, node: Node) -> Complex:
    """Numbers of a complex dtype; the last argument is what they are."""
    return state.value(node.args[-1])


def _zeros(state: _Pass, node: Node) -> Complex:
    return Complex(0.0, 0.0)


def _copied(state: _Pass, node: Node) -> ValueRef | Complex:
    """A conversion: of a complex value to a real dtype, only the real part is left."""
    value, wanted = state.value(node.args[0]), node.outputs[0]
    if wanted.dtype == COMPLEX:
        return value
    real = state.parts.tensor(value.re, wanted.shape)
    return cast(state.writer, real, wanted.dtype)


def _conjugate(state: _Pass, node: Node) -> Complex:
    value = state.value(node.args[0])
    return Complex(value.re, state.parts.neg(value.im))


def _scaled(state: _Pass, node: Node) -> Complex:
    """The second operand of a sum, times ``alpha``."""
    alpha = dict(node.kwargs).get("alpha", node.args[2] if len(node.args) > 2 else 1)
    return state.product(state.value(node.args[1]), state.value(alpha))


def _add(state: _Pass, node: Node) -> Complex:
    a, b = state.value(node.args[0]), _scaled(state, node)
    return state.fitted(Complex(state.parts.add(a.re, b.re), state.parts.add(a.im, b.im)), node)


def _sub(state: _Pass, node: Node) -> Complex:
    a, b = state.value(node.args[0]), _scaled(state, node)
    return state.fitted(Complex(state.parts.sub(a.re, b.re), state.parts.sub(a.im, b.im)), node)


def _mul(state: _Pass, node: Node) -> Complex:
    a, b = state.value(node.args[0]), state.value(node.args[1])
    return evolve(state.fitted(state.product(a, b), node), pairs=paired(state.writer, a, b))


def _div(state: _Pass, node: Node) -> Complex:
    if len(node.args) > 2 or dict(node.kwargs).get("rounding_mode") is not None:
        raise PlanError("A rounded quotient of complex numbers is computed by no kernel.")
    return state.fitted(_quotient(state, state.value(node.args[0]), state.value(node.args[1])), node)


def _quotient(state: _Pass, a: Complex, b: Complex) -> Complex:
    """Both are divided by the larger part of ``b`` first, so that no square overflows. Where that is zero,
    either part of ``a`` is divided by it, as PyTorch does."""
    parts = state.parts
    if b.im == 0:
        return Complex(parts.div(a.re, b.re), parts.div(a.im, b.re))
    if not isinstance(b.re, ValueRef) and not isinstance(b.im, ValueRef):
        inverse = 1 / complex(b.re, b.im)
        return state.product(a, Complex(inverse.real, inverse.imag))
    largest = parts.apply("maximum.default", *(parts.apply("abs.default", part) for part in (b.re, b.im)))
    shape = state.writer.shape(largest)
    is_zero = state.writer.call("aten.eq.Scalar", largest, 0, shape=shape, dtype="bool")
    scaled = Complex(
        *(
            state.writer.call(
                "aten.where.self",
                is_zero,
                parts.filled(limit, ()),
                parts.div(part, largest),
                shape=shape,
                dtype=REAL,
            )
            for part, limit in ((b.re, 1.0), (b.im, 0.0))
        )
    )
    square = parts.add(parts.mul(scaled.re, scaled.re), parts.mul(scaled.im, scaled.im))
    above = state.product(a, Complex(scaled.re, parts.neg(scaled.im)))
    below = parts.mul(square, largest)
    return Complex(parts.div(above.re, below), parts.div(above.im, below))


def _reciprocal(state: _Pass, node: Node) -> Complex:
    return state.fitted(_quotient(state, Complex(1.0, 0.0), state.value(node.args[0])), node)


def _neg(state: _Pass, node: Node) -> Complex:
    value = state.value(node.args[0])
    return Complex(state.parts.neg(value.re), state.parts.neg(value.im))


def _exp(state: _Pass, node: Node) -> Complex:
    value = state.value(node.args[0])
    length = 1.0 if value.re == 0 else state.parts.apply("exp.default", value.re)
    return state.fitted(_turned(state, length, value.im), node)


def _log(state: _Pass, node: Node) -> Complex:
    value = state.value(node.args[0])
    length = state.parts.apply("log.default", state.magnitude(value))
    return state.fitted(Complex(length, state.parts.apply("atan2.default", value.im, value.re)), node)


def _pow(state: _Pass, node: Node) -> Complex:
    times = node.args[1]
    if not isinstance(times, int | float) or times not in range(1, _MOST_FACTORS + 1):
        raise PlanError(
            "Complex numbers are raised to whole powers up to {most}, not to {power}.",
            most=_MOST_FACTORS,
            power=times,
        )
    value = result = state.value(node.args[0])
    for _ in range(int(times) - 1):
        result = state.product(result, value)
    return state.fitted(result, node)


_MOST_FACTORS = 4


def _abs(state: _Pass, node: Node) -> ValueRef:
    return state.parts.tensor(state.magnitude(state.value(node.args[0])), node.outputs[0].shape)


def _angle(state: _Pass, node: Node) -> ValueRef:
    value = state.value(node.args[0])
    return state.parts.tensor(state.parts.apply("atan2.default", value.im, value.re), node.outputs[0].shape)


def _padded(state: _Pass, node: Node) -> Complex:
    value, spec = state.value(node.args[0]), state.specs[_operand(node)]
    frame = state.value(node.args[2] if len(node.args) > 2 else dict(node.kwargs).get("value", 0))
    re, im = (
        state.writer.call(
            node.op, state.parts.tensor(part, spec.shape), node.args[1], number,
            shape=node.outputs[0].shape, dtype=REAL,
        )
        for part, number in ((value.re, frame.re), (value.im, frame.im))
    )  # fmt: skip
    return Complex(re, im)


def _of_magnitudes(state: _Pass, node: Node) -> ValueRef:
    """A norm of complex numbers is that of their magnitudes."""
    spec = state.specs[_operand(node)]
    lengths = state.parts.tensor(state.magnitude(state.value(node.args[0])), spec.shape)
    kept = evolve(node, args=(lengths, *node.args[1:]))
    return state.writer.keep(kept)[0]


def _equal(state: _Pass, node: Node) -> ValueRef:
    a, b = state.value(node.args[0]), state.value(node.args[1])
    shape = node.outputs[0].shape
    join = "aten.logical_and.default" if node.op.startswith("aten.eq.") else "aten.logical_or.default"
    op = f"aten.{node.op.split('.')[1]}.Tensor"
    compared = [
        state.writer.call(op, *(state.parts.tensor(part, shape) for part in pair), shape=shape, dtype="bool")
        for pair in ((a.re, b.re), (a.im, b.im))
    ]
    return state.writer.call(join, *compared, shape=shape, dtype="bool")


def _product_of_matrices(state: _Pass, node: Node) -> Complex:
    """Four products of real matrices; none with a part that is zero."""
    shape = node.outputs[0].shape
    specs = [state.specs[ref] for ref in node.operands()]
    a, b = (state.value(arg) for arg in node.args)

    def times(left: Part, right: Part) -> Part:
        if left == 0 or right == 0:
            return 0.0
        tensors = [
            state.parts.tensor(part, spec.shape) for part, spec in zip((left, right), specs, strict=True)
        ]
        return state.writer.call(node.op, *tensors, shape=shape, dtype=REAL)

    re = state.parts.sub(times(a.re, b.re), times(a.im, b.im))
    return Complex(re, state.parts.add(times(a.re, b.im), times(a.im, b.re)))


def _operand(node: Node) -> ValueRef:
    return next(iter(node.operands()))


_RULES: Mapping[str, Rule] = {
    "aten.view_as_complex.default": _view_as_complex,
    "aten.view_as_real.default": _view_as_real,
    "aten.complex.default": _complex,
    "aten.polar.default": _polar,
    **dict.fromkeys(("aten.full.default", "aten.full_like.default", "aten.scalar_tensor.default"), _filled),
    **dict.fromkeys(("aten.zeros.default", "aten.zeros_like.default"), _zeros),
    "aten._to_copy.default": _copied,
    **dict.fromkeys(("aten._conj.default", "aten._conj_physical.default"), _conjugate),
    **dict.fromkeys(("aten.add.Tensor", "aten.add.Scalar"), _add),
    **dict.fromkeys(("aten.sub.Tensor", "aten.sub.Scalar"), _sub),
    **dict.fromkeys(("aten.mul.Tensor", "aten.mul.Scalar"), _mul),
    **dict.fromkeys(("aten.div.Tensor", "aten.div.Scalar"), _div),
    "aten.reciprocal.default": _reciprocal,
    "aten.neg.default": _neg,
    "aten.exp.default": _exp,
    "aten.log.default": _log,
    "aten.pow.Tensor_Scalar": _pow,
    "aten.abs.default": _abs,
    "aten.angle.default": _angle,
    "aten.constant_pad_nd.default": _padded,
    "aten.linalg_vector_norm.default": _of_magnitudes,
    **dict.fromkeys((f"aten.{op}.{kind}" for op in ("eq", "ne") for kind in ("Tensor", "Scalar")), _equal),
    **dict.fromkeys(("aten.mm.default", "aten.bmm.default"), _product_of_matrices),
}
_MAKERS = ("aten.view_as_complex.default", "aten.complex.default", "aten.polar.default")
"""What makes complex numbers of real ones."""
_BY_PART = frozenset({
    "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten.unsqueeze.default",
    "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.expand.default",
    "aten.permute.default", "aten.transpose.int", "aten.t.default", "aten.slice.Tensor", "aten.select.int",
    "aten.cat.default", "aten.stack.default", "aten.split.Tensor", "aten.split_with_sizes.default",
    "aten.unbind.int", "aten.flip.default", "aten.roll.default", "aten.repeat.default",
    "aten.index_select.default", "aten.index.Tensor", "aten.where.self",
    "aten.sum.default", "aten.sum.dim_IntList", "aten.mean.default", "aten.mean.dim",
    "aten.slice_scatter.default", "aten.select_scatter.default", "aten.index_put.default",
    "aten.index_add.default", "aten.index_copy.default", "aten.gather.default", "aten.cumsum.default",
"aten.tril.default", "aten.triu.default", })  # fmt: skip
"""Operations that either part goes through by itself."""


def offered() -> Mapping[str, str]:
    """Names under which capture is told what is computed of complex numbers, each with its category."""
    names = dict.fromkeys(_MAKERS, "kernel")
    names |= {f"{op}{OF_COMPLEX}": "kernel" for op in _RULES}
    return names | {f"{op}{OF_COMPLEX}": "view" if op in SAME_ORDER else "kernel" for op in sorted(_BY_PART)}


def _negated(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    """The imaginary part of a conjugate, which PyTorch only notes to be negative."""
    spec = node.outputs[0]
    return (writer.like(spec, "aten.neg.default", *node.args),)


REWRITES: Mapping[str, Rewrite] = {"aten._neg_view.default": _negated}


_ALONG_A_DIMENSION = ("aten.slice.Tensor", "aten.select.int")


def pairs_of(writer: GraphWriter, node: Node, value: Complex, rank: int) -> ValueRef | None:
    """The pairs of a view of a value of ``rank`` dimensions, as the same view of its pairs; None where the
    operation is no view of one value."""
    if value.pairs is None:
        return None
    shape = (*node.outputs[0].shape, 2)
    if node.op in SAME_ORDER:
        return viewed(writer, value.pairs, shape)
    if node.op in BROADCASTS:
        sizes = tuple(map(as_arg, shape))
        return writer.call("aten.expand.default", value.pairs, sizes, shape=shape, dtype=REAL)
    if node.op in PERMUTATIONS:
        order = (*dimension_order(node, rank), rank)
        return writer.call("aten.permute.default", value.pairs, order, shape=shape, dtype=REAL)
    if node.op in _ALONG_A_DIMENSION:
        dim = literal(node.args[1]) % rank if len(node.args) > 1 else 0
        return writer.call(node.op, value.pairs, dim, *node.args[2:], shape=shape, dtype=REAL)
    return None


def paired(writer: GraphWriter, a: Complex, b: Complex) -> ValueRef | None:
    """The product of two values that are pairs, as pairs; None where that is no work for one kernel."""
    if a.pairs is None or b.pairs is None:
        return None
    for x, w in ((a.pairs, b.pairs), (b.pairs, a.pairs)):
        shape = writer.shape(x)
        if sharing(shape[:-1], writer.shape(w)[:-1]) is not None:
            return writer.call(
                COMPLEX_MULTIPLY.name, x, _without_leading(writer, w, shape), shape=shape, dtype=REAL
            )
    return None


def _without_leading(writer: GraphWriter, w: ValueRef, shape: Sequence[Dim]) -> ValueRef:
    """Factors of fewer dimensions get those of size one that they lack."""
    own = writer.shape(w)
    missing = len(shape) - len(own)
    return viewed(writer, w, ((1,) * missing + tuple(own))) if missing else w
