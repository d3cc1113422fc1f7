"""What is known is found by words: functions by their names, lessons of the memory behind what we ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from evokernel_core.domain.experience import ExperienceKind
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.chip_files import DEFAULT_CHIP
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.tools import lookup
from evokernel_core.targets.ascendc.target import ascendc

CHIP = load_chip(DEFAULT_CHIP)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path / "memory.db")
    memory.add_experience(make_experience(ExperienceKind.FAILURE, "Zebra stripes overflow", "Sum in float."))
    return memory


@pytest.mark.parametrize("name", ["DataCopyPad", "ReduceSum", "Mmad", "PipeBarrier", "Copy"])
def test_a_function_is_found_by_its_name(memory: Memory, name: str) -> None:
    (first,) = lookup(memory, ascendc(CHIP), f"how does {name} work", (), 1)
    assert first.kind is ExperienceKind.API_CARD
    assert name in first.title + first.body


def test_a_function_whose_name_is_a_plain_word_does_not_answer_everything(memory: Memory) -> None:
    found = lookup(memory, ascendc(CHIP), "how to copy the tail of a row", (), 3)
    assert not any(item.title == "Copy as documented" for item in found[:1])


def test_the_memory_is_looked_into(memory: Memory) -> None:
    assert lookup(memory, ascendc(CHIP), "zebra", (), 5)[-1].title == "Zebra stripes overflow"
    failures = lookup(memory, ascendc(CHIP), "zebra overflow", ("failure",), 5)
    assert [item.kind for item in failures] == ["failure"]


@pytest.mark.parametrize("query", ["", "???", "qqqqqqqq"])
def test_what_nothing_is_known_of_gives_nothing(memory: Memory, query: str) -> None:
    assert lookup(memory, ascendc(CHIP), query, (), 5) == ()
