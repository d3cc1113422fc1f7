"""What neutral code reads in the texts of kernels: tokens, numbers, functions and statements."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from attrs import frozen


class TokenKind(StrEnum):
    """``LAYOUT`` is where a language gives line ends and indentation a meaning."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    PUNCTUATION = "punctuation"
    LAYOUT = "layout"


@frozen
class SourceToken:
    """``text`` as written, on 1-based ``line``; punctuation may be cut into single characters."""

    kind: TokenKind
    text: str
    line: int


@frozen
class Language:
    """How the files of a target's kernels are read.

    ``tokens`` of a file, by its name and text, without comments; never fails. ``number``: the value of a
    literal, None for other text. ``head`` stands before the type and the name of a function, ``comment``
    before what is none of a line's code; ``is_complete``: whether code that begins with a statement holds all
    of it. ``data_dependent``: names in a text that let the time of a launch depend on the values of its
    tensors.
    """

    tokens: Callable[[str, str], tuple[SourceToken, ...]]
    number: Callable[[str], int | float | None]
    head: str
    comment: str
    is_complete: Callable[[str], bool]
    data_dependent: frozenset[str] = frozenset()
