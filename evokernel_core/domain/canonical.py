"""One form for graphs that compute the same: in which order, and under which names, nobody has to know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from attrs import evolve, field, frozen

from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, SymbolicInt, Update, ValueRef
from evokernel_core.domain.tensor import Dim, TensorSpec

_KINDS = (InputKind.TENSOR, InputKind.PARAMETER, InputKind.SCALAR)
_WORD = re.compile(r"[A-Za-z_]\w*")


def node_order(graph: Graph) -> tuple[Node, ...]:
    """The nodes that outputs depend on, each behind what it reads: first those of the first output, operands
    in the order of arguments. It does not depend on the order in which a program runs them."""
    nodes = graph.nodes_by_name
    done: dict[str, Node] = {}
    for output in graph.outputs:
        stack = [(output.name, False)]
        while stack:
            name, is_read = stack.pop()
            if is_read:
                done.setdefault(name, nodes[name])
            elif name in nodes and name not in done:
                stack.append((name, True))
                stack += [(ref.name, False) for ref in reversed(tuple(nodes[name].operands()))]
    return tuple(done.values())


def inputs_in_order_of_use(graph: Graph) -> tuple[GraphInput, ...]:
    """Operands, then parameters, then numbers, each as ``node_order`` first reads them, then those that are
    outputs, then unread ones."""
    names = [ref.name for node in node_order(graph) for ref in node.operands()]
    names += [ref.name for ref in graph.outputs]
    return tuple(
        sorted(graph.inputs, key=lambda operand: (_KINDS.index(operand.kind), _first(names, operand.name)))
    )


def symbols_in_order_of_use(inputs: Sequence[GraphInput], symbols: Sequence[str]) -> tuple[str, ...]:
    """Names of sizes as the shapes of inputs first have them, those that are sizes by themselves first: in
    which order an expression has them is a matter of spelling."""
    dims = [str(dim) for operand in inputs for dim in operand.spec.shape]
    names = [dim for dim in dims if _WORD.fullmatch(dim)]
    names += [name for dim in dims for name in _WORD.findall(dim)]
    return tuple(sorted(symbols, key=lambda name: _first(names, name)))


def _first(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


@frozen
class Prefixes:
    """What stands in front of the numbers of inputs, buffers that are only updated, nodes and symbols."""

    inputs: str = "i"
    updates: str = "u"
    nodes: str = "n"
    symbols: str = "s"


def numbered(graph: Graph, symbols: Sequence[str], prefixes: Prefixes) -> Graph:
    """The graph with numbers for the names of values and symbols, in the order in which it has them, the
    terms of sums and products of sizes in one order, and no word of the file that it was captured from and
    of what eager PyTorch copies."""
    return _Numbers.of(graph, symbols, prefixes).graph(graph)


@frozen
class _Numbers:
    """New names for those of values, and of symbols."""

    values: Mapping[str, str]
    symbols: Mapping[str, str] = field(hash=False)

    @classmethod
    def of(cls, graph: Graph, symbols: Sequence[str], prefixes: Prefixes) -> _Numbers:
        values = {operand.name: f"{prefixes.inputs}{place}" for place, operand in enumerate(graph.inputs)}
        counters = [update.name for update in graph.updates if update.name not in values]
        values |= {name: f"{prefixes.updates}{place}" for place, name in enumerate(counters)}
        values |= {node.name: f"{prefixes.nodes}{place}" for place, node in enumerate(graph.nodes)}
        return cls(values, {name: f"{prefixes.symbols}{place}" for place, name in enumerate(symbols)})

    def graph(self, graph: Graph) -> Graph:
        return Graph(
            tuple(map(self._input, graph.inputs)),
            tuple(map(self._node, graph.nodes)),
            tuple(map(self._ref, graph.outputs)),
            tuple(map(self._update, graph.updates)),
        )

    def _input(self, graph_input: GraphInput) -> GraphInput:
        return GraphInput(self.values[graph_input.name], self._spec(graph_input.spec), graph_input.kind)

    def _node(self, node: Node) -> Node:
        kwargs = tuple(
            (key, self._arg(value)) for key, value in sorted(node.kwargs, key=lambda pair: pair[0])
        )
        outputs = tuple(map(self._spec, node.outputs))
        return Node(self.values[node.name], node.op, tuple(map(self._arg, node.args)), kwargs, outputs)

    def _update(self, update: Update) -> Update:
        return evolve(update, name=self.values[update.name], spec=self._spec(update.spec), expression="")

    def _ref(self, ref: ValueRef) -> ValueRef:
        return ValueRef(self.values[ref.name], ref.index)

    def _spec(self, spec: TensorSpec) -> TensorSpec:
        return evolve(spec, shape=tuple(map(self._dim, spec.shape)))

    def _dim(self, dim: Dim) -> Dim:
        return dim if isinstance(dim, int) else _normal(dim, tuple(self.symbols.items()))

    def _arg(self, arg: Arg) -> Arg:
        match arg:
            case ValueRef():
                return self._ref(arg)
            case SymbolicInt(expression):
                return SymbolicInt(str(self._dim(expression)))
            case tuple():
                return tuple(map(self._arg, arg))
        return arg


@lru_cache(maxsize=1 << 12)
def _normal(text: str, names: tuple[tuple[str, str], ...]) -> str:
    """A size expression under new names, the terms of its sums and the factors of its products sorted."""
    new = dict(names)
    renamed = _WORD.sub(lambda word: new.get(word[0], word[0]), text)
    return ast.unparse(_sorted(ast.parse(renamed, mode="eval").body))


def _sorted(node: ast.expr) -> ast.expr:
    match node:
        case ast.BinOp(op=ast.Add() | ast.Mult() as op):
            parts = sorted(map(_sorted, _parts(node, type(op))), key=ast.unparse)
            made = parts[0]
            for part in parts[1:]:
                made = ast.BinOp(made, op, part)
            return made
        case ast.BinOp(left, op, right):
            return ast.BinOp(_sorted(left), op, _sorted(right))
        case ast.UnaryOp(op, operand):
            return ast.UnaryOp(op, _sorted(operand))
    return node


def _parts(node: ast.expr, kind: type[ast.operator]) -> Iterator[ast.expr]:
    """What a sum or a product is of, brackets taken off."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
        yield from _parts(node.left, kind)
        yield from _parts(node.right, kind)
    else:
        yield node
