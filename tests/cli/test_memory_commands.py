"""The memory and report commands on a small memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evokernel_core.cli.main import cli
from evokernel_core.cli.report import _counted
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.placement import Placement
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.store import Memory
from evokernel_core.paths import memory_path, step_model_path
from evokernel_core.report.figures import TaskFigures
from tests.synthesis.conftest import make_task
from tests.synthesis.test_rules import record_kernel
from tests.synthesis.test_step_model import TASKS, search

ITEM = make_experience(ExperienceKind.PRACTICE, "double buffer", "Use two buffers.")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))
    with Memory(memory_path()) as memory:
        memory.add_experience(ITEM)
        memory.pay(Reward(Stage.REFINE, "softmax", (ITEM.id,), 1.0))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def test_stats() -> None:
    assert json.loads(run("memory", "stats", "--json").output)["counts"]["experiences.practice"] == 1
    assert "1  experiences" in run("memory", "stats").output


def test_top() -> None:
    rows = json.loads(run("memory", "top", "--stage", "refine", "--json").output)
    assert {row["op_category"] for row in rows} == {"softmax", ""}
    assert all("double buffer" in row["title"] for row in rows)
    assert "+0.300" in run("memory", "top").output


def test_show() -> None:
    assert json.loads(run("memory", "show", ITEM.id[:8], "--json").output)["experience"]["id"] == ITEM.id
    assert "Use two buffers." in run("memory", "show", ITEM.id).output
    with pytest.raises(UsageError, match="no item"):
        run("memory", "show", "zzz")


def test_export_forget_import(tmp_path: Path) -> None:
    pack = str(tmp_path / "pack.jsonl")
    assert run("memory", "export", pack).exit_code == 0
    assert run("memory", "forget", "--all", "--yes").exit_code == 0
    assert json.loads(run("memory", "top", "--json").output) == []
    assert "1 of 1 experiences were new" in run("memory", "import", pack).output
    assert len(json.loads(run("memory", "top", "--json").output)) == 2


def test_rules() -> None:
    assert "holds no rules" in run("memory", "rules").output
    assert json.loads(run("memory", "rules", "--json").output) == []
    with Memory(memory_path()) as memory:
        for task in ("a", "b"):
            memory.add_evidence(make_experience(ExperienceKind.RULE, "You cannot.", "You cannot."), task)
    assert run("memory", "rules").output.startswith("You cannot.\n  No kernel here broke it")
    (rule,) = json.loads(run("memory", "rules", "--json").output)
    assert (rule["text"], rule["known"], rule["broken"]) == ("You cannot.", True, 0)


@pytest.mark.parametrize(
    "named",
    ["{id}", "{short}", "evokernel_kernels/gate_1", "./evokernel_kernels/gate_1/", "{folder}", "gate_1",
     "gate_2", "gate_3"],
)  # fmt: skip
def test_why_takes_what_a_person_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """An id, a folder, the name in the edited file: here, of a call elsewhere, or never applied."""
    with Memory(memory_path()) as memory:
        record_kernel(memory, make_task(1), 1, fails=False)
        id = memory.attempts()[0].source_id
        elsewhere = tmp_path / "elsewhere" / "pkg" / "net.py"
        memory.put_placement(Placement(elsewhere, "gate_2", "region", make_task(1).task_id, id, 1.0))
    roots = {
        "gate_1": tmp_path / "here",
        "gate_2": elsewhere.parents[1],
        "gate_3": tmp_path / "cache/packages",
    }
    for name, root in roots.items():
        folder = root / "evokernel_kernels" / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps({"source_id": id}))
    monkeypatch.chdir(tmp_path / "here")
    folder = tmp_path / "here" / "evokernel_kernels" / "gate_1"
    said = run("memory", "why", named.format(id=id, short=id[:7], folder=folder)).output
    assert said.startswith(f"Kernel {id[:12]} was drafted by toy")


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("nothing", "'nothing' means no kernel of the memory"),
        ("", "means 2 kernels of the memory"),
        ("../x", "means no kernel"),
        ("bare", "'bare' means no kernel"),
        ("odd", "'odd' means no kernel"),
        ("theirs", "does not have the kernel of 'theirs'"),
    ],
)
def test_why_says_what_it_cannot_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, reason: str
) -> None:
    with Memory(memory_path()) as memory:
        for n in (1, 2):
            record_kernel(memory, make_task(1), n, fails=False)
    for name, manifest in (("odd", "[]"), ("theirs", '{"source_id": "5e1f"}')):
        (tmp_path / "here" / name).mkdir(parents=True)
        (tmp_path / "here" / name / "kernel.json").write_text(manifest)
    (tmp_path / "here" / "bare").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match=reason):
        run("memory", "why", named)


def test_steps_come_with_their_cards(tmp_path: Path) -> None:
    """What is in the lines is tests/synthesis/test_steps.py's."""
    file = tmp_path / "steps.jsonl"
    said = run("memory", "export", str(file), "--format", "steps", "--for", "reinforcement").output
    assert "0 steps of 0 tasks" in said and str(tmp_path / "steps.card.md") in said
    assert file.read_text() == ""
    card = json.loads((tmp_path / "steps.card.json").read_text())
    assert (card["purpose"], card["samples"]) == ("reinforcement", 0)
    assert "Licence and consent" in (tmp_path / "steps.card.md").read_text()
    with pytest.raises(UsageError, match="--kind chooses items of a pack"):
        run("memory", "export", str(file), "--format", "steps", "--kind", "rule")


@pytest.fixture
def searched() -> None:
    """Six searches on three operations."""
    with Memory(memory_path()) as memory:
        for task in TASKS:
            search(memory, task)


@pytest.mark.usefixtures("searched")
def test_train_keeps_a_model_and_says_how_it_orders() -> None:
    (told,) = run("memory", "train", "--min-rows", "20", "--json").output.splitlines()
    found = json.loads(told)
    assert found["tasks"] == 6 and found["rows"] >= 20
    held = found["held_out"]
    assert held.keys() == {"operations", "pairs", "concordance", "interval", "by_estimate"}
    assert 0 <= held["interval"][0] <= held["concordance"] <= held["interval"][1] <= 1
    path = step_model_path(found["chip"])
    assert str(path) == found["path"] and path.is_file()
    said = run("memory", "train", "--min-rows", "20").output
    assert (
        f"{found['rows']} steps of 6 tasks" in said
        and "estimates order" in said
        and "left out: a draft" in said
    )
    assert run("memory", "forget", "--all", "--yes").exit_code == 0
    assert not path.exists()


def test_train_says_how_many_steps_it_needs() -> None:
    with pytest.raises(UsageError, match=r"has 0 steps on .* and 100 are needed"):
        run("memory", "train")


def test_forget_asks_what() -> None:
    with pytest.raises(UsageError, match="Say what to forget"):
        run("memory", "forget")
    with pytest.raises(UsageError, match="no task"):
        run("memory", "forget", "--task", "none")
    assert "Forgotten" in run("memory", "forget", "--item", ITEM.id[:10]).output


def test_report(tmp_path: Path) -> None:
    """What the page is like is tests/report's."""
    page = tmp_path / "report.html"
    assert "double buffer" in run("report").output
    assert f"Report written to {page}" in run("report", "--html", str(page)).output
    text = page.read_text(encoding="utf-8")
    assert "double buffer" in text
    assert str(tmp_path) not in text, "a team has no use for the folders of one of its members"


@pytest.mark.parametrize(
    ("slower", "words"), [(0, "2 of 15 kernels verified"), (9, "2 of 15 kernels verified, 9 timed only")]
)
def test_kernels_that_were_timed_only_are_no_failures_in_the_report(slower: int, words: str) -> None:
    assert _counted(TaskFigures("id", "task", "softmax", None, 15, 2, slower, 13 - slower)) == words


def test_estimates() -> None:
    assert run("memory", "estimates").output == "No verdict on ascend910b1 stands beside an estimate yet.\n"
    with Memory(memory_path()) as memory:
        for number, us in enumerate((110.0, 112.0, 108.0)):
            made = TuningRecord(
                "t",
                str(number),
                "ascend910b1",
                "twin 1",
                "rowwise",
                100.0,
                us,
                (("rows", 0.1),),
                source=LatencySource.MODELLED,
            )
            memory.record_tuning(made)
    said = run("memory", "estimates").output
    assert said.startswith("rowwise: 3 estimated verdict(s) of twin 1; the next one is expected at 1.")
    [row] = json.loads(run("memory", "estimates", "--json").output)["twin 1"]
    assert row["low"] < row["mean"] < row["high"] and 1.0 < row["mean"] < 1.12
