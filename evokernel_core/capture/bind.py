"""Settings of a module as constants of its kernel: where a kernel with them as operands would be worse."""

from __future__ import annotations

from attrs import evolve

from evokernel_core.domain.call_site import Guard
from evokernel_core.domain.graph import Arg, Graph, ValueRef
from evokernel_core.domain.region import Region


def settings_of(region: Region) -> frozenset[str]:
    """The inputs of the region that are settings, such as an eps."""
    inputs = region.task.graph.inputs if region.task else ()
    return frozenset(operand.name for operand in inputs if operand.value is not None)


def bound(region: Region, names: frozenset[str]) -> Region:
    """The region with these settings as they are, each asked for by a guard."""
    if region.task is None or region.site is None or not names:
        return region
    settings = [operand for operand in region.task.graph.inputs if operand.name in names]
    guards = [Guard("", f"guards.equal({setting.expression}, {setting.value!r})") for setting in settings]
    task = evolve(region.task, graph=_with_values(region.task.graph, names))
    site = evolve(region.site, guards=(*region.site.guards, *guards))
    return evolve(region, task=task, site=site)


def _with_values(graph: Graph, names: frozenset[str]) -> Graph:
    values = {operand.name: operand.value for operand in graph.inputs if operand.name in names}

    def given(arg: Arg) -> Arg:
        if isinstance(arg, tuple):
            return tuple(map(given, arg))
        return values[arg.name] if isinstance(arg, ValueRef) and arg.name in values else arg

    nodes = tuple(evolve(node, args=tuple(map(given, node.args))) for node in graph.nodes)
    inputs = tuple(operand for operand in graph.inputs if operand.name not in values)
    return evolve(graph, nodes=nodes, inputs=inputs)
