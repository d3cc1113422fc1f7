"""Answers in plain text: files under marker lines, whole or as search-and-replace blocks.

    === kernel.cpp
    <<<<<<< SEARCH
    lines as they stand
    =======
    lines in their place
    >>>>>>> REPLACE
    === notes
    - one sentence

Models surround files with words, headings and code fences; these are left aside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from attrs import frozen

from evokernel_core.domain.errors import AnswerUnreadable

NOTHING_MARK = "nothing to gain"
"""The marker of an answer that ends a refinement, in lower case."""
_FENCE = "```"
_LONGEST_MARKER = 120
_SEARCH = re.compile(r"<{5,}\s*SEARCH\s*")
_DIVIDER = re.compile(r"={5,}\s*")
_REPLACE = re.compile(r">{5,}\s*REPLACE\s*")


@frozen
class Edit:
    """Text that stands once in a file, and what to put in its place."""

    file: str
    search: str
    replace: str


@cache
def _marker(files: tuple[str, ...]) -> re.Pattern[str]:
    """A line that names one of these files, the notes or the end."""
    return re.compile(
        r"\s*(?:={2,}|#{1,6}|\*\*)\s*[`*\"']*(?:files?:?\s+|edits?:?\s+(?:of\s+|to\s+)?)?[`*\"']*"
        rf"(?:[\w.-]+/)*({'|'.join(map(re.escape, files))}|notes|end|{NOTHING_MARK})[`*\"':\s=#]*",
        re.IGNORECASE,
    )


def sections(text: str, files: tuple[str, ...]) -> Mapping[str, str]:
    """What stands under each marker by its name: those of ``files``, and ``notes``; lines within a
    code fence of a section are no markers. Raises AnswerUnreadable for a file that is there twice."""
    result: dict[str, list[str]] = {}
    current: list[str] = []
    lines = text.replace("\r\n", "\n").split("\n")
    fenced_to = 0  # the line that closes the fence of the current section
    for place, line in enumerate(lines):
        if result and place >= fenced_to and _is_fence(line):
            fenced_to = _closing(lines, place) + 1
        name = _name(line, files) if place >= fenced_to else ""
        if not name:
            current.append(line)
            continue
        current = []
        if name == "end":
            continue
        if name != "notes" and any(map(str.strip, result.get(name, []))):
            raise AnswerUnreadable("The model's answer holds {name} twice; give each file once.", name=name)
        result[name] = current
    return {name: "\n".join(lines) for name, lines in result.items()}


def _is_fence(line: str) -> bool:
    return line.lstrip().startswith(_FENCE)


def _closing(lines: Sequence[str], start: int) -> int:
    """The fence line that closes the one at ``start``, or that one itself where none does: one with the name
    of a language closes nothing."""
    end = next((place for place in range(start + 1, len(lines)) if _is_fence(lines[place])), start)
    return end if lines[end].strip() == _FENCE else start


def _name(line: str, files: tuple[str, ...]) -> str:
    marker = _marker(files).fullmatch(line) if len(line) <= _LONGEST_MARKER else None
    return marker[1].lower() if marker else ""


def bare(section: str) -> str:
    """The lines inside the first code fence, or all of them where there is none."""
    lines = section.split("\n")
    fences = [place for place, line in enumerate(lines) if _is_fence(line)]
    start, end = 0, len(lines)
    if len(fences) > 1:
        start, end = fences[0] + 1, fences[1]
    elif fences:
        before = any(line.strip() for line in lines[: fences[0]])
        start, end = (0, fences[0]) if before else (fences[0] + 1, end)
    return "\n".join(lines[start:end])


def edits(file: str, text: str) -> tuple[Edit, ...]:
    """The search-and-replace blocks of a section, none where it is the whole file, however they are fenced.
    Raises AnswerUnreadable for one that is not closed."""
    edits: list[Edit] = []
    block: list[list[str]] = []  # the lines searched for, then also those in their place
    for line in text.split("\n"):
        if _is_fence(line):
            continue
        if not block:
            block = [[]] if _SEARCH.fullmatch(line) else []
        elif len(block) == 1 and _DIVIDER.fullmatch(line):
            block.append([])
        elif len(block) == 2 and _REPLACE.fullmatch(line):
            search, replace = ("".join(f"{kept}\n" for kept in part) for part in block)
            edits.append(Edit(file, search, replace))
            block = []
        else:
            block[-1].append(line)
    if block:
        raise AnswerUnreadable(
            "Edit {number} of {file} is not closed; write SEARCH, =======, and REPLACE lines.",
            number=len(edits) + 1,
            file=file,
        )
    return tuple(edits)


def applied(texts: Mapping[str, str], changes: Sequence[Edit]) -> Mapping[str, str]:
    """The files after all edits, each made in the text that those before it left. Raises AnswerUnreadable for
    one that does not match exactly once."""
    made = dict(texts)
    for number, edit in enumerate(changes, 1):
        if edit.file not in made:
            raise AnswerUnreadable(
                "Edit {number} is of {file}; there are {files}.",
                number=number,
                file=repr(edit.file[:60]),
                files=" and ".join(made),
            )
        search = edit.search if edit.search.strip() else ""
        matches = _count(made[edit.file], search) if search else 0
        if not search:
            raise AnswerUnreadable(
                "Edit {number} of {file} searches for nothing; copy the lines to replace.",
                number=number,
                file=edit.file,
            )
        if not matches:
            raise AnswerUnreadable(
                "Edit {number} of {file} matches nothing; copy the lines exactly as they stand.",
                number=number,
                file=edit.file,
            )
        if matches > 1:
            raise AnswerUnreadable(
                "Edit {number} of {file} matches {matches} places; add lines around it until it is one.",
                number=number,
                file=edit.file,
                matches=matches,
            )
        made[edit.file] = made[edit.file].replace(search, edit.replace)
    return made


def _count(text: str, search: str) -> int:
    """Places where ``search`` stands, also those that overlap."""
    count, place = 0, text.find(search)
    while place >= 0:
        count, place = count + 1, text.find(search, place + 1)
    return count
