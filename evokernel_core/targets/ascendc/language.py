"""How kernels in AscendC are read: as C++."""

from __future__ import annotations

from evokernel_core.domain.language import Language, SourceToken, TokenKind
from evokernel_core.twin.lexer import CppTokenKind, tokenize

_KINDS = {
    CppTokenKind.NAME: TokenKind.NAME,
    CppTokenKind.NUMBER: TokenKind.NUMBER,
    CppTokenKind.STRING: TokenKind.STRING,
    CppTokenKind.CHARACTER: TokenKind.STRING,
    CppTokenKind.DIRECTIVE: TokenKind.STRING,
    CppTokenKind.PUNCTUATION: TokenKind.PUNCTUATION,
}


def _tokens(name: str, text: str) -> tuple[SourceToken, ...]:
    return tuple(SourceToken(_KINDS[token.kind], token.text, token.line) for token in tokenize(text))


def number(text: str) -> int | float | None:
    """A literal of C++, None for other text."""
    plain = text.replace("'", "").lower()
    is_hex = plain.startswith("0x")
    try:
        if is_hex or not any(sign in plain for sign in ".ef"):
            return int(plain.rstrip("ulz"), 0)
        return float(plain.rstrip("fl"))
    except ValueError:
        return None


def _is_complete(code: str) -> bool:
    return code.endswith((";", "{"))


LANGUAGE = Language(
    _tokens,
    number,
    head="__aicore__ ",
    comment="//",
    is_complete=_is_complete,
    # A merge of runs that do not fit the unified buffer asks how far it came.
    data_dependent=frozenset({"GetMrgSortResult"}),
)
