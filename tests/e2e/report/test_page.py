"""The report's page in a browser without a network, as a person uses it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve
from playwright.sync_api import Page, sync_playwright

from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.store import Memory
from evokernel_core.report.gather import gather
from evokernel_core.report.page import write_page
from evokernel_core.synthesis.engine import Engine
from tests.synthesis.conftest import ToyVerifier, make_task, memory, settings, toy_engine

__all__ = ["memory", "settings", "toy_engine"]

pytestmark = pytest.mark.e2e
HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
Open = Callable[..., Page]


@pytest.fixture
def file(memory: Memory, toy_engine: Callable[..., Engine], tmp_path: Path) -> Path:
    """Fourteen tasks, the first of them measured too, the last with a name that wants to be markup."""
    for number in range(14):
        task = make_task(number, "softmax" if number % 2 else "matmul")
        task = evolve(task, name=HOSTILE) if number == 13 else task
        toy_engine(timed_first=bool(number % 3)).run(task, 4 + number)
        memory.record_outcome(Outcome(OutcomeKind.ACCEPTED, "r", task.task_id, "k", float(number)))
    measured = ToyVerifier("bench 1", LatencySource.MEASURED)
    toy_engine(verifier=measured).run(make_task(0, "matmul"), 6)
    write_page(gather(memory), tmp_path / "report.html", "today")
    return tmp_path / "report.html"


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens a page offline; it fails the test to ask for anything, to say anything, or to raise."""
    troubles: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM") or None)

        def open_page(file: Path, width: int = 1280, scheme: str = "light") -> Page:
            context = browser.new_context(
                offline=True,
                viewport={"width": width, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page = context.new_page()
            page.on("console", lambda message: troubles.append(message.text))
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on(
                "request", lambda asked: troubles.append(asked.url) if asked.url != file.as_uri() else None
            )
            page.goto(file.as_uri())
            page.wait_for_selector("#theme:visible")
            return page

        yield open_page
        browser.close()
    assert not troubles


def names(page: Page) -> list[str]:
    return page.locator("table.sortable").first.locator("tbody tr:not([hidden]) th").all_inner_texts()


@pytest.mark.parametrize("width", [360, 1280])
def test_charts_are_drawn_and_nothing_sticks_out(file: Path, opened: Open, width: int) -> None:
    page = opened(file, width)
    assert page.locator(".chart svg").count() == 5
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() == "EvoKernel report", "no name ran"


@pytest.mark.parametrize("width", [360, 1280])
def test_names_are_whole_in_the_chart(file: Path, opened: Open, width: int) -> None:
    page = opened(file, width)
    page.select_option("#evidence", "estimated on toychip")
    labels = page.locator("#gain [aria-label='y-axis tick label'] text").all_text_contents()
    drawn = ["".join(label.split()) for label in labels]
    assert len(drawn) == 14 and "…" not in "".join(drawn)
    assert any("".join(HOSTILE.split()) in label for label in drawn)


def test_an_empty_memory(memory: Memory, tmp_path: Path, opened: Open) -> None:
    write_page(gather(memory), tmp_path / "report.html", "today")
    assert "holds no kernels yet" in opened(tmp_path / "report.html").locator("main").inner_text()


def test_tables_sort_by_keyboard(file: Path, opened: Open) -> None:
    page = opened(file)
    table = page.locator("table.sortable").first
    column = table.locator("thead button").filter(has_text="tried")
    column.focus()
    page.keyboard.press("Enter")
    header = table.locator("th[aria-sort]")
    assert header.get_attribute("aria-sort") == "descending"
    place = "[...document.querySelector('table').tHead.rows[0].cells].findIndex(c => c.ariaSort)"
    values = f"[...document.querySelector('table').tBodies[0].rows].map(r => +r.cells[{place}].dataset.value)"
    falling = page.evaluate(values)
    assert falling == sorted(falling, reverse=True) and len(set(falling)) > 1
    page.keyboard.press("Space")
    assert header.get_attribute("aria-sort") == "ascending"
    assert page.evaluate(values) == sorted(falling)


def test_tables_are_filtered_by_words(file: Path, opened: Open) -> None:
    page = opened(file)
    assert len(names(page)) == 15
    page.locator("input[type=search]").first.fill("relu_0 measured")
    assert names(page) == ["relu_0"]


def test_modelled_and_measured_are_never_in_one_chart(file: Path, opened: Open) -> None:
    page = opened(file)
    label = page.locator("#gain svg")
    assert "of 1 kernels, measured on toychip" in (label.get_attribute("aria-label") or "")
    page.select_option("#evidence", "estimated on toychip")
    assert "of 14 kernels, estimated on toychip" in (label.get_attribute("aria-label") or "")
    assert page.locator(".tag").all_inner_texts() == ["estimated on toychip"] * 3
    assert "measured" not in page.locator(".charts .chart").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_system_s_until_a_person_says(file: Path, opened: Open, scheme: str) -> None:
    page = opened(file, scheme=scheme)
    colour = "getComputedStyle(document.body).backgroundColor"
    system = page.evaluate(colour)
    page.click("#theme")
    light = page.evaluate(colour)
    page.click("#theme")
    dark = page.evaluate(colour)
    assert light != dark
    assert system == {"light": light, "dark": dark}[scheme]
    page.reload()
    assert (page.locator("#theme").inner_text(), page.evaluate(colour)) == ("Theme: dark", dark)
