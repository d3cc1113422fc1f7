"""Lowering of a captured graph: from the outputs back to the inputs, over one iteration space."""

from __future__ import annotations

from attrs import define, field, frozen

from evokernel_core.compiler.lowering.call import Call
from evokernel_core.compiler.lowering.checks import check_result
from evokernel_core.compiler.lowering.integers import check_integers
from evokernel_core.compiler.lowering.pointwise import BOOL_RESULTS, KEEPS_PRECISION, POINTWISE
from evokernel_core.compiler.lowering.reductions import REDUCTIONS, dims_of
from evokernel_core.compiler.lowering.stripes import SLICE, sliced_dim, stripe_of
from evokernel_core.compiler.lowering.values import HALF, Builder, Domain, Load, Operand
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.compiler.shapes.space import Access, Space, broadcast, flatten
from evokernel_core.compiler.shapes.views import VIEWS, operand_access
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import Dim


@frozen
class Split:
    """The dimensions of a reduction's operand: those that go although others in front of ``gone``
    stay (``leading``), those that stay (``front``), those that go, and those that stay behind them."""

    leading: tuple[Dim, ...]
    front: tuple[Dim, ...]
    gone: tuple[Dim, ...]
    lanes: tuple[Dim, ...]

    @property
    def everything(self) -> tuple[Dim, ...]:
        return (*self.leading, *self.front, *self.gone, *self.lanes)


Output = tuple[Operand, Domain]


class GraphLowering:
    """Knows a graph by name; ``lower`` may be called with finer and finer spaces. ``in_stripes``: whether
    slices of inputs are read where they lie."""

    def __init__(self, graph: Graph, in_stripes: bool = False) -> None:
        self.graph, self.spec, self.in_stripes = graph, graph.spec, in_stripes

    def reductions(self) -> list[Split]:
        """How every reduction splits the dimensions of its operand."""
        return [self._split(node) for node in self.graph.nodes if node.op in REDUCTIONS]

    def _split(self, node: Node) -> Split:
        call = _without_operands(self, node)
        shape, dims = self.spec(call.tensor()).shape, dims_of(call)
        long = [i for i in range(len(shape)) if not extent(shape[i]).is_one]
        gone = [i for i in long if i in dims]
        lanes = [i for i in long if gone and i > gone[-1]]
        front = [i for i in long if i not in dims and i not in lanes]
        leading = [i for i in gone if front and i < front[-1]] if not lanes else []
        return Split(
            *(
                tuple(shape[i] for i in part)
                for part in (leading, front, [i for i in gone if i not in leading], lanes)
            )
        )

    def lower(self, space: Space) -> tuple[Builder, list[Output]]:
        """The values, and for each output its value and domain."""
        walk = _LoweringWalk(self, space)
        outputs = [walk.output(ref) for ref in self.graph.outputs]
        return walk.builder, outputs


@define
class _LoweringWalk:
    graph: GraphLowering
    space: Space
    builder: Builder = field(factory=Builder)
    known: dict[tuple[str, int, Access], Operand] = field(factory=dict)

    def output(self, ref: ValueRef) -> Output:
        shape = self.graph.spec(ref).shape
        domain = self._output_domain(shape, ref.name)
        atoms = self.space.everything if domain is Domain.FULL else self.space.rows
        return self.value(
            ref, self.space.regroup(atoms, shape, Sentence("the output {name}", name=ref.name))
        ), domain

    def _output_domain(self, shape: tuple[Dim, ...], name: str) -> Domain:
        size = product(map(extent, shape))
        if size == _total(self.space, self.space.everything):
            return Domain.FULL
        if self.space.columns and size == _total(self.space, self.space.rows):
            return Domain.ROW
        raise PlanError("The output {name} has a size that differs from the rest of the region.", name=name)

    def value(self, ref: ValueRef, access: Access) -> Operand:
        """The value of a graph name where it is read at ``access``."""
        key = (ref.name, ref.index, access)
        if key not in self.known:
            graph_input = self.graph.graph.inputs_by_name.get(ref.name)
            self.known[key] = (
                self._node(self.graph.graph.nodes_by_name[ref.name], ref.index, access)
                if graph_input is None
                else self._input(graph_input, access)
            )
        return self.known[key]

    def _input(self, graph_input: GraphInput, access: Access) -> Operand:
        if graph_input.kind is InputKind.SCALAR:
            return self.builder.emit("scalar", detail=graph_input.name)
        atoms = atoms_of(graph_input, access)
        load = Load(graph_input.name, atoms)
        return self.builder.load(load, self._domain(atoms), graph_input.spec.dtype)

    def _part(self, node: Node, access: Access) -> Operand:
        """A slice of an input that all points of the space read one element each of."""
        source, atoms = _only_operand(node), flatten(access)
        graph_input = self.graph.graph.inputs_by_name.get(source.name)
        stripe = stripe_of(node, self.graph.spec(source))
        if not self.graph.in_stripes or graph_input is None or stripe is None:
            raise PlanError("{op} is copied before it is computed with.", op=node.op)
        if list(atoms) != list(self.space.everything):
            raise PlanError("A slice that is broadcast is copied first.")
        columns = flatten(access[sliced_dim(node, len(access)) :])
        load = Load(source.name, atoms, stripe, columns)
        return self.builder.load(load, self._domain(atoms), graph_input.spec.dtype)

    def _domain(self, atoms: tuple[int, ...]) -> Domain:
        rows = set(self.space.rows[self.space.outer_atoms :])
        mid = any(atom in rows for atom in atoms)
        inner = any(atom in self.space.columns for atom in atoms)
        if not self.space.rows:  # one row: a column is every point
            return Domain.FULL if inner else Domain.SCALAR
        return Domain(Domain.ROW * mid | Domain.COLUMN * inner)

    def _node(self, node: Node, index: int, access: Access) -> Operand:
        if node.op == SLICE:
            return self._part(node, access)
        check_result(node, index, BOOL_RESULTS, VIEWS)
        if node.op in VIEWS:
            operand = _only_operand(node)
            return self.value(operand, operand_access(self.space, node, access, self.graph.spec(operand)))
        rule = REDUCTIONS[node.op] if node.op in REDUCTIONS else POINTWISE[node.op]
        check_integers(node, [self.graph.spec(ref).dtype for ref in node.operands()])
        return self._rounded(node, index, rule(self._call(node, index, access)))

    def _rounded(self, node: Node, index: int, result: Operand) -> Operand:
        """Note where PyTorch, op by op, rounds to a 16-bit type; a schedule may follow it or not."""
        dtype = node.outputs[index].dtype
        if dtype not in HALF or node.op in KEEPS_PRECISION:
            return result
        return self.builder.rounded(result, dtype)

    def _call(self, node: Node, index: int, access: Access) -> Call:
        shape = node.outputs[index].shape

        def evaluate(ref: ValueRef) -> Operand:
            operand = self.value(ref, broadcast(access, shape, self.graph.spec(ref).shape))
            self.builder.origin = node.name
            return operand

        def evaluate_rows(ref: ValueRef, dims: tuple[int, ...]) -> Operand:
            operand = self.value(ref, self._rows_access(node, access, self.graph.spec(ref).shape, dims))
            self.builder.origin = node.name
            return operand

        self.builder.origin = node.name
        return Call(node, self.builder, evaluate, evaluate_rows, self.graph.spec, index)

    def _rows_access(
        self, node: Node, access: Access, shape: tuple[Dim, ...], dims: tuple[int, ...]
    ) -> Access:
        """The access of a reduction's operand: the result's rows, and all columns."""
        reduced = [shape[dim] for dim in dims if dim < len(shape)]
        columns = iter(
            self.space.regroup(self.space.columns, reduced, Sentence("what {name} reduces", name=node.name))
        )
        keeps_rank = len(access) == len(shape)
        kept = iter(access)
        operand: list[tuple[int, ...]] = []
        for dim in range(len(shape)):
            group = next(kept) if keeps_rank or dim not in dims else ()
            if dim in dims:
                operand.append(next(columns))
            else:
                operand.append(group)
        self._check_order(node, flatten(tuple(operand)))
        return tuple(operand)

    def _check_order(self, node: Node, atoms: tuple[int, ...]) -> None:
        """Every atom once and in memory order, else the node reduces what others keep."""
        if list(atoms) != sorted(set(atoms)):
            raise PlanError(
                "{op} reduces another dimension than the other reductions of the region.", op=node.op
            )


def _only_operand(node: Node) -> ValueRef:
    return next(iter(node.operands()))


def _total(space: Space, atoms: tuple[int, ...]) -> Extent:
    return product(space.atoms[atom] for atom in atoms)


def atoms_of(graph_input: GraphInput, access: Access) -> tuple[int, ...]:
    """What an input is read along. Raises PlanError where two of its dimensions go the same way."""
    atoms = flatten(access)
    if list(atoms) != sorted(set(atoms)):
        raise PlanError("Input {name} is combined with itself along two dimensions.", name=graph_input.name)
    return atoms


def _without_operands(graph: GraphLowering, node: Node) -> Call:
    def refuse(*_: object) -> Operand:
        raise PlanError("{op} has arguments that are not literals.", op=node.op)

    return Call(node, Builder(), refuse, refuse, graph.spec)
