"""What people's rejections ask of the next kernel of a task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import frozen

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.outcome import Objection
from evokernel_core.memory.candidates import Stored
from evokernel_core.synthesis.proposers.base import Candidate

SHORTER = 0.9
"""What of the lines of a kernel that was hard to read the next one may have."""
FASTER = 0.99
"""What of the latency of a kernel that was too slow the next one may take."""


@frozen
class Wishes:
    """A kernel is offered if it is none of ``rejected``, takes at most ``most_us`` and has at most
    ``most_lines``. ``words`` are the reasons that were given, as a proposer reads them."""

    rejected: frozenset[str] = frozenset()
    most_us: float = math.inf
    most_lines: float = math.inf
    words: tuple[str, ...] = ()

    def allow(self, candidate: Candidate) -> bool:
        source = candidate.source
        kept = source.source_id not in self.rejected and candidate.latency_us <= self.most_us
        return kept and lines(source) <= self.most_lines


def wishes(known: Iterable[Stored], rejections: Mapping[str, str]) -> Wishes:
    """Of the kernels of a task and the reasons for which some of them were rejected."""
    sources = {entry.source.source_id: entry for entry in known}
    slow, long = [math.inf], [math.inf]
    for id, reason in rejections.items():
        source = sources.get(id)
        latency = source.verdict.latency if source else None
        if reason == Objection.SLOW and latency is not None:
            slow.append(FASTER * latency.us)
        if reason == Objection.UNREADABLE and source is not None:
            long.append(SHORTER * lines(source.source))
    reasons = tuple(dict.fromkeys(reason for reason in rejections.values() if reason))
    return Wishes(frozenset(rejections), min(slow), min(long), reasons)


def lines(source: KernelSource) -> int:
    """Lines of all files."""
    return sum(text.count("\n") for text in source.files.values())
