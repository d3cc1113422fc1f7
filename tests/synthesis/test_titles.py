"""Titles of what the memory learns are sentences, so that a dashboard shows them in the person's language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest
from attrs import evolve

import evokernel_core
from evokernel_core.domain.experience import Experience, Stage
from evokernel_core.domain.kernel import after, steps_in
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Hazard, Severity, Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.synthesis.lessons import Trial, lessons, rules, step_title
from evokernel_core.synthesis.preconditions import Condition, Precondition
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.hybrid import model_practice
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer, practice
from evokernel_core.synthesis.sequences import gained_by_steps
from evokernel_core.targets.ascendc import knowledge
from evokernel_core.targets.ascendc.author import initial, moves
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge.practices import practices
from evokernel_core.targets.ascendc.lessons import RULES
from evokernel_core.targets.ascendc.target import ascendc
from tests.chinese import in_chinese, left_in_english
from tests.server.reviewed import SOURCE, TASK, VERDICT
from tests.synthesis.test_sequences import chain

CHIP = load_chip()
SOURCES = sorted(Path(evokernel_core.__file__).parent.rglob("*.py"))
ADDS = {"make_experience", "item"}


def failed(gate: GateName, code: str, feedback: str = "") -> Verdict:
    hazards = (Hazard(code, Severity.ERROR, "x"),) if code in RULES else ()
    return evolve(
        VERDICT,
        gates=(GateResult(gate, GateStatus.FAILED, code, feedback, hazards=hazards),),
        latency=None,
    )


def trial(verdict: Verdict, best_us: float = inf, move: str = "", stage: Stage = Stage.REFINE) -> Trial:
    source = evolve(SOURCE, strategy=evolve(SOURCE.strategy, move=Sentence(move)))
    return Trial(TASK, {}, stage, source, verdict, best_us, "V", frozenset())


def learned() -> Iterator[Experience]:
    """Items of each kind that a search leaves behind."""
    for verdict in (VERDICT, failed(GateName.CORRECTNESS, "ub-capacity")):
        yield from lessons(trial(verdict))
        yield from lessons(trial(verdict, 50.0, "double tile"))
        yield from lessons(trial(verdict, stage=Stage.DRAFT))
    for code in RULES:
        yield from rules(failed(GateName.CORRECTNESS, code), "ascendc")
    unknown = "no member named 'Sotfmax' in namespace 'AscendC'"
    yield from rules(failed(GateName.COMPILE, "compile", unknown), "ascendc")
    start = Candidate(SOURCE, VERDICT, "")
    nobody = Candidate(SOURCE, evolve(VERDICT, latency=None), "")
    for candidate in (start, nobody):
        yield from (practice(move, candidate) for move in moves(TASK, initial(TASK, CHIP), CHIP))
        yield model_practice(candidate)
    rows = Condition("rowwise.rows", 0.7, is_least=True)
    few = (rows, evolve(rows, is_least=False), Condition("matmul.dtype:half", 1.0, is_least=False))
    for conditions in ((), few, (Condition("rank:2", 1.0, is_least=True),)):
        yield Precondition("rowwise", "correctness:ub-capacity", conditions, 3, 3, 2).rule()


def known() -> Iterator[Experience]:
    """What is known before anything was tried, which models are shown and the memory keeps."""
    yield from (card.experience for card in knowledge.cards()[:40])
    yield from (item.on(CHIP) for item in practices())
    for cores in Cores:
        yield from knowledge.rules(cores, CHIP)
    yield from knowledge.common_knowledge(knowledge.kind_of(TASK, CHIP), CHIP)
    yield from (ScheduleProposer(ascendc(CHIP)).draft(TASK, Context()).learned)


TOLD = {item.title: item for item in (*learned(), *known())}
ITEMS = [(item.kind.value, item.title) for item in TOLD.values()]


@pytest.mark.parametrize(("kind", "title"), ITEMS, ids=[f"{kind}: {title[:50]}" for kind, title in ITEMS])
def test_a_title_is_said_in_chinese(kind: str, title: Sentence) -> None:
    assert left_in_english(title) == ""
    assert re.search("[\u4e00-\u9fff]", in_chinese(title))
    item = TOLD[title]
    again = loads(dumps(item), Experience)
    assert (again, again.title.data()) == (item, title.data())


def test_no_title_is_made_of_an_f_string() -> None:
    calls = (node for path in SOURCES for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    made = [node for node in calls if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ADDS]
    titles = [node.args[1] for node in made if len(node.args) > 1]
    assert len(titles) > 10
    assert [ast.unparse(title) for title in titles if isinstance(title, ast.JoinedStr)] == []


def test_steps_that_were_made_at_once_keep_what_they_are_made_of() -> None:
    longer = Sentence("tile longer along axis {axis}", axis=1)
    whole = after(after(Sentence("double tile"), longer), Sentence("model"))
    assert whole == "double tile, then tile longer along axis 1, then model"
    assert [step.data() for step in steps_in(whole)] == ["double tile", longer.data(), "model"]
    assert steps_in(Sentence("a, then b")) == ("a", "b")
    assert steps_in(longer) == (longer,)


def test_a_sequence_is_named_by_its_steps() -> None:
    search, last = chain("a2", "double")
    found = gained_by_steps(last, search)
    assert found is not None
    two = Sentence("{first}, then {next}", first=Sentence("turn on a2"), next=Sentence("turn on double"))
    title = step_title(two, "MTE2", "toy")
    assert (found[0].title, found[0].title.data()) == (title, title.data())
