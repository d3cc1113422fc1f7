"""The knowledge that ships: well-formed, short, in one voice, and chosen for what a prompt needs."""

from __future__ import annotations

import json

import pytest

from evokernel_core.ascendc.knowledge import load_cards, relevant_cards
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.memory.experiences import experience_id

PIPES = {"", "S", "V", "MTE2", "MTE3"}


def task(op: str, dtype: str = "float32") -> KernelTask:
    spec = TensorSpec((64, 64), dtype)
    node = Node("y", op, (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    return KernelTask("t", graph, (), TOLERANCES["float32"], "other")


@pytest.mark.parametrize("card", load_cards(), ids=lambda card: card.title)
def test_a_card_is_short_and_named_as_a_memory_names_it(card: Experience) -> None:
    assert card.id == experience_id(card.kind, card.title, card.body)
    assert card.title and card.body
    assert card.bottleneck in PIPES
    if card.kind is not ExperienceKind.EXEMPLAR:
        assert len(card.body) < 1200
    if card.kind is ExperienceKind.RULE:
        assert card.body.startswith("You cannot ")


def test_every_kind_is_there_and_nothing_twice() -> None:
    kinds = {card.kind for card in load_cards()}
    assert kinds == {
        ExperienceKind.API_CARD,
        ExperienceKind.RULE,
        ExperienceKind.PRACTICE,
        ExperienceKind.EXEMPLAR,
    }
    ids = [card.id for card in load_cards()]
    titles = [(card.kind, card.title) for card in load_cards()]
    assert len(set(ids)) == len(ids)
    assert len(set(titles)) == len(titles)


def titles(*args: object) -> str:
    return " | ".join(card.title for card in relevant_cards(*args))  # type: ignore[arg-type]


def test_cards_follow_the_ops_the_dtypes_and_the_code_shown() -> None:
    plain = titles(task("aten.add.Tensor"), [])
    assert "DataCopyPad" in plain
    assert "Softmax" not in plain and "bfloat16 is" not in plain and "Gather and" not in plain
    assert "Softmax over rows" in titles(task("aten._softmax.default"), [])
    assert "bfloat16 is computed in float" in titles(task("aten.add.Tensor", "bfloat16"), [])
    assert "Gather and GatherMask" in titles(task("aten.add.Tensor"), ["Gather(dst, src, offsets, 0, n);"])


def test_the_exemplar_comes_where_no_kernel_is_shown() -> None:
    exemplar = next(card for card in load_cards() if card.kind is ExperienceKind.EXEMPLAR)
    assert exemplar in relevant_cards(task("aten.add.Tensor"), [])
    files = json.loads(exemplar.payload)
    assert exemplar not in relevant_cards(task("aten.add.Tensor"), [files["op_kernel_cpp"]])
    assert set(files) == {"tiling_h", "op_kernel_cpp"}
