"""Recurrences written out as a loop over steps: tanh([x_t, h] @ W^T + b), and what is done with each state.

Traced, such a loop is as many nodes as it has steps. Together they are one product for the inputs of all
steps, one recurrence, and one product for the outputs of all steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from attrs import frozen

from evokernel_core.compiler.ops import FLOATS, RECURRENCE
from evokernel_core.compiler.rewrites.recurrent import flat, projected
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.graph import Arg, Graph, Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.device import Device

_LEAST_STEPS = 4
_KINDS = {"aten.tanh.default": "rnn_tanh", "aten.relu.default": "rnn_relu"}
_STACK, _SELECT, _PRODUCT, _ADD = (
    "aten.stack.default",
    "aten.select.int",
    "aten.mm.default",
    "aten.add.Tensor",
)
_ROW_BY_ROW = frozenset({*_KINDS, _ADD, "aten.sigmoid.default", "aten.mul.Tensor", "aten.gelu.default"})
"""Operations that do the same to each row, where their other operand is a row or a number."""


@frozen
class _Cell:
    """act(cat(x_t, before) @ weight^T + bias); ``state_first``: the state comes first in the join."""

    x: ValueRef
    dim: int
    step: int
    before: ValueRef
    weight: ValueRef
    bias: ValueRef | None
    state_first: bool

    def goes_on(self, other: _Cell) -> bool:
        """Whether ``other`` is the same cell one step later."""
        mine = (self.x, self.dim, self.step + 1, self.weight, self.bias, self.state_first)
        return mine == (other.x, other.dim, other.step, other.weight, other.bias, other.state_first)


def recognise_cells(task: KernelTask, device: Device) -> KernelTask:
    """The task with one recurrence for each loop over all steps of a tensor."""
    while (chain := _CellSearch(task.graph).chain()) is not None:
        task = _with_recurrence(task, *chain, device)
    while (node := _CellSearch(task.graph).steps_together()) is not None:
        task = rewritten(task, {_STACK: partial(_together, name=node.name)}, device)
    return task


def _with_recurrence(task: KernelTask, nodes: Sequence[Node], cell: _Cell, device: Device) -> KernelTask:
    """``nodes`` give the states in turn, ``cell`` is the first one."""
    places = {node.name: place for place, node in enumerate(nodes)}
    made: list[ValueRef] = []

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        if node.name not in places:
            return None
        if not made:
            made.append(_recurrence(node, cell, writer))
        spec = node.outputs[0]
        place = places[node.name]
        return (writer.like(spec, _SELECT, made[0], cell.dim, place),)

    return rewritten(task, {nodes[0].op: rewrite}, device)


def _recurrence(node: Node, cell: _Cell, writer: GraphWriter) -> ValueRef:
    """The states of all steps, [steps, batch, hidden] or [batch, steps, hidden] as the inputs lie."""
    batch, hidden = node.outputs[0].shape
    dtype = node.outputs[0].dtype
    width = writer.shape(cell.x)[-1]
    state_at, x_at = (0, hidden) if cell.state_first else (width, 0)

    def part(start: Arg, size: Arg) -> ValueRef:
        end = literal(start) + literal(size)
        return writer.call(
            "aten.slice.Tensor", cell.weight, 1, literal(start), end, shape=(hidden, end - literal(start)),
            dtype=dtype,
        )  # fmt: skip

    inputs = projected(cell.x, part(x_at, width), writer)
    if cell.bias is not None:
        inputs = writer.call(_ADD, inputs, cell.bias, shape=writer.shape(inputs), dtype=dtype)
    state = (1, batch, hidden)
    before = writer.call("aten.view.default", cell.before, state, shape=state, dtype=dtype)
    lengths = writer.shape(cell.x)[:-1]
    weights = part(state_at, hidden)
    return writer.call_many(
        RECURRENCE.name, _KINDS[node.op], (inputs,), (weights,), (), (), before, None, 0, cell.dim == 1, (),
        outputs=(TensorSpec((*lengths, hidden), dtype), TensorSpec(state, dtype)),
    )[0]  # fmt: skip


def _together(node: Node, writer: GraphWriter, name: str) -> tuple[ValueRef, ...] | None:
    """What is done with the state of each step, done with those of all steps at once."""
    if node.name != name:
        return None
    nodes = {node.name: node for node in writer.nodes}
    result = first = next(iter(node.operands()))
    while nodes[first.name].op != _SELECT:
        first = next(iter(nodes[first.name].operands()))
    states, dim = nodes[first.name].args[:2]
    assert isinstance(states, ValueRef)
    lengths = writer.shape(states)[:-1]
    match = _lifted(nodes, result, writer, states)
    *_, width = writer.shape(match)
    dtype = node.outputs[0].dtype
    shape = (*lengths, width)
    whole = writer.call("aten.view.default", match, shape, shape=shape, dtype=dtype)
    if _dimension(node) == dim:
        return (whole,)
    turned = (lengths[1], lengths[0], width)
    return (writer.call("aten.permute.default", whole, (1, 0, 2), shape=turned, dtype=dtype),)


def _lifted(nodes: Mapping[str, Node], ref: ValueRef, writer: GraphWriter, states: ValueRef) -> ValueRef:
    """The expression of one step over the rows of all steps: [steps * batch, width]."""
    node = nodes[ref.name]
    if node.op == _SELECT:
        return flat(states, writer)
    below = _lifted(nodes, next(iter(node.operands())), writer, states)
    shape = (writer.shape(below)[0], node.outputs[0].shape[-1])
    kwargs = dict(node.kwargs)
    return writer.call(node.op, below, *node.args[1:], shape=shape, dtype=node.outputs[0].dtype, **kwargs)


def _dimension(node: Node) -> int:
    return literal(node.args[1] if len(node.args) > 1 else dict(node.kwargs).get("dim", 0)) % 3


class _CellSearch:
    def __init__(self, graph: Graph) -> None:
        self._graph, self._nodes = graph, graph.nodes_by_name

    def chain(self) -> tuple[list[Node], _Cell] | None:
        """The states of a loop over all steps of a tensor, and its first cell."""
        cells = {node.name: cell for node in self._graph.nodes if (cell := self._cell(node)) is not None}
        later = {cell.before.name: name for name, cell in cells.items() if cell.before.name in cells}
        for name, cell in cells.items():
            if cell.step != 0:
                continue
            names = [name]
            while names[-1] in later and cells[names[-1]].goes_on(cells[later[names[-1]]]):
                names.append(later[names[-1]])
            steps = self._graph.spec(cell.x).shape[cell.dim]
            if len(names) >= _LEAST_STEPS and steps == len(names):
                return [self._nodes[name] for name in names], cell
        return None

    def _cell(self, node: Node) -> _Cell | None:
        if node.op not in _KINDS or node.outputs[0].rank != 2 or node.outputs[0].dtype not in FLOATS:
            return None
        below, bias = self._below(node), None
        if below is not None and below.op == _ADD and not below.kwargs:
            _, *given = below.operands()
            if len(given) != 1 or self._graph.spec(given[0]).rank != 1:
                return None
            below, bias = self._below(below), given[0]
        if below is None or below.op != _PRODUCT:
            return None
        joined, turned = (self._nodes.get(ref.name) for ref in below.operands())
        if joined is None or joined.op != "aten.cat.default" or joined.args[1:] not in ((1,), (-1,)):
            return None
        if turned is None or turned.op != "aten.t.default":
            return None
        return self._joined(list(joined.operands()), next(iter(turned.operands())), bias, node)

    def _joined(
        self, parts: Sequence[ValueRef], weight: ValueRef, bias: ValueRef | None, node: Node
    ) -> _Cell | None:
        for state_first in (False, True) if len(parts) == 2 else ():
            before, picked = parts[:: 1 if state_first else -1]
            select = self._nodes.get(picked.name)
            if select is None or select.op != _SELECT:
                continue
            x, dim, step = select.args
            assert isinstance(x, ValueRef)
            spec = self._graph.spec(x)
            fixed = isinstance(node.outputs[0].shape[-1], int) and isinstance(spec.shape[-1], int)
            same = list(map(extent, self._graph.spec(before).shape)) == list(
                map(extent, node.outputs[0].shape)
            )
            if spec.rank == 3 and dim in (0, 1) and isinstance(step, int) and step >= 0 and fixed and same:
                return _Cell(x, literal(dim), step, before, weight, bias, state_first)
        return None

    def _below(self, node: Node) -> Node | None:
        """The node that makes the first operand."""
        return self._nodes.get(next(iter(node.operands())).name)

    def steps_together(self) -> Node | None:
        """A stack of what is done with each step of a recurrence."""
        for node in self._graph.nodes:
            refs = list(node.operands())
            if (
                node.op == _STACK
                and node.outputs[0].rank == 3
                and _dimension(node) < 2
                and self._are_steps(refs)
            ):
                return node
        return None

    def _are_steps(self, refs: Sequence[ValueRef]) -> bool:
        """Whether values are the same function of the rows of each step of a recurrence, in order."""
        nodes = [self._nodes.get(ref.name) for ref in refs]
        first = nodes[0]
        if first is None or any(node is None or node.op != first.op for node in nodes):
            return False
        known = [node for node in nodes if node is not None]
        if first.op == _SELECT:
            states, dim, _ = first.args
            assert isinstance(states, ValueRef)
            made = self._nodes.get(states.name)
            steps = self._graph.spec(states).shape[literal(dim)]
            return (
                made is not None and made.op == RECURRENCE.name and steps == len(known)
                and all(node.args == (states, dim, step) for step, node in enumerate(known))
            )  # fmt: skip
        if first.op != _PRODUCT and (first.op not in _ROW_BY_ROW or not self._is_row(first)):
            return False
        rest = {tuple(map(self._meaning, node.args[1:])) for node in known}
        if len(rest) != 1 or any(node.kwargs != first.kwargs for node in known):
            return False
        return self._are_steps([next(iter(node.operands())) for node in known])

    def _is_row(self, node: Node) -> bool:
        """Whether the other operands of a node are the same for all rows."""
        others = list(node.operands())[1:]
        return isinstance(node.args[0], ValueRef) and all(self._graph.spec(ref).rank < 2 for ref in others)

    def _meaning(self, arg: Arg) -> Arg:
        """Equal for equal arguments: the transpose of a tensor is the same one each time."""
        node = self._nodes.get(arg.name) if isinstance(arg, ValueRef) else None
        return (node.op, *node.args) if node is not None and node.op == "aten.t.default" else arg
