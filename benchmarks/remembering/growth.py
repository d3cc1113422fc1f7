"""How many bytes an attempt adds to a memory: the real loop on the example models, with the twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evokernel_core.domain.settings import Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"
MODELS = ("training_loss.py", "transformer_block.py", "cnn_head.py")


def measure(folder: Path, budget: int) -> list[dict[str, Any]]:
    """After each task: the attempts so far, the bytes of the file for each of them beyond an empty one's, and
    for each of the task's own."""
    rows: list[dict[str, Any]] = []
    with Memory(folder / "growth.db") as memory, Session(Settings(), EXAMPLES, memory) as session:
        empty = before = size(memory)
        attempts = 0
        for _ in attempted(session, budget):
            now, made = size(memory), memory.count("attempts")
            row = {"attempts": made, "bytes_an_attempt": round((now - empty) / max(made, 1))}
            rows.append(row | {"of_these": round((now - before) / max(made - attempts, 1))})
            before, attempts = now, made
    return rows


def attempted(session: Session, budget: int) -> Iterator[None]:
    known: set[str] = set()
    for name in MODELS:
        for region in session.regions(EXAMPLES / name):
            if region.task is not None and region.task.task_id not in known:
                known.add(region.task.task_id)
                session.synthesise(region, budget)
                yield


def size(memory: Memory) -> int:
    """Bytes of the file, its log written into it."""
    memory.query("PRAGMA wal_checkpoint(TRUNCATE)")
    return memory.path.stat().st_size
