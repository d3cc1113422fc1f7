"""The candidate's own part of a translation unit, as the compiler's preprocessor leaves it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.source import KERNEL

_MARKER = re.compile(r'#(?:line)? (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)\s*$')
_ENTER, _LEAVE = "1", "2"
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_PRAGMAS = re.compile(r"#pragma (?:once|unroll\b|GCC pch_preprocess )")


@frozen
class OwnText:
    """``lines`` are the text of the candidate's files with the file and line of each, macros expanded."""

    lines: tuple[tuple[str, int, str], ...]
    findings: tuple[Finding, ...]

    def of(self, file: str) -> OwnText:
        """The part that comes from one file."""
        return OwnText(tuple(line for line in self.lines if line[0] == file), ())

    def words(self) -> list[str]:
        """The text without layout, to compare two of them."""
        return " ".join(text for _, _, text in self.lines).split()

    def for_parser(self) -> str:
        """The text with a marker wherever the line before is not the one before.

        Its names mean what they say: macros of the headers that the parser has read, which the candidate took
        back or wrote another meaning over, would be expanded there a second time.
        """
        names = dict.fromkeys(name for _, _, text in self.lines for name in _NAME.findall(text))
        parts = [f"#undef {name}" for name in names if name != "defined"]
        expected = ("", 0)
        for file, line, text in self.lines:
            if (file, line) != expected:
                parts.append(f'# {line} "{file}"')
            parts.append(text)
            expected = (file, line + 1)
        return "\n".join(parts) + "\n"


def own_text(output: str, own: Sequence[str], includes: Sequence[str]) -> OwnText:
    """Splits a preprocessor's ``output`` by its line markers.

    ``own`` are the candidate's files, ``includes`` the folders of the twin and the compiler: a marker that
    names any other file, or that no inclusion made, is a finding.
    """
    return _Splitter(frozenset(own), tuple(includes)).split(output)


class _Splitter:
    def __init__(self, own: frozenset[str], includes: tuple[str, ...]) -> None:
        self._own, self._includes = own, includes
        self._stack: list[str] = []
        self._started = False  # the compiler's own prologue names files that nothing included
        self._lines: list[tuple[str, int, str]] = []
        self._findings: list[Finding] = []

    def split(self, output: str) -> OwnText:
        line = 1
        for text in output.split("\n"):
            marker = _MARKER.match(text) if text.startswith("#") else None
            if marker:
                self._move(marker)
                line = int(marker[1])
                continue
            if self._started and self._stack[-1] in self._own:
                self._take(line, text)
            line += 1
        return OwnText(tuple(self._lines), tuple(self._findings))

    def _take(self, line: int, text: str) -> None:
        if text.lstrip().startswith("#"):
            if not _PRAGMAS.match(text.lstrip()):
                self._find(
                    "directive",
                    Sentence("{what} is not allowed; use plain code.", what=text.strip()[:40]),
                    line,
                )
        elif text.strip():
            self._lines.append((self._stack[-1], line, text))

    def _move(self, marker: re.Match[str]) -> None:
        name, flags = self._name(marker[2]), marker[3].split()
        before = self._stack[-1] if self._stack else ""
        if _ENTER in flags:
            self._enter(name, int(marker[1]))
        elif _LEAVE in flags and len(self._stack) > 1:
            self._stack.pop()
        if self._stack and self._stack[-1] != name and self._started:
            self._find("directive", Sentence("{what} is not allowed; use plain code.", what="#line"), 1)
        self._stack[-1:] = [name]
        self._started = self._started or (before.startswith("<") and name in self._own)

    def _enter(self, name: str, line: int) -> None:
        known = name in self._own or any(Path(name).is_relative_to(folder) for folder in self._includes)
        if self._started and not known:
            self._find(
                "include", Sentence("Including {file} is not allowed.", file=repr(Path(name).name)), line
            )
        self._stack.append(name)

    def _find(self, code: str, message: Sentence, line: int) -> None:
        file = next((name for name in reversed(self._stack) if name in self._own), KERNEL)
        self._findings.append(Finding(f"audit-{code}", message, file, line))

    @staticmethod
    def _name(written: str) -> str:
        name = written.replace('\\"', '"').replace("\\\\", "\\")
        return name if name.startswith("<") else os.path.normpath(name)
