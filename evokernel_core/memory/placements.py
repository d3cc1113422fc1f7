"""Calls of accepted kernels: what is known of each place's latest one, so that an undo or a redo of it is one
after a restart too."""

from __future__ import annotations

import re
from pathlib import Path

from attrs import evolve

from evokernel_core.domain.placement import Placement, Standing, place_key
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.memory.connection import Connection
from evokernel_core.memory.rows import Row, columns, decoded, record, text

_HASH = re.compile(r"(?:[0-9a-f]{64})?")


class Placements(Connection):
    """One row for each place: a newer acceptance takes an older one's."""

    def put_placement(self, placement: Placement) -> None:
        """Keeps the latest acceptance of a place."""
        self.upsert("placements", _row(placement), key="place")

    def end_placement(self, placement: Placement, standing: Standing) -> None:
        """Its call was taken out. A newer acceptance of the place, or another kernel's, stays as it is."""
        with self.transaction():
            result = (placement.key, placement.at)
            if self.count("placements", "place = ? AND at <= ?", result):
                self.update("placements", placement.key, {"standing": standing.value})

    def placements(self, file: Path) -> tuple[Placement, ...]:
        """The latest acceptance of each place of a file, the oldest first."""
        rows = self.rows("placements", "file = ?", (str(file),), order_by="at, place")
        return self.readable(_placement, rows)

    def called(self, name: str) -> tuple[Placement, ...]:
        """The acceptances of kernels of one name that are in their files' texts, of all files."""
        rows = self.rows(
            "placements", "name = ? AND standing = ?", (name, Standing.CALLED.value), order_by="at, place"
        )
        return self.readable(_placement, rows)

    def move_placements(self, old: Path, new: Path) -> None:
        """Calls of a file are in another one now, which it has become."""
        with self.transaction():
            for placement in self.placements(old):
                self.delete("placements", "place = ?", (placement.key,))
                self.put_placement(placement.moved(new))


def _row(placement: Placement) -> Row:
    region = dumps(placement.region) if placement.region is not None else ""
    return columns(placement) | {"place": placement.key, "file": str(placement.file), "region": region}


@decoded
def _placement(row: Row) -> Placement:
    file, region = Path(text(row, "file")), text(row, "region")
    known = evolve(loads(region, Region), file=str(file)) if region else None
    placement = record(Placement, row, file=file, region=known)
    if not (placement.name.isidentifier() and _HASH.fullmatch(placement.before)):
        raise ValueError("name")
    if text(row, "place") != place_key(file, placement.region_id):
        raise ValueError("place")
    return placement
