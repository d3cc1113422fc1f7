"""Placement: a call of a kernel that a person accepted, and what undoing it needs."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import Path

from attrs import evolve, field, frozen

from evokernel_core.domain.region import Region


class Standing(StrEnum):
    """What became of a call: it is in the text, its acceptance was undone, or it was taken out otherwise."""

    CALLED = "called"
    UNDONE = "undone"
    REVERTED = "reverted"


def place_key(file: Path, region_id: str) -> str:
    """How outcomes name a region: ids of regions are unique within a file only."""
    return f"{region_id}{key_end(file)}"


def key_end(file: Path) -> str:
    """How the names of all regions of a file end."""
    return f"@{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"


@frozen
class Placement:
    """A generated call in a file; ``at`` is when it was accepted, in seconds since the epoch.

    ``before`` is the hash of the text without it, ``created`` tells that its package is there because of
    acceptances, of this one or of equal code elsewhere, ``head`` is what the file's repository had checked
    out, ``region`` the code that it stands for. Placements are equal whatever is known of their undo.
    """

    file: Path
    name: str
    region_id: str
    task_id: str
    source_id: str
    at: float
    before: str = field(default="", eq=False)
    created: bool = field(default=False, eq=False)
    head: str = field(default="", eq=False)
    region: Region | None = field(default=None, eq=False)
    standing: Standing = field(default=Standing.CALLED, eq=False)

    @property
    def key(self) -> str:
        """The region's id together with its file: equal code in two files is two decisions."""
        return place_key(self.file, self.region_id)

    def moved(self, file: Path) -> Placement:
        """The same call where its file has another name: its code is in that file now, too."""
        region = evolve(self.region, file=str(file)) if self.region is not None else None
        return evolve(self, file=file, region=region)
