"""What is known of AscendC before anything was tried: API cards, rules, practices and exemplars.

``common_knowledge`` is what all tasks of one kind are told in the same words; ``further_cards`` what one task
needs beside it; ``practices_for`` what helps where something binds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from evokernel_core.compiler.knowledge_items import item
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.roofline import op_name
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge.cards import CORES, LIMIT, Card, cards, task_cards, used_cards
from evokernel_core.targets.ascendc.knowledge.exemplars import exemplar, nearest, source_of
from evokernel_core.targets.ascendc.knowledge.kinds import KernelKind, kind_of
from evokernel_core.targets.ascendc.knowledge.practices import (
    bindings_of,
    expected_bindings,
    practices_for,
    with_constants,
)
from evokernel_core.targets.ascendc.source import KERNEL

__all__ = [
    "KernelKind",
    "bindings_of",
    "cards",
    "common_knowledge",
    "expected_bindings",
    "further_cards",
    "kind_of",
    "practices_for",
    "rules",
]


MOST_OF_CARDS = {Cores.VECTOR: 9_000, Cores.CUBE: 9_000, Cores.BOTH: 12_000}
"""Characters of the cards that all tasks of a kind are told."""


@lru_cache(maxsize=64)
def rules(units: Cores, chip: Chip) -> tuple[Experience, ...]:
    """The rules for kernels on such cores of a chip, as in rules.toml."""
    rows = tomllib.loads((Path(__file__).parent / "rules.toml").read_text(encoding="utf-8"))["rule"]
    return tuple(
        item(
            ExperienceKind.RULE,
            row["title"],
            LIMIT.sub(lambda found: str(most_of(found[1], found[2])), with_constants(row["text"], chip)),
        )
        for row in rows
        if units in CORES[row.get("cores", "")]
    )


@lru_cache(maxsize=64)
def common_knowledge(kind: KernelKind, chip: Chip) -> tuple[Experience, ...]:
    """Rules, cards of what the kind's exemplar calls, and the exemplar: the same for all tasks of a kind."""
    typical = nearest(kind, chip)
    known = _fitting(used_cards([source_of(typical, chip).files[KERNEL]], kind.units), kind.units)
    return (*rules(kind.units, chip), *(card.experience for card in known), exemplar(typical, chip))


def _fitting(known: Iterable[Card], units: Cores) -> tuple[Card, ...]:
    """The cards that there is room for: those of every kernel first, then of cube cores and of rare calls,
    which an example alone tells too little of."""
    known, room, taken = tuple(known), MOST_OF_CARDS[units], set()
    for card in sorted(
        known, key=lambda card: (not card.always, Cores.VECTOR in card.cores and card.is_topic)
    ):
        if len(card.experience.body) <= room:
            taken.add(card.experience.id)
            room -= len(card.experience.body)
    return tuple(card for card in known if card.experience.id in taken)


def further_cards(task: KernelTask, kind: KernelKind, kernels: Iterable[str]) -> tuple[Experience, ...]:
    """The cards that a task's operations and dtypes need, and those of what ``kernels`` call."""
    dtypes = {operand.spec.dtype for operand in task.graph.inputs}
    dtypes |= {spec.dtype for node in task.graph.nodes for spec in node.outputs}
    ops = {op_name(node.op) for node in task.graph.nodes}
    result = (
        *task_cards(frozenset(ops), frozenset(dtypes), kind.units),
        *used_cards(kernels, kind.units),
    )
    return tuple({card.experience.id: card.experience for card in result}.values())
