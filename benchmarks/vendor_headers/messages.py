"""The compiler's messages: where they are, and what they say once names of files and numbers are out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve, field, frozen

_LINE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+):(?P<ranges>(?:\{[\d:,-]+\})*:?)"
    r" (?P<kind>fatal error|error|warning|note): (?P<text>.*)$"
)
_RANGE = re.compile(r"\{(\d+):(\d+)-(\d+):(\d+)\}")
_MISSING_FILE = re.compile(r"^'([^']+)' file not found$")
LAMBDA = "lambda expressions are incompatible with C++98"


@frozen
class Place:
    """A position of a file; lines and columns count from 1."""

    file: Path
    line: int
    column: int


@frozen
class Message:
    """An error, or a warning that the judge takes for one, with the notes behind it."""

    place: Place
    text: str
    is_error: bool
    ranges: tuple[tuple[int, int, int, int], ...] = ()
    notes: tuple[Message, ...] = field(default=(), repr=False)

    @property
    def missing_file(self) -> str:
        """The header that an #include did not find, empty for any other message."""
        found = _MISSING_FILE.match(self.text)
        return found[1] if found else ""

    def is_in(self, folder: Path) -> bool:
        return self.place.file.is_relative_to(folder)


def parse(output: str) -> list[Message]:
    """The errors of the output of clang without source lines (-fno-caret-diagnostics), and its warnings of
    lambda expressions."""
    found: list[Message] = []
    taken = False
    for kind, message in _parsed(output):
        if kind != "note":
            taken = message.is_error or message.text.startswith(LAMBDA)
            found += [message] if taken else []
        elif taken:
            found[-1] = evolve(found[-1], notes=(*found[-1].notes, message))
    return found


def _parsed(output: str) -> Iterator[tuple[str, Message]]:
    for line in output.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        kind = match["kind"]
        place = Place(Path(match["file"]).resolve(), int(match["line"]), int(match["column"]))
        ranges = tuple(tuple(map(int, found)) for found in _RANGE.findall(match["ranges"]))
        yield kind, Message(place, match["text"], kind.endswith("error"), ranges)  # type: ignore[arg-type]


def normalised(text: str) -> str:
    """The text without what differs from kernel to kernel: option names, numbers, spelled-out types."""
    text = re.sub(r" \[-W[\w+-]+\]$", "", text)
    text = re.sub(r"; did you mean .*\?$", "", text)
    text = re.sub(r" \(aka '[^']*'\)", "", text)
    text = text.replace("__attribute__((address_space(1)))", "__gm__")
    text = re.sub(r"\b\d+(?:\.\d+)?[uUlLfF]*\b", "N", text)
    return re.sub(r"\s+", " ", text).strip()


def in_kernel(message: Message, folder: Path) -> Place | None:
    """Where below the folder a message arises: its own place, or that of the first note that is there."""
    for place in (message.place, *(note.place for note in message.notes)):
        if place.file.is_relative_to(folder):
            return place
    return None


def first_of_each(messages: Iterable[Message]) -> list[Message]:
    """One message for each normalised text, in order."""
    found: dict[str, Message] = {}
    for message in messages:
        found.setdefault(normalised(message.text), message)
    return list(found.values())
