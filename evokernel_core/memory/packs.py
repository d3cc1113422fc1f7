"""Packs: experiences and their values as JSON lines, to carry from one memory to another.

The first line says what the file is; each other line is one experience with its Q-values. Kernels,
outcomes and jobs stay at home: they are about one person's files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import evolve, frozen
from cattrs.errors import BaseValidationError

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.memory.experiences import experience_id
from evokernel_core.memory.ledger import Effect, Reward
from evokernel_core.memory.statistics import CLIP
from evokernel_core.memory.store import Memory

FORMAT = "evokernel-pack"
VERSION = 1
LONGEST_LINE = 2**20
"""Characters of one experience; its text goes into prompts and is read by people."""
MOST_TRIALS = 10**6
"""How often a value of a pack may say that it was tried: what is learnt here must be able to move it."""


@frozen
class Imported:
    """How many items a pack held and how many of them were new."""

    read: int
    new: int


def export_pack(memory: Memory, kinds: Iterable[ExperienceKind] = tuple(ExperienceKind)) -> Iterator[str]:
    """The lines of a pack, without line ends."""
    yield json.dumps({"format": FORMAT, "version": VERSION})
    values: dict[str, list[dict[str, Any]]] = {}
    for value in memory.values():
        row = {"stage": value.stage.value, "op_category": value.op_category, "q": value.q, "n": value.n}
        values.setdefault(value.item, []).append(row)
    for experience in memory.experiences(kinds):
        yield json.dumps(
            {"experience": to_data(experience), "values": values.get(experience.id, [])}, allow_nan=False
        )


def import_pack(memory: Memory, lines: Iterable[str]) -> Imported:
    """Adds a pack's items in one transaction, and its values: where this memory has one too, the mean of
    both, weighted by their updates. A pack that was imported before adds no value again.

    Raises UsageError, naming the line, for anything that is not a pack of this version; then nothing
    was added.
    """
    items, cause = _read(lines)
    new = 0
    with memory.transaction():
        is_known = memory.count("rewards", "cause = ?", (cause,)) > 0
        for experience, values in items:
            new += memory.add_experience(experience)
            for value in () if is_known else values:
                memory.pay(evolve(value, cause=cause))
    return Imported(len(items), new)


def _read(lines: Iterable[str]) -> tuple[list[tuple[Experience, tuple[Reward, ...]]], str]:
    """Every item of a pack with its values, and what the log calls the pack."""
    items, digest = [], hashlib.sha256()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        data = _parse(line, number)
        if number == 1:
            _check_head(data)
            continue
        experience = _experience(data, number)
        items.append((experience, _values(experience, data.get("values", []), number)))
        digest.update(line.strip().encode())
    return items, f"pack {digest.hexdigest()[:16]}"


def _parse(line: str, number: int) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise UsageError(f"Line {number} has more than {LONGEST_LINE} characters; no experience is so long.")
    try:
        data = json.loads(line, parse_constant=_refuse)
    except ValueError as error:
        raise UsageError(f"Line {number} is not JSON ({error}); give a file of `memory export`.") from error
    except RecursionError as error:
        raise UsageError(f"Line {number} nests deeper than any that is written.") from error
    if not isinstance(data, dict):
        raise UsageError(f"Line {number} is not an object; give a file of `memory export`.")
    return data


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _check_head(data: dict[str, Any]) -> None:
    if (data.get("format"), data.get("version")) != (FORMAT, VERSION):
        raise UsageError(f"This is not a pack of version {VERSION}; give a file of `memory export`.")


def _experience(data: dict[str, Any], number: int) -> Experience:
    try:
        experience = from_data(data["experience"], Experience)
        known = experience_id(experience.kind, experience.title, experience.body)
        json.dumps(to_data(experience), ensure_ascii=False, allow_nan=False).encode()
    except (BaseValidationError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"Line {number} is not an experience; export the pack again.") from error
    if experience.id != known:
        raise UsageError(f"The experience of line {number} was changed by hand; export the pack again.")
    return experience


def _values(experience: Experience, values: Any, number: int) -> tuple[Reward, ...]:
    try:
        return tuple(
            Reward(
                stage=Stage(value["stage"]),
                op_category=_category(value["op_category"]),
                used=(experience.id,),
                raw=max(-CLIP, min(CLIP, float(value["q"]))),
                effect=Effect.MERGE,
                trials=max(0, min(MOST_TRIALS, int(value["n"]))),
            )
            for value in values
        )
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"The values of line {number} cannot be read; export the pack again.") from error


def _category(value: Any) -> str:
    """Raises UnicodeError for what no database holds."""
    str(value).encode()
    return str(value)
