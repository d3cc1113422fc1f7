"""Whatever a timeline's page shows is said in the language of the editor."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from evokernel_core.domain.sentence import Sentence
from evokernel_core.twin.page_words import TEMPLATE, page_words, templates_in, with_words
from tests.chinese import in_chinese

PAGE = TEMPLATE.read_text("utf-8")
SCRIPT = PAGE[PAGE.index('"use strict"') :]
CODE = re.compile(
    r'//[^\n]*|say\w*\("(?:[^"\\]|\\.)*"|\.font = "[^"]*"|matchMedia\("[^"]*"'
    r'|element\("\w+", "[\w ]*"|"use strict"'
)
"""Comments, templates that are said, fonts, what is asked of a browser, and classes of elements."""
WORDS = re.compile(r""""([^"\n]*)"|`([^`]*)`""")


class Texts(HTMLParser):
    """The texts of a page, each with whether its element is marked to be said."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bool]] = []
        self._is_said = self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_said = "data-say" in dict(attrs)
        self._is_code = tag in ("script", "style", "title")
        self.found += [
            (value or "", False) for name, value in attrs if name in ("aria-label", "title", "alt")
        ]

    def handle_endtag(self, tag: str) -> None:
        self._is_said = self._is_code = False

    def handle_data(self, data: str) -> None:
        if not self._is_code and re.search("[A-Za-z]", data):
            self.found.append((data, self._is_said))


def test_every_text_of_the_page_is_marked_to_be_said() -> None:
    reader = Texts()
    reader.feed(PAGE)
    assert len(reader.found) > 10
    assert [text for text, is_said in reader.found if not is_said] == []
    assert {text for text, _ in reader.found} <= set(page_words())


def test_the_script_shows_no_english_words_of_its_own() -> None:
    """Two words, or one that stands beside a value, as in ``busy ${...}``."""
    strings = [found[1] or found[2] or "" for found in WORDS.finditer(CODE.sub(" ", SCRIPT))]
    bare = [re.sub(r"\$\{[^}]*\}", "|", text) for text in strings]
    units = {"KB", "B", "GB/s", "ns", "µs", "%"}
    shown = [text for text in bare if " " in text and set(re.findall(r"[A-Za-z/%µ]+", text)) - units]
    assert shown == []


@pytest.mark.parametrize("words", page_words())
def test_the_page_is_said_in_chinese(words: str) -> None:
    said = in_chinese(Sentence(words))
    assert re.search("[\u4e00-\u9fff]", said) or not re.search("[A-Za-z]", re.sub(r"\{\w+\}", "", words))


def test_words_are_put_into_a_page_and_cannot_leave_their_script() -> None:
    page = with_words(PAGE, "zh-CN", {"Core": "核", "All": "</script><b>"})
    found = re.search(r'<script id="words" type="application/json">(.*?)</script>', page)
    assert found and json.loads(found[1])["words"]["Core"] == "核"
    assert "</script><b>" not in page
    assert with_words("<!doctype html>", "zh-CN", {}) == "<!doctype html>"


def test_templates_are_those_within_a_sentence_too() -> None:
    inner = Sentence("{pipe}-bound: {busy} % busy", pipe="V", busy=3)
    assert list(templates_in([Sentence("{facts}.", facts=inner)])) == ["{facts}.", inner.template]
