"""A model whose answers are files: the bridge, tasks that are drawn, and answers that are recorded."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pytest
from attrs import evolve

from benchmarks.answering import questions
from benchmarks.answering.bridge import serving
from benchmarks.answering.drawn import FORMS, drawn
from benchmarks.answering.outcomes import Outcome, Row, table
from benchmarks.answering.questions import QUESTION, Questions
from benchmarks.answering.recorded import TASK, UNREADABLE, Recorded, judged, kept, recorded, shown
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.errors import ProposerError
from evokernel_core.domain.settings import ModelEndpoint, Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.proposers.llm_budget import Account, Budget, Tally
from evokernel_core.synthesis.proposers.llm_model import Model
from evokernel_core.synthesis.proposers.llm_words import ModelAnswer, Question
from evokernel_core.synthesis.session import Session
from evokernel_core.targets.ascendc.target import ASCENDC, ascendc

ANSWERS = Path(__file__).parents[1] / "benchmarks" / "data" / "answers"
RECORDED = {record.name: record for record in kept(ANSWERS)}
EACH = [(record.name, number) for record in RECORDED.values() for number in range(len(record.answers))]


# -- the bridge -----------------------------------------------------------------------------------


def question(text: str, samples: int = 1) -> Question:
    messages = ({"role": "system", "content": "of the chip"}, {"role": "user", "content": text})
    return Question(messages, {"type": "object"}, 1024, samples, plain=messages)


def ask(url: str, question: Question) -> tuple[ModelAnswer, ...]:
    endpoint = ModelEndpoint(f"{url}/net/v1", "hand", idle_timeout_s=20, total_timeout_s=20)
    account = Account(Budget(endpoint, Tally), "job", lambda usage: None)
    return Model(endpoint).ask(question, account)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(questions, "SETTLED_S", 0.0)
    monkeypatch.setattr(questions, "EMPTY_S", 0.0)
    return tmp_path / "net" / "1"


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize(
    ("files", "flaw"),
    [
        ({"answer.txt": "=== tiling.h\n"}, ""),
        ({"answer.txt": ""}, "was empty"),
        ({"answer.cut.txt": "=== til"}, "was cut off at 1024 tokens"),
        ({"answer.refused.txt": ""}, "withheld"),
        ({"answer.txt": "one", "answer.2.txt": "two", "answer.3.txt": "three"}, ""),
    ],
)
def test_what_is_written_is_what_a_model_says(
    place: Path, files: Mapping[str, str], flaw: str, structured: bool
) -> None:
    asked = question("write", samples=len(files))
    with serving(place.parents[1], structured=structured) as url:
        answerer = threading.Thread(target=_write_once_asked, args=(place, files))
        answerer.start()
        given = ask(url, asked)
        answerer.join()
        assert [answer.text for answer in given] == list(files.values())
        assert all((flaw in str(answer.flaw)) if flaw else not answer.flaw for answer in given)
        assert ask(url, asked) == given, "the same question finds its answer"
        text = (place / QUESTION).read_text()
        assert text.startswith("----- system -----\nof the chip\n\n----- user -----\nwrite\n")
        assert ('"type": "object"' in text) == structured
    assert [path.name for path in place.parent.iterdir()] == ["1"]
    assert not list(Questions(place.parents[1]).open())


def _write_once_asked(place: Path, files: Mapping[str, str]) -> None:
    while not (place / QUESTION).exists():
        time.sleep(0.01)
    assert list(Questions(place.parents[1]).open()) == [place / QUESTION]
    for name, text in files.items():
        (place / name).write_text(text)


def test_an_answer_is_read_once_it_is_written(tmp_path: Path) -> None:
    """A file that was changed just now may be half of an answer."""
    path = tmp_path / "answer.txt"
    path.write_text("half")
    assert not list(questions.answers(tmp_path))
    os.utime(path, (time.time() - 5,) * 2)
    assert [answer.text for answer in questions.answers(tmp_path)] == ["half"]
    path.write_text("")
    os.utime(path, (time.time() - 5,) * 2)
    assert not list(questions.answers(tmp_path)), "an empty one may be about to be written"


# -- recorded answers -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, KernelTask]:
    """The task of each record, captured together."""
    folder = tmp_path_factory.mktemp("recorded")
    with AgentClient(sys.executable, evaluation=True) as client:
        return {name: _captured(client, folder / f"t{name}.py", record) for name, record in RECORDED.items()}


def _captured(client: AgentClient, file: Path, record: Recorded) -> KernelTask:
    file.write_text(record.task)
    (task,) = {
        region.task for region in client.capture(file, None, covered_ops(ASCENDC), whole=True) if region.task
    }
    return task


@pytest.mark.parametrize(("name", "number"), EACH)
def test_a_recorded_answer_is_read_as_it_was(tasks: Mapping[str, KernelTask], name: str, number: int) -> None:
    """Against the question that would be asked today, with the kernels that its question showed."""
    record, author = RECORDED[name], ascendc(load_chip())
    given, task = record.answers[number], tasks[name]
    assert given.came is not None
    about = record.asked(given, task, author)
    keys = given.start, given.failed
    assert shown(about.question.messages[-1]["content"]) == tuple(record.kernels.get(key, {}) for key in keys)
    if given.came.gate == UNREADABLE:
        with pytest.raises(ProposerError) as caught:
            record.read(given, task, author)
        assert str(caught.value) == given.came.code
        return
    source = record.read(given, task, author)
    assert "ComputeTiling" in source.files["tiling.h"]


def test_recorded_answers_are_few_and_hold_no_questions() -> None:
    assert len(EACH) >= 40 and sum(path.stat().st_size for path in ANSWERS.iterdir()) < 2 * 2**20
    text = "".join(path.read_text() for path in ANSWERS.iterdir())
    assert "What a static audit rejects" not in text


@pytest.mark.thorough
@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_answer_comes_to_what_it_came_to(name: str, tmp_path: Path) -> None:
    record, file = RECORDED[name], tmp_path / TASK
    file.write_text(record.task)
    with Memory(tmp_path / "memory.db") as memory, Session(Settings(), tmp_path, memory) as session:
        (region,) = (region for region in session.regions(file, programs=True) if region.task)
        for given in record.answers:
            came = judged(record, given, region, session)
            assert given.came is not None and came.is_as(given.came)


def test_answers_are_recorded_with_the_kernels_of_their_questions(tmp_path: Path) -> None:
    """For any target: of each the files that a question shows."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / TASK).write_text("def f(): ...\n")
    end = "kernel.py and launch.json"
    texts = {
        "1": f"# The task\n{end}",
        "2": f"# The last attempt, which failed\nkernel.py:\n# One\nx = 1\n\n# Attempts so far\n{end}",
        "3": f"# The kernel to make faster\nkernel.py:\nx = 2\n\nlaunch.json:\n{{}}\n\nIt takes 1 us\n{end}",
    }
    for number, text in texts.items():
        place = tmp_path / "net" / number
        place.mkdir()
        (place / QUESTION).write_text(text)
        (place / "answer.txt").write_text(f"answer {number}")
        os.utime(place / "answer.txt", (0, 0))
    record = recorded(tmp_path, "net", "2026-11-30")
    assert record.target == "triton"
    first, second, third = record.answers
    assert (first.start, first.failed, second.start, third.failed) == ("", "", "", "")
    assert record.kernels[second.failed] == {"kernel.py": "# One\nx = 1\n"}
    assert record.kernels[third.start] == {"kernel.py": "x = 2\n", "launch.json": "{}\n"}


# -- drawn tasks ----------------------------------------------------------------------------------


def test_tasks_are_drawn_by_their_seed() -> None:
    first, again, other = (list(islice(drawn(seed), 20)) for seed in (7, 7, 8))
    assert first == again and first != other
    assert len({task.name for task in first}) == 20 and {task.kind for task in first} == set(FORMS)
    for task in first:
        compile(task.text, task.name, "exec")


def test_the_table_counts_what_was_right() -> None:
    alone, asked = Outcome(us=30.0), Outcome(us=20.0, model_us=20.0, right=(False, True), tokens=1000)
    rows = [
        Row("scan1", True, alone, asked),
        Row("cube1", False, alone, evolve(asked, us=31.0, right=(True,))),
        Row("index1", False, alone, Outcome(us=30.0)),
    ]
    *_, line = table(rows).splitlines()
    assert line == (
        "1 of 2 right at first, 2 within 3; author over hybrid 1.132 (geometric mean of 3), 1 more than 2 % "
        "slower; 2,000 tokens (estimated)."
    )
