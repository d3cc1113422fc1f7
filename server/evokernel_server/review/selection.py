"""The verified kernels of a task, and which of them is meant: offered, named, best, or installed."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.memory.candidates import Stored
from evokernel_core.memory.store import Memory
from evokernel_server.errors import Refused
from evokernel_server.texts.translations import _, marked

NONE = marked("No kernel of this code is verified yet; generate one first.")


@frozen
class Verified:
    """The verified kernels of a task, one verdict each, the fastest first; ``rejected`` are ids."""

    all: tuple[Stored, ...]
    fit: tuple[Stored, ...]
    rejected: frozenset[str]

    def of(self, source_id: str) -> Stored | None:
        return next((entry for entry in self.fit if entry.source.source_id == source_id), None)

    def named(self, source_id: str) -> Stored:
        """Raises Refused where no verified kernel has that id."""
        result = self.of(source_id)
        if result is None:
            raise Refused(_("No verified kernel of this code has that id; ask for the variants again."))
        return result

    def best(self, wanted: LatencySource | None) -> Stored | None:
        """The fastest kernel that nobody rejected, by figures of one source; without one by measured figures
        where there are any."""
        allowed = (entry for entry in self.fit if entry.source.source_id not in self.rejected)
        return next((entry for entry in allowed if wanted in (None, latency_of(entry).source)), None)


def verified_of(candidates: Sequence[Stored], rejected: frozenset[str]) -> Verified:
    """One verdict for each kernel: the latest, and of those with a measured latency where there is one."""
    result: dict[str, Stored] = {}
    for candidate in candidates:
        if candidate.verdict.feasible:
            known = result.get(candidate.source.source_id)
            if known is None or _is_measured(candidate) or not _is_measured(known):
                result[candidate.source.source_id] = candidate
    fit = sorted(result.values(), key=lambda element: (not _is_measured(element), latency_of(element).us))
    return Verified(tuple(candidates), tuple(fit), rejected)


def latency_of(stored: Stored) -> Latency:
    assert stored.verdict.latency is not None  # of what is feasible
    return stored.verdict.latency


def _is_measured(stored: Stored) -> bool:
    return latency_of(stored).source is LatencySource.MEASURED


def best_of(memory: Memory, task_id: str, chip: str) -> Stored | None:
    kinds = (LatencySource.MEASURED, LatencySource.MODELLED)
    return next(filter(None, (memory.best(task_id, chip, kind) for kind in kinds)), None)
