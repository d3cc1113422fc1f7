"""What a verdict says of itself."""

from __future__ import annotations

import pytest

from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict

LATENCY = Latency(2.0, LatencySource.MODELLED, "chip", 1, (), "", 1.0, 4.0)
PASSED, FAILED = GateStatus


@pytest.mark.parametrize(
    ("statuses", "latency", "feasible"),
    [
        ((PASSED, PASSED), LATENCY, True),
        ((PASSED, PASSED), None, False),
        ((PASSED, FAILED), LATENCY, False),
        ((FAILED, FAILED), LATENCY, False),
    ],
)
def test_a_kernel_is_feasible_where_all_gates_passed_and_it_was_timed(
    statuses: tuple[GateStatus, ...], latency: Latency | None, feasible: bool
) -> None:
    gates = tuple(GateResult(name, status) for name, status in zip(GateName, statuses, strict=False))
    assert Verdict("0" * 64, "0" * 64, "twin", gates, latency).feasible is feasible
