"""The line of a document that a sentence names."""

from __future__ import annotations

from evokernel_core.domain.sentence import Sentence
from evokernel_server.documents.workspace import Document

LINE = "line"
"""What a line is called among a sentence's values, which count lines from 1."""


def line_of(document: Document, sentence: Sentence) -> int:
    """The line, from 0, that a sentence names, else that of the first definition with tensor code."""
    line = _named_line(sentence) - 1
    return line if 0 <= line < len(document.text.starts) else document.first_line()


def _named_line(sentence: Sentence) -> int:
    """The value that is called ``line``, also within what fills the sentence; 0 where there is none."""
    line = sentence.values.get(LINE)
    if isinstance(line, int):
        return line
    inner = (value for value in sentence.values.values() if isinstance(value, Sentence))
    return next((line for line in map(_named_line, inner) if line), 0)
