"""Text and positions: one immutable text with its line index, in the units of either side.

Three units meet here. Regions count 1-based lines and 0-based *characters*; the protocol counts 0-based
lines and code units of the negotiated encoding; inside the server everything is a character offset.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate
from operator import attrgetter

from attrs import define, frozen
from lsprotocol import types

from evokernel_core.domain.region import Span

_LINE_END = re.compile(r"\r\n|\r|\n")
"""The protocol's line ends; unlike ``str.splitlines`` a form feed is none of them."""


def units(char: str, encoding: str) -> int:
    """Code units of one character in ``utf-8``, ``utf-16`` or ``utf-32``."""
    code = ord(char)
    if encoding == "utf-8":
        return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)
    return 1 + (encoding == "utf-16" and code > 0xFFFF)


def _is_plain(line: str, encoding: str) -> bool:
    """Whether characters and code units are the same in this line."""
    return encoding == "utf-32" or line.isascii()


@frozen
class Extent:
    """A span as character offsets; ``end`` is exclusive."""

    start: int
    end: int

    def holds(self, other: Extent) -> bool:
        """Whether the other lies within this one."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Extent) -> bool:
        """Whether a character is in both."""
        return self.start < other.end and other.start < self.end

    def touches(self, other: Extent) -> bool:
        """As ``overlaps``; an empty other counts where it starts."""
        return other.start < self.end and self.start < max(other.end, other.start + 1)


@frozen
class Edit:
    """``text`` takes the place of the characters from ``start`` to ``end`` of the text before it."""

    start: int
    end: int
    text: str


@define(frozen=True, slots=False)
class Text:
    """A document's content and the encoding in which its client counts columns."""

    content: str
    encoding: str = "utf-16"

    @cached_property
    def starts(self) -> list[int]:
        """The offset at which each line starts."""
        if "\r" in self.content:
            return [0, *(match.end() for match in _LINE_END.finditer(self.content))]
        lengths = (len(line) + 1 for line in self.content.split("\n")[:-1])
        return [0, *accumulate(lengths)]

    def line(self, number: int) -> str:
        """A 0-based line without its line end."""
        start = self.starts[number]
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.content)
        return self.content[start:end].rstrip("\r\n")

    def offset(self, position: types.Position) -> int:
        """The offset of a position; one past a line's or the text's end means that end."""
        if position.line >= len(self.starts):
            return len(self.content)
        line = self.line(position.line)
        return self.starts[position.line] + _column(line, position.character, self.encoding)

    def position(self, offset: int) -> types.Position:
        """The position of an offset in the client's units."""
        number = bisect_right(self.starts, offset) - 1
        before = self.content[self.starts[number] : offset]
        if _is_plain(before, self.encoding):
            return types.Position(number, len(before))
        return types.Position(number, sum(units(char, self.encoding) for char in before))

    def line_of(self, offset: int) -> int:
        """The 0-based line of an offset, without counting along the line."""
        return bisect_right(self.starts, offset) - 1

    def lines(self, first: int, last: int) -> Extent:
        """The whole lines from one to another, both 0-based: a cursor anywhere on them is enough."""
        places = (
            self.starts[line] if line < len(self.starts) else len(self.content) for line in (first, last + 1)
        )
        return Extent(*places)

    def range(self, extent: Extent) -> types.Range:
        return types.Range(self.position(extent.start), self.position(extent.end))

    def extent(self, span: Span) -> Extent:
        """The offsets of a region's span."""
        return Extent(self._of(span.line, span.column), self._of(span.end_line, span.end_column))

    def span(self, extent: Extent) -> Span:
        """The region's way to write the offsets."""
        first, last = (bisect_right(self.starts, offset) - 1 for offset in (extent.start, extent.end))
        return Span(first + 1, extent.start - self.starts[first], last + 1, extent.end - self.starts[last])

    def _of(self, line: int, column: int) -> int:
        if line > len(self.starts):
            return len(self.content)
        return min(self.starts[line - 1] + column, len(self.content))

    def edit(self, change: types.TextDocumentContentChangeEvent) -> Edit:
        """A client's change in character offsets; a change without a range replaces everything. A range that
        ends before it starts is the one between the two places."""
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = sorted((self.offset(change.range.start), self.offset(change.range.end)))
            return Edit(start, end, change.text)
        return Edit(0, len(self.content), change.text)

    def apply(self, edit: Edit) -> Text:
        content = self.content[: edit.start] + edit.text + self.content[edit.end :]
        after = Text(content, self.encoding)
        vars(after)["starts"] = self._starts_after(edit, content)  # where ``cached_property`` keeps it
        return after

    def _starts_after(self, edit: Edit, content: str) -> list[int]:
        """The starts of the edited text: looked for from the line above the edit, whose carriage return a
        line feed may join now, to the first line that begins behind it; the others stay or move along."""
        old, moved = self.starts, len(edit.text) - (edit.end - edit.start)
        first = max(bisect_right(old, edit.start) - 2, 0)
        last = bisect_right(old, edit.end)
        end = old[last] + moved if last < len(old) else len(content)
        result = (match.end() for match in _LINE_END.finditer(content, old[first], end))
        behind = old[last + 1 :]
        return [*old[: first + 1], *result, *([start + moved for start in behind] if moved else behind)]


def _column(line: str, character: int, encoding: str) -> int:
    if _is_plain(line, encoding):
        return min(character, len(line))
    seen = 0
    for index, char in enumerate(line):
        if seen >= character:
            return index
        seen += units(char, encoding)
    return len(line)


def shift(extent: Extent, edit: Edit) -> Extent | None:
    """Where a span is after an edit; None once the edit touched a character of it."""
    if edit.end <= extent.start:
        moved = len(edit.text) - (edit.end - edit.start)
        return Extent(extent.start + moved, extent.end + moved)
    return extent if edit.start >= extent.end else None


def stretch(extent: Extent, edit: Edit) -> Extent | None:
    """Where a span is after an edit that may lie inside it, which it then covers; None once all of it is
    replaced."""
    moved = len(edit.text) - (edit.end - edit.start)
    if edit.end <= extent.start:
        return Extent(extent.start + moved, extent.end + moved)
    if edit.start >= extent.end:
        return extent
    if edit.start <= extent.start and extent.end <= edit.end:
        return None
    start = extent.start if edit.start >= extent.start else edit.start + len(edit.text)
    return Extent(start, extent.end + moved if edit.end <= extent.end else edit.start)


def narrow(before: str, edit: Edit) -> Edit:
    """The same change without the characters that it leaves equal at either end.

    Clients that send a whole text for a small change would otherwise touch every region.
    """
    old = before[edit.start : edit.end]
    head = _common(old, edit.text)
    tail = _common(old[head:][::-1], edit.text[head:][::-1])
    return Edit(edit.start + head, edit.end - tail, edit.text[head : len(edit.text) - tail])


def _common(left: str, right: str) -> int:
    """Length of the common prefix, found by halving so that long texts compare at C speed."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def edited(text: Text, edits: Iterable[Edit]) -> Text:
    """A text after edits that do not overlap."""
    for edit in sorted(edits, key=attrgetter("start"), reverse=True):
        text = text.apply(edit)
    return text


def edits_between(before: str, after: str) -> tuple[Edit, ...]:
    """The differing pieces as edits of the text before, found line by line."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, old))]
    edits = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            edits.append(narrow(before, Edit(starts[a], starts[b], "".join(new[c:d]))))
    return tuple(edits)


def re_anchor(text: str, extent: Extent | None, source: str) -> Extent | None:
    """Where a region's text is now: where it was tracked to, else its only occurrence, else None."""
    if extent is not None and text[extent.start : extent.end] == source:
        return extent
    first = text.find(source) if source else -1
    if first < 0 or text.find(source, first + 1) >= 0:
        return None
    return Extent(first, first + len(source))
