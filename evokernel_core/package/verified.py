"""A kernel as a package holds it: its source, and the verdict that it was written with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.verdict import Verdict
from evokernel_core.package.integrity import read_source


@frozen
class VerifiedKernel:
    """A kernel with what its verifier said."""

    source: KernelSource
    verdict: Verdict


def record(kernel: VerifiedKernel) -> dict[str, Any]:
    """The fields of kernel.json that are of one kernel."""
    return {
        "source_id": kernel.source.source_id,
        "target": kernel.source.target,
        "sources": list(kernel.source.files),
        "chip": kernel.verdict.latency.chip if kernel.verdict.latency else "",
        "strategy": to_data(kernel.source.strategy),
        "verdict": to_data(kernel.verdict),
    }


def read_verified(folder: Path, fields: Mapping[str, Any]) -> VerifiedKernel:
    """The kernel of these fields, its files as they are now. Raises one of ``integrity.UNREADABLE``."""
    return VerifiedKernel(read_source(folder, fields), from_data(fields["verdict"], Verdict))
