"""Which kernels another window may have decided about before this one accepts them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from evokernel_server.errors import Refused
from evokernel_server.jobs.queue import Best
from evokernel_server.offers.acceptance import Acceptance, ChosenKernel
from evokernel_server.offers.pending import Offer

from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.verdict import Latency, LatencySource

LATENCY = Latency(2.0, LatencySource.MODELLED, "chip", 1, (), "", 1.0, 4.0)
BEST = Best("kernel", LATENCY, "twin")
REGION: Any = SimpleNamespace(id="r", span=None, task=SimpleNamespace(task_id="t"))
READY, REJECTED = (
    Outcome(kind, "r", "t", "kernel", 0.0) for kind in (OutcomeKind.READY, OutcomeKind.REJECTED)
)


def offer(old: Latency | None) -> Offer:
    return Offer("file:///m.py", Path("/m.py"), REGION, "name", "kernel", old, LATENCY, "twin")


@pytest.mark.parametrize(
    ("chosen", "outcomes", "refused"),
    [
        (offer(None), (READY,), False),
        (offer(None), (READY, REJECTED), True),
        (offer(LATENCY), (READY, REJECTED), False),
        (None, (READY, REJECTED), False),
    ],
    ids=["it waits", "another window rejected it", "it is faster than one that is called", "it was named"],
)
async def test_only_a_kernel_that_waits_can_have_been_decided_elsewhere(
    chosen: Offer | None, outcomes: tuple[Outcome, ...], refused: bool
) -> None:
    taken: list[Offer] = []

    async def store(question: Callable[[Any], Any]) -> Any:
        return question(SimpleNamespace(outcomes=lambda _: outcomes))

    unused: Any = None
    offers: Any = SimpleNamespace(take=taken.append)
    acceptance = Acceptance(
        unused, unused, unused, unused, unused, offers, cast(Any, store), unused, unused, unused, unused
    )
    document: Any = SimpleNamespace(anchored=lambda region: region)
    choices = [ChosenKernel(REGION, BEST, chosen)]
    if refused:
        with pytest.raises(Refused, match="Another window decided"):
            await acceptance._check(document, choices)
    else:
        await acceptance._check(document, choices)
    assert taken == ([chosen] if refused else [])
