"""A hundred thousand messages in any order, after which each request was answered and the server knows what a
fresh one knows."""

from __future__ import annotations

from typing import Any

from enduring.editors import Place
from tests.server.fuzzing import fuzz


def random_messages(place: Place, count: int, seed: int = 20, mix: str = "plain") -> dict[str, Any]:
    """Sends them all, and counts what was not answered."""
    return fuzz(place.model("model.py"), place.home, count, seed, mix)
