"""Triton's front over our builder: its functions patched once, reductions and scans of whole blocks, and
Python's own control flow in place of the compiler's."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

from .builder import Divided, Handle, NumpyBuilder, alike, use_these_dtypes
from .memory import Array

TRUTH, CARRIED, BOTH, EITHER, NEITHER = (f"_evokernel_{word}" for word in ("if", "loop", "and", "or", "not"))
"""The names of what control flow is written as."""


class Front:
    """Patches ``triton.language`` of this process for good."""

    def __init__(self, builder: NumpyBuilder) -> None:
        self._builder = builder
        self._semantic = TritonSemantic(builder)
        self._functions: dict[Any, Callable[..., Any]] = {}
        self._patch()

    def names(self) -> dict[str, Any]:
        """What the text of a kernel sees of Python's names."""
        return {
            TRUTH: self.truth,
            CARRIED: self.carried,
            BOTH: self.both,
            EITHER: self.either,
            NEITHER: self.neither,
            "range": self.range,
            "min": self._least,
            "max": self._most,
        }

    # control flow

    def truth(self, value: Any) -> bool:
        """Whether a condition holds, for all programs alike. Raises Divided where it holds for some."""
        if not isinstance(value, tl.tensor):
            return bool(value.value if isinstance(value, tl.constexpr) else value)
        data = value.handle.data
        if value.type.is_block():
            raise ValueError("a condition is a number of the program, and this is a block")
        flags = data.astype(bool)
        if flags.all() or not flags.any():
            return bool(flags[0])
        raise Divided(flags)

    def carried(self, value: Any) -> Any:
        """What a variable that loops change is set to: a number becomes a value of the program."""
        if isinstance(value, bool | int | float | tl.constexpr):
            return self._semantic.to_tensor(value)
        return value

    def both(self, first: Any, second: Callable[[], Any]) -> Any:
        if not isinstance(first, tl.tensor):
            return second() if self.truth(first) else first
        return first.logical_and(second())

    def either(self, first: Any, second: Callable[[], Any]) -> Any:
        if not isinstance(first, tl.tensor):
            return first if self.truth(first) else second()
        return first.logical_or(second())

    def neither(self, value: Any) -> Any:
        return value.__not__() if isinstance(value, tl.tensor) else not self.truth(value)

    def range(self, *bounds: Any, **hints: Any) -> Iterator[Any]:
        """The numbers of a loop. Raises Divided where programs go round differently often."""
        given = [self._semantic.to_tensor(bound) for bound in bounds]
        first, last = given[:2] if len(given) > 1 else (self._semantic.to_tensor(0), given[0])
        step = given[2] if len(given) > 2 else self._semantic.to_tensor(1)
        if first.dtype != last.dtype:
            wide = tl.int64 if 64 in (first.dtype.int_bitwidth, last.dtype.int_bitwidth) else tl.int32
            first, last = self._semantic.cast(first, wide), self._semantic.cast(last, wide)
        stride = step.handle.data.astype(np.int64)
        low, high = (one.handle.data.astype(np.int64) for one in (first, last))
        rounds = np.maximum(-((low - high) // stride), 0)
        if rounds.size and (rounds != rounds[0]).any():
            raise Divided(rounds)
        for number in range(int(rounds[0])):
            data = (low + number * stride).astype(first.handle.data.dtype)
            yield tl.tensor(Handle(data, first.dtype), first.dtype)

    def _least(self, *values: Any) -> Any:
        return self._best(values, min, tl.minimum)

    def _most(self, *values: Any) -> Any:
        return self._best(values, max, tl.maximum)

    def _best(self, values: tuple[Any, ...], of_numbers: Any, of_values: Any) -> Any:
        if not any(isinstance(value, tl.tensor) for value in values):
            return of_numbers(
                *(value.value if isinstance(value, tl.constexpr) else value for value in values)
            )
        first, *rest = (self._semantic.to_tensor(value) for value in values)
        for value in rest:
            first = of_values(first, value)
        return first

    # reductions and scans

    def reduce(self, value: Any, axis: Any, combine: Any, keep_dims: Any = False, **_: Any) -> Any:
        """All elements along an axis, or of the block, put together in pairs."""
        if isinstance(value, tl.tensor):
            return self.reduce((value,), axis, combine, keep_dims)[0]
        axis, keep_dims = _plain(axis), bool(_plain(keep_dims))
        shape = [_plain(size) for size in value[0].shape]
        if axis is None:
            parts = [self._flat(one) for one in value]
        else:
            axis = axis + len(shape) if axis < 0 else axis
            parts = [(np.moveaxis(one.handle.data, axis + 1, -1), one.dtype) for one in value]
        fast = _FAST.get(combine) if len(parts) == 1 else None
        if fast is not None and parts[0][0].dtype != np.float16 and parts[0][1] != tl.bfloat16:
            data = fast(parts[0][0], axis=-1).astype(parts[0][0].dtype, copy=False)
            results = [(data, parts[0][1])]
        else:
            results = self._in_pairs(parts, combine)
        rest = [] if axis is None else [size for place, size in enumerate(shape) if place != axis]
        kept = (
            [1] * len(shape) if axis is None else [1 if n == axis else size for n, size in enumerate(shape)]
        )
        return tuple(
            self._block(data.reshape(len(data), *(kept if keep_dims else rest)), dtype)
            for data, dtype in results
        )

    def _flat(self, value: Any) -> tuple[Array, Any]:
        data = value.handle.data
        return data.reshape(len(data), -1), value.dtype

    def _in_pairs(self, parts: list[tuple[Array, Any]], combine: Any) -> list[tuple[Array, Any]]:
        while parts[0][0].shape[-1] > 1:
            left = [self._block(data[..., 0::2], dtype) for data, dtype in parts]
            right = [self._block(data[..., 1::2], dtype) for data, dtype in parts]
            parts = self._combined(combine, left, right)
        return [(data[..., 0], dtype) for data, dtype in parts]

    def _combined(self, combine: Any, left: list[Any], right: list[Any]) -> list[tuple[Array, Any]]:
        result = combine(*left, *right)
        every = result if isinstance(result, tuple | list | tl.tuple) else (result,)
        return [
            (np.broadcast_to(one.handle.data, _wide(one, mine)), one.dtype)
            for one, mine in zip(every, left, strict=True)
        ]

    def scan(self, value: Any, axis: Any, combine: Any, reverse: Any = False, **_: Any) -> Any:
        """Each element put together with all before it along an axis."""
        if isinstance(value, tl.tensor):
            return self.scan((value,), axis, combine, reverse)[0]
        axis, is_reverse = _plain(axis), bool(_plain(reverse))
        axis = axis + len(value[0].shape) if axis < 0 else axis
        parts = [(np.moveaxis(one.handle.data, axis + 1, -1), one.dtype) for one in value]
        if is_reverse:
            parts = [(data[..., ::-1], dtype) for data, dtype in parts]
        step, length = 1, parts[0][0].shape[-1]
        while step < length:
            # whole blocks, for other sizes are none: what comes round from the end is left out again
            left = [self._block(np.roll(data, step, -1), dtype) for data, dtype in parts]
            right = [self._block(data, dtype) for data, dtype in parts]
            joined = self._combined(combine, left, right)
            parts = [
                (np.concatenate(alike(before[..., :step], after[..., step:]), -1), dtype)
                for (before, dtype), (after, _) in zip(parts, joined, strict=True)
            ]
            step *= 2
        if is_reverse:
            parts = [(data[..., ::-1], dtype) for data, dtype in parts]
        return tuple(self._block(np.moveaxis(data, -1, axis + 1), dtype) for data, dtype in parts)

    def _block(self, data: Array, dtype: Any) -> Any:
        kind = tl.block_type(dtype, list(data.shape[1:])) if data.ndim > 1 else dtype
        return tl.tensor(Handle(np.ascontiguousarray(data), dtype), kind)

    # functions

    def function(self, jitted: Any) -> Callable[..., Any]:
        """One of Triton's own functions in Python, with our control flow."""
        if jitted not in self._functions:
            plain = jitted.fn
            tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
            plain.__globals__.update(
                {key: value for key, value in self.names().items() if key.startswith("_")}
            )
            local: dict[str, Any] = {}
            code = compile(rewritten(tree), inspect.getfile(plain), "exec")
            exec(code, plain.__globals__, local)
            self._functions[jitted] = local[plain.__name__]
        return self._functions[jitted]

    def _patch(self) -> None:
        use_these_dtypes()
        scope = interpreter._LangPatchScope()
        interpreter.interpreter_builder = self._builder
        interpreter.interpreter_semantic = self._semantic
        for place in (tl, tl.core, tl.math, tl.tensor):
            interpreter._patch_builtin(place, self._builder, scope)
        for place in (tl, tl.core):
            interpreter._patch_lang_core(place, scope)
        for place in (tl, tl.core):
            place.reduce, place.associative_scan, place.range = self.reduce, self.scan, self.range
        tl.tensor.reduce, tl.tensor.associative_scan = self.reduce, self.scan
        tl.tensor.T = property(tl.trans)
        tl.tensor.__bool__ = lambda value: True
        for name in _OPERATORS:
            setattr(tl.constexpr, name, _of_constants(getattr(tl.constexpr, name)))
        interpreter.InterpretedFunction.__call__ = lambda jitted, *args, **named: self.function(jitted)(
            *args, **named
        )


_OPERATORS = tuple(
    f"__{name}__"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
) + tuple(f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne"))


def _of_constants(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator of constants that leaves values of programs to theirs."""

    def applied(left: Any, right: Any) -> Any:
        return NotImplemented if isinstance(right, tl.tensor) else operator(left, right)

    return applied


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def _wide(value: Any, like: Any) -> tuple[int, ...]:
    """The shape of a result whose parts other results may have more of."""
    data, own = value.handle.data, like.handle.data
    return (max(len(data), len(own)), *own.shape[1:])


_FAST: dict[Any, Callable[..., Array]] = {
    tl.standard._sum_combine: np.sum,
    tl.standard._elementwise_max: np.fmax.reduce,
    tl.standard._elementwise_min: np.fmin.reduce,
}


def rewritten(tree: ast.Module) -> ast.Module:
    """Functions whose conditions, connectives and loop variables are those of the compiler; without their
    decorators, annotations and defaults that are annotations."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
            node.returns = None
            for parameter in (*node.args.args, *node.args.kwonlyargs):
                parameter.annotation = None
            _Rewriter(_carried_names(node)).visit(node)
    return ast.fix_missing_locations(tree)


def _carried_names(function: ast.FunctionDef) -> frozenset[str]:
    """Variables that are set both outside and within loops."""
    inside: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.For | ast.While):
            inside |= {name for statement in node.body for name in _set_in(statement)}
    outside: set[str] = set()
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.For | ast.While):
            continue
        if isinstance(node, ast.Assign | ast.AugAssign):
            outside |= set(_set_in(node))
        pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return frozenset(inside & outside)


def _set_in(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Assign | ast.AugAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for target in targets:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


class _Rewriter(ast.NodeTransformer):
    def __init__(self, carried: frozenset[str]) -> None:
        self._carried = carried

    def visit(self, node: ast.AST) -> Any:
        visited = super().visit(node)
        if isinstance(visited, ast.If | ast.While | ast.IfExp):
            visited.test = _call(TRUTH, visited.test)
        return visited

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = BOTH if isinstance(node.op, ast.And) else EITHER
        result = node.values[0]
        for value in node.values[1:]:
            later = ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)
            result = _call(name, result, later)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call(NEITHER, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        match node.targets:
            case [ast.Name(id=name)] if name in self._carried:
                node.value = _call(CARRIED, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return node
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(args), []), args[0])
