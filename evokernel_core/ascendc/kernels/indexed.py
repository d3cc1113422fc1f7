"""What kernels share that read or write where indices say so."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, ValueRef
from evokernel_core.twin.api import most_of
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import RESERVED_BYTES

_INDICES = frozenset({"int32", "int64"})


@frozen
class IndexedSchedule(Settings):
    """Tiles of at most ``runs`` runs, each with its index, and ``bytes`` bytes."""

    runs: int
    bytes: int


def index_dtype(graph: Graph, ref: ValueRef) -> str:
    """The dtype of indices. Raises PlanError where kernels do not read it."""
    dtype = graph.spec(ref).dtype
    if dtype not in _INDICES:
        raise PlanError(f"Indices of dtype {dtype} are not covered; int32 and int64 are.")
    return dtype


def steps_from(here: IndexedSchedule, counted: str) -> Iterator[tuple[str, IndexedSchedule]]:
    """The named changes of a schedule; ``counted``: what there are ``runs`` of."""
    yield f"more {counted}", evolve(here, runs=here.runs * 2)
    yield f"fewer {counted}", evolve(here, runs=here.runs // 2)
    yield "larger tile", evolve(here, bytes=here.bytes * 2)
    yield "smaller tile", evolve(here, bytes=here.bytes // 2)


def refusal_of(item: IndexedSchedule, unit: int, used_bytes: int, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; tiles have whole units of ``unit`` bytes."""
    most = most_of("DataCopyPadIn", "blockCount")
    if not 16 <= item.runs <= most or item.runs % 16:
        return f"A tile has 16 to {most} indices, whole blocks of them."
    if item.bytes < 4096 or item.bytes % unit:
        return "A tile has at least 4 KB."
    if used_bytes > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None
