"""The regions of a file for which there are kernels, and why there are none for others."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core.capture.client import Way
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.call_site import Guard
from evokernel_core.domain.defects import contained
from evokernel_core.domain.errors import InternalError, PlanError, UsageError
from evokernel_core.domain.graph import Arg, Graph, ValueRef
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.synthesis.agent import SharedAgent

_WORTH_A_CONSTANT = 1.01
"""How many times as long a kernel may take with a setting as an operand as with it as a constant."""


@frozen
class RegionFinder:
    """Finds the regions of a file by ``agent`` and plans a kernel for each."""

    agent: SharedAgent
    author: KernelAuthor

    def single(
        self,
        path: Path,
        text: str | None = None,
        symbol: str | None = None,
        group: int = 0,
    ) -> tuple[Region, ...]:
        """The regions of a file that one fused kernel each can compute; those that no family covers are
        unsupported, with the reason."""
        return tuple(map(self.planned, self.captured(path, text, symbol, group)))

    def captured(
        self, path: Path, text: str | None, symbol: str | None, group: int = 0
    ) -> tuple[Region, ...]:
        """As ``single``, before any is planned."""
        return self.agent.capture(path, text, self.author.single_ops(), symbol, group=group)

    def programs(
        self, path: Path, text: str | None = None, symbol: str | None = None, group: int = 0
    ) -> tuple[Region, ...]:
        """The regions of a file, each as large as several kernels in a row can compute; where the planner
        refuses one, it is taken with all sizes but those of batches fixed, or else the smaller ones inside it
        take its place, and it says why."""
        agent, ops = self.agent, self.author.covered_ops()
        captured = agent.capture(path, text, ops, symbol, whole=True, group=group)
        planned = tuple(map(self.planned, captured))
        refused = [
            after for before, after in zip(captured, planned, strict=True) if before.task and not after.task
        ]
        if not refused:
            return planned
        result = [region for region in planned if region.task is not None]

        def taken(way: Way) -> list[Region]:
            """What of the refused ones can be planned in another way."""
            ways = _all_in(refused, way)
            again = agent.capture(path, text, ops, symbol, whole=True, ways=ways, group=group)
            return [region for region in map(self.planned, again) if region.task is not None]

        _add(result, taken("fixed"))
        refused = [region for region in refused if all(region.span != other.span for other in result)]
        if not refused:
            return tuple(sorted(result, key=_position))
        _add(result, taken("parts"))
        _add(result, self.single(path, text, symbol, group))
        reasons = [*refused, *(region for region in captured if region.status is RegionStatus.UNSUPPORTED)]
        result += [region for region in reasons if all(region.span != other.span for other in result)]
        return tuple(sorted(result, key=_position))

    def planned(self, region: Region) -> Region:
        """A captured region with what its kernel takes; unsupported where there is none."""
        if region.status is not RegionStatus.CANDIDATE or region.task is None:
            return region
        try:
            with contained(Sentence("planning its kernels"), region.span.line):
                region = self._with_settings(region)
                self.author.check(task_of(region))
        except (PlanError, InternalError) as error:
            return unsupported(region, error.sentence)
        return region

    def _with_settings(self, region: Region) -> Region:
        """The region with settings such as an eps as operands, but for those that are constants of a faster
        kernel."""
        settings = settings_of(region)
        if not settings:
            return region
        constant = bound(region, settings)
        if self._is_as_fast(region, constant):
            return region
        result = settings
        for name in sorted(settings):
            if self._is_as_fast(bound(region, result - {name}), constant):
                result -= {name}
        return bound(region, result)

    def _is_as_fast(self, region: Region, constant: Region) -> bool:
        try:
            return self._us(task_of(region)) <= _WORTH_A_CONSTANT * self._us(task_of(constant))
        except PlanError:
            return False

    def _us(self, task: KernelTask) -> float:
        return self.author.plan(task).estimate_us()


def unsupported(region: Region, reason: Sentence) -> Region:
    """A region that no kernel computes, for a reason."""
    return evolve(region, status=RegionStatus.UNSUPPORTED, reason=reason, task=None)


def _all_in(regions: Iterable[Region], way: Way) -> dict[str, Way]:
    """The functions of regions, to be taken in one way."""
    return {region.symbol: way for region in sorted(regions, key=attrgetter("symbol"))}


def _position(region: Region) -> tuple[int, int]:
    return region.span.line, region.span.column


def _add(regions: list[Region], more: Iterable[Region]) -> None:
    """Adds the regions that lie apart from those that were there before."""
    before = [region.span for region in regions]
    regions += [region for region in more if not any(region.span.overlaps(span) for span in before)]


def task_of(region: Region) -> KernelTask:
    """The task of a region. Raises UsageError where it has none."""
    if region.task is None:
        raise UsageError(
            "No kernel can be written for {symbol}: {reason}", symbol=region.symbol, reason=region.reason
        )
    return region.task


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
