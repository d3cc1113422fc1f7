"""Positions in Python text: lines as Python counts them, spans, offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import ImportFailed
from evokernel_core.domain.region import Span

LARGEST_BYTES = 1 << 22
"""No Python file that a person or a model writes is larger; one that is holds data."""

_LINE_END = re.compile(r"\r\n|\r|\n")


def read_python(path: Path) -> str:
    """The text of a Python file, whose mark of UTF-8 is no part of it. Raises ImportFailed."""
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise ImportFailed(
                "{name} has {size} MiB of text, and at most {most} are read: move its data into "
                "another file.",
                name=path.name,
                size=size >> 20,
                most=LARGEST_BYTES >> 20,
            )
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ImportFailed(
            "{name} cannot be read ({why}): correct it and try again.", name=path.name, why=error.strerror
        ) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ImportFailed(
            "Line {line} of {name} is not UTF-8: save the file in that encoding and try again.",
            line=line,
            name=path.name,
        ) from error


@frozen
class TextChange:
    """Replace a span (in the text before the change) by ``text``."""

    span: Span
    text: str


def line_starts(text: str) -> list[int]:
    """The offset of each line. Form feeds and Unicode separators end no line, unlike in splitlines."""
    if "\r" in text:
        return [0, *(match.end() for match in _LINE_END.finditer(text))]
    starts, start = [0], text.find("\n") + 1
    while start:
        starts.append(start)
        start = text.find("\n", start) + 1
    return starts


def offset_of(starts: list[int], text: str, line: int, column: int) -> int:
    """The offset of a position, clamped to the text; ``line`` is 1-based."""
    if line > len(starts):
        return len(text)
    return min(starts[line - 1] + column, len(text))


def span_offsets(text: str, span: Span) -> tuple[int, int]:
    """Start and end offsets of a span."""
    starts = line_starts(text)
    start = offset_of(starts, text, span.line, span.column)
    return start, max(start, offset_of(starts, text, span.end_line, span.end_column))


def span_of(text: str, start: int, end: int) -> Span:
    """The span between two offsets."""
    starts = line_starts(text)
    first, last = bisect_right(starts, start) - 1, bisect_right(starts, end) - 1
    return Span(first + 1, start - starts[first], last + 1, end - starts[last])


def text_at(text: str, span: Span) -> str:
    """The text of a span."""
    start, end = span_offsets(text, span)
    return text[start:end]


def apply_change(text: str, change: TextChange) -> str:
    start, end = span_offsets(text, change.span)
    return text[:start] + change.text + text[end:]
