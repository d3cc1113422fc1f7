"""What binds a kernel, by its figures, and the practices that help where that is so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path

from attrs import frozen

from evokernel_core.compiler.knowledge_items import item
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency, evenness
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.roofline import roofline_parts
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge.cards import CORES

PIPES = ("MTE2", "MTE1", "M", "V", "FIX", "MTE3", "S")
_OF_CUBES = ("MTE1", "M", "FIX")
LAUNCH, IMBALANCE, OVERLAP = "launch", "imbalance", "overlap"
BINDINGS = (*PIPES, LAUNCH, IMBALANCE, OVERLAP)
"""What may bind a kernel: a pipe, the launch, cores without work, or pipes that wait for each other."""

_MOST_OF_IT = 0.5
"""The share of a kernel's time from which on the launch binds it, and below which no pipe does."""
_BALANCED = 0.75
"""The mean time of the cores as a share of the slowest one's, below which their work is uneven."""
_PARTS = {"memory": "MTE2", "vector": "V", "cube": "M"}
_CONSTANT = re.compile(r"\{([a-z][\w.]*)\}")


def with_constants(text: str, chip: Chip) -> str:
    """A text with a chip's constants in the places of their names (``{mte.load_latency_cycles}``)."""
    return _CONSTANT.sub(lambda found: f"{figure(chip, found[1]):g}", text)


def figure(chip: Chip, name: str) -> float:
    """A constant of a chip, by the path of its field. Raises AttributeError."""
    return float(attrgetter(name)(chip))


@frozen
class Practice:
    """``bindings``: of the kernels that it helps, on such ``cores``; ``text`` names constants of chips."""

    title: str
    bindings: frozenset[str]
    cores: frozenset[Cores]
    text: str

    def on(self, chip: Chip) -> Experience:
        """The practice with a chip's constants."""
        body = with_constants(self.text, chip)
        (first, *_) = sorted(self.bindings, key=BINDINGS.index)
        return item(ExperienceKind.PRACTICE, self.title, body, bottleneck=first if first in PIPES else "")


@cache
def practices() -> tuple[Practice, ...]:
    """All of practices.toml, in its order."""
    rows = tomllib.loads((Path(__file__).parent / "practices.toml").read_text(encoding="utf-8"))["practice"]
    return tuple(
        Practice(row["title"], frozenset(row["binding"]), CORES[row.get("cores", "")], row["text"])
        for row in rows
    )


def practices_for(bindings: Iterable[str], units: Cores, chip: Chip) -> tuple[Experience, ...]:
    """The practices for what binds a kernel on such cores, the first binding's first."""
    found = [
        practice.on(chip)
        for binding in bindings
        for practice in practices()
        if binding in practice.bindings and units in practice.cores
    ]
    return tuple({known.id: known for known in found}.values())


def bindings_of(latency: Latency, chip: Chip) -> tuple[str, ...]:
    """What binds a kernel that was timed, what weighs most first."""
    return tuple(_bindings(latency, chip))


def _bindings(latency: Latency, chip: Chip) -> Iterator[str]:
    started_us = chip.launch_of(latency.block_dim)
    if started_us >= _MOST_OF_IT * latency.us:
        yield LAUNCH
    is_cubes = any(pipe in _OF_CUBES for pipe, _ in latency.pipes)
    if evenness(latency, chip.aic if is_cubes else chip.aiv) < _BALANCED:
        yield IMBALANCE
    if not latency.pipes:
        return
    pipe, busy_us = max(latency.pipes, key=lambda pipe: pipe[1])
    yield pipe
    if busy_us < _MOST_OF_IT * max(latency.us - started_us, busy_us):
        yield OVERLAP


def expected_bindings(task: KernelTask, chip: Chip) -> tuple[str, ...]:
    """What will bind the first kernel of a task, by the bounds of its bytes, products and elements."""
    parts = roofline_parts(task, chip)
    largest = max(parts, key=parts.__getitem__)
    is_small = parts[largest] < chip.launch_of(1)
    return (*([LAUNCH] if is_small else []), _PARTS[largest])
