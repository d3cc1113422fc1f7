"""A defect of ours costs the region that it was met in: never the file, never without its traceback."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evokernel_core.cli.main import cli
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import AgentFailed, InternalError, ProposerError
from evokernel_core.domain.region import RegionStatus
from evokernel_core.domain.settings import Settings
from evokernel_core.synthesis.offers import choose
from evokernel_core.synthesis.session import Session

pytestmark = pytest.mark.usefixtures("warm_torch")

MODEL = """\
import torch


# evokernel: x=f32[512,1024]
def good(x):
    return torch.softmax(torch.relu(x) * 2.0, -1)


# evokernel: x=f32[512,1024]
def bad(x):
    return torch.sigmoid(torch.tanh(x) * 3.0 + 1.0) * x
"""


@pytest.fixture(autouse=True)
def _own_home_and_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    yield
    logger = logging.getLogger("evokernel_core")
    logger.propagate = True
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def session(model: Path) -> Iterator[Session]:
    with Session(Settings(budget=2), model.parent) as made:
        yield made


def broken(function: Any) -> Any:
    """An author's method that fails on tasks with a tanh, as a defect of ours does."""

    def call(self: KernelAuthor, task: Any, *given: Any) -> Any:
        if any("tanh" in node.op for node in task.graph.nodes):
            raise IndexError("list index out of range")
        return function(self, task, *given)

    return call


def run(*arguments: object) -> Any:
    return CliRunner().invoke(cli, ["synth", *map(str, arguments)])


@pytest.mark.parametrize("name", ["check", "plan"])
def test_what_cannot_be_planned_or_priced_is_one_region(
    session: Session,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    monkeypatch.setattr(KernelAuthor, name, broken(getattr(KernelAuthor, name)))
    for offers in (session.offers(model, programs=False), choose(session.offers(model))):
        good, bad = sorted(offers, key=lambda offer: offer.region.span.line)
        assert good.region.task is not None
        assert good.estimate is not None
        assert (bad.region.status, bad.estimate) == (RegionStatus.UNSUPPORTED, None)
        assert bad.region.reason.startswith("Line 11 met a defect of EvoKernel while ")
        assert "(IndexError: list index out of range): please report it" in bad.region.reason
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    ("name", "status"), [("write", "infeasible"), ("moves", "verified")], ids=["drafts", "refinements"]
)
def test_what_cannot_be_written_is_one_region(
    model: Path, monkeypatch: pytest.MonkeyPatch, name: str, status: str
) -> None:
    """A kernel that was verified stays so where those after it cannot be written."""
    monkeypatch.setattr(KernelAuthor, name, broken(getattr(KernelAuthor, name)))
    done = run(model, "--all", "--budget", "2", "--apply", "--json")
    good, bad = json.loads(done.stdout)["regions"]
    assert good["status"] == "verified"
    assert bad["status"] == status
    assert ("(IndexError: list index out of range)" in bad["reason"]) == (status == "infeasible")
    assert "Traceback" not in done.output
    assert "Traceback" in log_text()
    assert "evokernel_kernels" in model.read_text().split("def bad")[0]


def log_text() -> str:
    from evokernel_core.paths import log_path

    return log_path().read_text()


def test_what_cannot_be_applied_is_one_region(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Session.apply

    def apply(self: Session, path: Path, region: Any, candidate: Any) -> Any:
        if region.symbol == "bad":
            raise KeyError("span")
        return whole(self, path, region, candidate)

    monkeypatch.setattr(Session, "apply", apply)
    done = run(model, "--all", "--budget", "1", "--apply", "--single")
    assert done.exit_code == 1
    assert "line 11: infeasible: Line 11 met a defect of EvoKernel while accepting its kernel" in done.output
    assert "evokernel_kernels" in model.read_text().split("def bad")[0]


def test_a_trace_that_fails_costs_the_programs(
    session: Session, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = type(session.agent).capture

    def fails(self: Any, *given: Any, whole: bool = False, **more: Any) -> Any:
        if whole:
            raise AgentFailed(
                "The torch agent did not finish capture in 180 s and was stopped: look for a loop."
            )
        return capture(self, *given, whole=whole, **more)

    monkeypatch.setattr(type(session.agent), "capture", fails)
    for found in (session.offers(model), choose(session.offers(model, apart=True))):
        assert [offer.region.symbol for offer in found] == ["good", "bad", "model"]
        assert all(offer.estimate for offer in found[:2])
        assert found[2].region.reason.startswith("Programs of several kernels are left out: The torch agent ")


def test_a_defect_of_the_whole_command_is_a_sentence(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from evokernel_core.cli import main

    def fails(self: Session) -> Any:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Session, "proposer", fails)
    monkeypatch.setattr("sys.argv", ["evokernel", "synth", str(model)])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("evokernel: This work met a defect of EvoKernel while ")
    assert "Traceback" not in said
    assert "ZeroDivisionError" in log_text()


def test_a_proposers_defect_costs_an_attempt(toy_engine: Any, toy_task: Any, memory: Any) -> None:
    engine = toy_engine()
    draft, calls = type(engine.proposer).draft, []

    def fails(self: Any, task: Any, context: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("lost")
        return draft(self, task, context)

    type(engine.proposer).draft = fails
    try:
        result = engine.run(toy_task(1), 4)
    finally:
        type(engine.proposer).draft = draft
    assert result.best is not None
    assert result.history[0] is None


def test_internal_errors_are_ours_and_no_proposers() -> None:
    assert not issubclass(InternalError, ProposerError)
    assert InternalError.reason == "internal"
