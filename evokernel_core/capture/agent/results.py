"""What a whole function gives back, and the statements that give it back from a call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .drawn import DrawingConverter
from .entry import Call
from .errors import Refused
from .parts import TENSOR
from .source import Source
from .trace import WholeTrace


class Results:
    """``wanted`` are the distinct computed values, in the order in which the call gives them, and
    ``positions`` where each stands first in the flat result of the function. ``written`` are the numbers of
    the arguments that the function writes into, and their new values."""

    def __init__(self, call: Call, found: WholeTrace, converter: DrawingConverter) -> None:
        values = converter.read()
        _refuse_settings(call)
        new = values[len(found.outputs) :]
        for (index, node), value in zip(found.written.items(), new, strict=True):
            converter.write(index, value, node)
        self._call = call
        numbers = zip(found.written, new, strict=True)
        self.written = {index: value for index, value in numbers if call.leaves[index].kind == TENSOR}
        self.wanted: list[dict[str, Any]] = []
        self.positions: list[int] = []
        texts = []
        for position, (value, node) in enumerate(zip(values, found.outputs, strict=False)):
            texts.append(self._text(position, value, node, converter))
        if not self.wanted and not self.written:
            raise Refused("The result is an input or a constant, so there is nothing to compute.")
        _refuse_views(call, found, self.positions, self.written)
        self._result, self._set = pytree.tree_unflatten(texts, found.spec)

    def _text(self, position: int, value: Any, node: Any, converter: DrawingConverter) -> str:
        """The Python text of one leaf of the result."""
        if isinstance(value, dict) and "ref" in value:
            given = converter.expression(value["ref"])
            if given is not None:
                return given
            for index, new in self.written.items():
                if value == new:
                    return self._call.leaves[index].expression
            if value not in self.wanted:
                self.wanted.append(value)
                self.positions.append(position)
            return f"result_{self.wanted.index(value)}"
        if isinstance(node, torch.fx.Node):
            return converter.size_text(node.meta["val"])
        if isinstance(value, (bool, int, float, str, type(None))):
            return repr(value)
        raise Refused(f"The result holds a {type(node).__name__}: return tensors and numbers.")

    def replacement(self, source: Source, conditions: list[str]) -> str:
        """What takes the place of the function's statements. Where ``conditions`` do not hold, the
        statements run as they did."""
        body = statements_of(self._call.entry.function.node)
        indent = " " * body[0].col_offset
        inner = indent + "    " * bool(conditions)
        text = f"\n{inner}".join(self._lines())
        if not conditions:
            return text
        if body[0].lineno == self._call.entry.function.node.lineno:
            raise Refused("The function stands on one line: put its body on lines of its own.")
        original = escaped(source.between(body[0], body[-1]))
        return f"if {' and '.join(conditions)}:\n{inner}{text}\n{indent}{original}"

    def _lines(self) -> list[str]:
        names = [f"result_{number}" for number in range(len(self.wanted))]
        plain = "result_0" if len(names) == 1 else f"({', '.join(names)})"
        rendered = _rendered(self._result, self._call.entry.names)
        changes = [item for item in self._call.changes if isinstance(item.value, torch.Tensor)]
        if rendered == plain and not changes:
            return ["return {call}"]
        lines = [f"{', '.join(names)} = {{call}}" if names else "{call}"]
        lines += [f"{change.expression} = {text}" for change, text in zip(changes, self._set, strict=True)]
        return [*lines, f"return {escaped(rendered)}"]


def _refuse_settings(call: Call) -> None:
    for change in call.changes:
        if not isinstance(change.value, torch.Tensor):
            raise Refused(f"The call sets {change.expression} anew, which a kernel cannot do.")


def _refuse_views(call: Call, found: WholeTrace, positions: list[int], written: Iterable[int]) -> None:
    """Results of a kernel are tensors of their own: what shares memory must not become one."""
    owners = {
        _storage(node): leaf.expression for node, leaf in zip(found.traced.inputs, call.leaves, strict=True)
    }
    owners |= {_storage(found.written[index]): call.leaves[index].expression for index in written}
    for position in positions:
        storage = _storage(found.outputs[position])
        if storage in owners:
            raise Refused(f"The result is a view of {owners[storage]}: return a copy of it.")
        owners[storage] = "another result"


def _storage(node: Any) -> int:
    return int(node.meta["val"].untyped_storage()._cdata)


def statements_of(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring."""
    body: list[ast.stmt] = function.body
    first = body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(body) > 1
    return body[1:] if documented else body


def _rendered(value: Any, names: Mapping[str, Any]) -> str:
    """Python text of a structure whose leaves are texts; ``names`` are those that the function knows.
    Raises Refused for other containers."""
    if isinstance(value, str):
        return value
    kind = type(value)
    if isinstance(value, (tuple, list)):
        items = [_rendered(item, names) for item in value]
        joined = ", ".join(items)
        if kind is list:
            return f"[{joined}]"
        closed = f"({joined}{',' * (len(items) == 1)})"
        if kind is tuple:
            return closed
        if kind.__module__ == "torch.return_types":
            return f"torch.return_types.{kind.__name__}({closed})"
        if names.get(kind.__name__) is kind and hasattr(kind, "_fields"):
            return f"{kind.__name__}({joined})"
    if kind is dict:
        entries = (f"{key!r}: {_rendered(item, names)}" for key, item in value.items())
        return "{" + ", ".join(entries) + "}"
    raise Refused(f"The result is a {kind.__name__}: return tensors, tuples, lists or dictionaries.")


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
