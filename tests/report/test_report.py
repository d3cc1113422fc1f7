"""What the report shows of a memory, and that its page is one that a stranger's names cannot act in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.hardware.devices import load_device
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.store import Memory
from evokernel_core.report.figures import Belief, Evidence, Report
from evokernel_core.report.gather import LEAST_PAIRS, _agreements, _bound_us, gather
from evokernel_core.report.page import write_page
from evokernel_core.synthesis.engine import Engine
from tests.synthesis.conftest import OPTIMUM_US, ToyVerifier, make_task, memory, settings, toy_engine

__all__ = ["memory", "settings", "toy_engine"]

MODELLED = Evidence(LatencySource.MODELLED, "toychip")
MEASURED = Evidence(LatencySource.MEASURED, "toychip")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def run(memory: Memory, toy_engine: Callable[..., Engine]) -> Callable[..., None]:
    """Searches for kernels of a task: modelled ones, or with ``measured`` such as on a chip."""

    def search(
        task: KernelTask, budget: int = 30, *, measured: bool = False, timed_first: bool = False
    ) -> None:
        source = LatencySource.MEASURED if measured else LatencySource.MODELLED
        verifier = ToyVerifier("bench 1" if measured else "toy 1", source)
        toy_engine(verifier=verifier, timed_first=timed_first).run(task, budget)

    return search


class _Page(HTMLParser):
    """Elements with their attributes, texts of scripts and styles, and of everything else."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.text = ""
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw.append((self._inside, self.elements[-1][1], data))
        else:
            self.text += data


def page_of(report: Report, tmp_path: Path) -> _Page:
    write_page(report, tmp_path / "report.html", "today")
    return _Page((tmp_path / "report.html").read_text(encoding="utf-8"))


def data_of(page: _Page) -> Any:
    (text,) = [text for _, attrs, text in page.raw if attrs.get("id") == "data"]
    return json.loads(text)


def test_an_empty_memory(memory: Memory, tmp_path: Path) -> None:
    report = gather(memory)
    assert (report.kernels, report.curves, report.beliefs, report.agreements) == ((), {}, (), ())
    page = page_of(report, tmp_path)
    assert "The memory holds no kernels yet" in page.text
    assert not [attrs for _, attrs in page.elements if "chart" in (attrs.get("class") or "")]


def test_a_kernel_is_told_by_its_evidence(memory: Memory, run: Callable[..., None]) -> None:
    task = make_task(1)
    run(task, timed_first=True)
    run(task, measured=True)
    by_evidence = {item.evidence: item for item in gather(memory).kernels}
    assert set(by_evidence) == {MODELLED, MEASURED}
    for item in by_evidence.values():
        assert item.eager_us == 2000
        assert item.best_us == pytest.approx(OPTIMUM_US)
        assert item.gain == pytest.approx(2000 / OPTIMUM_US)
        assert item.tried == item.verified + item.timed_only + item.failed
    assert by_evidence[MODELLED].first_us == 1000
    assert by_evidence[MODELLED].timed_only and not by_evidence[MEASURED].timed_only
    assert by_evidence[MEASURED].verifier == "bench 1"


def test_a_task_without_a_verified_kernel(
    memory: Memory, toy_engine: Callable[..., Engine], tmp_path: Path
) -> None:
    toy_engine(start=frozenset({"x_overflow"})).run(make_task(1), 3)
    report = gather(memory)
    (kernel,) = report.kernels
    assert (kernel.evidence, kernel.best_us, kernel.gain, kernel.failed) == (None, None, None, 1)
    assert "none verified" in page_of(report, tmp_path).text


def test_attempts_are_in_their_order_with_the_best_so_far(memory: Memory, run: Callable[..., None]) -> None:
    task = make_task(1)
    run(task, 20, timed_first=True)
    tries = gather(memory).tries[str(MODELLED)][task.task_id]
    assert [item.n for item in tries] == list(range(1, 21))
    assert {item.result for item in tries} == {"verified", "timed_only", "failed"}
    best = float("inf")
    for item in tries:
        best = min(best, item.us if item.result == "verified" and item.us else best)
        assert item.best_us == best
        assert (item.us is None) == (item.result == "failed")


def test_the_curve_is_of_the_same_tasks_at_every_point(memory: Memory, run: Callable[..., None]) -> None:
    for number, budget in ((1, 5), (2, 30), (3, 12)):
        run(make_task(number), budget)
    points = gather(memory).curves[str(MODELLED)]
    assert [point.n for point in points] == list(range(30))
    assert (points[0].mean, points[0].low, points[0].high) == (1, 1, 1)
    assert [points[n].searching for n in (0, 4, 5, 11, 12, 29)] == [3, 3, 2, 2, 1, 1]
    means = [point.mean for point in points]
    assert means == sorted(means), "what was found is kept"
    assert all(point.low <= point.mean + 1e-9 and point.mean <= point.high + 1e-9 for point in points)


def test_beliefs_are_what_values_were_before(memory: Memory) -> None:
    memory.record_task(make_task(1), {})
    for raw in (1.0, 1.0, -1.0):
        memory.pay(
            Reward(
                Stage.DRAFT,
                "activation",
                ("item",),
                raw,
                cause="draft",
                task_id=make_task(1).task_id,
                source_id="kernel",
            )
        )
    found = gather(memory).beliefs
    assert [item.raw for item in found] == [1.0, -1.0], "nothing was believed before the first"
    assert [item.believed for item in found] == pytest.approx([0.3, 0.51])


def test_agreement_says_how_sure_it_is(memory: Memory, run: Callable[..., None]) -> None:
    for number in range(6):
        run(make_task(number), 20)
    report = gather(memory)
    stages = {item.stage: item for item in report.agreements}
    refine = stages["refine"]
    assert refine.n == sum(item.stage == "refine" for item in report.beliefs) >= LEAST_PAIRS
    assert refine.rho is not None and refine.low is not None and refine.high is not None
    assert refine.low <= refine.rho <= refine.high
    assert refine.rho > 0, "the same switches pay on every task"
    assert "draft" not in stages, "five drafts say nothing"


@pytest.mark.parametrize("constant", ["nothing", "believed", "raw", "both"])
def test_agreement_of_what_does_not_vary_is_not_said(constant: str) -> None:
    """Ranks of numbers that are all alike say nothing, whichever side they are on."""

    def value(side: str, number: int) -> float:
        return 0.5 if constant in (side, "both") else float(number)

    beliefs = [
        Belief("draft", "activation", "t", value("believed", number), value("raw", number), 0.0)
        for number in range(LEAST_PAIRS)
    ]
    (found,) = _agreements(beliefs)
    assert found.n == LEAST_PAIRS
    assert [found.rho, found.low, found.high] == ([1.0] * 3 if constant == "nothing" else [None] * 3)


def test_what_people_did(memory: Memory, run: Callable[..., None], tmp_path: Path) -> None:
    task = make_task(1)
    run(task, 3)
    given = [
        ("shown", ""),
        ("accepted", ""),
        ("survived", "5m"),
        ("rejected", "hard to read"),
        ("rejected", "ugh"),
    ]
    for at, (kind, detail) in enumerate(given):
        memory.record_outcome(Outcome(OutcomeKind(kind), "r", task.task_id, "k", float(at), detail))
    memory.record_outcome(Outcome(OutcomeKind.ACCEPTED, "r", "gone", "k", 9.0))
    report = gather(memory)
    assert {(item.category, item.kind): item.count for item in report.reactions} == {
        ("activation", "accepted"): 1,
        ("activation", "survived"): 1,
        ("activation", "rejected"): 2,
        ("forgotten", "accepted"): 1,
    }
    assert dict(report.objections) == {"hard to read": 1, "in their own words": 1}
    assert report.kernels[0].person == "rejected"
    assert "ugh" not in page_of(report, tmp_path).text


@pytest.fixture
def full(memory: Memory, run: Callable[..., None]) -> Report:
    """Two tasks, one of them measured too, one with a name that wants to be markup."""
    run(make_task(1), 12, timed_first=True)
    run(make_task(1), 12, measured=True)
    run(evolve(make_task(2), name=HOSTILE), 12)
    memory.add_experience(make_experience(ExperienceKind.PRACTICE, HOSTILE, HOSTILE))
    memory.pay(Reward(Stage.REFINE, "x", (memory.experiences()[-1].id,), 1.0))
    memory.record_outcome(Outcome(OutcomeKind.ACCEPTED, "r", make_task(1).task_id, "k", 1.0))
    return gather(memory)


def test_the_page_loads_nothing_and_runs_its_own_scripts_alone(full: Report, tmp_path: Path) -> None:
    page = page_of(full, tmp_path)
    loading = {"src", "href", "srcset", "action", "data", "poster", "style"}
    assert {value for _, attrs in page.elements for name, value in attrs.items() if name in loading} == {
        "#kernels"
    }
    assert not {tag for tag, _ in page.elements} & {"link", "iframe", "object", "embed", "base", "img"}
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    (policy,) = [attrs["content"] for _, attrs in page.elements if "http-equiv" in attrs]
    rules = dict(rule.strip().split(" ", 1) for rule in (policy or "").split(";"))
    assert rules["default-src"] == "'none'"
    for kind, rule in (("script", "script-src"), ("style", "style-src")):
        texts = [text for tag, attrs, text in page.raw if tag == kind and "type" not in attrs]
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert rules[rule].split() == [f"'sha256-{digest}'" for digest in digests]
    assert "unsafe" not in str(policy)


def test_names_stay_text(full: Report, tmp_path: Path) -> None:
    page = page_of(full, tmp_path)
    assert page.text.count(HOSTILE) >= 3, "in the kernel's row, and in both of the item's"
    assert HOSTILE in {item["name"] for item in data_of(page)["kernels"]}


def test_every_latency_says_where_it_comes_from(full: Report, tmp_path: Path) -> None:
    page = page_of(full, tmp_path)
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", (tmp_path / "report.html").read_text(), re.DOTALL)
    timed = [row for row in rows if "×</td>" in row]
    assert len(timed) == 3
    assert all(("estimated on toychip" in row) != ("measured on toychip" in row) for row in timed)
    data = data_of(page)
    assert data["evidences"] == ["measured on toychip", "estimated on toychip"]
    assert data["measured"] == ["measured on toychip"]
    assert {item["evidence"] for item in data["kernels"]} == set(data["evidences"])
    assert set(data["tries"]) == set(data["curves"]) == set(data["evidences"])


def test_columns_of_figures_sort_by_their_values(full: Report, tmp_path: Path) -> None:
    page = page_of(full, tmp_path)
    values = [attrs["data-value"] for tag, attrs in page.elements if "data-value" in attrs]
    assert values and all(value == "" or float(value or "") is not None for value in values)
    tables = [attrs for tag, attrs in page.elements if tag == "table" and attrs.get("class") == "sortable"]
    ids = {attrs["id"] for _, attrs in page.elements if "id" in attrs}
    assert len(tables) == 2
    assert all({attrs["aria-labelledby"], attrs["aria-describedby"]} <= ids for attrs in tables)


def test_a_launch_is_a_part_of_every_bound() -> None:
    """A bound of nothing would make a gain without end, beside which bars have no length."""
    launch = load_device("ascend910b1").launch_us
    known = Latency(9.0, LatencySource.MODELLED, "ascend910b1", 1, (), "", 0.0, 40.0)
    assert launch > 0 and _bound_us(known) == launch
    assert _bound_us(evolve(known, us=0.1)) == 0.1
    assert _bound_us(evolve(known, chip="toychip", roofline_us=3.0)) == 3.0


def test_a_row_tells_line_and_shape(memory: Memory, run: Callable[..., None]) -> None:
    task = make_task(1)
    run(task, 2)
    region = {"symbol": "Block.forward", "span": {"line": 12}}
    memory.put_job(
        Job(
            "j",
            JobKind.GENERATE,
            JobState.DONE,
            "/m.py",
            "r",
            task.task_id,
            json.dumps(region),
            2,
            2,
            1.0,
            1.0,
        )
    )
    (row,) = gather(memory).kernels
    assert (row.where, row.shape) == ("Block.forward:12", task.largest_input)
    assert row.shape.startswith("float") and row.shape.endswith("]")
