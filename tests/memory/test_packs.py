"""A pack carries experiences and values to another memory, and only whole packs are taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.sentence import Sentence
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.packs import Imported, export_pack, import_pack
from evokernel_core.memory.store import Memory

ITEM = make_experience(ExperienceKind.PRACTICE, "double buffering", "body", features={"ops": 1.5})
OTHER = make_experience(ExperienceKind.RULE, "You cannot fly.", "You cannot fly.")


@pytest.fixture
def pack(memory: Memory) -> list[str]:
    for item in (ITEM, OTHER):
        memory.add_experience(item)
    memory.pay(Reward(Stage.REFINE, "softmax", (ITEM.id,), 1.0))
    return list(export_pack(memory))


@pytest.fixture
def other(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "other.db")


def test_there_and_back(memory: Memory, pack: list[str], other: Memory) -> None:
    assert import_pack(other, pack) == Imported(2, 2)
    assert other.experiences() == memory.experiences()
    assert set(other.values()) == set(memory.values())
    assert import_pack(other, pack) == Imported(2, 0)


def test_values_are_merged_by_their_updates(pack: list[str], other: Memory) -> None:
    for _ in range(3):
        other.pay(Reward(Stage.REFINE, "softmax", (ITEM.id,), -1.0))
    own = other.q(Stage.REFINE, "softmax", ITEM.id)
    import_pack(other, pack)
    merged = pytest.approx((3 * own + 0.3) / 4)
    assert other.q(Stage.REFINE, "softmax", ITEM.id) == merged
    import_pack(other, pack)  # once more says nothing new
    assert other.q(Stage.REFINE, "softmax", ITEM.id) == merged
    assert {value.n for value in other.values()} == {4}


def test_kinds_can_be_chosen(memory: Memory, pack: list[str]) -> None:
    assert len(list(export_pack(memory, [ExperienceKind.RULE]))) == 2


def changed(line: str, **changes: object) -> str:
    data = json.loads(line)
    data["experience"] |= changes
    return json.dumps(data)


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (0, "{}"),
        (0, "no json"),
        (1, "[]"),
        (1, '{"experience": {"id": 3}}'),
        (1, '{"values": []}'),
    ],
)
def test_a_bad_pack_adds_nothing(pack: list[str], other: Memory, number: int, line: str) -> None:
    pack[number] = line
    with pytest.raises(UsageError):
        import_pack(other, [*pack, "no json either"])
    assert other.rewards() == ()
    assert other.counts()["experiences"] == 0


def test_an_edited_experience_is_refused(pack: list[str], other: Memory) -> None:
    with pytest.raises(UsageError, match="line 2 was changed"):
        import_pack(other, [pack[0], changed(pack[1], body="something else")])


def test_values_beyond_the_bounds_are_clipped(pack: list[str], other: Memory) -> None:
    line = json.loads(pack[1])
    line["values"] = [{"stage": "refine", "op_category": "softmax", "q": 1e9, "n": 1}]
    import_pack(other, [pack[0], json.dumps(line)])
    assert other.q(Stage.REFINE, "softmax", ITEM.id) == 1.0


MADE = Sentence("{step} for {family}", step=Sentence("double tile"), family=Sentence("rowwise"))


def test_titles_carry_what_they_are_made_of(memory: Memory, other: Memory) -> None:
    memory.add_experience(make_experience(ExperienceKind.PRACTICE, MADE, "body"))
    pack = list(export_pack(memory))
    assert json.loads(pack[1])["experience"]["title"] == "double tile for rowwise", "as earlier versions read"
    import_pack(other, pack)
    (item,) = other.experiences()
    assert (item.title, item.title.data()) == (MADE, MADE.data())


def test_a_title_that_is_said_otherwise_than_it_reads_is_refused(memory: Memory, other: Memory) -> None:
    memory.add_experience(make_experience(ExperienceKind.PRACTICE, MADE, "body"))
    pack = list(export_pack(memory))
    lie = changed(pack[1], said={"title": Sentence("{first}, then {next}", first="a", next="b").data()})
    with pytest.raises(UsageError, match="changed by hand"):
        import_pack(other, [pack[0], lie])


def test_titles_of_earlier_versions_are_texts_until_they_are_learned_again(memory: Memory) -> None:
    """A damaged one is a text, too."""
    memory.add_experience(make_experience(ExperienceKind.PRACTICE, str(MADE), "body"))
    assert memory.experiences()[0].title.values == {}
    assert not memory.add_experience(make_experience(ExperienceKind.PRACTICE, MADE, "body"))
    assert memory.experiences()[0].title.data() == MADE.data()
    for damage in ("title = 'another title'", "said = x'00'", "said = 3"):
        memory.execute(f"UPDATE experiences SET {damage}")
        assert memory.experiences()[0].title.data() == "another title"
