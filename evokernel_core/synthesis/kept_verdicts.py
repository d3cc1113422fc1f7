"""Kept verdicts, beside what PyTorch takes by the model and the published rows of this version."""

from __future__ import annotations

from functools import lru_cache

from attrs import evolve

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.verdict import Baseline, LatencySource, Verdict
from evokernel_core.targets import author_for


def as_of_today(task: KernelTask, source: KernelSource, verdict: Verdict) -> Verdict:
    """The verdict with today's baseline: an earlier version may have modelled PyTorch otherwise. What was
    measured together with the kernel stays, and so does what this version cannot tell, as of a device whose
    file is gone."""
    latency = verdict.latency
    if latency is None or latency.source is not LatencySource.MODELLED:
        return verdict
    try:
        baseline = _baseline(ById(task), latency.chip, source.target)
    except EvoKernelError:
        return verdict
    return evolve(verdict, latency=evolve(latency, baseline_us=baseline.us, baseline=baseline))


@lru_cache(maxsize=256)
def _baseline(task: ById, device: str, target: str) -> Baseline:
    return author_for(device, target).baseline(task.task)
