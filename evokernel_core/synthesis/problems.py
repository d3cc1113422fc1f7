"""Benchmark problems: files with a module and its inputs, one whole forward each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core.capture.calls import serves
from evokernel_core.capture.text import read_python
from evokernel_core.domain.errors import CaptureError, VerifierError, VerifierUnavailable
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.roofline import roofline_us
from evokernel_core.synthesis.coverage import uncovered
from evokernel_core.synthesis.engine import SynthesisResult
from evokernel_core.synthesis.session import Session
from evokernel_core.verifier.base import never


@frozen
class ProblemResult:
    """One problem; latencies in microseconds, ``latency_source`` says whether they are modelled or measured,
    None where there is none. ``failed_gate`` is ``capture`` where no region covers the forward, else the
    verifier's gate of the last failure. ``roofline_us`` is the bound of the algorithm that takes least,
    ``written_bound_us`` that of the operations as they were written. ``level`` is the problem's folder in
    its suite, ``category`` that of the task, both empty where there is none. A file may have several input
    ``groups``, of which the verified kernels serve ``served``; latencies are then sums over the kernels."""

    name: str
    feasible: bool
    attempts: int = 0
    first_latency_us: float | None = None
    best_latency_us: float | None = None
    baseline_us: float | None = None
    roofline_us: float | None = None
    tokens: int = 0
    failed_gate: str = ""
    reason: str = ""
    seconds: float = 0.0
    level: str = ""
    category: str = ""
    groups: int = 1
    served: int = 0
    latency_source: str | None = None
    written_bound_us: float | None = None

    @property
    def key(self) -> str:
        """Tells it from a problem of the same name in another level."""
        return f"{self.level}/{self.name}"


def solve(
    session: Session,
    file: Path,
    budget: int,
    job_id: str,
    most: int = 0,
    cancelled: Callable[[], bool] = never,
) -> ProblemResult:
    """Spends the budget on the one region that covers the problem's forward; of a file with several input
    groups, on one region after the other until their kernels serve all groups, or ``most`` are verified.
    A group of empty tensors needs no kernel: a call of one gives it to PyTorch.

    Failures of the problem are results; VerifierUnavailable and errors of the product are raised.
    """
    started = time.monotonic()
    result = _attempted(session, file, budget, job_id, most, cancelled)
    return evolve(result, seconds=round(time.monotonic() - started, 3))


def _attempted(
    session: Session, file: Path, budget: int, job_id: str, most: int, cancelled: Callable[[], bool]
) -> ProblemResult:
    try:
        calls = session.agent.calls(file)
    except CaptureError as error:
        return ProblemResult(file.stem, False, failed_gate="capture", reason=str(error))
    solved: list[ProblemResult] = []
    waiting = [number for number, call in enumerate(calls.groups) if not call.is_empty]
    waiting = waiting or [0]
    while waiting and (not most or len(solved) < most) and not (solved and cancelled()):
        number = waiting[0]
        try:
            region, reason = whole_forward(session, file, calls.symbol, number)
        except CaptureError as error:
            region, reason = None, str(error)
        if region is None:
            result = ProblemResult(file.stem, False, failed_gate="capture", reason=reason)
        else:
            job = f"{job_id}-{number}" if number else job_id
            result = _solve_region(session, region, file.stem, budget, job, cancelled)
        if len(calls.groups) > 1 and not result.feasible:
            result = evolve(result, reason=f"Input group {number + 1}: {result.reason}")
        solved.append(result)
        if region is None or not result.feasible:
            break
        served = (serves(region, calls.groups[number], calls.groups[other]) for other in waiting[1:])
        waiting = [other for other, done in zip(waiting[1:], served, strict=True) if not done]
    groups = len(calls.groups)
    return evolve(_joined(solved), groups=groups, served=groups - len(waiting))


def _joined(solved: list[ProblemResult]) -> ProblemResult:
    """The kernels of one file as one result."""
    last = evolve(
        solved[-1],
        attempts=sum(problem_result.attempts for problem_result in solved),
        tokens=sum(problem_result.tokens for problem_result in solved),
    )
    if not last.feasible or len(solved) == 1:
        return last
    return evolve(
        last,
        first_latency_us=_sum(problem_result.first_latency_us for problem_result in solved),
        best_latency_us=_sum(problem_result.best_latency_us for problem_result in solved),
        baseline_us=_sum(problem_result.baseline_us for problem_result in solved),
        roofline_us=_sum(problem_result.roofline_us for problem_result in solved),
        written_bound_us=_sum(problem_result.written_bound_us for problem_result in solved),
    )


def _sum(latencies: Iterable[float | None]) -> float | None:
    """None where one is not known."""
    known = list(latencies)
    return None if None in known else math.fsum(entry or 0.0 for entry in known)


def _solve_region(
    session: Session, region: Region, name: str, budget: int, job_id: str, cancelled: Callable[[], bool]
) -> ProblemResult:
    try:
        problem_result = _result(name, session.synthesise(region, budget, job_id=job_id, cancelled=cancelled))
    except VerifierUnavailable:
        raise
    except VerifierError as error:
        problem_result = ProblemResult(name, False, failed_gate="verifier", reason=str(error))
    bound = (
        roofline_us(region.task, session.author.device)
        if problem_result.feasible and region.task is not None
        else None
    )
    return evolve(problem_result, category=region.op_category, written_bound_us=bound)


def whole_forward(session: Session, file: Path, symbol: str, group: int) -> tuple[Region | None, str]:
    """The region that is all of the function's work, or why there is none."""
    text = read_python(file)
    result = session.regions(file, symbol=symbol, programs=True, group=group)
    regions = [region for region in result if region.symbol == symbol]
    left_out = []
    for region in regions:
        if region.task is not None:
            reason = uncovered(text, region)
            if not reason:
                return region, ""
            left_out.append(reason)
    # a call that fails may do so in a function that the symbol calls
    refused = [region.reason for region in regions if region.task is None and region.reason] or [
        region.reason for region in result if region.task is None and region.reason
    ]
    return None, " ".join(dict.fromkeys((*refused, *left_out))) or (
        Sentence("{symbol} has no candidate for a kernel.", symbol=symbol)
    )


def _result(name: str, result: SynthesisResult) -> ProblemResult:
    latency = result.best.verdict.latency if result.best else None
    return ProblemResult(
        name=name,
        feasible=latency is not None,
        attempts=result.attempts,
        first_latency_us=result.first_latency_us,
        best_latency_us=latency.us if latency else None,
        baseline_us=latency.baseline_us if latency else None,
        roofline_us=latency.roofline_us if latency else None,
        tokens=result.tokens,
        failed_gate=result.failed_gate,
        reason=result.reason,
        latency_source=latency.source.value if latency else None,
    )
