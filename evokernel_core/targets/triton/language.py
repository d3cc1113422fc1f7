"""How kernels in Triton are read: jit functions as Python, and the expressions in the launch record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from evokernel_core.domain.language import Language, SourceToken, TokenKind

# Order matters: comments and strings first, so that nothing inside them is taken for code.
_TOKEN = re.compile(
    r"""
      (?P<newline>\r?\n)
    | (?P<space>[^\S\n]+ | \\\r?\n | \#[^\n]*)
    | (?P<string>[A-Za-z]{0,2}(?:\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z) | '''(?:\\.|[^\\])*?(?:'''|\Z)
               | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'))
    | (?P<number>\.?\d(?:[eE][+-]|[\w.])*)
    | (?P<name>[^\W\d]\w*)
    | (?P<punctuation>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING, _CLOSING = "([{", ")]}"


def _tokens(name: str, text: str) -> tuple[SourceToken, ...]:
    return _unquoted(text) if name.endswith(".json") else _scanned(text)


@lru_cache(maxsize=8)
def _scanned(text: str) -> tuple[SourceToken, ...]:
    return tuple(_scan(text, 1))


@lru_cache(maxsize=8)
def _unquoted(text: str) -> tuple[SourceToken, ...]:
    """The tokens of a launch record, in whose strings the expressions are."""
    return tuple(inner for token in _scan(text, 1) for inner in _inside(token))


def _inside(token: SourceToken) -> Iterator[SourceToken]:
    if token.kind is not TokenKind.STRING:
        if token.kind is not TokenKind.LAYOUT:
            yield token
        return
    quote, last = token.text[0], token.line + token.text.count("\n")
    yield SourceToken(TokenKind.PUNCTUATION, quote, token.line)
    yield from _scan(token.text[1:-1], token.line)
    yield SourceToken(TokenKind.PUNCTUATION, quote, last)


def _scan(text: str, line: int) -> Iterator[SourceToken]:
    """The tokens of a text. What begins a line of code has its indentation before it, which is part of what
    the code means; a line inside brackets has none."""
    position = depth = 0
    begins, column = True, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative matches any character
        kind, result = match.lastgroup or "", match.group()
        if kind == "newline":
            begins = depth == 0
        elif kind != "space":
            if begins:
                column = position - text.rfind("\n", 0, position) - 1
                yield SourceToken(TokenKind.LAYOUT, "\n" + " " * column, line)
            begins = False
            depth = max(0, depth + (result in _OPENING) - (result in _CLOSING))
            yield SourceToken(TokenKind(kind), result, line)
        line += result.count("\n")
        position = match.end()


def number(text: str) -> int | float | None:
    """A literal of Python, None for other text."""
    is_whole = text[:2].lower() in ("0x", "0b", "0o") or not any(sign in text for sign in ".eE")
    try:
        return int(text, 0) if is_whole else float(text)
    except ValueError:
        return None


def _is_complete(code: str) -> bool:
    """Whether no bracket of it is open."""
    tokens = [token.text for token in _scan(code, 1) if token.kind is TokenKind.PUNCTUATION]
    opened = sum(text in _OPENING for text in tokens)
    return bool(code) and opened <= sum(text in _CLOSING for text in tokens)


LANGUAGE = Language(_tokens, number, head="def ", comment="#", is_complete=_is_complete)
