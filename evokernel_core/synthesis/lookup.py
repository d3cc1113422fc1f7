"""Finds by words what is known: cards and practices of EvoKernel, and what the memory learned."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.memory.retrieval import Query, RetrievalChoice
from evokernel_core.memory.store import Memory
from evokernel_core.targets import load_knowledge

_IN_TITLE, _IN_NAME = 3, 10
"""How much more a word counts in a title, and as a function that a card is about, than in the text."""


def lookup(
    memory: Memory, author: KernelAuthor, query: str, kinds: Collection[str], most: int
) -> tuple[Experience, ...]:
    """At most ``most`` items about the words of ``query``, of ``kinds`` or of all where none are named:
    first what comes with EvoKernel, then the memory's, each the closest first."""
    wanted = frozenset(map(ExperienceKind, kinds)) or frozenset(ExperienceKind)
    words = _words(query)
    named = frozenset(re.findall(r"\w+", query))
    shipped = sorted(_shipped(words, named, wanted, author), key=lambda matches: -matches[0])
    items = [experience for score, experience in shipped if score]
    asked = Query(query, {}, Stage.DRAFT, "", tuple(sorted(wanted)))
    choice = RetrievalChoice(most, most, mode=RetrievalName.SIMILARITY)
    learned = memory.retrieve(asked, choice, random.Random(0)).experiences
    matching = [
        experience for experience in learned if words & _words(f"{experience.title} {experience.body}")
    ]
    return tuple({item.id: item for item in [*items, *matching]}.values())[:most]


def comes_with_us(author: KernelAuthor) -> tuple[Experience, ...]:
    """The cards and practices that ``lookup`` takes from EvoKernel itself."""
    return tuple(shipped.experience for shipped in load_knowledge(author.target.name).shipped(author.device))


def _shipped(
    words: frozenset[str], named: frozenset[str], wanted: Collection[ExperienceKind], author: KernelAuthor
) -> Iterator[tuple[int, Experience]]:
    for shipped in load_knowledge(author.target.name).shipped(author.device):
        if shipped.experience.kind in wanted:
            # by its case: "copy" is a word of many questions, Copy a function
            score = _IN_NAME * len(named & shipped.names) + _score(words, shipped.experience)
            yield score, shipped.experience


def _score(words: frozenset[str], experience: Experience) -> int:
    return _IN_TITLE * len(words & _words(experience.title)) + len(words & _words(experience.body))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))
