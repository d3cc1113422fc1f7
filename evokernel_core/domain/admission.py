"""What a task from elsewhere may ask for: the one check in front of every way in.

Packages, jobs over HTTP, workers' requests and memories are text that somebody else may have written. A task
is admitted where its operations are those of ``operations.txt`` with arguments of the declared kinds, its
values are defined before they are read, its names are words, and its sizes and counts are bounded. What
passes is a computation on tensors and nothing else; whether it is the right one is not asked here.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cattrs.errors import BaseValidationError
from cattrs.v import transform_error

from evokernel_core.domain.errors import TaskRefused
from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, SymbolicInt, ValueRef
from evokernel_core.domain.operations import Operation, operations
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import CATEGORIES, KernelTask, Symbol
from evokernel_core.domain.tensor import ITEM_SIZE, TensorSpec, evaluate_dim

MOST_NODES = 50_000
"""Nodes of a graph; a language model of a hundred layers has some ten thousand."""
MOST_VALUES = 10_000
"""Inputs, outputs, updates or copies of a graph."""
MOST_RESULTS = 4096
"""Results of one node, such as of ``unbind``."""
MOST_RANK = 16
"""Dimensions of a tensor; kernels take at most eight."""
MOST_BYTES = 2**44
"""Bytes of one tensor: 16 TiB, more than any device has."""
MOST_SIZE = 2**40
"""A size."""
MOST_DEPTH = 32
"""How deep lists and objects nest in a task's JSON; a graph's own are eight deep."""
MOST_SYMBOLS = 256
LONGEST_NAME = 256
LONGEST_TEXT = 65_536
"""Characters of an expression of the call site, such as a table of numbers."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_task(data: object) -> KernelTask:
    """The task that ``to_data`` gave, admitted. Raises TaskRefused."""
    _check_depth(data)
    try:
        task = from_data(data, KernelTask)
    except BaseValidationError as error:
        first = next(iter(transform_error(error)), "it does not fit")
        raise TaskRefused("The task is not a KernelTask: {first}.", first=first) from error
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TaskRefused("The task is not a KernelTask: {error}.", error=error) from error
    return admit(task)


def admit(task: KernelTask) -> KernelTask:
    """The task itself. Raises TaskRefused, naming the first thing that no kernel's task has."""
    _text(task.name, LONGEST_NAME, "name")
    if task.op_category not in CATEGORIES:
        raise TaskRefused(
            "The task has the category {category}, which is none.", category=_short(task.op_category)
        )
    if not all(math.isfinite(value) and value >= 0 for value in (task.tolerance.rtol, task.tolerance.atol)):
        raise TaskRefused("The task's tolerance is no finite number.")
    _check_symbols(task.symbols)
    _Graph(task.graph, task).check()
    return task


def _check_depth(data: object) -> None:
    """Nesting without recursion: deeper data would end the process that structures it."""
    level: list[Any] = [data]
    for _ in range(MOST_DEPTH):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return
    raise TaskRefused("The task nests deeper than {most} levels.", most=MOST_DEPTH)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def _check_symbols(symbols: tuple[Symbol, ...]) -> None:
    _count(symbols, MOST_SYMBOLS, "symbols")
    if len({symbol.name for symbol in symbols}) < len(symbols):
        raise TaskRefused("The task has two symbols of one name.")
    for symbol in symbols:
        _name(symbol.name)
        if not 0 <= symbol.minimum <= symbol.size <= MOST_SIZE:
            raise TaskRefused("The symbol {name} has no sensible size.", name=symbol.name)


class _Graph:
    """One pass over a graph in its own order, with the values that are known so far."""

    def __init__(self, graph: Graph, task: KernelTask) -> None:
        self._graph = graph
        least = {symbol.name: symbol.minimum for symbol in task.symbols}
        self._bindings: tuple[Mapping[str, int], ...] = (task.sizes, least)
        self._known: dict[str, int] = {}
        self._dims: set[str] = set()

    def check(self) -> None:
        graph = self._graph
        _count(graph.nodes, MOST_NODES, "nodes")
        for values, what in (
            (graph.inputs, "inputs"),
            (graph.outputs, "outputs"),
            (graph.updates, "updates"),
            (graph.copies, "copies"),
        ):
            _count(values, MOST_VALUES, what)
        for operand in graph.inputs:
            self._input(operand)
        for node in graph.nodes:
            self._node(node)
        if not graph.outputs:
            raise TaskRefused("The task computes nothing: its graph has no output.")
        for ref in (*graph.outputs, *graph.copies):
            self._reads(ref)
        self._updates()

    def _updates(self) -> None:
        for update in self._graph.updates:
            _name(update.name)
            _text(update.expression, LONGEST_TEXT, "expression of an update")
            self._spec(update.spec)
            if update.output is not None and not 0 <= update.output < len(self._graph.outputs):
                raise TaskRefused(
                    "The buffer {name} is updated with an output that is not there.", name=update.name
                )

    def _input(self, graph_input: GraphInput) -> None:
        self._defines(graph_input.name, 1)
        _text(graph_input.expression, LONGEST_TEXT, "expression of an input")
        self._spec(graph_input.spec)
        if graph_input.kind is InputKind.SCALAR and graph_input.spec.shape:
            raise TaskRefused("The number {name} has dimensions.", name=graph_input.name)
        if graph_input.value is not None and graph_input.kind is not InputKind.SCALAR:
            raise TaskRefused("The input {name} has a value, which only numbers have.", name=graph_input.name)
        if graph_input.value is not None and not math.isfinite(graph_input.value):
            raise TaskRefused("The setting {name} is no finite number.", name=graph_input.name)

    def _node(self, node: Node) -> None:
        operation = operations().get(node.op)
        if operation is None:
            raise TaskRefused(
                "The task names the operation {op}, which no kernel computes.", op=_short(node.op)
            )
        if len(node.args) > len(operation.positional):
            raise TaskRefused("{op} is given {count} arguments.", op=node.op, count=len(node.args))
        for parameter, value in zip(operation.positional, node.args, strict=False):
            self._argument(node, parameter.name, value, operation)
        given = {parameter.name for parameter in operation.positional[: len(node.args)]}
        for name, value in node.kwargs:
            if name in given:
                raise TaskRefused("{op} is given {name} twice.", op=node.op, name=_short(name))
            given.add(name)
            self._argument(node, name, value, operation)
        _count(node.outputs, MOST_RESULTS, "results of one node")
        for spec in node.outputs:
            self._spec(spec)
        self._defines(node.name, len(node.outputs))

    def _argument(self, node: Node, name: str, value: Arg, operation: Operation) -> None:
        parameter = operation.parameter(name)
        if parameter is None:
            raise TaskRefused("{op} has no argument {name}.", op=node.op, name=_short(name))
        if not parameter.takes(value):
            raise TaskRefused("{op} is given something else than it takes for {name}.", op=node.op, name=name)
        for leaf in _leaves(value):
            if isinstance(leaf, ValueRef):
                self._reads(leaf)
            elif isinstance(leaf, SymbolicInt):
                self._dim(leaf.expression)

    def _defines(self, name: str, results: int) -> None:
        _name(name)
        if name in self._known:
            raise TaskRefused("The graph defines {name} twice.", name=name)
        self._known[name] = results

    def _reads(self, ref: ValueRef) -> None:
        results = self._known.get(ref.name)
        if results is None:
            raise TaskRefused("The graph reads {name} before it is defined.", name=_short(ref.name))
        if type(ref.index) is not int or not 0 <= ref.index < results:
            raise TaskRefused("{name} has no result number {index}.", name=ref.name, index=_short(ref.index))

    def _spec(self, spec: TensorSpec) -> None:
        if spec.dtype not in ITEM_SIZE:
            raise TaskRefused("The task has a tensor of unknown dtype {dtype}.", dtype=_short(spec.dtype))
        _count(spec.shape, MOST_RANK, "dimensions of one tensor")
        for sizes in self._bindings:
            nbytes = ITEM_SIZE[spec.dtype]
            for dim in spec.shape:
                size = self._size(dim, sizes)
                if not 0 <= size <= MOST_SIZE:
                    raise TaskRefused("The task has a tensor with a dimension of {size}.", size=_short(size))
                nbytes *= size
            if nbytes > MOST_BYTES:
                raise TaskRefused("The task has a tensor of more bytes than any device has.")

    def _dim(self, expression: str) -> None:
        """Expressions repeat all over a graph: each is computed once."""
        if expression not in self._dims:
            for sizes in self._bindings:
                self._size(expression, sizes)
            self._dims.add(expression)

    def _size(self, dim: int | str, sizes: Mapping[str, int]) -> int:
        try:
            size = evaluate_dim(dim, sizes)
        except (ValueError, ArithmeticError) as error:
            raise TaskRefused(
                "The size {dim} cannot be computed: {error}", dim=_short(dim), error=error
            ) from error
        if type(size) is not int or abs(size) > MOST_BYTES:
            raise TaskRefused("The size {dim} is beyond all bounds.", dim=_short(dim))
        return size


def _leaves(value: Arg) -> Iterator[Arg]:
    if isinstance(value, tuple):
        yield from value  # lists of lists are no kind of the table
    else:
        yield value


def _name(name: str) -> None:
    """A word of ASCII that Python keeps for nothing. Raises TaskRefused."""
    is_word = len(name) <= LONGEST_NAME and _NAME.fullmatch(name) and not keyword.iskeyword(name)
    if not is_word or (name.startswith("__") and name.endswith("__")):
        raise TaskRefused("The task has a value called {name}, which is no name.", name=_short(name))


def _text(text: str, most: int, what: str) -> None:
    if len(text) > most:
        raise TaskRefused("The {what} has {count} characters.", what=what, count=len(text))
    if not all(char.isprintable() or char in "\n\t" for char in text):
        raise TaskRefused("The {what} has characters that cannot be printed.", what=what)


def _count(values: tuple[Any, ...], most: int, what: str) -> None:
    if len(values) > most:
        raise TaskRefused(
            "The task has {count} {what}, more than {most}.", count=len(values), what=what, most=most
        )


def _short(value: object) -> str:
    text = ascii(value) if isinstance(value, str) else ascii(str(value)[:80])
    return text if len(text) <= 60 else f"{text[:57]}..."
