"""What a whole function gives back, and the statements that give it back from a call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import Refused
from ..graph.names import without_view
from ..inputs.entry import EntryCall
from ..loading.source import Source
from ..tracing.random_inputs import DrawingConverter
from ..tracing.trace import WholeTrace
from .aliased_outputs import viewed
from .call_site import escaped
from .dataclass_outputs import Opened
from .layouts import (
    Peeled,
    Step,
    TensorLayout,
    full_order,
    inverse,
    layout_of,
    peeled,
    text_of,
    view_by,
)
from .parts import TENSOR, Place
from .writes import conditions_of_writing


class Results:
    """``wanted`` are the distinct values that the call gives, in its order. ``positions`` are those of
    computed tensors in the flat result of the function, and ``shapes`` the shape of each; ``places`` are the
    positions that give a value wanted, with its number. ``written`` are
    the numbers of the arguments that the function writes into, and their new values. ``copied`` are those
    of tensors that it copies another input into as it is, with that of the input: a statement does that."""

    def __init__(
        self,
        call: EntryCall,
        whole_trace: WholeTrace,
        converter: DrawingConverter,
        layouts: Sequence[TensorLayout | None],
    ) -> None:
        values = converter.read()
        _refuse_settings(call)
        new = values[len(whole_trace.outputs) :]
        self._call = call
        self._found = whole_trace
        self._converter = converter
        self._layouts = layouts
        self.copied = self._copies(new)
        self._changed = {
            index: value
            for index, value in zip(whole_trace.written, new, strict=True)
            if index not in self.copied
        }
        for index, value in self._changed.items():
            converter.write(index, value, whole_trace.written[index])
        self.written = {
            index: value for index, value in self._changed.items() if call.leaves[index].kind == TENSOR
        }
        self.wanted: list[dict[str, Any]] = []
        self._memory: list[int] = []
        self.positions: list[int] = []
        self.shapes: list[list[int | str]] = []
        self.places: list[Place] = []
        texts = []
        for position, (value, node) in enumerate(zip(values, whole_trace.outputs, strict=False)):
            texts.append(self._text(position, value, node))
        if not self.wanted and not self.written:
            raise Refused("The result is an input, a view or a constant, so there is nothing to compute.")
        self._result, self._set = pytree.tree_unflatten(texts, whole_trace.spec)

    def _copies(self, new: list[Any]) -> dict[int, int]:
        """Copies of inputs that keep their values into tensors that no result shares memory with: whoever
        copies behind the call does what the function did."""
        results, inputs = self._found.memory
        result = {}
        for index, value in zip(self._found.written, new, strict=True):
            source = self._converter.input_number(value)
            if source is not None and source not in self._found.written and inputs[index] not in results:
                self._converter.check_written(index)
                result[index] = source
        return result

    def conditions_of_writing(self, graph: dict[str, Any]) -> list[str]:
        """Python texts that hold where what the call writes is the memory of nothing else that it reads, and
        where a copy neither changes its own values nor fails."""
        texts = []
        for index, source in self.copied.items():
            into, given = (self._call.leaves[number].expression for number in (index, source))
            texts += [f"{into}.{what} == {given}.{what}" for what in ("shape", "dtype", "device")]
        copied = [self._call.leaves[index].expression for index in self.copied]
        return texts + conditions_of_writing(self._call.leaves, graph, copied)

    def _text(self, position: int, value: Any, node: Any) -> str:
        """The Python text of one leaf of the result."""
        if isinstance(value, dict) and "ref" in value:
            return self._tensor(position, value, node)
        if isinstance(node, torch.fx.Node):
            if isinstance(node.meta["val"], torch.Tensor):
                raise Refused(
                    "Result {position} is a tensor of constants: make it outside of the call.",
                    position=position + 1,
                )
            return self._converter.size_text(node.meta["val"])
        if isinstance(value, (bool, int, float, str, type(None))):
            return repr(value)
        raise Refused("The result holds a {name}: return tensors and numbers.", name=type(node).__name__)

    def _tensor(self, position: int, value: dict[str, Any], node: Any) -> str:
        results, inputs = self._found.memory
        memory = results[position]
        text: str | None
        if memory in inputs:
            owner = without_view(self._call.leaves[inputs.index(memory)].expression)
            text = self._known(value) or self._view(node, self._known)
        elif any(other is not node for other in self._sharing(memory)):
            owner = "another result"
            one = len({viewed(other).base for other in self._sharing(memory)}) == 1
            text = self._part(position, node, memory) if one else None
        elif self._is_part(position):
            owner = "a larger tensor"
            text = self._part(position, node, memory)
        else:
            made = self._contiguous(position, value)
            owner, text = "", self._of(made.value, made.steps, position, memory)
        if text is None:
            raise Refused("The result is a view of {owner}: return a copy of it.", owner=owner)
        if memory not in inputs:
            self.positions.append(position)
            self.shapes.append(self._converter.shape_of(node))
        return f"torch.view_as_complex({text})" if position in self._call.complex_results else text

    def _is_part(self, position: int) -> bool:
        layout = self._layouts[position]
        return layout is not None and bool(layout.part)

    def _part(self, position: int, node: Any, memory: int) -> str | None:
        """The Python text of a result as a view of a tensor that the call gives; None where that would lie
        otherwise in memory than the function's does."""
        seen, sizes = viewed(node), self._converter.sizes
        base = self._converter.value_of(seen.base)
        if not isinstance(base, dict) or "ref" not in base:
            return None
        shape = [sizes.value(dim) for dim in seen.base.meta["val"].shape]
        view = view_by(seen.steps(sizes.value), torch.empty(shape, device="meta"), int)
        if layout_of(view) != self._layouts[position]:
            return None
        return self._of(base, seen.steps(sizes.text), position, memory)

    def _of(self, base: dict[str, Any], steps: tuple[Step, ...], position: int, memory: int) -> str:
        """The Python text of a result as a view of what the call gives."""
        own = self._own(base, memory)
        if base in self.wanted:
            self.places.append((position, self.wanted.index(base), steps))
        return text_of(steps, own, self._converter.dim_text)

    def _contiguous(self, position: int, value: dict[str, Any]) -> Peeled:
        """What a kernel gives for a result with memory of its own, and the views that are then the result."""
        layout = self._layouts[position]
        if layout is None:
            return Peeled(value, ())
        made, layout = peeled(value, layout, self._converter.nodes, self._converter.shape_of_value)
        if layout.repeated:
            raise Refused(
                "Result {position} repeats elements that are one in memory, as expand does: return a copy "
                "of it.",
                position=position + 1,
            )
        if layout.is_plain:
            return made
        order = full_order(layout, len(self._converter.shape_of_value(made.value)))
        return Peeled(self._converter.permuted(made.value, order), (("permute", inverse(order)), *made.steps))

    def _sharing(self, memory: int) -> list[Any]:
        """The results in that memory."""
        return [
            node
            for node, own in zip(self._found.outputs, self._found.memory[0], strict=True)
            if own == memory
        ]

    def _view(self, node: Any, named: Callable[[dict[str, Any]], str | None]) -> str | None:
        """The Python text of a result as a view; ``named`` gives that of what it is a view of."""
        seen = viewed(node)
        base = named(self._converter.value_of(seen.base))
        steps = seen.steps(self._converter.sizes.text)
        return None if base is None else text_of(steps, base, self._converter.dim_text)

    def _known(self, value: dict[str, Any]) -> str | None:
        """The Python text of what the call is given, or writes into what it is given."""
        given = self._converter.expression(value["ref"])
        if given is not None:
            return given
        changed = (index for index, new in self._changed.items() if value == new)
        return next((self._call.leaves[index].expression for index in changed), None)

    def _own(self, value: dict[str, Any], memory: int) -> str:
        """The Python text of a tensor with memory of its own: a result of the call, or a copy."""
        if known := self._known(value):
            return f"{known}.clone()"
        if value not in self.wanted:
            self.wanted.append(value)
            self._memory.append(memory)
        index = self.wanted.index(value)
        return f"result_{index}" if self._memory[index] == memory else f"result_{index}.clone()"

    def replacement(self, source: Source) -> tuple[str, str]:
        """The template of what takes the place of the function's statements, and those statements. Raises
        Refused where there is no room for both."""
        body = statements_of(self._call.entry.function.node)
        indent, step = source.indent(body[0])
        text = f"\n{indent}{step}".join(self._lines())
        if not source.has_own_lines(body[0], body[-1]):
            raise Refused("Its body begins on the line of other code: put it on lines of its own.")
        return f"if {{holds}}:\n{indent}{step}{text}\n{indent}{{original}}", source.between(body[0], body[-1])

    def _lines(self) -> list[str]:
        names = [f"result_{number}" for number in range(len(self.wanted))]
        plain = "result_0" if len(names) == 1 else f"({', '.join(names)})"
        rendered = _rendered(self._result, self._call.entry.names)
        changes = [change for change in self._call.changes if isinstance(change.value, torch.Tensor)]
        if rendered == plain and not changes and not self.copied:
            return ["return {call}"]
        lines = [f"{', '.join(names)} = {{call}}" if names else "{call}"]
        leaves = self._call.leaves
        lines += [
            f"{leaves[index].expression}.copy_({leaves[source].expression})"
            for index, source in self.copied.items()
        ]
        lines += [f"{change.expression} = {text}" for change, text in zip(changes, self._set, strict=True)]
        return [*lines, f"return {escaped(rendered)}"]


def _refuse_settings(call: EntryCall) -> None:
    if call.given_back:
        raise Refused("The result holds {name} itself: return a copy of it.", name=call.given_back)
    for change in call.changes:
        if not isinstance(change.value, torch.Tensor):
            raise Refused(
                "The call rebinds {expression}, which a kernel cannot do.", expression=change.expression
            )


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
        text = _sequence(kind, [_rendered(element, names) for element in value], names)
        if text:
            return text
    if kind is dict:
        entries = (f"{key!r}: {_rendered(member, names)}" for key, member in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, Opened):
        name = value.kind.__name__
        if names.get(name) is not value.kind:
            raise Refused(
                "The result is a {name}, a name that the file does not have: import the class.", name=name
            )
        fields = (f"{key}={_rendered(member, names)}" for key, member in value.fields.items())
        return f"{name}({', '.join(fields)})"
    raise Refused(
        "The result is a {name}: return tensors, tuples, lists or dictionaries.", name=kind.__name__
    )


def _sequence(kind: type, items: list[str], names: Mapping[str, Any]) -> str:
    """Empty for classes that are not made of their items, or that the function has no name for."""
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
    return ""
