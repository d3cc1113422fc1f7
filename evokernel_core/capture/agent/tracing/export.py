"""Export a planned region: its own function, torch.export with symbolic sizes, core ATen."""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta
from torch.utils._sympy.numbers import int_oo

from ..errors import Unsupported
from ..graph.complex_tensors import restored
from ..loading.source import number_of
from ..regions.parts import SCALAR, Leaf, ModuleCall, RegionPlan
from ..torch_compat import assumptions, captured_sizes, export_program, plain_operations
from .eager_calls import noted
from .size_guards import Settled, settle

_MAX_ROUNDS = 8
_RESTORE = "__view_as_complex__"
Dimension = tuple[int, int]
"""The number of an input, and of a dimension of it."""


@dataclass(frozen=True)
class RegionFunction:
    """The region as a Python function of its inputs; ``inputs[i]`` is the first leaf of input i."""

    call: Callable[..., Any]
    inputs: tuple[Leaf, ...]


class _Wrapper(torch.nn.Module):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self._call = call

    def forward(self, *inputs: Any) -> Any:
        return self._call(*inputs)


def region_function(
    plan: RegionPlan, module: types.ModuleType, receiver: Any, path: str, expressions: Mapping[Any, str]
) -> RegionFunction:
    """Compile the region with its leaves as arguments, which a call reaches by ``expressions``; line numbers
    are the file's."""
    inputs, names = _inputs(plan)
    scope = {**module.__dict__, _RESTORE: _complex_of}
    imports = ast.Module([copy.deepcopy(import_) for import_ in plan.function.imports], [])
    exec(compile(imports, path, "exec", dont_inherit=True), scope)
    replaced: dict[int, ast.expr] = {}
    for leaf in plan.parts.leaves:
        if not leaf.member:
            replaced[number_of(leaf.node)] = _given(names[leaf.key], leaf)
    for index, call in enumerate(plan.parts.modules):
        scope[f"__module_{index}__"] = _module_caller(call)
        replaced[number_of(call.node)] = _bound_module(index, call, names)
    if plan.function.receiver:
        scope[plan.function.receiver] = receiver
    tree = _definition(plan, replaced, [names[leaf.key] for leaf in inputs])
    exec(compile(tree, path, "exec", dont_inherit=True), scope)
    holder = scope[_class_name(plan)]
    given = tuple(replace(leaf, expression=expressions[leaf.key]) for leaf in inputs)
    return RegionFunction(holder.__dict__["forward"], given)


def _given(name: str, leaf: Leaf) -> ast.expr:
    """What the region reads for a leaf: its argument, which holds the parts of complex numbers."""
    argument = ast.Name(name, ast.Load())
    if leaf.original is None:
        return argument
    return ast.Call(ast.Name(_RESTORE, ast.Load()), [argument], [])


def _complex_of(parts: torch.Tensor) -> torch.Tensor:
    """A function of ours: one of torch's would be among those that the user's code looks up."""
    return torch.view_as_complex(parts)


def _inputs(plan: RegionPlan) -> tuple[tuple[Leaf, ...], dict[Any, str]]:
    names: dict[Any, str] = {}
    first = []
    for leaf in plan.parts.leaves:
        if leaf.key not in names:
            names[leaf.key] = f"__input_{len(names)}__"
            first.append(leaf)
    return tuple(first), names


def _module_caller(call: ModuleCall) -> Callable[..., Any]:
    members = [leaf.member for leaf in call.leaves]

    def run(*values: Any) -> Callable[..., Any]:
        state = dict(zip(members, map(restored, call.leaves, values), strict=True))
        return lambda *args, **kwargs: torch.func.functional_call(call.module, state, args, kwargs)

    return run


def _bound_module(index: int, call: ModuleCall, names: dict[Any, str]) -> ast.expr:
    arguments: list[ast.expr] = [ast.Name(names[leaf.key], ast.Load()) for leaf in call.leaves]
    return ast.Call(ast.Name(f"__module_{index}__", ast.Load()), arguments, [])


class _Replace(ast.NodeTransformer):
    def __init__(self, replaced: dict[int, ast.expr]) -> None:
        self._replaced = replaced

    def visit(self, node: ast.AST) -> ast.AST:
        new = self._replaced.get(number_of(node))
        if new is not None:
            return ast.copy_location(copy.deepcopy(new), node)
        return self.generic_visit(node)


def _class_name(plan: RegionPlan) -> str:
    """Inside a class of the same name, ``self.__private`` means what it means in the file. The
    leading underscores of a class name do not count for that."""
    return "_" + plan.function.class_name


def _definition(plan: RegionPlan, replaced: dict[int, ast.expr], arguments: list[str]) -> ast.Module:
    body = [_Replace(replaced).visit(copy.deepcopy(node)) for node in plan.body]
    last: Any = body[-1]
    if isinstance(last, ast.expr):
        body[-1] = ast.copy_location(ast.Return(last), last)
    elif not isinstance(last, ast.Return):
        body.append(ast.copy_location(ast.Return(plan.names), last))
    # torch keeps only frames of functions called forward in its stack traces, hence the name
    shell = ast.parse(f"class {_class_name(plan)}:\n    def forward(): pass")
    function: Any = shell.body[0].body[0]  # type: ignore[attr-defined]
    function.args.args = [ast.arg(name) for name in arguments]
    function.body = body
    return ast.fix_missing_locations(shell)


def example(leaf: Leaf) -> torch.Tensor:
    """A tensor of the recorded shape, contiguous as kernels get it; a Python number becomes a 0-d
    float32 tensor."""
    if leaf.kind == SCALAR:
        return torch.empty((), dtype=torch.float32)
    return torch.empty(leaf.value.shape, dtype=leaf.value.dtype)


def export(function: RegionFunction, table: dict[Any, Any], fixed: Iterable[Dimension] = ()) -> Traced:
    """Core ATen with as many symbolic sizes as hold for every value, and none of ``fixed``. Raises what torch
    raises.

    A size stays symbolic only if the traced graph is right for all its values from some minimum on:
    sizes that appear in any other guard are pinned, and the region exported again. ``table`` are the
    decompositions to apply.
    """
    inputs = examples(function)
    pinned = set(fixed)
    for _ in range(_MAX_ROUNDS):
        try:
            traced = _export_once(function, inputs, table, pinned)
        except Exception:
            break  # symbolic sizes are not for every op; with plain sizes the same error is final
        guarded = _guarded_dims(traced)
        if guarded <= pinned:
            return traced
        pinned |= guarded
    return _export_once(function, inputs, table, None)


def export_without(
    function: RegionFunction, table: dict[Any, Any], traced: Traced, symbols: frozenset[Any]
) -> Traced:
    """As the trace, and with the sizes of ``symbols`` as numbers too; without symbols, with all sizes as
    numbers. Raises what torch raises."""
    if not symbols:
        return export_static(function, table)
    fixed = (
        place
        for place, size in traced.dimensions()
        if not isinstance(size, torch.SymInt) or size.node.expr.free_symbols & symbols
    )
    return export(function, table, fixed)


def export_static(function: RegionFunction, table: dict[Any, Any]) -> Traced:
    """Core ATen with every size as captured. Raises what torch raises."""
    return _export_once(function, examples(function), table, None)


def examples(function: RegionFunction) -> tuple[torch.Tensor, ...]:
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        return tuple(example(leaf) for leaf in function.inputs)


def _export_once(
    function: RegionFunction,
    inputs: tuple[torch.Tensor, ...],
    table: dict[Any, Any],
    pinned: set[tuple[int, int]] | None,
) -> Traced:
    """``pinned`` are (input, dimension) pairs with fixed sizes; None pins all."""
    shapes = tuple(
        {
            dim: Dim.AUTO
            for dim, size in enumerate(tensor.shape)
            if size >= 2 and pinned is not None and (index, dim) not in pinned
        }
        for index, tensor in enumerate(inputs)
    )
    with torch.no_grad(), plain_operations():
        program = export_program(_Wrapper(function.call), inputs, shapes)
        return _decomposed(program, table)


@dataclass(frozen=True)
class Traced:
    """Core ATen. ``inputs`` are the graph's nodes of the region's inputs in order; ``constants`` are
    captured tensors by the name of their node, ``least`` sizes from which on the graph is right by
    their symbol."""

    graph: torch.fx.Graph
    inputs: tuple[torch.fx.Node, ...]
    constants: dict[str, Any]
    least: dict[Any, int] = field(default_factory=dict)

    def dimensions(self) -> Iterator[tuple[Dimension, Any]]:
        """The dimensions of the inputs, each with its size."""
        for index, node in enumerate(self.inputs):
            yield from (((index, dim), size) for dim, size in enumerate(node.meta["val"].shape))

    @property
    def environment(self) -> Any:
        """The shape environment, None where every size is a number."""
        symbols = (size for _, size in self.dimensions() if isinstance(size, torch.SymInt))
        return next((size.node.shape_env for size in symbols), None)


def _decomposed(program: ExportedProgram, table: dict[Any, Any]) -> Traced:
    """What program.run_decompositions(table) computes, traced directly: that method first registers
    every composite op anew, which takes a second for each region."""
    module = program.graph_module
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    values = [node.meta["val"] for node in given]
    modes = [value.fake_mode for value in values if isinstance(value, FakeTensor)]
    mode = modes[0] if modes else nullcontext()
    with mode, preserve_node_meta(), noted(), torch.no_grad(), enable_python_dispatcher():
        run = torch.fx.Interpreter(module).run
        graph = make_fx(run, decomposition_table=table)(*values).graph
    traced = [node for node in graph.nodes if node.op == "placeholder"]
    state = {**program.state_dict, **program.constants}
    inputs, constants = [], {}
    for node, spec in zip(traced, program.graph_signature.input_specs, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(node)
        else:
            constants[node.name] = state.get(spec.target)
    return Traced(graph, tuple(inputs), constants)


def _guarded_dims(traced: Traced) -> set[tuple[int, int]]:
    """Dimensions whose symbols appear in a guard that no least values settle, those whose size is an
    expression, as ``2*s0``, and those of convolution kernels: a layer's channels do not change."""
    environment = traced.environment
    if environment is None:
        return set()
    kernels = _kernels(traced)
    if kernels:  # guards on their sizes and those of images go with them
        return kernels
    settled = settled_guards(environment)
    traced.least.update(settled.least)
    symbols = worst(list(settled.open))
    for symbol, bounds in environment.var_to_range.items():
        if bounds.upper.is_integer and bounds.upper < 2**40:
            symbols.add(symbol)
    result = set()
    for place, size in traced.dimensions():
        if isinstance(size, torch.SymInt):
            expression = size.node.expr
            is_plain = expression.is_Symbol or expression.is_number
            if expression.free_symbols & symbols or not is_plain:
                result.add(place)
    return result


def settled_guards(environment: Any) -> Settled:
    """The least sizes from which on what was assumed while tracing holds, and what they do not settle.
    Raises Unsupported where a number was read from a tensor, which has no size's bounds."""
    if any(bounds.lower in (-sympy.oo, -int_oo) for bounds in environment.var_to_range.values()):
        raise Unsupported("A number is read from a tensor, whose values are not known before it runs.")
    guards = [environment.simplify(expression) for expression in assumptions(environment)]
    ranges = environment.var_to_range.items()
    least = {symbol: int(bounds.lower) for symbol, bounds in ranges if bounds.lower.is_finite}
    return settle(guards, least, captured_sizes(environment))


def _kernels(traced: Traced) -> set[tuple[int, int]]:
    """The symbolic dimensions of inputs that are sizes of a convolution's layer."""
    symbols = channels(traced)
    sizes = ((place, size) for place, size in traced.dimensions() if isinstance(size, torch.SymInt))
    return {place for place, size in sizes if size.node.expr.free_symbols & symbols}


def channels(traced: Traced) -> set[Any]:
    """The symbols in sizes of weights and biases of convolutions, and in the channels that they read: those
    of a layer do not change, and not every version of torch compares them."""
    layers = [n for n in traced.graph.nodes if n.target is torch.ops.aten.convolution.default]
    sizes: list[Any] = []
    for node in layers:
        image, weight, *others = (argument.meta["val"] for argument in node.args[:3] if argument is not None)
        sizes += [*weight.shape, *(size for bias in others for size in bias.shape)]
        sizes.append(image.shape[1 - weight.dim()])
    result = [size.node.expr.free_symbols for size in sizes if isinstance(size, torch.SymInt)]
    return set().union(*result)


def worst(guards: list[Any]) -> set[Any]:
    """The symbols to make numbers of first: those of guards that divide, and of these the ones that name
    the fewest sizes. With them as numbers, guards on other sizes often hold for all values."""
    dividing = [guard for guard in guards if guard.atoms(sympy.Function)]
    chosen = dividing or guards
    fewest = min((len(guard.free_symbols) for guard in chosen), default=0)
    return {symbol for guard in chosen if len(guard.free_symbols) == fewest for symbol in guard.free_symbols}
