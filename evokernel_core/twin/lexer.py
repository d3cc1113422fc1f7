"""C++ text as tokens: enough to find kernel launches and to audit what a kernel mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache

from attrs import frozen

from evokernel_core.domain.sentence import Sentence


class CppTokenKind(StrEnum):
    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    CHARACTER = "character"
    DIRECTIVE = "directive"
    PUNCTUATION = "punctuation"


@frozen
class Token:
    """``text`` as written, from character ``start`` to ``end`` of the file, on 1-based ``line``."""

    kind: CppTokenKind
    text: str
    start: int
    end: int
    line: int


# Order matters: comments and literals first, so that nothing inside them is taken for code.
_TOKEN = re.compile(
    r"""
      (?P<space>\s+ | //(?:[^\n\\]|\\.|\\\n)* | /\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"
               | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<punctuation><<<|>>>|::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=8)
def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of a file, without spaces and comments. Never fails: odd bytes are punctuation.

    Several passes read the same few files, one after the other.
    """
    return tuple(_scan(text))


_KINDS = {**{kind.value: kind for kind in CppTokenKind}, "fence": CppTokenKind.STRING}


def _scan(text: str) -> Iterator[Token]:
    line, position = 1, 0
    at_line_start = True
    while position < len(text):
        match = _directive(text, position) if at_line_start else None
        match = match or _TOKEN.match(text, position)
        assert match is not None  # the last alternative matches any character
        result = match.group()
        kind = _KINDS.get(match.lastgroup or "")
        if kind is not None:
            yield Token(kind, result, position, match.end(), line)
            at_line_start = False
        else:
            at_line_start = at_line_start or "\n" in result
        if "\n" in result:
            line += result.count("\n")
        position = match.end()


_DIRECTIVE = re.compile(
    r"""
    (?P<directive>\#(?:
        [^\n\\/"'] | \\\n | \\. | /(?![/*]) | /\*.*?(?:\*/|\Z) | //(?:[^\n\\]|\\.|\\\n)*
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ["']
    )*)
    """,
    re.VERBOSE | re.DOTALL,
)


def _directive(text: str, position: int) -> re.Match[str] | None:
    return _DIRECTIVE.match(text, position)


CLOSING = {"(": ")", "[": "]", "{": "}"}


def closing_index(tokens: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes ``tokens[opening]``. Raises ValueError if none does."""
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].text in CLOSING:
            depth += 1
        elif tokens[index].text in CLOSING.values():
            depth -= 1
            if depth == 0:
                return index
    what, line = repr(tokens[opening].text), tokens[opening].line
    raise ValueError(Sentence("The {what} on line {line} is never closed.", what=what, line=line))


def end_of(tokens: Sequence[Token], opening: int) -> int:
    """The token behind the bracket that closes another; the end of the text where nothing closes it."""
    try:
        return closing_index(tokens, opening) + 1
    except ValueError:
        return len(tokens)


def split_commas(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """The parts between the commas that no bracket encloses; no token gives no part."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in CLOSING) - (token.text in CLOSING.values())
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [tuple(part) for part in parts] if tokens else []
