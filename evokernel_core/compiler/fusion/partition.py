"""Cutting a graph into kernels: fuse producers and consumers as far as a family covers the union.

Views belong to no kernel: each kernel that reads one computes it on the way, or reads what lies
under it. Only where no family can do that, a view gets a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from attrs import define, evolve, field, frozen

from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec

Group = frozenset[str]
"""The names of the nodes that one kernel computes, views left out unless they are all it does."""
Check = Callable[[KernelTask], None]
"""Raises PlanError for a task that no family covers."""

MOST_NODES = 60
"""Nodes of one kernel: beyond that, fusing more costs instruction cache and gains nothing."""


@frozen
class Piece:
    """One kernel's share: its task, and which values of the whole graph its tensors are."""

    task: KernelTask
    inputs: tuple[ValueRef, ...]
    outputs: tuple[ValueRef, ...]


def partition(
    task: KernelTask, check: Check, views: frozenset[str], refused: frozenset[Group] = frozenset()
) -> tuple[Group, ...]:
    """Groups of nodes in an order in which they can run. ``views``: the operations that only rename elements.
    ``refused`` groups are not made again.

    Raises PlanError with the reason where a node is covered by no family even alone.
    """
    cutter = _Cutter(task, check, views, refused)
    for node in task.graph.nodes:
        if node.op not in cutter.views:
            cutter.place(node)
    cutter.place_outputs()
    cutter.widen_late()
    return cutter.ordered(cutter.groups)


def pieces(task: KernelTask, groups: Iterable[Group], views: frozenset[str]) -> tuple[Piece, ...]:
    """The task of each group: what it reads from outside is an input, what others read an output."""
    known = list(groups)
    cutter = _Cutter(task, lambda _: None, views, groups=known)
    return tuple(cutter.piece(group) for group in known)


def in_order(task: KernelTask, groups: Iterable[Group], views: frozenset[str]) -> tuple[Group, ...]:
    """Groups, each behind those that it reads. Raises PlanError where some read each other."""
    known = list(groups)
    try:
        return _Cutter(task, lambda _: None, views, groups=known).ordered(known)
    except CycleError as error:
        raise PlanError("Kernels would read each other's results.") from error


def base_of(graph: Graph, ref: ValueRef, held: frozenset[str]) -> ValueRef:
    """The value under a chain of views that only change the shape and that no kernel in ``held``
    computes."""
    node = graph.nodes_by_name.get(ref.name)
    while node is not None and node.op in SAME_ORDER and node.name not in held:
        operand = next(iter(node.operands()), None)
        if operand is None:  # numbers that are made
            break
        ref, node = operand, graph.nodes_by_name.get(operand.name)
    return ref


@define
class _Cutter:
    task: KernelTask
    check: Check
    views: frozenset[str]
    refused: frozenset[Group] = frozenset()
    groups: list[Group] = field(factory=list)
    nodes: Mapping[str, Node] = field(init=False)
    readers: Mapping[str, tuple[str, ...]] = field(init=False)
    inputs: Mapping[str, GraphInput] = field(init=False)
    places: Mapping[str, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        graph = self.task.graph
        self.nodes, self.inputs = graph.nodes_by_name, graph.inputs_by_name
        self.places = {node.name: index for index, node in enumerate(graph.nodes)}
        self.readers = {name: tuple(node.name for node in nodes) for name, nodes in graph.readers.items()}

    # -- growing ------------------------------------------------------------------------------

    def place(self, node: Node) -> None:
        """Puts a node into the first of its possible groups that a family covers; where there is none, a
        view below it gets a kernel of its own, and only where one is not enough several do."""
        reason = self._try_groups(node)
        operands = tuple(dict.fromkeys(node.operands()))
        if reason is None or any(self._try_below(node, ref, keep=False) for ref in operands):
            return
        if len(operands) > 1 and any(self._try_below(node, ref, keep=True) for ref in operands):
            return
        for view in self._views_below(node):
            self._materialise(view)
        reason = self._try_groups(node)
        if reason is not None:
            raise reason

    def _try_below(self, node: Node, ref: ValueRef, keep: bool) -> bool:
        """Whether the node finds a group where one of the views below an operand has a kernel of its own,
        which does the views below it too. Where not, ``keep`` leaves the outermost such kernel."""
        before, first = list(self.groups), list(self.groups)
        for view in self._chain(ref):
            try:
                self._materialise(view)
            except PlanError:
                continue
            if self._try_groups(node) is None:
                return True
            first = first if first != before else self.groups
            self.groups = list(before)
        self.groups = first if keep else before
        return False

    def _chain(self, ref: ValueRef) -> list[Node]:
        """The views below an operand that change more than the shape, outermost first, those that repeat
        elements last."""
        result = []
        below = self.nodes.get(ref.name)
        while below is not None and below.op in self.views and not self._is_held(below.name):
            if below.op not in SAME_ORDER:
                result.append(below)
            operand = next(iter(below.operands()), None)  # none below numbers that are made
            below = None if operand is None else self.nodes.get(operand.name)
        return sorted(result, key=lambda view: view.op in BROADCASTS)

    def _try_groups(self, node: Node) -> PlanError | None:
        producers = [group for group in self.groups if group & self._sources(node)]
        alone = frozenset({node.name})
        last: PlanError | None = None
        for merged in _choices(producers):
            union = alone.union(*merged)
            rest = [group for group in self.groups if group not in merged]
            if self._reads_itself(union, rest):
                continue
            try:
                self._check(union)
            except PlanError as error:
                last = error
            else:
                self.groups = [*rest, union]
                return None
        return last

    def _check(self, group: Group) -> None:
        if group in self.refused or len(group) > MOST_NODES:
            raise PlanError("The operations do not fit one kernel.")
        self.check(self.piece(group).task)

    def _materialise(self, view: Node) -> None:
        """Gives a view, with the views below it, a kernel of its own; where those do not fit together,
        one of them has to come first. Raises PlanError where that is not enough."""
        group = frozenset({view.name})
        if group in self.groups:
            return
        before, reason = list(self.groups), None
        below = [node for ref in tuple(view.operands())[:1] for node in self._chain(ref)]
        for first in (None, *reversed(below)):
            try:
                if first is not None:
                    self._check(frozenset({first.name}))
                    self.groups = [*before, frozenset({first.name})]
                self._check(group)
            except PlanError as error:
                self.groups, reason = list(before), reason or error
            else:
                self.groups.append(group)
                return
        assert reason is not None
        raise reason

    def place_outputs(self) -> None:
        """A view that the graph returns is computed by its producer, or by a kernel of its own."""
        for ref in self.task.graph.outputs:
            node = self.nodes.get(ref.name)
            if node is not None and node.op in self.views and not self._is_held(node.name):
                base = self._base(ref)
                if base.name in self.inputs or not self._is_held(base.name):
                    self._materialise(node)

    def widen_late(self) -> None:
        """Lets a kernel that reads a 16-bit value as float32 convert it, instead of the kernel that makes it:
        half as many bytes lie between them."""
        for node in reversed(self.task.graph.nodes):
            holder = next((group for group in self.groups if node.name in group), None)
            if holder is None or not self._widens(node):
                continue
            readers = [group for group in self.groups if node.name in self._sources_of(group)]
            if len(readers) != 1 or readers[0] == holder or self._is_returned(node):
                continue
            before, moved = list(self.groups), frozenset({node.name})
            self.groups = [group for group in before if group not in (holder, readers[0])]
            self.groups += [group for group in (holder - moved, readers[0] | moved) if group]
            try:
                for group in self.groups[len(before) - 2 :]:
                    self._check(group)
            except PlanError:
                self.groups = before

    def _widens(self, node: Node) -> bool:
        if node.op != "aten._to_copy.default" or node.outputs[0].dtype != "float32":
            return False
        return all(self.task.graph.spec(ref).dtype in ("float16", "bfloat16") for ref in node.operands())

    def _is_returned(self, node: Node) -> bool:
        return any(below.name == node.name for ref in self.task.graph.outputs for below in self._below(ref))

    # -- looking ------------------------------------------------------------------------------

    def _is_held(self, name: str) -> bool:
        return any(name in group for group in self.groups)

    def _sources(self, node: Node) -> frozenset[str]:
        """The computing nodes that a node reads, through views that no group holds."""
        result: set[str] = set()
        waiting = list(node.operands())
        while waiting:
            ref = waiting.pop()
            below = self.nodes.get(ref.name)
            if below is None:
                continue
            if below.op in self.views and not self._is_held(below.name):
                waiting.extend(below.operands())
            else:
                result.add(below.name)
        return frozenset(result)

    def _views_below(self, node: Node) -> Iterator[Node]:
        """The views that a node reads and that change more than the shape, innermost first."""
        for ref in node.operands():
            below = self.nodes.get(ref.name)
            if below is not None and below.op in self.views and not self._is_held(below.name):
                yield from self._views_below(below)
                if below.op not in SAME_ORDER:
                    yield below

    def _base(self, ref: ValueRef) -> ValueRef:
        return base_of(self.task.graph, ref, frozenset().union(*self.groups))

    def _reads_itself(self, union: Group, rest: list[Group]) -> bool:
        """Whether a group would read through others what it makes: then none of them can come first."""
        holder = {name: group for group in rest for name in group}
        first = min(map(self.places.__getitem__, union))
        seen: set[Group] = set()
        waiting = [holder[name] for name in self._sources_of(union) if name in holder]
        while waiting:
            group = waiting.pop()
            # values flow forward: what ends before the group begins reads nothing of it
            if group in seen or max(map(self.places.__getitem__, group)) < first:
                continue
            seen.add(group)
            sources = self._sources_of(group)
            if sources & union:
                return True
            waiting += [holder[name] for name in sources if name in holder]
        return False

    def _sources_of(self, group: Group) -> frozenset[str]:
        return frozenset().union(*(self._sources(self.nodes[name]) for name in group))

    def ordered(self, groups: Iterable[Group]) -> tuple[Group, ...]:
        """The groups, each behind those that it reads. Raises CycleError."""
        known = list(groups)
        holder = {name: group for group in known for name in group}
        place = self.places
        sorter: TopologicalSorter[Group] = TopologicalSorter()
        for group in sorted(known, key=lambda entry: min(place[name] for name in entry)):
            read = {holder[name] for name in self._sources_of(group) if name in holder} - {group}
            sorter.add(group, *sorted(read, key=lambda read_: min(place[name] for name in read_)))
        return tuple(sorter.static_order())

    # -- the task of a group ------------------------------------------------------------------

    def piece(self, group: Group) -> Piece:
        """The group as a task of its own."""
        names: dict[str, None] = {}
        read: dict[ValueRef, TensorSpec] = {}
        for name in group:
            self._collect(self.nodes[name], group, names, read)
        graph, task = self.task.graph, self.task
        outside = {self._outer_name(ref): ref for ref in read if ref.name not in self.inputs}
        made = sorted(outside, key=lambda name: (self.places[outside[name].name], outside[name].index))
        kept = [
            operand
            for operand in graph.inputs
            if operand.kind is InputKind.SCALAR or ValueRef(operand.name) in read
        ]
        inputs = (*kept, *(GraphInput(name, read[outside[name]]) for name in made))
        in_order = sorted(names, key=self.places.__getitem__)
        nodes = tuple(_renamed(self.nodes[name], outside, self.inputs) for name in in_order)
        outputs = tuple(self._outputs(group))
        tensors = [ValueRef(entry.name) for entry in kept if entry.kind is not InputKind.SCALAR]
        part = Graph(inputs, nodes, outputs)
        return Piece(
            evolve(task, graph=part, name=_name(group, self.nodes, task.name)),
            (*tensors, *(outside[name] for name in made)),
            outputs,
        )

    def _collect(
        self, node: Node, group: Group, names: dict[str, None], read: dict[ValueRef, TensorSpec]
    ) -> None:
        """What computing ``node`` takes: nodes (itself and views below it) and values from outside."""
        if node.name in names:
            return
        names[node.name] = None
        for ref in node.operands():
            below = self.nodes.get(ref.name)
            if below is None:
                read[ref] = self.inputs[ref.name].spec
            elif below.name in group:
                continue
            elif below.op in self.views and not self._is_held_elsewhere(below.name, group):
                self._collect(below, group, names, read)
            else:
                read[ref] = below.outputs[ref.index]

    def _is_held_elsewhere(self, name: str, group: Group) -> bool:
        return any(name in other for other in self.groups if other != group)

    def _outputs(self, group: Group) -> Iterator[ValueRef]:
        wanted = {below for ref in self.task.graph.outputs for below in self._below(ref)}
        for name in sorted(group, key=self.places.__getitem__):
            for index in range(len(self.nodes[name].outputs)):
                ref = ValueRef(name, index)
                if ref in wanted or self._is_read_outside(ref, group):
                    yield ref

    def _below(self, ref: ValueRef) -> Iterator[ValueRef]:
        """The value and what it is made of by views that no group holds."""
        yield ref
        node = self.nodes.get(ref.name)
        while node is not None and node.op in self.views and not self._is_held(node.name):
            operand = next(iter(node.operands()), None)
            if operand is None:  # numbers that are made
                return
            yield operand
            node = self.nodes.get(operand.name)

    def _is_read_outside(self, ref: ValueRef, group: Group) -> bool:
        """Whether a node outside the group needs the value, directly or through views."""
        for name in self.readers.get(ref.name, ()):
            node = self.nodes[name]
            if name in group or ref not in set(node.operands()):
                continue
            if node.op not in self.views or self._is_held(name):
                return True
            if ValueRef(name) in self.task.graph.outputs:  # which gets a kernel of its own in the end
                return True
            if any(self._is_read_outside(ValueRef(name, i), group) for i in range(len(node.outputs))):
                return True
        return False

    def _outer_name(self, ref: ValueRef) -> str:
        """What a value from outside is called, unlike any other value of the graph."""
        if not ref.index:
            return ref.name
        name = f"{ref.name}_{ref.index}"
        while name in self.nodes or name in self.inputs:
            name += "_"
        return name


def _choices(producers: list[Group]) -> Iterator[tuple[Group, ...]]:
    """Which producers' groups a node joins: all, the newest that works, none."""
    if len(producers) > 1:
        yield tuple(producers)
    for group in reversed(producers):
        yield (group,)
    yield ()


def _renamed(node: Node, outside: Mapping[str, ValueRef], inputs: Mapping[str, GraphInput]) -> Node:
    """The node with values from outside under their input's name."""
    names = {ref: name for name, ref in outside.items()}

    def argument(arg: Arg) -> Arg:
        if isinstance(arg, ValueRef) and arg in names:
            return ValueRef(names[arg])
        return tuple(argument(item) for item in arg) if isinstance(arg, tuple) else arg

    args = tuple(argument(arg) for arg in node.args)
    return evolve(node, args=args, kwargs=tuple((key, argument(value)) for key, value in node.kwargs))


def _name(group: Group, nodes: Mapping[str, Node], default: str) -> str:
    """A word for the kernel: the op that stands for it."""
    ops = [node.op.split(".")[1].strip("_") for name, node in nodes.items() if name in group]
    return ops[-1] if ops else default
