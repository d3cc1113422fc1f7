"""Complete kernels of each kind: typical small tasks (tasks.json), printed by the author when asked for."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge.items import item
from evokernel_core.targets.ascendc.knowledge.kinds import KernelKind

TASKS = Path(__file__).parent / "tasks.json"
"""Made by benchmarks/exemplars.py."""


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


def nearest(kind: KernelKind) -> Typical:
    """The typical task of a kind: of its family and cores, else of its family, else of its cores, else of the
    cores of the whole."""
    known = typical_tasks()
    for same in (
        lambda item: (item.family, item.cores) == (kind.family, kind.cores),
        lambda item: item.family == kind.family,
        lambda item: item.cores is kind.cores,
    ):
        entry = next(filter(same, known), None)
        if entry is not None:
            return entry
    return known[0]


@lru_cache(maxsize=64)
def source_of(typical: Typical, chip: Chip) -> KernelSource:
    """The author's kernel of a typical task."""
    return write(typical.task, initial(typical.task, chip), chip)


def exemplar(typical: Typical, chip: Chip) -> Experience:
    """The two files of a typical task's kernel, as an item."""
    source = source_of(typical, chip)
    body = "\n".join(f"{name}:\n{text}" for name, text in source.files.items())
    title = Sentence(
        "{family} kernel on {cores}: {about}",
        family=Sentence(typical.family),
        cores=Sentence(typical.cores.value),
        about=typical.about,
    )
    payload = json.dumps({"target": source.target, "files": dict(source.files)}, sort_keys=True)
    return item(ExperienceKind.EXEMPLAR, title, body, payload=payload)
