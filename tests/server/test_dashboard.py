"""The dashboard of a server that works, and what is left when a person deletes what it learned."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from evokernel_server.documents.packages import Installed
from evokernel_server.offers.learned import sentence
from evokernel_server.review.change_signal import Changes
from evokernel_server.review.dashboard import why_stale

from evokernel_core import __version__
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.memory.activity import Lesson

CHIP = "ascend910b1"


async def shown(editor: Any) -> dict[str, Any]:
    answer = await editor.command("evokernel.dashboard", {})
    assert answer["status"] == "shown"
    return as_data(answer["dashboard"])  # type: ignore[no-any-return]


def as_data(value: Any) -> Any:
    """pygls's client makes objects of answers."""
    if isinstance(value, list | tuple):
        return [as_data(item) for item in value]
    if isinstance(value, dict):
        return {key: as_data(item) for key, item in value.items()}
    return as_data(value._asdict()) if hasattr(value, "_asdict") else value


async def applied(editor: Any, eventually: Any, path: Path) -> tuple[str, str]:
    """Generates the model's kernel and accepts it; gives the document and the kernel's name."""
    uri = editor.open(path)
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    answer = await editor.run(action)
    if answer["status"] == "ready":
        arguments = {"uri": uri, "regionId": answer["regionId"]}
        answer = await editor.command("evokernel.apply", arguments)
    assert answer["status"] == "applied"
    return uri, answer["name"]


@pytest.mark.usefixtures("scripted")
async def test_before_anything_was_done(sessions: Any, workspace: Path) -> None:
    editor = await sessions.start()
    found = await shown(editor)
    assert (found["jobs"], found["kernels"], found["offers"]) == ([], [], [])
    assert found["memory"]["decisions"] == found["memory"]["learned"] == []
    assert found["memory"]["items"] == 0 and found["memory"]["bytes"] > 0
    assert found["verifier"] == {"name": f"twin {__version__}", "where": "", "state": "idle", "queued": 0}


@pytest.mark.usefixtures("scripted")
async def test_a_kernel_with_its_job_trajectory_and_decision(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(settings={"refineInBackground": False})
    uri, name = await applied(editor, eventually, workspace / "model.py")
    found = await shown(editor)
    (job,) = found["jobs"]
    assert (job["kind"], job["state"], job["stage"], job["attempt"]) == ("generate", "done", "draft", 1)
    assert (job["uri"], job["bestUs"], job["bestSource"]) == (uri, 55.0, "modelled")
    (kernel,) = found["kernels"]
    assert (kernel["name"], kernel["us"], kernel["source"], kernel["chip"]) == (name, 55.0, "modelled", CHIP)
    assert (kernel["boundUs"], kernel["baselineUs"], kernel["bottleneck"]) == (31.0, 412.0, "MTE2")
    assert kernel["line"] == editor.line_of(uri, f"{name}.run(")
    assert kernel["history"] == [{"attempt": 1, "us": 55.0}]
    assert "accepted" in [item["kind"] for item in found["memory"]["decisions"]]
    assert any("You accepted a kernel for softmax" in words for words in found["memory"]["learned"])


@pytest.mark.usefixtures("scripted")
async def test_kernels_of_files_that_are_closed_are_shown_too(
    sessions: Any, workspace: Path, eventually: Any
) -> None:
    editor = await sessions.start(settings={"refineInBackground": False})
    uri, name = await applied(editor, eventually, workspace / "model.py")
    (workspace / "model.py").write_text(editor.texts[uri], "utf-8")
    await sessions.stop(editor)
    found = await shown(await sessions.start(settings={"refineInBackground": False}))
    assert [(item["name"], item["us"], Path(item["uri"]).name) for item in found["kernels"]] == [
        (name, 55.0, "model.py")
    ]


@pytest.mark.usefixtures("scripted")
async def test_forgetting_decisions_keeps_the_kernels(
    sessions: Any, workspace: Path, database: Any, eventually: Any
) -> None:
    editor = await sessions.start(settings={"refineInBackground": False, "survivalS": [500, 500, 500]})
    await applied(editor, eventually, workspace / "model.py")
    assert database.values()
    answer = await editor.command("evokernel.forget", {"what": "decisions"})
    assert answer["status"] == "forgotten"
    assert database.outcomes() == [] and database.values() == {}
    found = await shown(editor)
    assert found["memory"]["learned"] == [] and len(found["kernels"]) == len(found["jobs"]) == 1


@pytest.mark.usefixtures("scripted")
async def test_forgetting_everything_ends_the_work_in_the_background(
    sessions: Any, workspace: Path, database: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPT_PAUSE_S", "0.5")
    editor = await sessions.start(settings={"survivalS": [500, 500, 500]})
    await applied(editor, eventually, workspace / "model.py")
    await eventually(lambda: ("refine", "running") in database.jobs())
    answer = await editor.command("evokernel.forget", {"what": "all"})
    assert answer["status"] == "forgotten"
    found = await shown(editor)
    assert (found["jobs"], found["memory"]["decisions"], found["offers"]) == ([], [], [])
    assert len(found["kernels"]) == 1, "the code stays"
    assert found["verifier"]["state"] == "idle"


@pytest.mark.usefixtures("scripted")
async def test_deleting_needs_to_be_said(sessions: Any, workspace: Path, database: Any) -> None:
    editor = await sessions.start()
    for given in ({}, {"what": ""}, {"what": "everything else"}):
        assert (await editor.command("evokernel.forget", given))["status"] == "refused"


@pytest.mark.usefixtures("scripted")
async def test_one_job_is_cancelled_wherever_it_stands(
    sessions: Any, workspace: Path, database: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPT_PAUSE_S", "0.5")
    editor = await sessions.start()
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    asked = asyncio.ensure_future(editor.run(action))
    await eventually(lambda: ("generate", "running") in database.jobs())
    (job,) = (await shown(editor))["jobs"]
    assert job["state"] == "running"
    assert (await editor.command("evokernel.cancel", {"jobId": job["id"]}))["status"] == "cancelled"
    assert (await asked)["status"] == "cancelled"
    assert database.jobs() == [("generate", "cancelled")]
    assert (await editor.command("evokernel.cancel", {"jobId": job["id"]}))["status"] == "idle"


@pytest.mark.usefixtures("scripted")
async def test_a_job_that_waits_for_its_verifier_is_cancelled(
    sessions: Any, workspace: Path, database: Any, eventually: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    away = tmp_path / "away"
    away.touch()
    monkeypatch.setenv("SCRIPT_AWAY", str(away))
    editor = await sessions.start()
    uri = editor.open(workspace / "model.py")
    await eventually(lambda: editor.hints(uri))
    action = await editor.action(uri, editor.line_of(uri, "torch.softmax"), "Generate NPU kernel")
    assert (await editor.run(action))["status"] == "queued"
    found = await shown(editor)
    assert (found["jobs"][0]["state"], found["verifier"]["state"]) == ("waiting", "away")
    assert found["verifier"]["queued"] == 1
    cancelled = await editor.command("evokernel.cancel", {"jobId": found["jobs"][0]["id"]})
    assert cancelled["status"] == "cancelled"
    assert database.jobs() == [("generate", "cancelled")]
    assert (await shown(editor))["verifier"]["queued"] == 0


@pytest.mark.usefixtures("scripted")
async def test_an_answer_has_a_bound(
    sessions: Any, workspace: Path, database: Any, home: Path, eventually: Any
) -> None:
    from evokernel_core.domain.job import Job, JobKind, JobState
    from evokernel_core.domain.outcome import Outcome
    from evokernel_core.memory.store import Memory

    with Memory(home / "memory.db") as memory, memory.transaction():
        for n in range(500):
            file = str(workspace / f"model{n}.py")
            memory.put_job(Job(
                f"job{n}", JobKind.GENERATE, JobState.FAILED, file, "r", "t", "{}", 30, 3, n, n, "x" * 9000
            ))  # fmt: skip
            memory.record_outcome(Outcome(OutcomeKind.REJECTED, "r", "t", f"s{n}", n, "y" * 9000))
    editor = await sessions.start()
    found = await shown(editor)
    assert len(json.dumps(found)) < 100_000
    assert found["jobs"][0]["id"] == "job499", "the last ones"


@pytest.mark.usefixtures("scripted")
async def test_changes_are_told_to_own_clients_alone(
    sessions: Any, workspace: Path, eventually: Any, capabilities: Any
) -> None:
    heard: list[list[float]] = []
    for own in (True, False):
        asked = capabilities()
        asked.experimental = {"evokernel": True} if own else None
        editor = await sessions.start(client_capabilities=asked, settings={"refineInBackground": False})
        times: list[float] = []
        heard.append(times)

        @editor.client.feature("evokernel/changed")
        def changed(params: Any, times: list[float] = times) -> None:
            times.append(asyncio.get_running_loop().time())

        path = workspace / f"model_{own}.py"  # what one did to a file waits for the next one there
        path.write_text((workspace / "model.py").read_text("utf-8"), "utf-8")
        await applied(editor, eventually, path)
        if own:
            await eventually(lambda times=times: len(times) >= 2)
        await sessions.stop(editor)
    own, other = heard
    assert other == []
    assert all(later - earlier > 0.5 for earlier, later in pairwise(own))


async def test_many_changes_are_one_notification_and_the_last_is_not_lost() -> None:
    sent: list[int] = []
    changes = Changes(lambda: sent.append(1), pause_s=0.05)
    for _ in range(100):
        changes.happened()
    assert len(sent) == 1
    await asyncio.sleep(0.2)
    assert len(sent) == 2
    await asyncio.sleep(0.2)
    assert len(sent) == 2, "a quiet time stays quiet"
    changes.happened()
    assert len(sent) == 3


def installed(verifier: str, chip: str) -> Installed:
    latency = Latency(1.0, LatencySource.MODELLED, chip, 1, (), "", 1.0, 1.0)
    return Installed("k", Path("k"), "t", "s", latency, verifier)


@pytest.mark.parametrize(
    ("found", "stale"),
    [
        (None, True),
        (installed(f"twin {__version__}", CHIP), False),
        (installed("twin 0.0.1", CHIP), True),
        (installed("cann@host", CHIP), False),
        (installed(f"twin {__version__}", "ascend910b4"), True),
    ],
)
def test_stale_kernels(found: Installed | None, stale: bool) -> None:
    assert bool(why_stale("k", found, CHIP)) is stale


@pytest.mark.parametrize(
    ("lesson", "words"),
    [
        (
            Lesson(0.0, OutcomeKind.ACCEPTED, "softmax", "", 1.0, (("Whole rows", 0.3), ("", 0.3))),
            "You accepted a kernel for softmax. Used sooner now: 2 memory entries behind it, "
            "above all “Whole rows” (value +0.30).",
        ),
        (
            Lesson(0.0, OutcomeKind.REJECTED, "softmax", "hard to read", -1.0, (("", -0.3),)),
            "You rejected a kernel for softmax (hard to read). It does not come again, and the next one is "
            "kept shorter. Used later now: 1 memory entry behind it.",
        ),
        (
            Lesson(0.0, OutcomeKind.REVERTED, "", "", -0.7, ()),
            "You took a kernel for an operation that was forgotten out again.",
        ),
    ],
)
def test_what_was_learned_in_words(lesson: Lesson, words: str) -> None:
    assert sentence(lesson) == words
