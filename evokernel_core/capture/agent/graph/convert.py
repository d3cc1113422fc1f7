"""A traced region as a Graph in domain.serial's JSON form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import torch

from ..decompositions import recurrent
from ..decompositions.composites import ATEN_NAMES
from ..errors import Unsupported
from ..regions.parts import SCALAR, TENSOR, Leaf
from ..tracing.eager_calls import told
from ..tracing.export import Traced
from ..tracing.fusibility import NO_OPS, UNFILLED
from ..tracing.sizes import InexpressibleSize, sizes_of, spec
from .buffers import Buffers
from .checks import FILLED, check_complex, check_numbers, check_operands
from .constant_folding import complex_number, contiguous, device_of, is_table, joined, node_of, numbers, table
from .mutations import changed, counts, updates
from .names import input_name, refs_in
from .unread import conditions

IGNORED = ("aten._assert", "aten.sym_constrain_range", "aten.sym_size", "aten.sym_numel")
_MOST_JOINED = 16
"""Elements of a constant tensor that a kernel writes one by one."""
_COPIES = ("aten.clone.default", "aten.contiguous.default")
_EAGER_COPIES = (*_COPIES, "aten._to_copy.default")
"""What copies elements where PyTorch runs it, and changes none."""
_WRITE = "aten.slice_scatter.default"
_VIEWS = ("aten.view.default", "aten._unsafe_view.default")


class Converter:
    """Turns the nodes of one traced region into the domain's nodes, dropping those that change nothing."""

    joins = False
    """Whether small constant tensors may be joined from numbers, which takes a kernel of its own."""

    def __init__(self, traced: Traced, leaves: tuple[Leaf, ...], path: str) -> None:
        self.sizes = sizes_of(traced, leaves)
        self._traced = traced
        self._path = path
        self._leaves = leaves
        self.all_sizes = {name: self.sizes.hints[key] for key, name in self.sizes.names.items()}
        self.input_specs: list[dict[str, Any]] = []
        self._buffers = Buffers(traced.inputs, leaves)
        self._values: dict[str, Any] = {}
        self._moved = False
        self._dropped: list[tuple[dict[str, Any], Leaf]] = []
        self._taken: list[dict[str, Any]] = []
        self._least = {name: self.sizes.minimums[key] for key, name in self.sizes.names.items()}
        self._nodes: list[dict[str, Any]] = []
        self._copied: list[Any] = []

    def convert(self) -> dict[str, Any]:
        """``{"inputs", "nodes", "outputs", "updates", "copies"}``. Raises Unsupported."""
        inputs = self._inputs()
        self._constants(inputs)
        outputs: list[Any] = []
        for node in self._traced.graph.nodes:
            if node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                outputs = [self._argument(argument) for argument in node.args[0]]
        changed = self._buffers.updates(inputs, len(outputs))
        outputs += [self._values[name] for name in self._buffers.written]
        self._drop_dead(outputs)
        return self._made(self._needed(inputs, outputs), outputs, changed)

    def _made(
        self, inputs: list[dict[str, Any]], outputs: list[Any], changed: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """A graph of the nodes that are left."""
        known = {part["name"] for part in (*inputs, *self._nodes)}
        copies = [copied for copied in self._copied if copied["ref"] in known]
        made = {"inputs": inputs, "nodes": self._nodes, "outputs": outputs, "updates": changed}
        return {**made, "copies": copies}

    def asked_of_unread(self, read: Iterable[torch.Tensor]) -> list[str]:
        """Conditions on tensors that the graph does not take; of parameters, on those among ``read``."""
        known = {id(tensor) for tensor in read}
        wanted = [entry for entry, leaf in self._dropped if leaf.kind == TENSOR or id(leaf.known_as) in known]
        return list(conditions(wanted, self._taken, self._least))

    def bound_specs(self) -> list[dict[str, Any]]:
        """The specs of the function's own inputs, with numbers for sizes that the graph does not take."""
        known = set(self.sizes.names.values())
        hints = {name: size for name, size in self.all_sizes.items() if name not in known}
        return [
            {**input_spec, "shape": [_bound(dim, hints) for dim in input_spec["shape"]]}
            for input_spec in self.input_specs
        ]

    def check_whole_numbers(self) -> None:
        """Raises NotOfFloats for an int that was traced as a float and meets no floats: with them the result
        is that of the float, of the tensor's dtype."""
        for node, leaf in zip(self._traced.inputs, self._leaves, strict=True):
            if is_whole(leaf) and not all(_meets_floats(node, user) for user in node.users):
                raise NotOfFloats(leaf.expression)

    def _needed(self, inputs: list[dict[str, Any]], outputs: list[Any]) -> list[dict[str, Any]]:
        """The inputs that are read, and those that alone tell a size which is used."""
        used = _names_read(self._nodes) | {output["ref"] for output in outputs if isinstance(output, dict)}
        read = [operand for operand in inputs if operand["name"] in used]
        missing = (_sizes_named(self._nodes) | _sizes_named(read)) - _sizes_told(read)
        for operand in inputs:
            if operand not in read and missing & _sizes_told([operand]):
                read.append(operand)
                missing -= _sizes_told([operand])
        kept = [operand for operand in inputs if operand in read]
        pairs = list(zip(inputs, self._leaves, strict=False))  # tables follow
        tensors = [(entry, leaf) for entry, leaf in pairs if leaf.kind != SCALAR]
        self._taken = [entry for entry, _ in tensors if entry in kept]
        self._dropped = [(entry, leaf) for entry, leaf in tensors if entry not in kept]
        if self._nodes:
            check_operands(self._taken)
        known = _sizes_told(kept)
        self.sizes.names = {key: name for key, name in self.sizes.names.items() if name in known}
        return kept

    def _inputs(self) -> list[dict[str, Any]]:
        inputs: list[dict[str, Any]] = []
        taken = {node.name for node in self._traced.graph.nodes if node.op == "call_function"}
        for node, leaf in zip(self._traced.inputs, self._leaves, strict=True):
            name = input_name(leaf.expression, taken)
            taken.add(name)
            self._values[node.name] = {"ref": name, "index": 0}
            value_spec = spec(node.meta["val"], self.sizes)
            value_spec["contiguous"] = leaf.kind == SCALAR or leaf.value.is_contiguous()
            self.input_specs.append(value_spec)
            inputs.append(
                {"name": name, "spec": value_spec, "kind": leaf.kind, "expression": leaf.expression}
            )
        return inputs

    def _constants(self, inputs: list[dict[str, Any]]) -> None:
        """Captured tensors: one element becomes a number, few are joined where the region may have several
        kernels, and larger tables join the inputs."""
        constants = self._traced.constants
        for name, value in (constants | numbers(self._traced.graph, constants)).items():
            if self._is_joined(value):
                self._nodes += joined(name, value)
                self._values[name] = {"ref": self._nodes[-1]["name"], "index": 0}
            elif is_table(value) and value.numel() > 1 and (device := device_of(inputs)):
                self._pass_table(name, value, device, inputs)
            else:
                number = _constant(value, name)
                self._values[name] = self._complex(number) if isinstance(number, complex) else number

    def _is_joined(self, value: Any) -> bool:
        few = isinstance(value, torch.Tensor) and 1 < value.numel() <= _MOST_JOINED
        return self.joins and few and not value.is_complex()

    def _pass_table(self, name: str, value: torch.Tensor, device: str, inputs: list[dict[str, Any]]) -> None:
        """An input that the call itself makes; of complex numbers, their parts."""
        taken = {operand["name"] for operand in inputs} | {node.name for node in self._traced.graph.nodes}
        label = input_name("table", taken)
        given = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
        made = {**spec(given, self.sizes), "contiguous": True}
        text = table(given, device)
        inputs.append({"name": label, "spec": made, "kind": TENSOR, "expression": text})
        self._values[name] = {"ref": label, "index": 0}
        if value.is_complex():
            outputs = [{**spec(value, self.sizes), "contiguous": True}]
            whole = f"{label}_complex"
            args = [self._values[name]]
            self._nodes.append(node_of(whole, "aten.view_as_complex.default", args, outputs))
            self._values[name] = {"ref": whole, "index": 0}

    def _call(self, node: Any) -> None:
        name = str(node.target)
        if name.startswith(IGNORED) or node.name in self._values:
            return
        if updates(node):
            buffer = changed(node).name
            self._buffers.write(buffer)
            self._values[buffer] = self._values[node.name] = self._argument(node.args[1])
            return
        if counts(node):
            if not all(counts(user) for user in node.users):
                raise Unsupported("The region reads a counter that it changes: read it before or after.")
            self._buffers.count(changed(node).name, node.args[1])
            return
        if "getitem" in name and not name.startswith("aten."):
            source = self._argument(node.args[0])
            self._values[node.name] = {"ref": source["ref"], "index": node.args[1]}
            return
        if isinstance(node.meta.get("val"), (torch.SymInt, torch.SymBool, int)):
            return
        if isinstance(node.meta.get("val"), torch.SymFloat):
            raise InexpressibleSize("A number computed from sizes is used as data.")
        if name in NO_OPS or self._keeps_value(node, name):
            self._moved = self._moved or name in _COPIES
            self._values[node.name] = self._argument(node.args[name == _WRITE])
            if _copies_in_eager(node, name) and _is_value(self._values[node.name]):
                self._copied.append(self._values[node.name])
            return
        # where copies vanished, elements may lie in an order that only reshape takes
        self._emit(node, "aten.reshape.default" if self._moved and name in _VIEWS else name)
        # a recurrent layer that has the batch first gives a view of its steps where PyTorch runs it
        self._moved = self._moved or name in recurrent.ATEN_NAMES

    def _keeps_value(self, node: Any, name: str) -> bool:
        """A cast to the same dtype, a view to the same shape, a slice of everything, or a write into one."""
        same = (
            *_VIEWS,
            "aten._to_copy.default",
            "aten.expand.default",
            "aten.reshape.default",
            "aten.slice.Tensor",
        )
        if name == _WRITE:
            return self._is_replaced(node)
        if name not in same:
            return False
        before, after = node.args[0].meta["val"], node.meta["val"]
        return before.dtype == after.dtype and list(map(self.sizes.text, before.shape)) == list(
            map(self.sizes.text, after.shape)
        )

    def _is_replaced(self, node: Any) -> bool:
        """Whether a write into a slice is one of everything."""
        target, source = (argument.meta["val"] for argument in node.args[:2])
        shapes = [list(map(self.sizes.text, choice.shape)) for choice in (target, source)]
        return target.dtype == source.dtype and shapes[0] == shapes[1]

    def _emit(self, node: Any, name: str) -> None:
        name = ATEN_NAMES.get(name, name)
        check_numbers(node, name)
        check_complex(node)
        if name == "aten.roll.default":
            self._check_roll(*node.args)
        if name == "aten.index.Tensor":
            self._check_indices(*node.args)
        value = node.meta["val"]
        if torch.get_default_dtype() is not torch.float32 and _becomes_of_default_dtype(node):
            raise Unsupported(
                "torch.set_default_dtype says of which type a float is that is made here: give it a dtype."
            )
        results = list(value) if isinstance(value, (tuple, list)) else [value]
        kwargs = {
            key: self._argument(value)
            for key, value in sorted(node.kwargs.items())
            if key not in ("device", "layout", "pin_memory", "memory_format", "non_blocking")
        }
        if _makes_of_default_dtype(node):
            kwargs["dtype"] = self._argument(value.dtype)
        name, args = with_number(name, [self._argument(argument) for argument in node.args])
        args = self._with_tensors(node, args) if name == str(node.target) else args
        if name == "aten.expand.default" and not _is_value(args[0]):  # of a number, not of a tensor
            name, args = "aten.full.default", [[self._argument(size) for size in value.shape], args[0]]
            kwargs = {"dtype": self._argument(value.dtype)}
        if name in FILLED and _is_value(args[-1]):  # with a complex number, of which no kernel fills
            name, args = "aten.expand.default", [args[-1], [self._argument(size) for size in value.shape]]
            kwargs = {}
        if name in UNFILLED:
            name, args = "aten.full.default", [[self._argument(size) for size in value.shape], 0]
            kwargs = {"dtype": self._argument(value.dtype)}
        self._values[node.name] = {"ref": node.name, "index": 0}
        outputs = [spec(result, self.sizes) for result in results if isinstance(result, torch.Tensor)]
        self._add(node, node.name, name, args, outputs, **kwargs)

    def _add(
        self, node: Any, label: str, op: str, args: list[Any], outputs: list[dict[str, Any]], **kwargs: Any
    ) -> None:
        line = line_in(node.meta.get("stack_trace") or "", self._path)
        self._nodes.append({**node_of(label, op, args, outputs, line, **kwargs), "call": told(node)})

    def _with_tensors(self, node: Any, args: list[Any]) -> list[Any]:
        """The arguments with a tensor of one element for each known number that must be one."""
        schema = node.target._schema
        if torch._C._should_allow_numbers_as_tensors(schema.name.removeprefix("aten::")):
            return args
        arguments = list(args)
        for position, (wanted, member) in enumerate(zip(schema.arguments, args, strict=False)):
            if "Tensor" not in str(wanted.type) or member is None:
                continue
            given, label = node.args[position], f"{node.name}_{wanted.name}"
            if isinstance(member, list):  # of tensors, such as the indices of x[:, [-1]]
                each = enumerate(zip(member, given, strict=True))
                arguments[position] = [
                    self._tensor_of(one, value, node, f"{label}_{n}") for n, (one, value) in each
                ]
            else:
                arguments[position] = self._tensor_of(member, given, node, label)
        return arguments

    def _tensor_of(self, member: Any, given: Any, node: Any, label: str) -> Any:
        """A tensor in place of a known number; anything else as it is."""
        if member is None or _is_value(member) or not isinstance(given, torch.fx.Node):
            return member
        value = given.meta["val"]
        dtype = str(value.dtype).removeprefix("torch.")
        shape = [int(size) for size in value.shape]
        made = [contiguous(shape, dtype)]
        self._add(node, label, "aten.full.default", [shape, member], made, dtype={"dtype": dtype})
        return {"ref": label, "index": 0}

    def _check_roll(self, x: Any, shifts: Any, dims: Any = ()) -> None:
        """A roll is two slices joined, which takes dimensions as long as their shift."""
        shape = x.meta["val"].shape
        if not dims:  # of all elements as one dimension
            shape, dims = [math.prod(shape)], [0]
        for shift, dim in zip(shifts, dims, strict=True):
            self.sizes.need(shape[dim], abs(self._argument(shift)))

    def _check_indices(self, x: Any, indices: Any) -> None:
        """A place that is a number takes dimensions that have it."""
        for size, index in zip(x.meta["val"].shape, indices):  # noqa: B905 - the last ones have none
            number = None if index is None else self._argument(index)
            if isinstance(number, int) and number not in (0, -1):
                self.sizes.need(size, max(number + 1, -number))

    def _argument(self, value: Any) -> Any:  # noqa: PLR0911 - one return a kind of argument
        if isinstance(value, torch.fx.Node):
            if value.name in self._values:
                return self._values[value.name]
            return self._argument(value.meta["val"])
        if isinstance(value, torch.SymInt):
            text = self.sizes.text(value)
            return text if isinstance(text, int) else {"sym": text}
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            symbols = value.node.expr.free_symbols
            raise InexpressibleSize("A number computed from sizes is used as data.", symbols)
        if isinstance(value, (list, tuple)):
            return [self._argument(element) for element in value]
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, complex):
            return self._complex(value)
        if isinstance(value, float) and value - value != 0:
            return {"float": str(value)}
        if isinstance(value, (bool, int, float, str, type(None))):
            return value
        return str(value)

    def _complex(self, value: complex) -> Any:
        """A complex number as a tensor of no dimensions."""
        self._nodes += complex_number(f"complex_{len(self._nodes)}", value)
        return {"ref": self._nodes[-1]["name"], "index": 0}

    def _drop_dead(self, outputs: list[Any]) -> None:
        wanted = {output["ref"] for output in outputs if isinstance(output, dict) and "ref" in output}
        kept = []
        for node in reversed(self._nodes):
            if node["name"] in wanted:
                wanted |= _names_read([node])
                kept.append(node)
        self._nodes = kept[::-1]


def _copies_in_eager(node: Any, name: str) -> bool:
    """Whether PyTorch copies elements here: what a decomposition copies is part of the operation that it
    stands for, what is written into next is copied whole by the node of that write, and a dropout that drops
    nothing copies in traces alone."""
    call = told(node)
    original = call["op"] if call else str(node.target)
    is_written = any("_scatter" in str(user.target) for user in node.users)
    is_dropout = "dropout" in str(node.meta.get("torch_fn", ""))
    return name in _EAGER_COPIES and original in _EAGER_COPIES and not (is_written or is_dropout)


def _makes_of_default_dtype(node: Any) -> bool:
    """Whether a node makes a tensor of nothing without saying of which dtype: the default one may change."""
    asked = any(argument.name == "dtype" for argument in node.target._schema.arguments)
    values = (all_input_node.meta["val"] for all_input_node in node.all_input_nodes)
    return asked and node.kwargs.get("dtype") is None and not any(isinstance(v, torch.Tensor) for v in values)


def _becomes_of_default_dtype(node: Any) -> bool:
    """Whether a node may make floats of what are none: a Python number, which is traced as a tensor of no
    dimensions, has the default dtype then."""
    value = node.meta["val"]
    given = [all_input_node.meta["val"] for all_input_node in node.all_input_nodes]
    tensors = [element for element in given if isinstance(element, torch.Tensor)]
    floats = any(
        tensor.dtype.is_floating_point or tensor.dtype.is_complex for tensor in tensors if tensor.dim()
    )
    makes = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
    return makes and bool(tensors) and not floats and node.kwargs.get("dtype") is None


class NotOfFloats(Exception):
    """A whole number meets tensors that are no floats."""


def is_whole(leaf: Leaf) -> bool:
    """Whether an operand is a Python int, which is traced as a float."""
    return leaf.kind == SCALAR and isinstance(leaf.value, int)


def _meets_floats(number: Any, user: Any) -> bool:
    """Whether a node computes with the number as a float: with a float number, it would give the same."""
    others = [
        all_input_node.meta["val"] for all_input_node in user.all_input_nodes if all_input_node is not number
    ]
    return any(
        isinstance(other, torch.Tensor)
        and other.dtype.is_floating_point
        and (other.dim() > 0 or other.dtype is torch.float32)
        for other in others
    )


def _is_value(value: Any) -> bool:
    """Whether an argument is a node's result or an input; numbers that are not finite are dicts as well."""
    return isinstance(value, dict) and "ref" in value


def _sizes_told(inputs: list[dict[str, Any]]) -> set[str]:
    """Every symbol that is by itself a dimension of one of the inputs."""
    dims = (dim for operand in inputs for dim in operand["spec"]["shape"])
    return {dim for dim in dims if isinstance(dim, str) and dim.isidentifier()}


_OF_NUMBERS = {
    "aten.minimum.default": "aten.clamp_max.default",
    "aten.maximum.default": "aten.clamp_min.default",
}


def with_number(name: str, args: list[Any]) -> tuple[str, list[Any]]:
    """An operation of two tensors of which one is a known number, as PyTorch says it with a number."""
    if name == "aten.clamp.Tensor" and not any(isinstance(argument, dict) for argument in args[1:]):
        return "aten.clamp.default", args
    numbers = [argument for argument in args[:2] if isinstance(argument, (int, float))]
    if name not in _OF_NUMBERS or len(numbers) != 1:
        return name, args
    return _OF_NUMBERS[name], [argument for argument in args[:2] if isinstance(argument, dict)] + numbers


def _sizes_named(items: list[dict[str, Any]]) -> set[str]:
    """Every symbol in the items' shapes and size arguments."""
    result: set[str] = set()

    def visit(value: Any, key: str) -> None:
        if isinstance(value, dict):
            for name, member in value.items():
                visit(member, name)
        elif isinstance(value, list):
            for member in value:
                visit(member, key)
        elif isinstance(value, str) and key in ("shape", "sym"):
            result.update(re.findall(r"s\d+", value))

    visit(items, "")
    return result


def _names_read(nodes: list[dict[str, Any]]) -> set[str]:
    return {name for node in nodes for name in refs_in([node["args"], node["kwargs"]])}


def _bound(dim: int | str, hints: dict[str, int]) -> int | str:
    if isinstance(dim, int):
        return dim
    if dim in hints:
        return hints[dim]
    return re.sub(r"\bs\d+\b", lambda values: str(hints.get(values[0], values[0])), dim)


def _constant(value: Any, name: str) -> Any:
    if not isinstance(value, torch.Tensor):
        raise Unsupported("The constant {name} is not a tensor.", name=name)
    if value.numel() != 1:
        shape = list(value.shape)
        raise Unsupported(
            "A constant tensor of shape {shape} is built in the region: make it a buffer, in __init__.",
            shape=shape,
        )
    try:
        return value.item()
    except RuntimeError as error:
        raise Unsupported(
            "The constant {name} has no known value: pass it as an argument.", name=name
        ) from error


def line_in(stack_trace: str, path: str) -> int:
    """The innermost frame in the user's file."""
    lines = re.findall(rf'File "{re.escape(path)}", line (\d+)', stack_trace)
    return int(lines[-1]) if lines else 0
