"""The terms of a captured graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from evokernel_core.domain.graph import Arg, Graph, InputKind, Node, SymbolicInt, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec, evaluate_dim
from evokernel_core.vendor.layouts import Layouts
from evokernel_core.vendor.terms import Mismatch, Number, Shape, Size, Term

_FACTORS = (3, 7, 11, 5, 13)
"""What the captured sizes are multiplied by for another binding: different numbers, so that sizes that are
equal by chance are told apart, and multiples, so that what divides them still does."""
_HALF = ("float16", "bfloat16")
_EXACT = frozenset(
    {"input", "reshape", "expand", "part", "join", "permute", "abs", "amax", "amin", "rounded"}
)
"""Terms whose value a type of 16 bits that held what they are made of holds too."""


def bindings_of(task: KernelTask) -> tuple[Mapping[str, int], ...]:
    """The captured sizes, and multiples of them."""
    named = enumerate(task.symbols)
    other = {symbol.name: symbol.size * _FACTORS[i % len(_FACTORS)] for i, symbol in named}
    return (task.sizes, other) if task.symbols else (task.sizes,)


@define
class Reading:
    """The terms of a graph by the name of its values. ``silent``: the type to which a rounding changes no
    more than that of the region's own result does, empty where there is none."""

    layouts: Layouts
    bindings: tuple[Mapping[str, int], ...]
    silent: str
    inputs: dict[str, Term] = field(factory=dict)
    values: dict[ValueRef, Term] = field(factory=dict)


def read(task: KernelTask, rules: Mapping[str, Rule]) -> Reading:
    """The terms of a task's graph; ``rules`` say those of its operations, by ATen's names without overloads.
    Raises Mismatch for a graph with an operation that has none."""
    graph = task.graph
    bindings = bindings_of(task)
    halves = {spec.dtype for spec in graph.output_specs() if spec.dtype.startswith(("float", "bfloat"))}
    silent = halves.pop() if len(halves) == 1 else ""
    reading = Reading(Layouts(len(bindings)), bindings, silent)
    for operand in graph.inputs:
        shape = () if operand.kind is InputKind.SCALAR else shape_of(operand.spec, bindings)
        term = reading.layouts.variable(operand.name, shape)
        reading.inputs[operand.name] = term
        reading.values[ValueRef(operand.name)] = term
    for node in graph.nodes:
        for index, result in enumerate(_terms(node, reading, rules)):
            term = reading.layouts.expand(result, shape_of(node.outputs[index], bindings))
            reading.values[ValueRef(node.name, index)] = _rounded(term, node, index, reading, graph)
    return reading


def shape_of(spec: TensorSpec, bindings: tuple[Mapping[str, int], ...]) -> Shape:
    return tuple(tuple(evaluate_dim(dim, sizes) for sizes in bindings) for dim in spec.shape)


def _rounded(term: Term, node: Node, index: int, reading: Reading, graph: Graph) -> Term:
    """The term with the rounding of its type, where one changes more than the region's own does."""
    dtype = node.outputs[index].dtype
    if dtype == "float32":
        return term
    if dtype in _HALF:
        same = all(graph.spec(ref).dtype == dtype for ref in node.operands())
        if dtype == reading.silent or (same and term.op in _EXACT):
            return term
        return reading.layouts.function("rounded", term, attributes=dtype)
    if all(graph.spec(ref).dtype == dtype for ref in node.operands()) and term.op in _EXACT:
        return term
    return reading.layouts.function("cast", term, attributes=dtype)


def _terms(node: Node, reading: Reading, rules: Mapping[str, Rule]) -> tuple[Term, ...]:
    rule = rules.get(node.op.split(".")[1] if "." in node.op else node.op)
    if rule is None:
        raise Mismatch(f"{node.op} has no term")
    result = rule(NodeReader(node, reading))
    return result if isinstance(result, tuple) else (result,)


@define
class NodeReader:
    """A node's arguments as terms, numbers and sizes."""

    node: Node
    reading: Reading

    @property
    def m(self) -> Layouts:
        return self.reading.layouts

    def arg(self, index: int, default: Any = None) -> Any:
        return self.node.args[index] if index < len(self.node.args) else default

    def option(self, index: int, name: str, default: Any = None) -> Any:
        """An argument that may be given by its place or by its name."""
        return self.arg(index, dict(self.node.kwargs).get(name, default))

    def term(self, index: int) -> Term:
        return self.value(self.arg(index))

    def value(self, arg: Arg) -> Term:
        if isinstance(arg, ValueRef):
            return self.reading.values[arg]
        return self.m.number(self.number(arg))

    def read(self, index: int) -> Term:
        """An operand of an elementwise operation."""
        return self.m.repeated_from(self.term(index))

    def shape(self, index: int = 0) -> Shape:
        """The shape of a result."""
        return shape_of(self.node.outputs[index], self.reading.bindings)

    def number(self, arg: Arg) -> Number:
        if isinstance(arg, SymbolicInt):
            return tuple(float(evaluate_dim(arg.expression, sizes)) for sizes in self.reading.bindings)
        if isinstance(arg, bool) or not isinstance(arg, (int, float)):
            raise Mismatch("no number")
        return self.m.constant(float(arg))

    def size(self, arg: Arg) -> Size:
        return tuple(int(value) for value in self.number(arg))

    def axes(self, index: int, name: str = "dim") -> tuple[int, ...]:
        arg = self.option(index, name, ())
        result = arg if isinstance(arg, tuple) else () if arg is None else (arg,)
        return tuple(int(element) for element in result)


Rule = Callable[[NodeReader], "Term | tuple[Term, ...]"]
