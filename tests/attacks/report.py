"""Counts attacks as pytest reports them: how many there are of each class, and which were not caught."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from attrs import define, field

FOLDER = "tests/attacks/"


def class_of(nodeid: str) -> str:
    """The folder below tests/attacks that a test lies in; empty for tests of anything else."""
    path = nodeid.partition("::")[0]
    if FOLDER not in path:
        return ""
    inside = PurePosixPath(path.partition(FOLDER)[2])
    return inside.parts[0] if len(inside.parts) > 1 else ""


@define
class Tally:
    """Outcomes by class. An attack is caught when its test passes, set-up and clean-up included."""

    caught: dict[str, set[str]] = field(factory=lambda: defaultdict(set))
    missed: dict[str, set[str]] = field(factory=lambda: defaultdict(set))
    untried: dict[str, dict[str, str]] = field(factory=lambda: defaultdict(dict))

    def hear(self, nodeid: str, phase: str, outcome: str, words: str = "") -> None:
        """One report of pytest's: ``phase`` is setup, call or teardown, ``words`` why a test was skipped."""
        name = class_of(nodeid)
        if not name:
            return
        if outcome == "failed":
            self.missed[name].add(nodeid)
            self.caught[name].discard(nodeid)
        elif outcome == "skipped":
            self.untried[name][nodeid] = words
        elif phase == "call" and nodeid not in self.missed[name]:
            self.caught[name].add(nodeid)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted({*self.caught, *self.missed, *self.untried}))

    def lines(self) -> Iterator[str]:
        """The table, then what was not caught and what could not be tried here."""
        rows = [(name, len(self.caught[name]), self._total(name)) for name in self.classes]
        rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
        for name, caught, total in rows:
            yield f"{name:<12} {caught:>4} of {total:>4} caught"
        for name in self.classes:
            yield from (f"NOT CAUGHT {nodeid}" for nodeid in sorted(self.missed[name]))
            yield from (f"not tried {nodeid}: {why}" for nodeid, why in sorted(self.untried[name].items()))

    def _total(self, name: str) -> int:
        return len(self.caught[name] | self.missed[name] | self.untried[name].keys())
