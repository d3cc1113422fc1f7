"""Why a kernel is as it is: what it was made from, what was said of it, and which values moved by it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from evokernel_core.domain.experience import Stage
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.ledger import Effect, Reward
from evokernel_core.memory.store import Memory
from evokernel_core.memory.values import start_item
from evokernel_core.synthesis.lessons import summary

SHORT = 12
"""Letters of an id that people read."""
_STAGES = {Stage.DRAFT: "drafted", Stage.REFINE: "refined"}


def why(memory: Memory, source_id: str) -> tuple[str, ...]:
    """Sentences about a kernel that the memory has, in the order in which things happened."""
    attempts = [item for item in memory.attempts() if item.source_id == source_id]
    events = [event for event in memory.rewards() if event.source_id == source_id]
    told = *_made(memory, attempts), *_judged(memory, source_id, attempts)
    return (*told, *map(_moved, events), *_worth(memory, source_id))


def _made(memory: Memory, attempts: list[Attempt]) -> Iterator[str]:
    for item in attempts[:1]:
        task = memory.task(item.task_id)
        name = f" for {task.name} ({task.op_category})" if task else ""
        yield f"Kernel {item.source_id[:SHORT]} was {_STAGES[item.stage]} by {item.proposer}{name}."
        if item.parent:
            source = memory.source(item.source_id)
            move = f" by the step '{source.strategy.move}'" if source and source.strategy.move else ""
            yield f"It was made from kernel {item.parent[:SHORT]}{move}."
        for stage, id in memory.kernel_uses(item.source_id, item.task_id):
            known = memory.experience(id)
            if known is not None:
                yield f"It used '{known.title}' [{id[:SHORT]}], a {known.kind.value} ({stage.value})."
    if len(attempts) > 1:
        yield f"It came up {len(attempts)} times."


def _judged(memory: Memory, source_id: str, attempts: list[Attempt]) -> Iterator[str]:
    for task_id, verifier, chip in dict.fromkeys(
        (item.task_id, item.verifier, item.chip) for item in attempts
    ):
        verdict = memory.verdict(task_id, source_id, verifier, chip)
        if verdict is not None:
            yield f"{verifier}: {summary(verdict)}"


def _moved(event: Reward) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(event.at))
    if event.effect is Effect.SEED:
        return f"{when}: as a start point it begins at {event.raw:+.3f}."
    shown = f", of {len(event.shown)} that were shown" if event.shown else ""
    scaled = " before it was scaled" if event.scale else ""
    return f"{when}: {event.cause} paid {event.raw:+.3f}{scaled} to {len(event.used)} item(s){shown}."


def _worth(memory: Memory, source_id: str) -> Iterator[str]:
    start = start_item(source_id)
    for value in memory.values(Stage.REFINE):
        if value.item == start and not value.op_category:
            yield f"As a start point it is worth {value.q:+.3f} now, after {value.n} update(s)."
