"""What is known of AscendC before anything was tried: API cards, rules, practices and an exemplar.

``load_cards`` gives all of it as experiences, to seed a memory with; ``relevant_cards`` picks what
one prompt needs: the infrastructure that every kernel uses, what names the task's ops and dtypes,
and the calls that occur in the kernels that the prompt shows.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from evokernel_core.ascendc.knowledge.facts import call_lines, limit_lines, names_of, pages_of
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.api import most_of

FOLDER = Path(__file__).parent
EXEMPLARS = {"scale_add": "y = a + 2*b, float16: queues, tails, and a split over the cores"}
"""Complete kernels by file name, each with what it shows."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_LIMIT = re.compile(r"\{(\w+)\.(\w+)\}")


@cache
def load_cards() -> tuple[Experience, ...]:
    """Everything, in a fixed order: cards, rules, practices, exemplars."""
    return (
        *(_experience(ExperienceKind.API_CARD, row) for row in _rows("cards.toml", "card")),
        *(_experience(ExperienceKind.RULE, row) for row in _rows("rules.toml", "rule")),
        *(_experience(ExperienceKind.PRACTICE, row) for row in _rows("practices.toml", "practice")),
        *_exemplars(),
    )


def relevant_cards(task: KernelTask, texts: Iterable[str]) -> tuple[Experience, ...]:
    """The API cards for a prompt about ``task`` that shows ``texts`` (kernels, payloads), and the
    exemplar if no text is a kernel."""
    shown = list(texts)
    words = {word for text in shown for word in _WORD.findall(text)}
    ops = {_base(node.op) for node in task.graph.nodes}
    dtypes = {item.spec.dtype for item in task.graph.inputs}
    dtypes |= {spec.dtype for node in task.graph.nodes for spec in node.outputs}
    chosen = [card for card in load_cards() if _is_relevant(card, ops, dtypes, words)]
    if not any("GM_ADDR" in text for text in shown):
        chosen += [card for card in load_cards() if card.kind is ExperienceKind.EXEMPLAR]
    return tuple(chosen)


def _is_relevant(card: Experience, ops: set[str], dtypes: set[str], words: set[str]) -> bool:
    if card.kind is not ExperienceKind.API_CARD:
        return card.kind is ExperienceKind.RULE
    keys = json.loads(card.payload)
    return bool(
        keys["always"] or ops & set(keys["ops"]) or dtypes & set(keys["dtypes"]) or words & set(keys["apis"])
    )


def _base(op: str) -> str:
    """``exp`` of ``aten.exp.default``."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op


def _rows(file: str, table: str) -> Iterator[dict[str, Any]]:
    yield from tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))[table]


def _experience(kind: ExperienceKind, row: dict[str, Any]) -> Experience:
    rows, limits = row.get("rows", []), row.get("limits_of", [])
    keys = {
        "apis": [*row.get("apis", []), *names_of([*rows, *limits])],
        "ops": row.get("ops", []),
        "dtypes": row.get("dtypes", []),
        "pages": pages_of([*rows, *limits]),
        "always": row.get("always", False),
    }
    payload = json.dumps(keys, sort_keys=True) if kind is ExperienceKind.API_CARD else ""
    title = row["title"]
    text = _LIMIT.sub(lambda found: str(most_of(found[1], found[2])), row["text"].strip())
    body = "\n".join([*call_lines(rows), *limit_lines(limits), text])
    return Experience(
        _id(kind, title, body), kind, title, body, bottleneck=row.get("bottleneck", ""), payload=payload
    )


def _exemplars() -> Iterator[Experience]:
    for name, title in EXEMPLARS.items():
        tiling, kernel = (
            (FOLDER / "exemplars" / f"{name}.{file}").read_text(encoding="utf-8")
            for file in ("tiling.h", "op_kernel.cpp")
        )
        body = f"tiling.h:\n{tiling}\nop_kernel.cpp:\n{kernel}"
        payload = json.dumps({"tiling_h": tiling, "op_kernel_cpp": kernel}, sort_keys=True)
        kind = ExperienceKind.EXEMPLAR
        yield Experience(
            _id(kind, title, body), kind, title, body, op_category="elementwise", payload=payload
        )


def _id(kind: ExperienceKind, title: str, body: str) -> str:
    """The id that a memory gives to the same item, so that seeding twice is seeding once."""
    return hashlib.sha256(json.dumps([kind.value, title, body], ensure_ascii=False).encode()).hexdigest()
