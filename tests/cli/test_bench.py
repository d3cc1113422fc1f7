"""`evokernel bench`: which problems, what counts, and going on after an interruption."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

from evokernel_core.cli.bench import key_of, summary
from evokernel_core.cli.journal import RunJournal
from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import Settings
from evokernel_core.synthesis.problems import ProblemResult, solve
from evokernel_core.synthesis.session import Session

pytestmark = pytest.mark.usefixtures("warm_torch")

POINTWISE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    return [torch.rand(40, 33)]


def get_init_inputs():
    return []
"""
INVERSE = POINTWISE.replace("torch.relu(x) + 1", "torch.linalg.inv(x @ x.T)")
PRODUCT = POINTWISE.replace("torch.relu(x) + 1", "torch.relu(x @ x.T) + 1")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    for level, name, text in ((1, "10_late", INVERSE), (1, "2_early", POINTWISE), (2, "1_other", POINTWISE)):
        path = folder / f"level{level}" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


UNSUITABLE = {
    "broken": (POINTWISE + "def f(:", "not valid Python"),
    "double": (POINTWISE.replace("33)", "33, dtype=torch.float64)"), "float64: kernels take"),
    "missing": ("import no_such_package" + POINTWISE, "No module named 'no_such_package'"),
    "empty": ("import torch\n\ndef get_inputs():\n    return []\n", "no module class or function"),
    "failing": (
        POINTWISE.replace("torch.relu(x)", "inner(x)") + "\n\ndef inner(x):\n    return x.view(7, 7)\n",
        "Line 19 raised",
    ),
    "deeper": (
        POINTWISE.replace("torch.relu(x)", "inner(torch.relu(x) * 2)")
        + "\n\ndef inner(x):\n    return x.view(7, 7)\n",
        "Line 19 raised",
    ),
    "shapeless": (POINTWISE.replace("get_inputs", "inputs_of"), "get_inputs"),
    "latin": (POINTWISE + "# caf\xe9\n", "Line 16 of latin.py is not UTF-8"),
    "link": ("", "link.py cannot be read"),
    "data": ("#" * (5 << 20), "5 MiB of text"),
    "nulls": (POINTWISE + "\0", "not valid Python"),
}


def test_files_that_are_no_problems_are_said_so_and_the_rest_goes_on(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    for name, (text, _) in {**UNSUITABLE, "good": (POINTWISE, "")}.items():
        path = suite / "mixed" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="latin-1")
    (suite / "mixed" / "link.py").unlink()
    (suite / "mixed" / "link.py").symlink_to("nowhere.py")
    result = CliRunner().invoke(cli, ["bench", str(suite), "--budget", "1", "--json", "-"])
    assert result.exit_code == 0, result.output
    found = {item["name"]: item for item in json.loads(result.stdout)["problems"]}
    assert found["good"]["feasible"]
    for name, (_, words) in UNSUITABLE.items():
        assert not found[name]["feasible"]
        assert words in found[name]["reason"]
        assert found[name]["level"] == "mixed"


GROUPS = """
import torch


class Scaled(torch.nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x, dim: int, shift=None):
        return torch.softmax(x * self.by if shift is None else x + shift, dim)


def get_input_groups():
    width = 8 * int(torch.randint(4, 8, (1,)).item())
    return [
        [torch.rand(40, width), -1],
        [torch.rand(7, 3), -1],
        [torch.rand(40, width, dtype=torch.float16), -1],
        [torch.rand(2, 40, width), -1],
        [torch.rand(40, 33), -1, torch.rand(33)],
        [torch.rand(41, 34), -1, torch.rand(34)],
        [torch.rand(0, 34), -1],
    ]


def get_init_inputs():
    return [[2.0]] * 7
"""
FUNCTION = """
import torch


def doubled(x, y):
    return (x + y) * 2


def get_inputs(device):
    for size in (64, 96):
        yield [torch.rand(size, 8, device=device), torch.rand(8, device=device)]
"""


def test_input_groups_take_the_kernels_that_they_need(tmp_path: Path) -> None:
    for name, text in (("groups", GROUPS), ("function", FUNCTION)):
        (tmp_path / f"{name}.py").write_text(text)
    result = CliRunner().invoke(cli, ["bench", str(tmp_path), "--budget", "1", "--json", "-"])
    assert result.exit_code == 0, result.output
    function, groups = json.loads(result.stdout)["problems"]
    assert (groups["feasible"], groups["attempts"], groups["served"], groups["groups"]) == (True, 4, 7, 7)
    assert (function["feasible"], function["attempts"], function["served"]) == (True, 1, 2)
    few = CliRunner().invoke(cli, ["bench", str(tmp_path), "--budget", "1", "--groups", "1", "--json", "-"])
    assert json.loads(few.stdout)["problems"][1]["served"] == 3


def test_an_input_group_without_a_kernel_is_named(tmp_path: Path) -> None:
    text = GROUPS.replace("torch.rand(2, 40, width)", "torch.rand(2, 40, width, dtype=torch.float64)")
    (tmp_path / "groups.py").write_text(text)
    result = CliRunner().invoke(cli, ["bench", str(tmp_path), "--budget", "1", "--json", "-"])
    (found,) = json.loads(result.stdout)["problems"]
    assert (found["feasible"], found["served"]) == (False, 4)
    assert found["reason"].startswith("Input group 4: ")
    assert "float64" in found["reason"]


def test_sizes_that_no_kernel_takes_as_symbols_are_fixed(tmp_path: Path) -> None:
    text = POINTWISE.replace("torch.relu(x) + 1", "torch.nn.functional.adaptive_max_pool1d(x, 5) + 1")
    file = tmp_path / "pool.py"
    file.write_text(text.replace("torch.rand(40, 33)", "torch.rand(40, 3, 17)"))
    with Session(Settings(), tmp_path) as session:
        (region,) = session.regions(file, symbol="Model.forward", programs=True)
        assert region.task is not None, region.reason
        assert region.task.graph.inputs[0].spec.shape == ("s0", "s1", 17)
        assert solve(session, file, 1, "pool").feasible


DONE = ProblemResult("2_early", True, 4, 20.0, 10.0, 40.0, 5.0, 0, "", "done", 1.5)
FAILED = ProblemResult("10_late", False, failed_gate="capture", reason="matmul", seconds=0.5)


def test_the_summary() -> None:
    found = summary([DONE, evolve(DONE, best_latency_us=20.0, attempts=2), FAILED])
    assert (found["problems"], found["feasible"], found["median_attempts"]) == (3, 2, 3)
    assert found["geomean_baseline_over_best"] == pytest.approx(8**0.5)
    assert found["geomean_first_over_best"] == pytest.approx(2**0.5)
    assert summary([])["feasible_rate"] == 0.0


def test_the_journal_outlives_an_interruption() -> None:
    journal = RunJournal.open("key")
    journal.add(DONE)
    journal.add(FAILED)
    with journal.path.open("a") as file:
        file.write('{"name": "cut sho')  # the process was killed in the middle of a line
    journal.release()
    journal = RunJournal.open("key")
    journal.add(evolve(DONE, name="3_next"))
    journal.release()
    again = RunJournal.open("key")
    assert again.run == journal.run
    assert set(again.done) == {"/2_early", "/10_late", "/3_next"}
    assert again.done["/10_late"] == FAILED
    again.close()
    assert RunJournal.open("key").run != journal.run


def test_a_journal_is_of_one_process_at_a_time(suite: Path) -> None:
    arguments = ["bench", str(suite), "--levels", "2", "--budget", "1"]
    problem = suite / "level2" / "1_other.py"
    with_budget = Settings(budget=1, patience=3)
    journal = RunJournal.open(key_of(with_budget, [problem]))
    done = CliRunner().invoke(cli, arguments)
    assert isinstance(done.exception, UsageError)
    assert "is running already" in str(done.exception)
    journal.release()
    RunJournal.open(journal.path.stem).release()


def test_lines_of_a_journal_that_were_cut_are_solved_again() -> None:
    journal = RunJournal.open("key")
    journal.add(DONE)
    journal.release()
    lines = journal.path.read_text().splitlines()
    cut = json.dumps({"name": "x"})[:-3]
    journal.path.write_text("\n".join([lines[0], cut, lines[1]]) + "\n")
    assert set(RunJournal.open("key").done) == {"/2_early"}


def test_the_same_name_in_two_levels_is_two_problems() -> None:
    journal = RunJournal.open("key")
    journal.add(evolve(DONE, level="level1"))
    journal.add(evolve(DONE, level="level2", feasible=False))
    journal.release()
    assert [item.feasible for item in RunJournal.open("key").done.values()] == [True, False]


def test_a_problem_that_was_edited_is_another_run(suite: Path) -> None:
    file = suite / "level2" / "1_other.py"
    before = key_of(Settings(), [file])
    assert key_of(Settings(), [file]) == before
    file.write_text(PRODUCT)
    assert key_of(Settings(), [file]) != before


def test_an_interruption_ends_the_problems_that_run(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def waiting(session: Session, file: Path, *rest: object) -> ProblemResult:
        *_, cancelled = rest
        assert callable(cancelled)
        if file.stem == "2_early":
            begun.wait(30)
            return evolve(DONE, level="level1")
        begun.set()
        while not cancelled() and not ended.wait(0.01):
            pass
        ended.set()
        return evolve(FAILED, level="level1")

    def interrupted(journal: RunJournal, result: ProblemResult) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evokernel_core.cli.bench.solve", waiting)
    monkeypatch.setattr(RunJournal, "add", interrupted)
    watch = threading.Timer(30, ended.set)  # so that a run that goes on fails instead of hanging
    watch.start()
    done = CliRunner().invoke(cli, ["bench", str(suite), "--levels", "1", "--jobs", "2"])
    assert watch.is_alive()
    watch.cancel()
    assert ended.is_set()
    assert (done.exit_code, done.stdout) == (1, "")
    assert "0 of 2 problems are done; the same command does the rest." in done.stderr
    assert "Aborted!" in done.stderr


def test_a_result_that_cannot_be_written_is_said_before_the_work(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "missing" / "out.json"
    done = CliRunner().invoke(cli, ["bench", str(suite), "--json", str(out)])
    assert done.exit_code == 2
    assert "cannot be written: its folder is missing" in done.stderr


def test_real_problems(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    arguments = ["bench", str(suite), "--levels", "1", "--budget", "2", "--json", str(out)]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    data = json.loads(out.read_text())
    early, late = data["problems"]
    assert (early["feasible"], early["attempts"], early["failed_gate"]) == (True, 2, "")
    assert (early["level"], late["level"]) == ("level1", "level1")
    assert early["category"]
    assert (early["latency_source"], late["latency_source"]) == ("modelled", None)
    assert early["best_latency_us"] <= early["first_latency_us"]
    assert (late["feasible"], late["failed_gate"]) == (False, "capture")
    assert late["reason"]
    assert data["summary"]["feasible"] == 1
    assert "1 of 2 verified." in done.output
    assert "microseconds, estimated for ascend910b1" in done.output


def test_an_error_of_the_product_fails_one_problem_and_not_the_run(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(session: Session, file: Path, *rest: object) -> ProblemResult:
        if file.stem == "2_early":
            key = session.settings.endpoint.api_key
            raise ZeroDivisionError(f"a defect{key[:0]}")
        return evolve(FAILED, name=file.stem, level="level1")

    monkeypatch.setattr("evokernel_core.cli.bench.solve", broken)
    monkeypatch.setenv("EVOKERNEL_API_KEY", "the-secret-key")
    arguments = ["bench", str(suite), "--levels", "1", "--json", "-"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    early, late = json.loads(done.stdout.splitlines()[-1])["problems"]
    assert (early["failed_gate"], early["reason"]) == ("internal", "ZeroDivisionError: a defect")
    assert late["failed_gate"] == "capture"
    assert "Traceback" in done.stderr
    assert "the-secret-key" not in done.stderr


def test_a_forward_of_several_kernels(tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_product.py").write_text(PRODUCT)
    arguments = ["bench", str(tmp_path), "--budget", "1", "--json", "-"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    (problem,) = json.loads(done.output.splitlines()[-1])["problems"]
    assert problem["feasible"], problem
