"""Weighted round robin: who is served next, among those who wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping


class Turns:
    """Stride scheduling: each turn moves its taker back by 1/weight; the foremost is next.

    Whoever did not wait for a while gains nothing by it: it joins where the queue is now.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = dict(weights or {})
        self._places: dict[str, float] = {}
        self._now = 0.0

    def next(self, waiting: Collection[str]) -> str:
        """Who of ``waiting`` (not empty) is next; names break ties."""
        return min(waiting, key=lambda who: (self._place(who), who))

    def take(self, who: str) -> None:
        """``who`` was served."""
        place = self._place(who)
        self._places[who] = place + 1.0 / self._weights.get(who, 1.0)
        self._now = place
        self._forget()

    def _place(self, who: str) -> float:
        return max(self._places.get(who, self._now), self._now)

    def _forget(self) -> None:
        """Those who are not ahead of the others' place need no entry: memory stays bounded."""
        if len(self._places) > 1000:
            self._places = {who: place for who, place in self._places.items() if place > self._now}
