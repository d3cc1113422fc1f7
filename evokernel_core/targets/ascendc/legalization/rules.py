"""By ATen name, how an element-wise operation on integers and truth values is made of words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from attrs import frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef
from evokernel_core.domain.tensor import ITEM_SIZE, TensorSpec
from evokernel_core.targets.ascendc.legalization.division import Division
from evokernel_core.targets.ascendc.legalization.limbs import BITS, Operand, Words
from evokernel_core.targets.ascendc.legalization.wide import (
    WIDTHS,
    Arithmetic,
    Whole,
    narrowed,
    truth_as_whole,
)

_BITS_A_STEP = math.log2(1 + math.sqrt(2))
"""By which two steps' numbers are shorter at least, where remainders are at most half of the divisor."""
_MORE = 1
"""Steps for quotients of more digits than float32 has: those leave short numbers."""


def common_divisor(words: Words, a: Operand, b: Operand, bits: int) -> Operand:
    """Of numbers of so many bits; 0 of two zeros. What has no opposite, -2**31, divides as a float."""
    a, b = _size(words, a), _size(words, b)
    for _ in range(math.ceil(bits / _BITS_A_STEP) + _MORE):
        a, b = b, _size(words, words.sub(a, words.mul(words.near_quotient(a, b), b)))
    return words.either(a, b)  # of which one is 0


def _size(words: Words, a: Operand) -> Operand:
    return words.max(a, words.mul(a, -1))


_EXACT = 1 << 24
"""Up to here a float32 number stands for the integer that it is equal to, also in comparisons."""
_MOST_EXPONENT = 8


@frozen
class Truth:
    """-1 where it holds, else 0."""

    word: Operand


Value = Whole | Truth


@frozen
class WordCall:
    """A node with its operands at the points of its result."""

    node: Node
    words: Words
    evaluate: Callable[[ValueRef], Value]
    spec_of: Callable[[ValueRef], TensorSpec]

    @property
    def dtype(self) -> str:
        return self.node.outputs[0].dtype

    def argument(self, position: int, name: str = "", default: Arg = None) -> Arg:
        if position < len(self.node.args):
            return self.node.args[position]
        return dict(self.node.kwargs).get(name, default)

    def whole_number(self, arg: Arg) -> int:
        """A literal as an integer. Raises PlanError where it is another number."""
        if isinstance(arg, int):
            return int(arg)
        if isinstance(arg, float) and arg.is_integer() and abs(arg) < _EXACT:
            return int(arg)
        raise PlanError(
            "{op} computes integers with {arg}, which is no literal whole number.",
            op=self.node.op,
            arg=repr(arg),
        )

    def arithmetic(self, dtype: str) -> Arithmetic:
        return Arithmetic(self.words, 64 if dtype == "int64" else BITS)

    def whole(self, arg: Arg, dtype: str) -> Whole:
        """An operand converted to ``dtype``, in the width in which that one is computed."""
        numbers = self.arithmetic(dtype)
        if isinstance(arg, SymbolicInt):
            size = self.words.read("difference" if "-" in arg.expression else "size", arg.expression)
            high = self.words.sign(size) if numbers.bits > BITS else None
            return narrowed(self.words, Whole(size, high), dtype)
        if not isinstance(arg, ValueRef):
            return narrowed(self.words, numbers.number(self.whole_number(arg)), dtype)
        value = self.evaluate(arg)
        if isinstance(value, Truth):
            return numbers.widened(truth_as_whole(self.words, value.word))
        return narrowed(self.words, value, dtype)

    def truth(self, arg: Arg) -> Operand:
        """An operand as a truth value."""
        if not isinstance(arg, ValueRef):
            return -1 if self.whole_number(arg) else 0
        value = self.evaluate(arg)
        if isinstance(value, Truth):
            return value.word
        low = value.low if value.high is None else self.words.either(value.low, value.high)
        return self.words.is_not_zero(low)

    def result(self, value: Whole) -> Whole:
        """A result of this width as the node's dtype has it."""
        return narrowed(self.words, value, self.dtype)

    def common(self) -> str:
        """The dtype in which the two operands are compared or combined: all that fit a word as words."""
        refs = [arg for arg in self.node.args[:2] if isinstance(arg, ValueRef)]
        specs = [self.spec_of(ref) for ref in refs]
        ranked = [spec for spec in specs if spec.rank] or specs  # single numbers take the others' dtype
        return "int64" if any(spec.dtype == "int64" for spec in ranked) else "int32"


Rule = Callable[[WordCall], Value]


def _binary(name: str) -> Rule:
    """A method of Arithmetic for two operands."""

    def rule(call: WordCall) -> Value:
        if call.dtype == "bool" and name in _TRUTHS:
            return _of_truths(call, _TRUTHS[name])
        a, b = (call.whole(call.node.args[i], call.dtype) for i in range(2))
        result: Whole = getattr(call.arithmetic(call.dtype), name)(a, b)
        return call.result(result)

    return rule


_TRUTHS = {"mul": "both", "min": "both", "max": "either", "add": "either"}
"""What arithmetic on two truth values is in PyTorch, as methods of Words."""


def _of_truths(call: WordCall, method: str) -> Value:
    a, b = (call.truth(call.node.args[i]) for i in range(2))
    result: Operand = getattr(call.words, method)(a, b)
    return Truth(result)


def _sum(name: str, first: int = 0) -> Rule:
    """``name`` of the operand ``first`` and ``alpha`` times the other one."""

    def rule(call: WordCall) -> Value:
        if call.dtype == "bool" and name == "add" and call.argument(2, "alpha", 1) == 1:
            return _of_truths(call, _TRUTHS[name])
        numbers = call.arithmetic(call.dtype)
        scale = numbers.number(call.whole_number(call.argument(2, "alpha", 1)))
        pair = [call.whole(call.node.args[i], call.dtype) for i in range(2)]
        a, b = pair[first], numbers.mul(pair[1 - first], scale)
        result: Whole = getattr(numbers, name)(a, b)
        return call.result(result)

    return rule


def _unary(compute: Callable[[Arithmetic, Whole], Whole]) -> Rule:
    def rule(call: WordCall) -> Value:
        return call.result(compute(call.arithmetic(call.dtype), call.whole(call.node.args[0], call.dtype)))

    return rule


def _sign(numbers: Arithmetic, a: Whole) -> Whole:
    """1 where it is above zero, -1 where below."""
    positive = numbers.is_less(numbers.number(0), a)
    low = numbers.words.sub(numbers.sign_of(a), positive)
    return numbers.widened(Whole(low))


def _power(call: WordCall) -> Value:
    exponent = call.whole_number(call.argument(1, "exponent"))
    if not 0 <= exponent <= _MOST_EXPONENT:
        raise PlanError(
            "Integers to the power {exponent} are not covered, only powers up to {most}.",
            exponent=exponent,
            most=_MOST_EXPONENT,
        )
    base = call.whole(call.node.args[0], call.dtype)
    return call.result(call.arithmetic(call.dtype).power(base, exponent))


def _division(method: str, floor: bool | None) -> Rule:
    """``floor`` None: as the node's rounding mode says."""

    def rule(call: WordCall) -> Value:
        rounds_down = floor
        if rounds_down is None:
            mode = call.argument(2, "rounding_mode")
            if mode not in ("floor", "trunc"):
                raise PlanError("div of integers to integers has a rounding mode other than floor and trunc.")
            rounds_down = mode == "floor"
        a, b = (call.whole(call.node.args[i], call.dtype) for i in range(2))
        bits = 8 * ITEM_SIZE[call.dtype]
        division = Division(call.arithmetic(call.dtype), rounds_down, bits)
        result: Whole = getattr(division, method)(a, b)
        return call.result(result)

    return rule


def _gcd(call: WordCall) -> Value:
    if call.dtype == "int64":
        raise PlanError("{op} of int64 is not covered: convert to int32, which is.", op=call.node.op)
    a, b = (call.whole(call.node.args[i], call.dtype).low for i in range(2))
    return call.result(Whole(common_divisor(call.words, a, b, WIDTHS[call.dtype])))


def _clamp(call: WordCall) -> Value:
    numbers, result = call.arithmetic(call.dtype), call.whole(call.node.args[0], call.dtype)
    for position, name in ((1, "min"), (2, "max")):
        limit = call.argument(position, name)
        if limit is not None:
            result = (numbers.max if name == "min" else numbers.min)(result, call.whole(limit, call.dtype))
    return result


_COMPARED = {"eq": (True, "is_not_equal", False), "ne": (False, "is_not_equal", False),
             "lt": (False, "is_less", False), "gt": (False, "is_less", True),
             "ge": (True, "is_less", False), "le": (True, "is_less", True)}  # fmt: skip
"""By comparison: whether it is the opposite of a method of Arithmetic, that one, and whether the operands
change places."""


def _comparison(name: str) -> Rule:
    opposite, method, exchanged = _COMPARED[name]

    def rule(call: WordCall) -> Value:
        dtype = call.common()
        pair = [call.whole(arg, dtype) for arg in call.node.args[:2]]
        a, b = reversed(pair) if exchanged else pair
        truth: Operand = getattr(call.arithmetic(dtype), method)(a, b)
        return Truth(call.words.complement(truth) if opposite else truth)

    return rule


def _bitwise(name: str) -> Rule:
    def rule(call: WordCall) -> Value:
        if call.dtype == "bool":
            return _logical(name)(call)
        a, b = (call.whole(call.node.args[i], call.dtype) for i in range(2))
        return call.result(call.arithmetic(call.dtype).bitwise(name, a, b))

    return rule


def _logical(name: str) -> Rule:
    def rule(call: WordCall) -> Value:
        a, b = (call.truth(call.node.args[i]) for i in range(2))
        return Truth(getattr(call.words, name)(a, b))

    return rule


def _logical_not(call: WordCall) -> Value:
    return Truth(call.words.complement(call.truth(call.node.args[0])))


def _not(call: WordCall) -> Value:
    if call.dtype == "bool":
        return _logical_not(call)
    numbers = call.arithmetic(call.dtype)
    return call.result(numbers.complement(call.whole(call.node.args[0], call.dtype)))


def _shift(name: str) -> Rule:
    def rule(call: WordCall) -> Value:
        bits = call.argument(1, "other")
        if call.dtype not in WIDTHS:
            raise PlanError(
                "{op} of {dtype} is not covered: shift integers.", op=call.node.op, dtype=call.dtype
            )
        if isinstance(bits, ValueRef):
            return _shift_by_tensor(call, name, call.whole(bits, call.dtype))
        count = call.whole_number(bits)
        if not 0 <= count < WIDTHS[call.dtype]:
            raise PlanError(
                "{op} by {count} bits means nothing for {dtype}.",
                op=call.node.op,
                count=count,
                dtype=call.dtype,
            )
        value = call.whole(call.node.args[0], call.dtype)
        shifted: Whole = getattr(call.arithmetic(call.dtype), name)(value, count)
        return call.result(shifted)

    return rule


def _shift_by_tensor(call: WordCall, name: str, bits: Whole) -> Value:
    """A2 shifts by one number: here by each power of two that the number of bits has. What is shifted by
    less than nothing or by its whole width leaves zeros, or signs on the way to the right."""
    numbers, words, width = call.arithmetic(call.dtype), call.words, WIDTHS[call.dtype]
    start = value = call.whole(call.node.args[0], call.dtype)
    for place in range((numbers.bits - 1).bit_length()):
        has = words.sign(words.shift("shl", bits.low, BITS - 1 - place))
        value = numbers.chosen(has, getattr(numbers, name)(value, 1 << place), value)
    within = words.both(words.complement(numbers.sign_of(bits)), numbers.is_less(bits, numbers.number(width)))
    left = numbers.number(0)
    if name == "shifted_right":
        left = numbers.widened(Whole(numbers.sign_of(start)))
    return call.result(numbers.chosen(within, value, left))


def _where(call: WordCall) -> Value:
    truth, (yes, no) = call.truth(call.node.args[0]), call.node.args[1:3]
    return _choice(call, truth, yes, no)


def _masked_fill(call: WordCall) -> Value:
    return _choice(call, call.truth(call.node.args[1]), call.node.args[2], call.node.args[0])


def _choice(call: WordCall, truth: Operand, yes: Arg, no: Arg) -> Value:
    if call.dtype == "bool":
        return Truth(call.words.chosen(truth, call.truth(yes), call.truth(no)))
    numbers = call.arithmetic(call.dtype)
    return numbers.chosen(truth, call.whole(yes, call.dtype), call.whole(no, call.dtype))


def _cast(call: WordCall) -> Value:
    source = call.node.args[0]
    if call.dtype == "bool":
        return Truth(call.truth(source))
    return call.whole(source, call.dtype)


def _constant(position: int, value: int | None = None) -> Rule:
    def rule(call: WordCall) -> Value:
        number = value if value is not None else call.argument(position, "fill_value")
        if call.dtype == "bool":
            return Truth(-1 if call.whole_number(number) else 0)
        return call.whole(number, call.dtype)

    return rule


def _for(names: str, overloads: str, rule: Rule) -> dict[str, Rule]:
    return {f"aten.{name}.{overload}": rule for name in names.split() for overload in overloads.split()}


_BOTH = "Tensor Scalar"
RULES: Mapping[str, Rule] = {
    **_for("add", _BOTH, _sum("add")),
    **_for("sub", _BOTH, _sum("sub")),
    **_for("rsub", _BOTH, _sum("sub", first=1)),
    **_for("mul", _BOTH, _binary("mul")),
    **_for("neg", "default", _unary(Arithmetic.neg)),
    **_for("abs", "default", _unary(Arithmetic.abs)),
    **_for("sign", "default", _unary(_sign)),
    **_for("square", "default", _unary(lambda numbers, a: numbers.mul(a, a))),
    **_for("pow", "Tensor_Scalar", _power),
    **_for("maximum clamp_min", "default Tensor", _binary("max")),
    **_for("minimum clamp_max", "default Tensor", _binary("min")),
    **_for("clamp", "default Tensor", _clamp),
    **_for("div", "Tensor_mode", _division("quotient", None)),
    **_for("remainder", _BOTH, _division("remainder", True)),
    **_for("fmod", _BOTH, _division("remainder", False)),
    **{key: rule for name in _COMPARED for key, rule in _for(name, _BOTH, _comparison(name)).items()},
    **_for("gcd", "default", _gcd),
    **_for("bitwise_and", _BOTH, _bitwise("both")),
    **_for("bitwise_or", _BOTH, _bitwise("either")),
    **_for("bitwise_xor", _BOTH, _bitwise("differing")),
    **_for("bitwise_not", "default", _not),
    **_for("bitwise_left_shift", "Tensor Tensor_Scalar", _shift("shifted_left")),
    **_for("bitwise_right_shift", "Tensor Tensor_Scalar", _shift("shifted_right")),
    **_for("__lshift__", "Scalar", _shift("shifted_left")),
    **_for("__rshift__", "Scalar", _shift("shifted_right")),
    **_for("logical_and", "default", _logical("both")),
    **_for("logical_or", "default", _logical("either")),
    **_for("logical_xor", "default", _logical("differing")),
    **_for("logical_not", "default", _logical_not),
    **_for("where", "self ScalarSelf ScalarOther Scalar", _where),
    **_for("masked_fill", _BOTH, _masked_fill),
    **_for("_to_copy", "default", _cast),
    **_for("full full_like", "default", _constant(1)),
    **_for("fill", "Scalar", _constant(1)),
    **_for("scalar_tensor", "default", _constant(0)),
    **_for("zeros_like", "default", _constant(0, 0)),
    **_for("ones_like", "default", _constant(0, 1)),
}
