"""A graph of element-wise operations on integers and truth values, as words over rows and columns."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field, frozen

from evokernel_core.compiler.lowering.graph import atoms_of
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.compiler.shapes.space import Access, Refine, Space, broadcast
from evokernel_core.compiler.shapes.views import VIEWS, operand_access
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.targets.ascendc.legalization.limbs import Operand, Word, Words, needed
from evokernel_core.targets.ascendc.legalization.rules import RULES, Truth, Value, WordCall
from evokernel_core.targets.ascendc.legalization.wide import WIDTHS, Whole

DTYPES = frozenset({*WIDTHS, "bool"})


@frozen
class Read:
    """An input where it is read. ``rows`` are the atoms of the rows that index it, ``columns`` whether
    those of the columns do: else it is one number a row."""

    name: str
    source: str
    dtype: str
    rows: tuple[int, ...]
    columns: bool


@frozen
class Written:
    """A result, which has every element of the space: its low and high word where it has eight bytes,
    else one word, 0 or 1 for a truth value."""

    dtype: str
    words: tuple[Operand, ...]


@frozen
class WordPlan:
    """What one kernel computes: ``atoms`` are the sizes of the space, the first ``row_atoms`` of which
    number the rows, the others the columns."""

    atoms: tuple[Extent, ...]
    row_atoms: int
    reads: tuple[Read, ...]
    outputs: tuple[Written, ...]

    @property
    def divides_by_sizes(self) -> bool:
        """Whether a size is a divisor, of digits of 8 bits."""
        words = needed(word for output in self.outputs for word in output.words)
        return any(word.op == "scaled" and isinstance(word.args[1], Word) for word in words)

    @property
    def rows(self) -> Extent:
        return product(self.atoms[: self.row_atoms])

    @property
    def columns(self) -> Extent:
        return product(self.atoms[self.row_atoms :])


def plan_words(task: KernelTask) -> WordPlan:
    """Raises PlanError, with the reason, where the task is anything else than element-wise arithmetic on
    integers and truth values."""
    for operand in task.graph.inputs:
        if operand.kind is not InputKind.SCALAR and operand.spec.dtype not in DTYPES:
            raise PlanError(
                "Input {name} has dtype {dtype}; integers take none.",
                name=operand.name,
                dtype=operand.spec.dtype,
            )
    for node in task.graph.nodes:
        if node.op not in RULES and node.op not in VIEWS:
            raise PlanError(
                "The operation {op} on integers is not covered by any schedule family.", op=node.op
            )
        if node.outputs[0].dtype not in DTYPES:
            raise PlanError(
                "{op} makes {dtype} of integers, which is none.", op=node.op, dtype=node.outputs[0].dtype
            )
    specs = task.graph.output_specs()
    if not specs or not any(node.op in RULES for node in task.graph.nodes):
        raise PlanError("The region computes nothing.")
    space = Space.of(_largest(specs, task), ())
    while True:
        try:
            return _LimbWalk(task, space, results_of(task)).plan(specs)
        except Refine as refine:
            space = space.split(refine)


def results_of(task: KernelTask) -> tuple[str, ...]:
    """What a kernel calls its results."""
    count = len(task.graph.outputs)
    return ("output",) if count == 1 else tuple(f"output{i}" for i in range(count))


def _largest(specs: Iterable[TensorSpec], task: KernelTask) -> tuple[Dim, ...]:
    return max((spec.shape for spec in specs),
               key=lambda shape: product(map(extent, shape)).evaluate(task.sizes))  # fmt: skip


@define
class _LimbWalk:
    """Evaluates the graph from its outputs, at every point of the space."""

    task: KernelTask
    space: Space
    results: tuple[str, ...]
    words: Words = field(factory=Words)
    known: dict[tuple[ValueRef, Access], Value] = field(factory=dict)
    reads: dict[tuple[str, tuple[int, ...]], str] = field(factory=dict)

    @property
    def graph(self) -> Graph:
        return self.task.graph

    def plan(self, specs: tuple[TensorSpec, ...]) -> WordPlan:
        everything = self.space.everything
        outputs = []
        for ref, spec in zip(self.graph.outputs, specs, strict=True):
            if ref.name in self.graph.inputs_by_name:
                raise PlanError("A result that is an input takes no kernel.")
            access = self.space.regroup(everything, spec.shape, Sentence("the output {name}", name=ref.name))
            outputs.append(Written(spec.dtype, self._stored(self.value(ref, access))))
        cut = self._rows(atoms for _, atoms in self.reads)
        reads = tuple(
            Read(name, source, self.graph.spec(ValueRef(source)).dtype,
                 tuple(atom for atom in atoms if atom < cut), bool(atoms) and atoms[-1] >= cut)
            for (source, atoms), name in self.reads.items()
        )  # fmt: skip
        return WordPlan(self.space.atoms, cut, reads, tuple(outputs))

    def _stored(self, value: Value) -> tuple[Operand, ...]:
        if isinstance(value, Truth):
            return (self.words.mul(value.word, -1),)
        return (value.low,) if value.high is None else (value.low, value.high)

    def _rows(self, reads: Iterable[tuple[int, ...]]) -> int:
        """How many atoms belong to the rows: behind them each input has all atoms or none."""
        cut, total = 0, len(self.space.atoms)
        for atoms in reads:
            first = total
            while first > 0 and ((first - 1) in atoms) == ((total - 1) in atoms):
                first -= 1
            cut = max(cut, first)
        return cut

    def value(self, ref: ValueRef, access: Access) -> Value:
        key = (ref, access)
        if key not in self.known:
            operand = self.graph.inputs_by_name.get(ref.name)
            self.known[key] = self._node(ref, access) if operand is None else self._input(operand, access)
        return self.known[key]

    def _input(self, graph_input: GraphInput, access: Access) -> Value:
        if graph_input.kind is InputKind.SCALAR:
            raise PlanError(
                "{name} is a number with a fraction, which integers are not computed with.",
                name=graph_input.name,
            )
        atoms = atoms_of(graph_input, access)
        name = self._name(graph_input.name, atoms)
        if graph_input.spec.dtype == "int64":
            return Whole(self.words.read("low", name), self.words.read("high", name))
        word = self.words.read("narrow", name)
        return Truth(self.words.mul(word, -1)) if graph_input.spec.dtype == "bool" else Whole(word)

    def _name(self, source: str, atoms: tuple[int, ...]) -> str:
        """The name of an input at an access, unlike any other."""
        if (source, atoms) not in self.reads:
            taken = {*self.graph.inputs_by_name, *self.reads.values(), *self.results}
            taken -= {source} - {*self.reads.values(), *self.results}
            name, count = source, 2
            while name in taken:
                name, count = f"{source}_{count}", count + 1
            self.reads[source, atoms] = name
        return self.reads[source, atoms]

    def _node(self, ref: ValueRef, access: Access) -> Value:
        node = self.graph.nodes_by_name[ref.name]
        if node.op in VIEWS:
            operand = next(iter(node.operands()))
            return self.value(operand, operand_access(self.space, node, access, self.graph.spec(operand)))
        shape = node.outputs[0].shape

        def evaluate(operand: ValueRef) -> Value:
            value = self.value(operand, broadcast(access, shape, self.graph.spec(operand).shape))
            self.words.origin = node.name
            return value

        self.words.origin = node.name
        return RULES[node.op](WordCall(node, self.words, evaluate, self.graph.spec))
