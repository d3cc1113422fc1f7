"""Loops over steps that call an LSTM cell: one product for the inputs of all steps, then one recurrence.

Traced, each call is two products, a split into gates and what is done with those.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from evokernel_core.compiler.ops import FLOATS, RECURRENCE
from evokernel_core.compiler.rewrites.recurrent import is_zero, projected
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.graph import Graph, Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.device import Device

_LEAST_STEPS = 4
_SELECT, _PRODUCT, _ADD, _MUL = "aten.select.int", "aten.mm.default", "aten.add.Tensor", "aten.mul.Tensor"
_SIGMOID, _TANH = "aten.sigmoid.default", "aten.tanh.default"


@frozen
class _Call:
    """One call: the step of ``x`` along ``dim``, both states before, and the name of the node of the cell
    state after it."""

    x: ValueRef
    dim: int
    step: int
    hidden: ValueRef
    cell: ValueRef
    weights: tuple[ValueRef, ValueRef]
    biases: tuple[ValueRef, ...]
    after: str

    def goes_on(self, name: str, other: _Call) -> bool:
        """Whether ``other`` takes both states of this call to the next step; ``name`` is the hidden one."""
        mine = (self.x, self.dim, self.step + 1, self.weights, self.biases, name, self.after)
        theirs = (other.x, other.dim, other.step, other.weights, other.biases)
        return mine == (*theirs, other.hidden.name, other.cell.name)


def recognise_lstm_cells(task: KernelTask, device: Device) -> KernelTask:
    """The task with one recurrence for each loop over all steps of a tensor."""
    while (chain := _LstmSearch(task.graph).chain()) is not None:
        task = _with_recurrence(task, *chain, device)
    return task


def _with_recurrence(
    task: KernelTask, names: Sequence[str], calls: Sequence[_Call], device: Device
) -> KernelTask:
    """``names`` are the nodes of the hidden states in turn."""
    places = {name: place for place, name in enumerate(names)}
    made: list[tuple[ValueRef, ...]] = []

    def state(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        if node.name not in places:
            return None
        if not made:
            made.append(_recurrence(node, calls[0], writer))
        spec, call = node.outputs[0], calls[places[node.name]]
        picked = writer.like(spec, _SELECT, made[0][0], call.dim, call.step)
        return (picked,)

    def last_cell(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        if node.name != calls[-1].after:
            return None
        spec = node.outputs[0]
        return (writer.like(spec, "aten.view.default", made[0][2], spec.shape),)

    return rewritten(task, {_MUL: state, _ADD: last_cell}, device)


def _recurrence(node: Node, call: _Call, writer: GraphWriter) -> tuple[ValueRef, ...]:
    batch, hidden = node.outputs[0].shape
    dtype = node.outputs[0].dtype
    state = (1, batch, hidden)
    before = (
        None if is_zero(ref, writer)
        else writer.call("aten.view.default", ref, state, shape=state, dtype=dtype)
        for ref in (call.hidden, call.cell)
    )  # fmt: skip
    ends = TensorSpec(state, dtype)
    return writer.call_many(
        RECURRENCE.name, "lstm", (projected(call.x, call.weights[0], writer),), (call.weights[1],),
        call.biases[:1], call.biases[1:], *before, 0, call.dim == 1, (),
        outputs=(TensorSpec((*writer.shape(call.x)[:-1], hidden), dtype), ends, ends),
    )  # fmt: skip


class _LstmSearch:
    def __init__(self, graph: Graph) -> None:
        self._graph, self._nodes = graph, graph.nodes_by_name

    def chain(self) -> tuple[list[str], list[_Call]] | None:
        """The hidden states of a loop over all steps of a tensor, and its calls."""
        calls = {node.name: call for node in self._graph.nodes if (call := self._call(node)) is not None}
        later = {call.hidden.name: name for name, call in calls.items()}
        for name, call in calls.items():
            if call.step != 0:
                continue
            names = [name]
            while names[-1] in later and calls[names[-1]].goes_on(names[-1], calls[later[names[-1]]]):
                names.append(later[names[-1]])
            steps = self._graph.spec(call.x).shape[call.dim]
            inner = [calls[step].after for step in names[:-1]]
            if len(names) >= _LEAST_STEPS and steps == len(names) and all(map(self._stays_inside, inner)):
                return names, [calls[step] for step in names]
        return None

    def _stays_inside(self, name: str) -> bool:
        """Whether a cell state is read by its hidden state and by the next call only."""
        returned = any(ref.name == name for ref in self._graph.outputs)
        return len({node.name for node in self._graph.readers.get(name, ())}) == 2 and not returned

    def _call(self, node: Node) -> _Call | None:
        """The call whose hidden state is ``node``: sigmoid(output) * tanh(forget * cell + input * new)."""
        spec = node.outputs[0]
        if (
            node.op != _MUL
            or spec.rank != 2
            or spec.dtype not in FLOATS
            or not isinstance(spec.shape[1], int)
        ):
            return None
        output, bent = self._made(node, _SIGMOID, _TANH)
        after = self._below(bent, _ADD)
        kept, new = self._made(after, _MUL, _MUL)
        forget, before = self._gate(kept)
        taken = self._made(new, _SIGMOID, _TANH)
        gates = [next(iter(choice.operands())) for choice in (taken[0], forget, taken[1], output) if choice]
        if len(gates) != 4 or before is None or after is None or after.kwargs:
            return None
        split = self._nodes.get(gates[0].name)
        sides = [gate.name == gates[0].name and gate.index == place for place, gate in enumerate(gates)]
        if split is None or split.op != "aten.split.Tensor" or not all(sides):
            return None
        if split.args[1:] not in ((spec.shape[1], 1), (spec.shape[1], -1)):
            return None
        return self._products(self._nodes.get(next(iter(split.operands())).name), before, after)

    def _products(self, sums: Node | None, cell: ValueRef, after: Node) -> _Call | None:
        """``sums`` are those of both products, in any order."""
        if sums is None or sums.op != _ADD or sums.kwargs:
            return None
        operands = [self._product(ref) for ref in sums.operands()]
        if len(operands) != 2 or None in operands:
            return None
        for mine, theirs in (operands, operands[::-1]):
            assert mine is not None and theirs is not None
            select = self._nodes.get(mine[0].name)
            if select is None or select.op != _SELECT or (len(mine) != len(theirs)):
                continue
            x, dim, step = select.args
            assert isinstance(x, ValueRef)
            shapes = [self._graph.spec(ref).shape for ref in (theirs[0], cell)]
            wanted = after.outputs[0].shape
            same = all(list(map(extent, shape)) == list(map(extent, wanted)) for shape in shapes)
            if (
                self._graph.spec(x).rank == 3
                and dim in (0, 1)
                and isinstance(step, int)
                and step >= 0
                and same
            ):
                return _Call(
                    x, literal(dim), step, theirs[0], cell, (mine[1], theirs[1]), (*mine[2:], *theirs[2:]),
                    after.name,
                )  # fmt: skip
        return None

    def _product(self, ref: ValueRef) -> tuple[ValueRef, ...] | None:
        """The operand, the weight and perhaps the bias of ``operand @ weight^T + bias``."""
        node, bias = self._nodes.get(ref.name), []
        if node is not None and node.op == _ADD and not node.kwargs:
            first, *bias = node.operands()
            if len(bias) != 1 or self._graph.spec(bias[0]).rank != 1:
                return None
            node = self._nodes.get(first.name)
        if node is None or node.op != _PRODUCT:
            return None
        operand, right = node.operands()
        turned = self._nodes.get(right.name)
        if turned is None or turned.op != "aten.t.default":
            return None
        return (operand, next(iter(turned.operands())), *bias)

    def _below(self, node: Node | None, op: str) -> Node | None:
        """The node of an operation that makes the first operand."""
        below = self._nodes.get(next(iter(node.operands())).name) if node is not None else None
        return below if below is not None and below.op == op else None

    def _made(self, node: Node | None, *ops: str) -> tuple[Node | None, Node | None]:
        """The nodes that make both operands, where they are ``ops`` in this order."""
        made = [self._nodes.get(ref.name) for ref in node.operands()] if node is not None else []
        if len(made) != 2 or any(
            kernel is None or kernel.op != op for kernel, op in zip(made, ops, strict=True)
        ):
            return None, None
        return made[0], made[1]

    def _gate(self, node: Node | None) -> tuple[Node | None, ValueRef | None]:
        """A gate and what it weighs."""
        refs = list(node.operands()) if node is not None else []
        gate = self._nodes.get(refs[0].name) if len(refs) == 2 else None
        return (gate, refs[1]) if gate is not None and gate.op == _SIGMOID else (None, None)
