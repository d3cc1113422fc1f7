"""The compile gate: the candidate builds against the backend's AscendC."""

from __future__ import annotations

from typing import Any

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Backend


def build(task: KernelTask, source: KernelSource, backend: Backend) -> tuple[GateResult, Any]:
    """The gate's result and what was built, None where it failed. Raises BuildError."""
    try:
        built = backend.build(task, source)
    except CandidateError as error:
        return GateResult(GateName.COMPILE, GateStatus.FAILED, error.code, error.feedback), None
    return GateResult(GateName.COMPILE, GateStatus.PASSED), built
