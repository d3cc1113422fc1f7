"""The texts of kernels. Those of one task are much alike: each is kept as what differs from one before."""

from __future__ import annotations

import json
from collections.abc import Iterable

from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.memory.connection import Connection, Given
from evokernel_core.memory.migrations.dictionaries import COMMON
from evokernel_core.memory.packed import packed, unpacked
from evokernel_core.memory.rows import Row, decoded, text, whole

BASES = 4
"""Latest kernels with a text of their own that a new one is compared with; several searches run at a time."""
SHORTER = 3
"""How many times as long a kernel has to be alone: one that is less alike is what later ones differ from."""
SAVED = 512
"""Bytes that another kernel has to save, so that this one depends on it: damage to one is then to both."""
PARTS = "s.source_id, s.target, s.names, s.base, s.kernel, b.kernel AS base_kernel"
"""Columns of ``sources s`` with the join ``BASED`` that ``kernel_of`` reads."""
BASED = "LEFT JOIN sources b ON b.seq = s.base"


class Sources(Connection):
    """Keeps kernels under their content's id."""

    def record_candidate(self, source: KernelSource) -> None:
        """Keeps a kernel; one that is kept gets the strategy that it has here, and those that are written as
        what differs from it are written anew."""
        with self.transaction():
            if self.source(source.source_id) == source:
                return
            differing = self._sources("b.source_id = ?", (source.source_id,))
            is_damaged = self.count("sources", "source_id = ?", (source.source_id,)) > 0
            # others may be written as what differs from this one, so it does not become a difference itself
            bases = () if is_damaged else self._bases()
            written = json.dumps([dumps(source.strategy), *source.files.values()])
            base, kernel = compressed(written, bases)
            named = {"target": source.target, "names": json.dumps(list(source.files))}
            row = {"source_id": source.source_id, **named, "base": base, "kernel": kernel}
            self.upsert("sources", row, key="source_id")
            for other in differing:
                self.record_candidate(other)

    def source(self, source_id: str) -> KernelSource | None:
        return next(iter(self._sources("s.source_id = ?", (source_id,))), None)

    def kernels_from(self, beginning: str) -> tuple[str, ...]:
        """The ids of kernels that begin so."""
        where = "substr(source_id, 1, ?) = ?"
        rows = self.rows("sources", where, (len(beginning), beginning), select="source_id")
        return tuple(str(row["source_id"]) for row in rows)

    def forget_sources(self, where: str) -> None:
        """Removes kernels; what was written as a difference from them is written anew."""
        gone = f"SELECT seq FROM sources WHERE {where}"
        with self.transaction():
            left = self._sources(f"s.base IN ({gone}) AND s.seq NOT IN ({gone})")
            self.delete("sources", f"base IN ({gone})")
            self.delete("sources", where)
            for source in left:
                self.record_candidate(source)

    def _sources(self, where: str, given: Given = ()) -> tuple[KernelSource, ...]:
        return self.readable(
            kernel_of, self.query(f"SELECT {PARTS} FROM sources s {BASED} WHERE {where}", given)
        )

    def _bases(self) -> tuple[tuple[int, str], ...]:
        """The latest kernels with a text of their own: row and text."""
        return self.readable(_base, self.rows("sources", "base = 0", order_by="seq DESC", limit=BASES))


def compressed(written: str, bases: Iterable[tuple[int, str]]) -> tuple[int, bytes]:
    """A kernel's text as what differs from the one of ``bases`` (row and text) that makes it shortest, behind
    that row; alone, behind 0, where none makes it much shorter."""
    alone = packed(written)
    differences = ((seq, packed(written, like)) for seq, like in bases)
    base, shortest = min(differences, key=lambda one: len(one[1]), default=(0, alone))
    is_much = len(shortest) * SHORTER < len(alone) and len(alone) - len(shortest) > SAVED
    return (base, shortest) if is_much else (0, alone)


@decoded
def _base(row: Row) -> tuple[int, str]:
    return whole(row, "seq"), unpacked(row["kernel"])


@decoded
def kernel_of(row: Row) -> KernelSource:
    """The kernel of a row of ``PARTS``."""
    like = unpacked(row["base_kernel"]) if row["base"] else COMMON
    strategy, *texts = json.loads(unpacked(row["kernel"], like))
    files = dict(zip(json.loads(row["names"]), texts, strict=True))
    source = KernelSource(text(row, "target"), files, loads(strategy, Strategy))
    if source.source_id != row["source_id"]:
        raise ValueError("source_id")
    return source
