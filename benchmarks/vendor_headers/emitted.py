"""Writes the kernels of the author's best plan for each problem of a suite, without verifying them."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from attrs import asdict, frozen

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.region import Region
from evokernel_core.domain.settings import Settings
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.session import Session
from evokernel_core.synthesis.suite import SuiteProblem, suite_of
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.source import KERNEL, TILING

_DONE = "emitted.json"
CHIP = "ascend910b1"


@frozen
class Emitted:
    """What came of one problem: how many folders of kernels, and why regions of it have none."""

    problem: str
    kernels: int
    reasons: tuple[str, ...] = ()


def emit_suite(suite: Path, levels: Iterable[int], pattern: str, out: Path) -> list[Emitted]:
    """Emits into ``out/level/problem/number``; problems that are there already are left as they are.

    Raises UsageError where no problem of the suite matches."""
    settings = Settings(interpreter=sys.executable, chip=CHIP, evaluation=False)
    with tempfile.TemporaryDirectory(prefix="evokernel-emit-") as scratch:
        memory = Memory(Path(scratch) / "memory.db")
        with Session(settings, suite.absolute(), memory) as session:
            problems = suite_of(suite.absolute(), levels, pattern).problems
            found = [_problem(session, item, out / item.level / item.file.stem) for item in problems]
        memory.close()
    return found


def _problem(session: Session, problem: SuiteProblem, folder: Path) -> Emitted:
    marker = folder / _DONE
    if marker.is_file():
        data = json.loads(marker.read_text())
        return Emitted(data["problem"], data["kernels"], tuple(data["reasons"]))
    try:
        regions = session.regions(problem.file, programs=True)
        done = _regions(problem, regions, folder)
    except EvoKernelError as error:
        done = Emitted(problem.key, 0, (str(error),))
    folder.mkdir(parents=True, exist_ok=True)
    marker.write_text(json.dumps(asdict(done)))
    return done


def _regions(problem: SuiteProblem, regions: Iterable[Region], folder: Path) -> Emitted:
    chip = load_chip(CHIP)
    written, reasons = 0, []
    for region in regions:
        if region.task is None:
            reasons.append(region.reason)
            continue
        try:
            source = write(region.task, initial(region.task, chip), chip)
        except EvoKernelError as error:
            reasons.append(str(error))
            continue
        target = folder / str(written)
        target.mkdir(parents=True, exist_ok=True)
        (target / "op_kernel.cpp").write_text(source.files[KERNEL])
        (target / "tiling.h").write_text(source.files[TILING])
        written += 1
    return Emitted(problem.key, written, tuple(reasons))
