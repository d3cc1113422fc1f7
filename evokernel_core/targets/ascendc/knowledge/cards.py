"""API cards: one for each topic of cards.toml, and one for each function of the table that no topic has."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.compiler.knowledge_items import item
from evokernel_core.compiler.lowering.numerics import NORMAL_LOGIT, SHORT_NORMAL_LOGIT
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.api import api_row, api_rows, most_of
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge.facts import fact_lines, names_of
from evokernel_core.twin.lexer import CppTokenKind, tokenize

FOLDER = Path(__file__).parent
LIMIT = re.compile(r"\{(\w+)\.(\w+)\}")
_STRUCT = re.compile(r"\b\w*(?:Params\w*|SliceInfo)\b(?=[<&\s])")
CORES = {
    "": frozenset(Cores),
    "vector": frozenset((Cores.VECTOR, Cores.BOTH)),
    "cube": frozenset((Cores.CUBE, Cores.BOTH)),
    "mixed": frozenset((Cores.BOTH,)),
}
_COEFFICIENTS = {"{normal_logit}": NORMAL_LOGIT, "{short_normal_logit}": SHORT_NORMAL_LOGIT}
"""What the author computes with, by its name in a text."""
_MATRIX_PAGES = "矩阵计算"
"""In the names of the pages of the documentation that are about cube cores."""


@frozen
class Card:
    """What is known of some functions, and whose concern it is.

    ``rows``: keys of the table; ``names``: words that make it of use where a kernel has them; ``cores``:
    those on which it holds; ``ops`` and ``dtypes``: of tasks that need it; ``always``: every kernel does.
    ``is_topic``: it says more than the table does.
    """

    experience: Experience
    rows: tuple[str, ...]
    names: frozenset[str]
    cores: frozenset[Cores]
    ops: frozenset[str] = frozenset()
    dtypes: frozenset[str] = frozenset()
    always: bool = False
    is_topic: bool = True


@cache
def cards() -> tuple[Card, ...]:
    """All cards: the topics in the order of their file, then the other functions in the table's."""
    topics = tuple(map(_topic, tomllib.loads((FOLDER / "cards.toml").read_text(encoding="utf-8"))["card"]))
    known = {key for card in topics for key in card.rows}
    return (*topics, *_others(known))


def used_cards(texts: Iterable[str], cores: Cores) -> tuple[Card, ...]:
    """The cards of what kernels on such cores always need, and of what these texts of kernels name."""
    words = frozenset(
        token.text for text in texts for token in tokenize(text) if token.kind is CppTokenKind.NAME
    )
    found = [card for card in cards() if cores in card.cores and (card.always or _is_used(card, words))]
    explained = {key for card in found if card.is_topic for key in card.rows}
    return tuple(card for card in found if card.is_topic or not _is_explained(card.rows[0], explained))


def _is_explained(key: str, explained: Iterable[str]) -> bool:
    """Whether a topic has a row that is called alike: by the same name, with the same structs."""
    row = api_row(key)
    structs = _structs(row.signatures)
    for other in map(api_row, explained):
        theirs = _structs(other.signatures)
        if other.name == row.name and (structs & theirs or not (structs or theirs)):
            return True
    return False


def task_cards(ops: frozenset[str], dtypes: frozenset[str], cores: Cores) -> tuple[Card, ...]:
    """The cards that tasks of these operations (``exp`` of ``aten.exp.default``) and dtypes need."""
    return tuple(card for card in cards() if cores in card.cores and (card.ops & ops or card.dtypes & dtypes))


def _is_used(card: Card, words: frozenset[str]) -> bool:
    """Of rows that share a name those count whose struct is named, or those without one where none is."""
    if not card.rows:
        return bool(card.names & words)
    if card.names - set(names_of(card.rows)) & words:
        return True
    return any(_row_is_used(key, words) for key in card.rows)


def _row_is_used(key: str, words: frozenset[str]) -> bool:
    row = api_row(key)
    if not words & {row.name, *row.former}:
        return False
    namesakes = [other for other in api_rows() if other.name == row.name]
    if len(namesakes) == 1:
        return True
    named = {other.key for other in namesakes if _structs(other.signatures) & words}
    return key in named or not (named or _structs(row.signatures))


def _structs(signatures: Iterable[str]) -> frozenset[str]:
    """The structs that calls are given; none where there is a form without."""
    found = [frozenset(_STRUCT.findall(text)) for text in signatures]
    return frozenset().union(*found) if all(found) else frozenset()


def _topic(row: dict[str, Any]) -> Card:
    keys = tuple(row.get("rows", ()))
    text = LIMIT.sub(lambda found: str(most_of(found[1], found[2])), row["text"].strip())
    for name, coefficients in _COEFFICIENTS.items():
        text = text.replace(name, ", ".join(f"{number:.9g}" for number in coefficients))
    body = "\n".join([*fact_lines(keys, repeats=row.get("repeats", False)), text])
    return Card(
        item(ExperienceKind.API_CARD, row["title"], body),
        keys,
        frozenset((*row.get("apis", ()), *names_of(keys))),
        CORES[row["cores"]] if "cores" in row else _cores_of(keys),
        frozenset(row.get("ops", ())),
        frozenset(row.get("dtypes", ())),
        row.get("always", False),
    )


def _others(known: Iterable[str]) -> Iterator[Card]:
    """A card for each row that ``known`` has not."""
    for row in api_rows():
        if row.key not in known:
            text = "\n".join(fact_lines([row.key]))
            title = Sentence("{name} as documented", name=row.key)
            made = item(ExperienceKind.API_CARD, title, text)
            names = frozenset((row.name, *row.former))
            yield Card(made, (row.key,), names, _cores_of([row.key]), is_topic=False)


def _cores_of(keys: Iterable[str]) -> frozenset[Cores]:
    """Where functions run: those of pipe V on vector cores alone, those of matrices on cube cores."""
    rows = list(map(api_row, keys))
    if rows and all(row.pipe == "V" for row in rows):
        return CORES["vector"]
    return CORES["cube"] if rows and all(_MATRIX_PAGES in row.page for row in rows) else CORES[""]
