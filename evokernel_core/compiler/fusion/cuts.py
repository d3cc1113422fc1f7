"""Programs one step away from another: steps of a kernel that become a neighbour's or a kernel of their own,
and two kernels that become one.

Partition fuses as far as a family covers the union. That is not always the fastest: a norm whose statistics
are a kernel of their own may take its images in chunks, and what it does to each element may go into the
kernel that reads it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, zip_longest

from attrs import frozen

from evokernel_core.compiler.coverage import view_ops
from evokernel_core.compiler.fusion.partition import Group, Piece, in_order, pieces
from evokernel_core.compiler.fusion.program import assemble, has_schedules
from evokernel_core.compiler.fusion.records import Program
from evokernel_core.compiler.target import Target
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device

MOST_KERNELS = 12
"""Kernels of a program beyond which no other cut is looked for: each is planned anew."""
_LARGE = 16
"""Values of at least this part of the largest one: by where these are made and read, cuts differ."""
_MOST_PLACES = 8
"""Places of a kernel at which it is cut: of a long chain of steps, some of which lie as well as others."""
_MOST_RECUTS = 64
"""Programs that are looked at, of all kernels in turn: each takes some ten milliseconds to plan."""
_MOMENTS = "aten.var_mean.correction"


@frozen
class Recut:
    """Another program of the same task, and in words what was changed."""

    name: str
    program: Program


def recuts(task: KernelTask, program: Program, device: Device, target: Target) -> Iterator[Recut]:
    """The programs one step away for which there are kernels."""
    if len(program.stages) > MOST_KERNELS:
        return
    seen = {frozenset(program.groups)}
    for name, groups in islice(_neighbours(task, program.groups, view_ops(target)), _MOST_RECUTS):
        if frozenset(groups) not in seen:
            seen.add(frozenset(groups))
            result = covered(task, groups, device, target)
            if result is not None:
                yield Recut(name, result)


def with_moments_apart(task: KernelTask, program: Program, device: Device, target: Target) -> Program | None:
    """The program with the variances and means of large values apart from what is done to these with them;
    None where there is no such program."""
    groups, graph = program.groups, _Graph.of(task.graph)
    if len(program.stages) > MOST_KERNELS:
        return None
    for group in program.groups:
        behind = _behind_moments(task, graph, group)
        if behind and behind != group:
            result = (*(other for other in groups if other != group), group - behind, behind)
            groups = result if covered(task, result, device, target) is not None else groups
    return None if groups == program.groups else covered(task, groups, device, target)


def covered(task: KernelTask, groups: Iterable[Group], device: Device, target: Target) -> Program | None:
    """The program of groups, None where no family covers one of them or kernels would read each other."""
    try:
        ordered = in_order(task, groups, view_ops(target))
        if len(ordered) > MOST_KERNELS or not has_schedules(task, ordered, device, target):
            return None
        return assemble(task, ordered, device, target)
    except PlanError:
        return None


@frozen
class _Graph:
    """Which nodes read which, directly."""

    nodes: Mapping[str, Node]
    readers: Mapping[str, frozenset[str]]
    read: Mapping[str, frozenset[str]]

    @staticmethod
    def of(graph: Graph) -> _Graph:
        nodes = graph.nodes_by_name
        read = {
            node.name: frozenset(ref.name for ref in node.operands() if ref.name in nodes)
            for node in graph.nodes
        }
        readers = {name: frozenset(node for node in nodes if name in read[node]) for name in nodes}
        return _Graph(nodes, readers, read)

    def below(self, names: Iterable[str]) -> frozenset[str]:
        """The nodes and all that they read."""
        return _reached(names, self.read)

    def behind(self, names: Iterable[str]) -> frozenset[str]:
        """The nodes and all that read them."""
        return _reached(names, self.readers)


def _reached(names: Iterable[str], steps: Mapping[str, frozenset[str]]) -> frozenset[str]:
    seen, waiting = set(names), list(names)
    while waiting:
        new = steps[waiting.pop()] - seen
        seen |= new
        waiting += new
    return frozenset(seen)


def _neighbours(
    task: KernelTask, groups: tuple[Group, ...], views: frozenset[str]
) -> Iterator[tuple[str, tuple[Group, ...]]]:
    """Of each group in turn one neighbour, then another one."""
    graph, large = _Graph.of(task.graph), _large(task)
    made = dict(zip(groups, pieces(task, groups, views), strict=True))
    of_groups = [_of_group(graph, large, made, group) for group in groups]
    for result in zip_longest(*of_groups):
        yield from (element for element in result if element is not None)


def _of_group(
    graph: _Graph, large: frozenset[str], made: Mapping[Group, Piece], group: Group
) -> Iterator[tuple[str, tuple[Group, ...]]]:
    others = tuple(other for other in made if other != group)
    readers = [other for other in others if set(made[group].outputs) & set(made[other].inputs)]
    makers = [other for other in others if set(made[other].outputs) & set(made[group].inputs)]
    for reader in readers:
        rest = tuple(other for other in others if other != reader)
        yield "one kernel instead of two", (*rest, group | reader)
    for op, suffix in _suffixes(graph, group, large):
        prefix = group - suffix
        yield Sentence("a kernel of its own from {op} on", op=op), (*others, prefix, suffix)
        for reader in readers:
            rest = tuple(other for other in others if other != reader)
            yield (
                Sentence("{op} and what follows in the kernel behind", op=op),
                (*rest, prefix, suffix | reader),
            )
        for maker in makers:
            rest = tuple(other for other in others if other != maker)
            yield (
                Sentence("what comes before {op} in the kernel before", op=op),
                (*rest, prefix | maker, suffix),
            )


def _suffixes(graph: _Graph, group: Group, large: frozenset[str]) -> Iterator[tuple[str, Group]]:
    """Parts of a group that nothing else in it reads, each with the op that it begins with: one for each way
    to part those nodes that read or make large values."""
    heavy = [name for name in graph.nodes if name in group and name in large]
    seen: set[Group] = {frozenset(), frozenset(heavy)}
    # What is small goes with what it is made of, where there is a choice.
    tried = heavy[:: math.ceil(len(heavy) / _MOST_PLACES)] if heavy else []
    result = [graph.behind([name]) & group for name in tried]
    result += [group - graph.below([name]) for name in tried]
    for suffix in result:
        share = suffix & frozenset(heavy)
        if share not in seen:
            seen.add(share)
            first = next(name for name in heavy if name in share)
            yield graph.nodes[first].op.split(".")[1].strip("_"), suffix


def _large(task: KernelTask) -> frozenset[str]:
    """The nodes that read or make values of about the size of the largest."""
    specs = {ValueRef(operand.name): operand.spec for operand in task.graph.inputs}
    for node in task.graph.nodes:
        specs |= {ValueRef(node.name, index): spec for index, spec in enumerate(node.outputs)}
    sizes = {ref: spec.nbytes(task.sizes) for ref, spec in specs.items()}
    least = max(sizes.values(), default=0) / _LARGE
    return frozenset(
        node.name
        for node in task.graph.nodes
        if any(sizes[ref] >= least for ref in node.operands())
        or any(sizes[ValueRef(node.name, index)] >= least for index in range(len(node.outputs)))
    )


def _behind_moments(task: KernelTask, graph: _Graph, group: Group) -> Group:
    """The nodes of a group that read its moments together with large values, and all behind them."""
    large = _large(task)
    moments = [name for name in group if graph.nodes[name].op == _MOMENTS and name in large]
    heavy = [name for name in graph.behind(moments) - frozenset(moments) if name in group and name in large]
    return graph.behind(heavy) & group
