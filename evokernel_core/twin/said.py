"""Sentences that the twin's library says: it tells the printf format that it wrote and what filled it, so
that the sentence can be said in another language."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from evokernel_core.domain.sentence import Sentence

_CONVERSION = re.compile(r"%(?:%|[-+ #0-9.hlz]*[a-zA-Z])")


def template_of(written: str) -> str:
    """The template of a printf format: its values are ``{a}``, ``{b}`` and so on."""
    names = iter(string.ascii_lowercase)
    if not any(conversion != "%%" for conversion in _CONVERSION.findall(written)):
        return written.replace("%%", "%")
    escaped = written.replace("{", "{{").replace("}", "}}")
    return _CONVERSION.sub(lambda match: "%" if match[0] == "%%" else f"{{{next(names)}}}", escaped)


def sentence_said(data: Any) -> Sentence:
    """The sentence in the runner's JSON: a format with its values, or a text that is no sentence of ours."""
    if not isinstance(data, Mapping):
        return Sentence(str(data))
    told = zip(string.ascii_lowercase, data["values"], strict=False)
    values = {name: sentence_said(v) if isinstance(v, Mapping) else str(v) for name, v in told}
    return Sentence(template_of(str(data["format"])), **values)
