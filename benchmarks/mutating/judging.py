"""What the judge says of a kernel, in fresh secret draws."""

from __future__ import annotations

from attrs import field, frozen

from evokernel_core.capture.client import AgentClient
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.local import LocalVerifier

DRAWS = 3


@frozen
class Judged:
    """One verification: the code of the gate that failed, "" for a kernel that passed, and its latency."""

    draw: str
    code: str
    us: float = 0.0
    words: str = field(default="")

    @property
    def passed(self) -> bool:
        return not self.code


def judge(task: KernelTask, source: KernelSource, agent: AgentClient, chip: Chip) -> Judged:
    """One verification with a secret of its own. Raises EvoKernelError where there is no verdict."""
    verifier = LocalVerifier(agent, TwinBackend(ascendc(chip)))
    verdict = verifier.verify(task, source)
    failed = verdict.failed_gate
    if failed is not None:
        return Judged(verdict.draw, failed.code or "failed", 0.0, str(failed.words())[:400])
    return Judged(verdict.draw, "", verdict.latency.us if verdict.latency else 0.0)
