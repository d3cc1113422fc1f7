"""Benchmark problems: a folder of files with ``Model`` and ``get_inputs``, one whole forward each."""

from __future__ import annotations

import ast
import fnmatch
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core.domain.errors import CaptureError, UsageError, VerifierError, VerifierUnavailable
from evokernel_core.domain.region import Region
from evokernel_core.synthesis.coverage import uncovered
from evokernel_core.synthesis.engine import SynthesisResult
from evokernel_core.synthesis.session import Session
from evokernel_core.verifier.base import never

FORWARD = "Model.forward"


@frozen
class ProblemResult:
    """One problem; latencies in microseconds, ``latency_source`` says whether they are modelled or measured,
    None where there is none. ``failed_gate`` is ``capture`` where no region covers
    the forward, else the verifier's gate of the last failure. ``level`` is the problem's folder in a suite
    of several, ``category`` that of the task, both empty where there is none."""

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
    latency_source: str | None = None

    @property
    def key(self) -> str:
        """Tells it from a problem of the same name in another level."""
        return f"{self.level}/{self.name}"


def problem_files(suite: Path, levels: Iterable[int], pattern: str) -> tuple[Path, ...]:
    """The problems of a suite in the order of their numbers: ``level<N>/*.py``, or ``*.py`` in a folder
    without levels, or else those in the folders below it. Names with an underscore in front are no
    problems. Raises UsageError where there is none."""
    folders = sorted(folder for folder in suite.glob("level*") if folder.is_dir())
    wanted = {f"level{level}" for level in levels}
    if wanted:
        folders = [folder for folder in folders if folder.name in wanted]
    elif not folders:
        folders = [suite] if _in_folder(suite) else sorted(item for item in suite.iterdir() if item.is_dir())
    files = [file for folder in folders for file in _in_folder(folder)]
    chosen = [file for file in files if fnmatch.fnmatch(file.name, pattern) or file.stem == pattern]
    if not chosen:
        raise UsageError(f"{suite} has no problem that matches {pattern!r}; check --levels and --filter.")
    return tuple(sorted(chosen, key=lambda file: (file.parent.name, _number(file), file.name)))


def _in_folder(folder: Path) -> list[Path]:
    return [file for file in folder.glob("*.py") if not file.name.startswith("_")]


def level_of(file: Path, suite: Path) -> str:
    """The folder of a suite that a problem lies in, such as ``level1``; empty where it is the suite."""
    folder = file.parent
    return folder.name if folder != suite or folder.name.startswith("level") else ""


def _number(file: Path) -> int:
    found = re.match(r"\d+", file.name)
    return int(found.group()) if found else 0


def solve(
    session: Session, file: Path, budget: int, job_id: str, cancelled: Callable[[], bool] = never
) -> ProblemResult:
    """Spends the budget on the one region that covers the problem's forward.

    Failures of the problem are results; VerifierUnavailable and errors of the product are raised.
    """
    started = time.monotonic()
    found = _attempted(session, file, budget, job_id, cancelled)
    return evolve(found, seconds=round(time.monotonic() - started, 3))


def _attempted(
    session: Session, file: Path, budget: int, job_id: str, cancelled: Callable[[], bool]
) -> ProblemResult:
    try:
        region, reason = _whole_forward(session, file)
    except CaptureError as error:
        region, reason = None, str(error)
    if region is None:
        return ProblemResult(file.stem, False, failed_gate="capture", reason=reason)
    try:
        found = _result(file.stem, session.synthesise(region, budget, job_id=job_id, cancelled=cancelled))
    except VerifierUnavailable:
        raise
    except VerifierError as error:
        found = ProblemResult(file.stem, False, failed_gate="verifier", reason=str(error))
    return evolve(found, category=region.op_category)


def _whole_forward(session: Session, file: Path) -> tuple[Region | None, str]:
    """The region that is all of the forward's work, or why there is none."""
    text = file.read_text(encoding="utf-8")
    if not _defines_model(text):
        return None, "The file defines no class Model, whose forward a problem is: name its module so."
    found = session.regions(file, symbol=FORWARD, programs=True)
    regions = [region for region in found if region.symbol == FORWARD]
    refused = [region.reason for region in regions if region.task is None]
    for region in regions:
        if region.task is not None:
            reason = uncovered(text, region)
            if not reason:
                return region, ""
            refused.append(reason)
    return None, " ".join(dict.fromkeys(refused)) or f"{FORWARD} has no code that a kernel could replace."


def _defines_model(text: str) -> bool:
    """Whether a file has a class Model; what is no Python is for others to tell."""
    try:
        body = ast.walk(ast.parse(text))
    except SyntaxError:
        return True
    return any(isinstance(item, ast.ClassDef) and item.name == "Model" for item in body)


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
