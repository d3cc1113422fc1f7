"""Sizes of traced tensors: torch's symbols as expressions that kernels compute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Mod, PythonMod

from ..errors import Unsupported
from ..graph.complex_names import refusal
from ..regions.parts import SCALAR, Leaf
from ..sentence import Sentence
from .export import Traced


class InexpressibleSize(Unsupported):
    """A size is no arithmetic expression of the input sizes; with plain sizes it is a number. ``symbols``
    are torch's symbols in it."""

    def __init__(self, template: str, symbols: Any = frozenset(), /, **values: Any) -> None:
        super().__init__(template, **values)
        self.symbols = frozenset(symbols)


@dataclass
class SymbolSizes:
    """torch's symbols (s77, s27) under our names (s0, s1), by order of appearance in the inputs: their
    sizes in the user's file, the least that tracing assumed, and the least that kernels need."""

    names: dict[Any, str]
    hints: dict[Any, int]
    minimums: dict[Any, int]
    needed: dict[Any, int] = field(default_factory=dict)

    def need(self, size: Any, least: int) -> None:
        """Notes that kernels are right from a size on. Raises InexpressibleSize where that is no least
        value of one symbol."""
        if not isinstance(size, torch.SymInt) or not size.node.expr.free_symbols:
            return
        symbol = size.node.expr
        if self.hints.get(symbol, 0) < least:
            raise InexpressibleSize(
                "The size {symbol} has to be at least {least}.",
                symbol.free_symbols,
                symbol=symbol,
                least=least,
            )
        self.needed[symbol] = max(least, self.needed.get(symbol, 1))

    def symbols(self, least: dict[str, int]) -> list[dict[str, Any]]:
        """The symbols of a task; ``least`` are the least sizes at which the function itself runs."""
        return [
            {
                "name": name,
                "size": self.hints[symbol],
                "minimum": max(least[name], self.needed.get(symbol, 1)),
            }
            for symbol, name in self.names.items()
        ]

    def text(self, size: Any) -> int | str:
        """A size as a number or an expression of + - * // %. Raises Unsupported for others."""
        if isinstance(size, torch.SymInt):
            return self._print(sympy.expand(size.node.expr)) if size.node.expr.free_symbols else int(size)
        return int(size)

    def _print(self, expression: Any) -> int | str:
        text = self._print_part(expression)
        return int(text) if text.lstrip("-").isdigit() else text

    def _print_part(self, e: Any) -> str:  # noqa: PLR0911 - one return a kind of expression
        if e.is_Integer:
            return str(int(e))
        if e.is_Symbol and e in self.names:
            return self.names[e]
        if e.is_Add:
            return "(" + " + ".join(self._print_part(argument) for argument in e.args) + ")"
        if e.is_Mul:
            return " * ".join(self._factor(argument) for argument in e.args)
        if e.is_Pow and e.exp.is_Integer and e.exp > 0:
            return " * ".join([self._factor(e.base)] * int(e.exp))
        if isinstance(e, (FloorDiv, CleanDiv)):
            return f"({self._factor(e.args[0])} // {self._factor(e.args[1])})"
        if isinstance(e, (Mod, PythonMod)):
            return f"({self._factor(e.args[0])} % {self._factor(e.args[1])})"
        message = Sentence("The size {size} is not an arithmetic expression of the input sizes.", size=e)
        raise InexpressibleSize(message, e.free_symbols)

    def _factor(self, e: Any) -> str:
        text = self._print_part(e)
        return text if e.is_Atom or text.startswith("(") else f"({text})"

    def value(self, size: Any) -> int:
        """The size in the user's file."""
        if not isinstance(size, torch.SymInt):
            return int(size)
        return int(size.node.expr.xreplace({k: sympy.Integer(v) for k, v in self.hints.items()}))


def sizes_of(traced: Traced, leaves: tuple[Leaf, ...]) -> SymbolSizes:
    """Names, captured values and least values of the symbols in the inputs."""
    sizes = SymbolSizes({}, {}, {})
    for node, leaf in zip(traced.inputs, leaves, strict=True):
        shape = () if leaf.kind == SCALAR else tuple(leaf.value.shape)
        for size, value in zip(node.meta["val"].shape, shape, strict=True):
            if not isinstance(size, torch.SymInt) or not size.node.expr.is_Symbol:
                continue
            symbol = size.node.expr
            if symbol not in sizes.names:
                sizes.names[symbol] = f"s{len(sizes.names)}"
                sizes.hints[symbol] = int(value)
                lower = int(traced.environment.var_to_range[symbol].lower)
                sizes.minimums[symbol] = traced.least.get(symbol, lower)
    return sizes


def spec(value: Any, sizes: SymbolSizes) -> dict[str, Any]:
    """TensorSpec. Raises Unsupported for layouts and dtypes without a name in the domain."""
    if value.layout is not torch.strided:
        raise Unsupported("A sparse tensor is outside what the kernels take.")
    if reason := refusal(value.dtype):
        raise Unsupported(reason)
    shape = [sizes.text(size) for size in value.shape]
    dtype = str(value.dtype).removeprefix("torch.")
    return {"shape": shape, "dtype": dtype, "contiguous": _is_contiguous(value, sizes)}


def _is_contiguous(value: Any, sizes: SymbolSizes) -> bool:
    """With the captured sizes: asking the symbolic tensor would add guards."""
    expected = 1
    shape = [sizes.value(size) for size in value.shape]
    strides = [sizes.value(stride) for stride in value.stride()]
    if 0 in shape:
        return True
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
