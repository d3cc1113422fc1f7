"""Words of others in what an agent reads: between double quotes, on one line, with nothing invisible.

What a model's exception, a comment or a file's name says is read by a language model, which obeys what reads
like an instruction. Our own sentences are told apart from it by their templates.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from evokernel_server.texts.translations import is_ours

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.visible import visible

MOST_QUOTED = 4_000
"""Characters of a quotation."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{0,11}|[-+]?[\d.,:/%]*\d%?")
"""A number, or a word such as a dtype or a pipe, too short to say anything."""
_NAME = re.compile(r"[\w.:/<>+~@=()-]*")
_FIELD = re.compile(r"\{\w*\}")


def quoted(text: str, most: int = MOST_QUOTED) -> str:
    """A text of others as a quotation of at most ``most`` characters; an empty one stays empty."""
    if not text:
        return ""
    whole = _escaped(text[:most])
    if len(text) <= most and len(whole) + 2 <= most:
        return f'"{whole}"'
    parts, room = list[str](), most - 5
    for char in text[:most]:
        parts.append(_escaped(char))
        room -= len(parts[-1])
        if room < 0:
            break
    return f'"{"".join(parts[:-1])}..."'


def _escaped(text: str) -> str:
    return json.dumps(visible(text), ensure_ascii=False)[1:-1]


def named(text: str, most: int = MOST_QUOTED) -> str:
    """The name of a file, a function or a kernel: as it is where it is one word, which agents hand back."""
    return text if len(text) <= most and _NAME.fullmatch(text) else quoted(text, most)


def told(said: str, most: int = MOST_QUOTED) -> str:
    """A sentence of ours with what it repeats of others quoted; all other text is a quotation."""
    words = _told(said)
    return words if len(words) <= most else quoted(str(said), most)


def refusal(error: EvoKernelError, *, own: bool) -> str:
    """What an error says. ``own``: it was raised in this process, so that its template is ours."""
    sentence = error.sentence
    words = _filled(sentence) if own else _told(sentence)
    return words if len(words) <= MOST_QUOTED else quoted(str(sentence))


def shown(value: Any) -> Any:
    """A JSON value with all of its texts visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [shown(element) for element in value]
    if isinstance(value, dict):
        return {visible(name): shown(member) for name, member in value.items()}
    return value


def _told(said: str) -> str:
    if not isinstance(said, Sentence):
        said = Sentence(said)
    return _filled(said) if is_ours(said.template) or _only_joins(said) else quoted(str(said))


def _only_joins(said: Sentence) -> bool:
    """Whether a template says nothing between its values."""
    return bool(said.values) and not re.search(r"\w", _FIELD.sub("", said.template))


def _filled(said: Sentence) -> str:
    if not said.values:
        return said.template
    return said.template.format(**{name: _value(value) for name, value in said.values.items()})


def _value(value: str | int | float) -> str | int | float:
    if isinstance(value, Sentence):
        return _told(value)
    if not isinstance(value, str) or _WORD.fullmatch(value):
        return value
    return quoted(_bare(value))


def _bare(text: str) -> str:
    """What Python's quotation of a text holds; any other text itself."""
    if text[:1] in ("'", '"'):
        try:
            held = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text
        return held if isinstance(held, str) and repr(held) == text else text
    return text
