"""Trace a whole function once: symbolic sizes, no writes into tensors, core ATen.

A size stays symbolic only if the traced graph is right for all its values from some least one on; a
size that appears in any other condition is pinned to its value, and the function traced again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import CeilToInt, FloorToInt, RoundToInt, TruncToInt

from ..graph.unread import PARAMETER_CLASS, REQUIRES_GRAD
from ..loading.devices import patched
from ..regions.parts import PARAMETER, SCALAR, Leaf
from ..torch_compat import output_node, plain_operations
from .eager_calls import noted
from .export import Traced, channels, settled_guards, worst

_ROUNDED = (CeilToInt, FloorToInt, RoundToInt, TruncToInt)
_METHODS: dict[str, Callable[..., int]] = {
    "__ceil__": math.ceil,
    "__floor__": math.floor,
    "__trunc__": math.trunc,
    "__round__": round,
}


@contextmanager
def rounded_once() -> Iterator[None]:
    """To be entered where sizes are symbols. A number that a size becomes is a condition of the trace."""
    with ExitStack() as patches:
        for name, method in _METHODS.items():
            known = getattr(torch.SymFloat, name)
            patches.enter_context(patched(torch.SymFloat, name, _rounding(known, method)))
        yield


def _rounding(known: Callable[..., Any], method: Callable[..., int]) -> Callable[..., Any]:
    def call(number: Any, *digits: Any) -> Any:
        if number.node.expr.has(*_ROUNDED):
            return method(float(number), *digits)
        return known(number, *digits)

    return call


Key = tuple[Any, ...]
"""What a symbolic size belongs to: ``(input, dimension)``, or ``(size,)`` of parameters."""


@dataclass(frozen=True)
class Input:
    """One input of a traced function. Where parameters are many, those of equal size share a symbol, as
    the sizes of a model's layers are chosen together; those of convolutions are numbers. ``fixed``: only
    the first size of what is no parameter is not a number. ``of_complex``: the last one is of the two parts
    of complex numbers."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    parameter: bool
    shares: bool = False
    fixed: bool = False
    of_complex: bool = False
    requires_grad: bool = False
    is_param: bool = False

    def key(self, index: int, dim: int) -> Key | None:
        """None where the size is always a number."""
        size = self.shape[dim]
        if size < 2 or (self.parameter and len(self.shape) > 2):
            return None
        if self.of_complex and dim == len(self.shape) - 1:
            return None
        if self.fixed and (dim > 0 or self.parameter):
            return None
        return (size,) if self.shares else (index, dim)


_FEW_PARAMETERS = 8


def inputs_of(
    leaves: tuple[Leaf, ...], fixed: bool = False, named: Collection[str] = ()
) -> tuple[Input, ...]:
    """A Python number is traced as a tensor of no dimensions. ``named``: what the code asks of tensors."""
    shares = sum(leaf.kind == PARAMETER for leaf in leaves) > _FEW_PARAMETERS
    return tuple(_input(leaf, shares, fixed, named) for leaf in leaves)


def _input(leaf: Leaf, shares: bool, fixed: bool, named: Collection[str]) -> Input:
    if leaf.kind == SCALAR:
        return Input((), torch.float32, False)
    parameter = leaf.kind == PARAMETER
    of_complex = leaf.original is not None
    return Input(
        tuple(leaf.value.shape),
        leaf.value.dtype,
        parameter,
        parameter and shares,
        fixed,
        of_complex,
        REQUIRES_GRAD in named and leaf.known_as.requires_grad,
        PARAMETER_CLASS in named and isinstance(leaf.known_as, torch.nn.Parameter),
    )


@dataclass(frozen=True)
class WholeTrace:
    """A traced function. ``outputs`` are the nodes of its results, or constants, in the flat order of
    ``spec``; ``written`` are the indices of inputs that it writes into, with their new values, which
    follow the results in the graph's output. ``memory`` tells the memory of each result, and of each
    input, that the function itself gives or is given: nodes without writes may share others."""

    traced: Traced
    outputs: list[Any]
    spec: Any
    written: dict[int, torch.fx.Node]
    keys: dict[Any, Key]
    memory: tuple[list[int], list[int]]

    def symbols_to_pin(self) -> set[Key]:
        """The keys of sizes in guards that no least values settle; those that do are noted."""
        environment = self.traced.environment
        if environment is None:
            return set()
        settled = settled_guards(environment)
        self.traced.least.update(settled.least)
        symbols = worst(list(settled.open))
        for symbol, bounds in environment.var_to_range.items():
            if bounds.upper.is_integer and bounds.upper < 2**40 and symbol not in environment.replacements:
                symbols.add(symbol)
        return self.keys_of(symbols | channels(self.traced).intersection(self.keys))

    def keys_of(self, symbols: Iterable[Any]) -> set[Key]:
        return {self.keys[symbol] for symbol in symbols}


def trace(
    call: Callable[..., Any], inputs: tuple[Input, ...], table: dict[Any, Any], pinned: set[Key] | None
) -> WholeTrace:
    """``pinned`` are the keys of sizes to trace as numbers; None pins all. Raises what torch raises."""
    environment = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)
    mode.cache_enabled = False  # to note a result of symbolic sizes takes longer than to compute it again
    results: list[Any] = []
    convolutions, inference, rounding = plain_operations(), _no_inference(), rounded_once()
    with torch.no_grad(), mode, convolutions, inference, rounding, enable_python_dispatcher():
        symbols = _symbols(environment, inputs, pinned)
        given = [
            torch.empty(
                [symbols.get(operand.key(i, d), n) for d, n in enumerate(operand.shape)], dtype=operand.dtype
            )
            for i, operand in enumerate(inputs)
        ]
        with preserve_node_meta(), noted():
            module = make_fx(_functional(call, inputs, results), decomposition_table=table)(*given)
    _without_failed(module.graph)
    nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
    constants = {
        node.name: getattr(module, node.target) for node in module.graph.nodes if node.op == "get_attr"
    }
    (spec, numbers, memory), flat = results, list(output_node(module.graph).args[0])
    count = len(flat) - len(numbers)
    keys = {value.node.expr: key for key, value in symbols.items() if key is not None}
    written = dict(zip(numbers, flat[count:], strict=True))
    return WholeTrace(
        Traced(module.graph, tuple(nodes), constants), flat[:count], spec, written, keys, memory
    )


def _without_failed(graph: torch.fx.Graph) -> None:
    """Takes out operations that raised an error which the code then caught: they have no result."""
    for node in reversed(graph.nodes):
        if node.op == "call_function" and "val" not in node.meta and not node.users:
            graph.erase_node(node)


@contextmanager
def _no_inference() -> Iterator[None]:
    """Functions in inference mode run without it: its tensors cannot be traced, and nothing is recorded for
    gradients anyway."""
    mode = torch.inference_mode
    enter, leave = mode.__enter__, mode.__exit__
    try:
        mode.__enter__, mode.__exit__ = lambda self: None, lambda self, *exception: None
        yield
    finally:
        mode.__enter__, mode.__exit__ = enter, leave


def _symbols(
    environment: ShapeEnv, inputs: tuple[Input, ...], pinned: set[Key] | None
) -> dict[Key | None, Any]:
    """A symbolic size for each key that is not pinned."""
    result: dict[Key | None, Any] = {}
    for index, operand in enumerate(inputs):
        for dim, size in enumerate(operand.shape):
            key = operand.key(index, dim)
            if key is not None and key not in result and pinned is not None and key not in pinned:
                source = ConstantSource(f"size_{len(result)}")
                symbol = environment.create_symbol(size, source, DimDynamic.DYNAMIC)
                result[key] = environment.create_symintnode(symbol, hint=size, source=source)
    return result


def _functional(
    call: Callable[..., Any], inputs: tuple[Input, ...], results: list[Any]
) -> Callable[..., list[Any]]:
    """The call with writes into tensors turned into new values: its flat results, then the new values of
    inputs. The structure of the result, the numbers of those inputs and the memory of results and inputs go
    to ``results``."""

    def run(*given: torch.Tensor) -> list[Any]:
        # the C++ functionalisation would take composite operations apart before they can be overridden
        without = torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(torch._C.DispatchKey.Functionalize)
        )
        with without, FunctionalTensorMode():
            wrapped = [FunctionalTensor.to_functional(element) for element in given]
            for tensor, operand in zip(wrapped, inputs, strict=True):
                _answer(tensor, operand)
            flat, spec = pytree.tree_flatten(call(*wrapped))
            values = [_plain(element) for element in flat]
            after = [_plain(tensor) for tensor in wrapped]
        written = [i for i, (old, new) in enumerate(zip(given, after, strict=True)) if old is not new]
        results[:] = [spec, written, (_memory(flat), _memory(wrapped))]
        return [*values, *(after[index] for index in written)]

    return run


def _answer(tensor: Any, input_: Input) -> None:
    """Makes a traced tensor answer as the user's does; nothing is recorded for gradients anyway."""
    if input_.requires_grad:
        tensor.requires_grad_()
    if input_.is_param:
        tensor._is_param = True


def _memory(values: list[Any]) -> list[int]:
    """A number for each value's memory; that of what has none is -1."""
    return [
        int(value.untyped_storage()._cdata) if isinstance(value, torch.Tensor) else -1 for value in values
    ]


def _plain(value: Any) -> Any:
    if not isinstance(value, FunctionalTensor):
        return value
    torch._sync(value)
    return torch._from_functional_tensor(value.elem)


@contextmanager
def lines_noted(module: Any, source: Any, enter: str, leave: str) -> Iterator[None]:
    """While the instrumented file runs, traced nodes carry the line of the expression that made them."""
    from torch.fx.traceback import current_meta

    before = {name: getattr(module, name) for name in (enter, leave)}
    stack: list[Any] = []

    def note(number: int) -> None:
        line = source.nodes[number].lineno
        current_meta["stack_trace"] = f'File "{source.path}", line {line}'

    def begin(number: int) -> int:
        stack.append(number)
        note(number)
        return len(stack)

    def end(number: int, depth: int, value: Any) -> Any:
        del stack[depth - 1 :]
        if stack:
            note(stack[-1])
        return value

    try:
        setattr(module, enter, begin)
        setattr(module, leave, end)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)
