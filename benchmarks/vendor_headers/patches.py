"""Insertions that let a host compiler take a header's text, at the places that its own messages name.

Two things differ from the device's compiler: a function that device code and constants of a namespace share
has to say that hosts may call it too, and a string literal does not lie in global memory. Both are mended
in a copy that is made for one run, without a look at what stands there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import define, field

from vendor_headers.messages import Message, Place

_HOST = "__attribute__((host)) "
_GLOBAL_LITERAL = "(__gm__ const char *)"
_SHARED = re.compile(r"^reference to __device__ function '\w+' in (?:global initializer|__host__ function)")
_CONSTANT = re.compile(r"^reference to __device__ function '\w+' in global initializer")
_LITERAL = re.compile(r"'__gm__ (?:char const|const char) \*' (?:with an lvalue of type|for \d)|"
                      r"from 'const char\[\d+\]' to '__gm__ (?:char const|const char) \*'")  # fmt: skip

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[^\s"]')


@define
class Patches:
    """The insertions, by file; the headers themselves are only ever read by ``overlay`` and the compiler."""

    insertions: dict[Path, dict[tuple[int, int], str]] = field(factory=dict)

    def learn(self, messages: Iterable[Message], checkout: Path, copies: Path) -> bool:
        """Takes up what messages ask for of files of the checkout and, for literals, of copies of kernels.
        Whether there was anything new."""
        grown = False
        for message in messages:
            asked = list(_literals(message))
            if message.is_in(checkout) or _CONSTANT.match(message.text):
                asked += [(place, _HOST) for place in _shared(message) if place.file.is_relative_to(checkout)]
            elif not message.is_in(copies):
                continue
            for place, text in asked:
                known = self.insertions.setdefault(place.file, {})
                position = (place.line, place.column)
                if position not in known:
                    known[position] = text
                    grown = True
        return grown

    def overlay(self, folder: Path) -> Path:
        """Writes the patched copies into a folder, and the file that puts them in the originals' place
        (-ivfsoverlay)."""
        roots = []
        for number, (file, found) in enumerate(sorted(self.insertions.items())):
            copy = folder / f"{number}_{file.name}"
            copy.write_text(inserted(file.read_text(), found))
            roots.append({"name": str(file), "type": "file", "external-contents": str(copy)})
        overlay = folder / "overlay.json"
        overlay.write_text(json.dumps({"version": 0, "use-external-names": False, "roots": roots}))
        return overlay


def inserted(text: str, insertions: dict[tuple[int, int], str]) -> str:
    """The text with each insertion before its line and column, both counted from 1, columns in bytes."""
    lines = text.encode().split(b"\n")
    for (line, column), more in sorted(insertions.items(), reverse=True):
        old = lines[line - 1]
        lines[line - 1] = old[: column - 1] + more.encode() + old[column - 1 :]
    return b"\n".join(lines).decode()


def _shared(message: Message) -> list[Place]:
    """Where the function is declared that hosts have to be able to call."""
    if not _SHARED.match(message.text):
        return []
    return [note.place for note in message.notes if note.text.endswith("declared here")][:1]


def _literals(message: Message) -> Iterator[tuple[Place, str]]:
    if _LITERAL.search(message.text):
        for line, column, _, _ in message.ranges[-1:]:
            yield Place(message.place.file, line, column), _GLOBAL_LITERAL
    elif any(_LITERAL.search(note.text) for note in message.notes) and message.ranges:
        _, _, line, column = message.ranges[0]  # where the name that is called ends
        text = message.place.file.read_text()
        for found in literals_of_call(text, line, column):
            yield Place(message.place.file, *found), _GLOBAL_LITERAL


def literals_of_call(text: str, line: int, column: int) -> Iterator[tuple[int, int]]:
    """Lines and columns of the string literals between the parentheses that open behind a position. Of
    literals beside each other only the first."""
    lines = text.split("\n")
    start = sum(len(item) + 1 for item in lines[: line - 1]) + column - 1
    depth, before = 0, ""
    for token in _TOKEN.finditer(text, start):
        if token[0] in "()":
            depth += 1 if token[0] == "(" else -1
            if depth == 0:
                return
        elif token[0][0] == '"' and depth and not before.startswith('"'):
            head = text[: token.start()]
            yield head.count("\n") + 1, token.start() - head.rfind("\n")
        before = token[0]
