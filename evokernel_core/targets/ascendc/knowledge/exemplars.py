"""Complete kernels of each kind: typical small tasks (tasks.json), printed by the author when asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from attrs import frozen

from evokernel_core.compiler.knowledge_items import item
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge.kinds import KernelKind
from evokernel_core.targets.ascendc.source import KERNEL

_LEFTOVERS = (
    (re.compile(r"(?<=\()(\d+) < \1 \|\| "), ""),
    (re.compile(r" \|\| (\d+) < \1(?= \|\||\))"), ""),
    (re.compile(r"static_cast<\w+>\(\(([\w.]+) - \1\) \* sizeof\(\w+\)\)"), "0"),
    (re.compile(r"\(([\w.]+) - \1\) \* sizeof\(\w+\)"), "0"),
    (re.compile(r"(?<=\w) \+ 0(?=[\])])"), ""),
)
"""Expressions that say nothing, and what stands for them."""
TASKS = Path(__file__).parent / "tasks.json"
"""Made by benchmarks/exemplars.py."""


LONGEST = 48_000
"""Characters of the longest kernel that is shown as an example."""


@frozen(eq=False)
class Typical:
    """A task whose kernel is an example: ``about`` is its PyTorch, ``family`` and ``cores`` its kind's."""

    name: str
    about: str
    family: str
    cores: Cores
    task: KernelTask


@cache
def typical_tasks() -> tuple[Typical, ...]:
    """One or more for each family of schedules."""
    return tuple(
        Typical(
            row["name"],
            row["about"],
            row["family"],
            Cores[row["cores"]],
            from_data(row["task"], KernelTask),
        )
        for row in json.loads(TASKS.read_text(encoding="utf-8"))
    )


def nearest(kind: KernelKind, chip: Chip) -> Typical:
    """The typical task of a kind whose kernel a prompt has room for: of its family and cores, else of its
    family, else of its cores, else any."""
    known = typical_tasks()
    for same in (
        lambda item: (item.family, item.cores) == (kind.family, kind.cores),
        lambda item: item.family == kind.family,
        lambda item: item.cores is kind.cores,
    ):
        entry = next((item for item in known if same(item) and _length(item, chip) <= LONGEST), None)
        if entry is not None:
            return entry
    return known[0]


@lru_cache(maxsize=64)
def source_of(typical: Typical, chip: Chip) -> KernelSource:
    """The author's kernel of a typical task."""
    return write(typical.task, initial(typical.task, chip), chip)


def _length(typical: Typical, chip: Chip) -> int:
    return sum(map(len, source_of(typical, chip).files.values()))


def _notes(source: KernelSource) -> Iterator[str]:
    """What a reader who takes lines over has to know of narrow types."""
    if "static_cast<uint8_t>(" in source.files[KERNEL]:
        most = most_of("Add", "repeatTime")
        yield (
            f"(Repeats and repeat strides are uint8_t, {most} at most. They fit here since ComputeTiling "
            "returns false or cuts where they would not: keep that, or a larger pitch wraps without a word.)"
        )


def simplified(text: str) -> str:
    """A kernel's text for a reader: without comparisons and differences of a number or name with itself, and
    sums with 0, as schedules of other sizes have them."""
    for pattern, by in _LEFTOVERS:
        text = pattern.sub(by, text)
    return text


def exemplar(typical: Typical, chip: Chip) -> Experience:
    """The two files of a typical task's kernel, as an item."""
    source = source_of(typical, chip)
    body = "\n".join(
        [*_notes(source), *(f"{name}:\n{simplified(text)}" for name, text in source.files.items())]
    )
    title = Sentence(
        "{family} kernel on {cores}: {about}",
        family=Sentence(typical.family),
        cores=Sentence(typical.cores.value),
        about=typical.about,
    )
    payload = json.dumps({"target": source.target, "files": dict(source.files)}, sort_keys=True)
    return item(ExperienceKind.EXEMPLAR, title, body, payload=payload)
