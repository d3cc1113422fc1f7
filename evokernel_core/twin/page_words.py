"""The words of a timeline's page: English templates in the page, and what they are in another language.

The page says its templates with ``say`` and marks fixed texts with ``data-say``. It fills them in when it is
opened, by the translations in its ``words`` element, which is empty in an English page.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from evokernel_core.domain.sentence import Sentence

TEMPLATE = Path(__file__).parent / "timeline.html.jinja"
_SAID = re.compile(r'\bsay\w*\("((?:[^"\\]|\\.)+)"|\bdata-say[^<>]*>([^<]+)<')
_WORDS = re.compile(r'(<script id="words" type="application/json">).*?(</script>)', re.DOTALL)


@cache
def page_words() -> tuple[str, ...]:
    """The templates that the page itself has, in its order."""
    result = _SAID.finditer(TEMPLATE.read_text("utf-8"))
    return tuple(dict.fromkeys(element[1] or element[2] for element in result))


@cache
def page_version() -> str:
    """Eight hexadecimal digits that change with the page's template."""
    return f"{zlib.crc32(TEMPLATE.read_bytes()):08x}"


def templates_in(sentences: Iterable[Sentence]) -> Iterator[str]:
    """The templates of sentences and of all within them."""
    for sentence in sentences:
        yield sentence.template
        yield from templates_in(value for value in sentence.values.values() if isinstance(value, Sentence))


def embedded(data: object) -> str:
    """JSON that may stand within a script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def with_words(page: str, language: str, words: Mapping[str, str]) -> str:
    """A page's text in another language (``zh-CN``): ``words`` are translations by their templates."""
    text = embedded({"lang": language, "words": dict(words)})
    return _WORDS.sub(lambda match: f"{match[1]}{text}{match[2]}", page, count=1)
