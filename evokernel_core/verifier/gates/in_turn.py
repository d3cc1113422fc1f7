"""Runs of cases, small ones one after the other in processes that are started once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from evokernel_core import temporary
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateResult, GateStatus
from evokernel_core.verifier.base import Execution, RunsInTurn
from evokernel_core.verifier.gates.cases import LIGHT, MODEST, CasePlan, bytes_between, total_bytes
from evokernel_core.verifier.gates.one_case import (
    CaseFolders,
    Judges,
    case_of,
    judged,
    reference_of,
    run_case,
)

if TYPE_CHECKING:
    from evokernel_core.capture.reference import ReferenceCase


@frozen
class Ran:
    """A case that ran; ``outcome`` is None where the kernel may and does decline its sizes. The files of the
    reference are there until the next one is asked for."""

    plan: CasePlan
    reference: ReferenceCase
    outcome: GateResult | None
    execution: Execution

    @property
    def failed(self) -> bool:
        return self.outcome is not None and self.outcome.status is GateStatus.FAILED


def grouped(task: KernelTask, plans: Sequence[CasePlan], judges: Judges) -> Iterator[tuple[CasePlan, ...]]:
    """The plans in their order: light ones together where the backend runs these in turn, but for the first
    and the last one."""
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    small = [plan for plan in plans[1:-1] if _is_light(task, dict(plan.sizes), least)]
    if not isinstance(judges.backend, RunsInTurn) or not small:
        yield from ((plan,) for plan in plans)
        return
    yield (plans[0],)
    yield tuple(small)
    yield from ((plan,) for plan in plans[1:] if plan not in small)


def _is_light(task: KernelTask, sizes: Mapping[str, int], least: int) -> bool:
    """Of little data on top of what the least sizes take, or of little work: they share a limit of time."""
    total = total_bytes(task, sizes)
    return total <= least + MODEST or total + bytes_between(task, sizes) <= LIGHT


def runs(
    task: KernelTask,
    plans: Sequence[CasePlan],
    judges: Judges,
    *,
    is_last_chance: bool = False,
    probes: Sequence[tuple[int, ...]] = (),
) -> Iterator[Ran]:
    """What came of the cases, in order, up to the first that fails at the latest; sizes that PyTorch refuses
    are left out, unless it is the last chance. Where they run in turn, host code is asked about the
    ``probes`` behind them. Raises VerifierError where no case can be judged."""
    if len(plans) > 1 and isinstance(judges.backend, RunsInTurn):
        yield from _in_turn(task, plans, judges, judges.backend, probes)
        return
    for plan in plans:
        with temporary.folder("case") as name:
            folders = CaseFolders.made_in(Path(name))
            reference = reference_of(task, plan, judges.reference, folders, is_last_chance)
            if reference is not None:
                outcome, execution = run_case(task, plan, reference, judges, folders)
                yield Ran(plan, reference, outcome, execution)


def _in_turn(
    task: KernelTask,
    plans: Sequence[CasePlan],
    judges: Judges,
    backend: RunsInTurn,
    probes: Sequence[tuple[int, ...]],
) -> Iterator[Ran]:
    with temporary.folder("cases") as name:
        shared = CaseFolders.made_in(Path(name))
        asked: list[tuple[CasePlan, ReferenceCase, CaseFolders]] = []
        for number, plan in enumerate(plans):
            folders = shared.of(number)
            reference = reference_of(task, plan, judges.reference, folders, is_last_chance=False)
            if reference is not None:
                asked.append((plan, reference, folders))
        cases = [case_of(task, *each) for each in asked]
        executions = backend.execute_in_turn(judges.built, cases, probes) if cases else ()
        for (plan, reference, folders), case, execution in zip(asked, cases, executions, strict=False):
            outcome = judged(task, plan, reference, judges, folders, (case, execution))
            yield Ran(plan, reference, outcome, execution)
