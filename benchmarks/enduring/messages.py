"""A hundred thousand messages: edits alone, whose memory must stay flat; then everything in any order, after
which each request was answered and the server knows what a fresh one knows."""

from __future__ import annotations

from typing import Any

from enduring.editors import MODEL, Place
from tests.attacks.editor.test_protocol import span
from tests.server.fuzzing import BATCH, Wire, fuzz
from tests.server.scribe import changed, opened


def flat_memory(place: Place, edits: int) -> dict[str, Any]:
    """Types a sign and takes it back, ``edits`` times; MiB after a tenth of them and at the end."""
    wire, uri = Wire(place.home), place.model("model.py").as_uri()
    wire.send(opened(uri, MODEL))
    early = 0.0
    for number in range(edits):
        typed = number % 2 == 0
        where = span(1, 0, 1, 0) if typed else span(1, 0, 1, 1)
        wire.send(changed(uri, number + 2, {"range": where, "text": "#" if typed else ""}))
        if number % BATCH == 0:
            wire.status()
        if number == edits // 10:
            early = wire.mib()
    wire.status()
    late = wire.mib()
    wire.end()
    return {
        "edits": edits, "rss_mib_after_a_tenth": round(early, 1), "rss_mib": round(late, 1),
        "bytes_per_edit": round((late - early) * 2**20 / (0.9 * edits), 1),
    }  # fmt: skip


def random_messages(place: Place, count: int, seed: int = 20) -> dict[str, Any]:
    """Sends them all, and counts what was not answered."""
    return fuzz(place.model("model.py"), place.home, count, seed)
