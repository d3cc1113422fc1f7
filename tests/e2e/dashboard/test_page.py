"""The dashboard's page in a browser, as VS Code's webview shows it: themes, widths, keyboard, screen readers.

VS Code itself cannot be had here: its side of a webview (``acquireVsCodeApi``, the variables of a theme) is
stood in for below, and the page, its script, its style and its policy are the extension's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

pytestmark = pytest.mark.e2e

HERE = Path(__file__).parent
EXTENSION = HERE.parents[2] / "vscode-extension"
STATES: dict[str, Any] = json.loads((HERE / "states.json").read_text("utf-8"))
THEMES: dict[str, dict[str, str]] = json.loads((HERE / "themes.json").read_text("utf-8"))
ORIGIN = "https://webview.test"
HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
SHOTS = os.environ.get("EVOKERNEL_DASHBOARD_SHOTS", "")
"""A folder for pictures of every combination, to be looked at."""

WEBVIEW = """
window.sent = [];
window.acquireVsCodeApi = () => ({
  postMessage: (message) => window.sent.push(message),
  getState: () => JSON.parse(sessionStorage.getItem("state") ?? "null") ?? undefined,
  setState: (state) => sessionStorage.setItem("state", JSON.stringify(state)),
});
document.addEventListener("DOMContentLoaded", () => {
  for (const [name, value] of Object.entries(THEME))
    document.documentElement.style.setProperty(`--vscode-${name}`, value);
});
"""

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The page's document in English and in Chinese, made by the extension's own code."""
    node = shutil.which("node")
    assert node and (EXTENSION / "node_modules").is_dir(), "run `npm ci` in vscode-extension first"
    subprocess.run([node, "esbuild.mjs"], cwd=EXTENSION, check=True)
    built = tmp_path_factory.mktemp("shell") / "shell.cjs"
    bundle = [EXTENSION / "node_modules/.bin/esbuild", "src/dashboardShell.ts", "--bundle", "--format=cjs"]
    subprocess.run([*bundle, f"--outfile={built}", "--log-level=warning"], cwd=EXTENSION, check=True)
    chinese = json.loads((EXTENSION / "l10n/bundle.l10n.zh-cn.json").read_text("utf-8"))
    return {
        locale: _document(node, built, {
            "nonce": "n0nce", "source": ORIGIN, "script": f"{ORIGIN}/dashboard.js",
            "style": f"{ORIGIN}/dashboard.css", "locale": locale, "words": words,
        })
        for locale, words in {"en": {}, "zh-cn": chinese}.items()
    }  # fmt: skip


def _document(node: str, built: Path, given: dict[str, Any]) -> str:
    script = "process.stdout.write(require(process.argv[1]).shell(JSON.parse(process.argv[2])))"
    done = subprocess.run(
        [node, "-e", script, str(built), json.dumps(given)], check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM") or None)
        yield browser
        browser.close()


@pytest.fixture
def opened(documents: dict[str, str], browser: Browser) -> Iterator[Open]:
    """Opens the page with a state; it fails the test to load anything else, to say anything, or to raise."""
    troubles: list[str] = []

    def serve(route: Route, locale: str) -> None:
        name = route.request.url.removeprefix(ORIGIN)
        if name == "/":
            route.fulfill(body=documents[locale], content_type="text/html")
        elif name == "/dashboard.js":
            route.fulfill(path=EXTENSION / "out/dashboard.js", content_type="text/javascript")
        elif name == "/dashboard.css":
            route.fulfill(path=EXTENSION / "media/dashboard.css", content_type="text/css")
        else:
            troubles.append(route.request.url)
            route.abort()

    contexts = []

    def open_page(
        state: str | dict[str, Any] | None, *, width: int = 1100, theme: str = "light", locale: str = "en"
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, locale="en-GB", timezone_id="UTC"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.route("**/*", lambda route: serve(route, locale))
        page.add_init_script(WEBVIEW.replace("THEME", json.dumps(THEMES[theme])))
        page.goto(f"{ORIGIN}/")
        if state is not None:
            show(page, STATES[state] if isinstance(state, str) else state)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles


def show(page: Page, state: dict[str, Any]) -> None:
    """Sends a state as the extension does, which reads the server's null as undefined."""
    page.evaluate("state => window.postMessage({type: 'state', state}, '*')", _without_null(state))
    page.wait_for_selector("#memory")
    page.evaluate("() => new Promise((done) => setTimeout(done, 20))")


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value


def asked(page: Page) -> list[dict[str, Any]]:
    return [item for item in page.evaluate("window.sent") if item["type"] == "asked"]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [320, 1100])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("locale", ["en", "zh-cn"])
def test_everything_is_in_sight_and_readable(
    opened: Open, state: str, width: int, theme: str, locale: str
) -> None:
    page = opened(state, width=width, theme=theme, locale=locale)
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{state}-{width}-{theme}-{locale}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
    faint = page.evaluate(FAINT)
    assert faint == []


FAINT = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return {rgb: [r, g, b], a};
  };
  const over = (top, below) => top.rgb.map((c, n) => c * top.a + below[n] * (1 - top.a));
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement)
      layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.getElementById("page"), NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    if (node.textContent.trim() === "") continue;
    const under = behind(node.parentElement);
    const ink = over(parse(getComputedStyle(node.parentElement).color), under);
    const [high, low] = [light(ink), light(under)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) found.push([node.textContent.trim().slice(0, 40), ratio.toFixed(2)]);
  }
  return found;
}"""
"""Texts whose contrast with what is behind them is below WCAG's 4.5."""


def test_the_outline_is_one_that_a_screen_reader_can_walk(opened: Open) -> None:
    page = opened("many")
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.get_by_role("main").count() == 1
    names = ["State", "Waiting for your review", "Jobs", "Kernels", "Learned preferences", "Memory"]
    assert [page.get_by_role("region", name=name, exact=True).count() for name in names] == [1] * 6
    names_of = "[...document.querySelectorAll('button, progress, summary')]"
    assert all(page.evaluate(f"{names_of}.map((e) => (e.ariaLabel ?? e.textContent).trim())"))
    assert page.get_by_role("progressbar", name="12 of 30 attempts").count() == 1
    assert page.locator("svg:not([aria-hidden=true])").count() == 0, (
        "a drawing says nothing that words do not"
    )
    assert (
        page.evaluate("new Set([...document.querySelectorAll('[id]')].map((e) => e.id)).size")
        == page.locator("[id]").count()
    )


def test_every_control_is_reached_by_keyboard_in_the_order_of_the_page(opened: Open) -> None:
    page = opened("many")
    seen = "[...document.querySelectorAll('button, summary')].filter((e) => e.checkVisibility())"
    wanted = page.evaluate(f"{seen}.map((e) => e.ariaLabel ?? e.textContent)")
    assert len(wanted) > 20
    reached = []
    for _ in wanted:
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent")
        )
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert reached == wanted


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Cancel: model_1.py:12", {"action": "cancel", "argument": {"jobId": "job1"}}),
        ("Go to call: softmax_1024x4096_f16",
         {"action": "open", "argument": {"uri": "file:///work/models/model_1.py", "line": 20}}),
        ("Timeline: softmax_1024x4096_f16",
         {"action": "timeline",
          "argument": {"uri": "file:///work/models/model_1.py", "name": "softmax_1024x4096_f16"}}),
        ("Review: softmax",
         {"action": "review", "argument": {"uri": "file:///work/models/model_1.py", "regionId": "r1"}}),
        ("Delete my decisions…", {"action": "forget", "argument": {"what": "decisions"}}),
        ("Delete the whole memory…", {"action": "forget", "argument": {"what": "all"}}),
        ("Refresh", {"action": "refresh", "argument": {}}),
    ],
)  # fmt: skip
def test_buttons_ask_by_mouse_and_by_keyboard(opened: Open, name: str, message: dict[str, Any]) -> None:
    page = opened("many")
    if name.startswith("Delete"):
        page.get_by_text("Delete", exact=True).click()
    button = page.get_by_role("button", name=name, exact=True)
    button.click()
    button.focus()
    page.keyboard.press("Enter")
    assert asked(page) == [{"type": "asked", **message}] * 2


def test_the_page_says_that_it_listens_before_it_has_a_state(opened: Open) -> None:
    page = opened(None)
    assert page.evaluate("window.sent") == [{"type": "listening"}]
    assert "Asking the server" in page.inner_text("main")


def test_focus_and_opened_parts_survive_a_new_state(opened: Open) -> None:
    page = opened("many")
    page.locator("summary", has_text="Your last decisions").click()
    button = page.get_by_role("button", name="Cancel: model_2.py:13", exact=True)
    button.focus()
    top = page.evaluate("scrollY")
    changed = {**STATES["many"], "status": {"mode": "busy", "text": "Something else."}}
    show(page, changed)
    assert page.evaluate("document.activeElement.ariaLabel") == "Cancel: model_2.py:13"
    assert page.locator("details[open]").count() == 1
    assert page.evaluate("scrollY") == top
    gone = {**changed, "jobs": [job for job in changed["jobs"] if job["id"] != "job2"]}
    show(page, gone)
    assert page.evaluate("document.activeElement.id") == "jobs", "the part that the button was in"


def test_news_are_told_to_screen_readers_once(opened: Open) -> None:
    page = opened("one")
    news = page.get_by_role("status")
    assert news.inner_text() == "Generating a kernel in model_1.py."
    page.evaluate("window.postMessage({type: 'status', status: {mode: 'ready', text: 'Done.'}}, '*')")
    page.wait_for_function("document.getElementById('news').textContent === 'Done.'")
    assert "Done." in page.locator("#state + dl").inner_text()


def test_the_last_state_is_there_after_a_reload(opened: Open) -> None:
    page = opened("many")
    before = page.inner_text("main")
    page.reload()
    assert page.inner_text("main") == before


def test_a_server_that_does_not_answer_leaves_what_was_known(opened: Open) -> None:
    page = opened("one")
    page.evaluate("window.postMessage({type: 'problem', problem: 'The server is not running.'}, '*')")
    page.wait_for_selector("[role=alert]")
    assert "softmax_1024x4096_f16" in page.inner_text("main")
    show(page, STATES["one"])
    assert page.locator("[role=alert]").count() == 0


def test_names_that_want_to_be_markup_stay_text(opened: Open) -> None:
    hostile = json.loads(json.dumps(STATES["many"]), object_hook=_hostile)
    page = opened(hostile)
    assert page.title() == "EvoKernel"
    assert page.locator("main img, main script").count() == 0
    assert HOSTILE in page.inner_text("main")


def _hostile(item: dict[str, Any]) -> dict[str, Any]:
    return {key: HOSTILE if isinstance(value, str) and key != "id" else value for key, value in item.items()}
