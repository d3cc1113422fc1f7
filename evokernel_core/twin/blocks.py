"""Marks at the basic blocks of a candidate's own text, by which the twin counts its scalar work.

A mark stands at the head of each function, each branch of an ``if`` and each round of a loop, however
the text is laid out, also in the bodies of macros. Lines keep their numbers. What the twin's headers
bring along has none, so that counts depend neither on the compiler nor on how it optimises. A block with
much arithmetic counts as several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.twin.lexer import CppTokenKind, Token, end_of, tokenize
from evokernel_core.twin.macros import Macros, definitions

MARKS = 2
"""Version of what counts as a block: a kernel whose marks are older is compiled anew."""
_MARK = "::evokernel::twin::EnterBlock({weight});"
_IN_BRACES = " {mark}"
_BEFORE_STATEMENT = " if ({mark} false) {{}} else "
"""Before a statement without braces; an ``else`` behind that still belongs to what it belonged to."""
_ARITHMETIC = frozenset("+-*/%^|~?")
"""Operators that the scalar unit takes an instruction for, a choice among them; so do shifts and a
conjunction of bits."""
_SHORT_BLOCK, _AT_ONCE = 16, 4
"""Operators that a block has for its own cost, and of those beyond how many one more block stands for: it
costs the cycles of four instructions."""

_CONTROLS = frozenset(("for", "while", "if", "switch", "constexpr"))
_NO_FUNCTIONS = frozenset(("__attribute__", "alignas", "decltype", "__declspec", "return", "sizeof"))
_QUALIFIERS = frozenset(("const", "noexcept", "override", "mutable", "volatile"))
_LOOPS = frozenset(("for", "while", "do"))
_OPERATORS = frozenset("+-*/%^&|~!<>=,()[]")
_LONGEST_TYPE = 24
"""Tokens of a return type behind an arrow."""

_DEFINE = re.compile(r"#\s*define\s+\w+(?:\([^)]*\))?")


class HiddenLoopError(EvoKernelError):
    """A macro stands for a part of a loop, whose rounds could not be counted."""


def with_marks(text: str, others: Iterable[str] = ()) -> str:
    """The text with a mark at each basic block; its macros stand in it or in one of the ``others``. Raises
    HiddenLoopError."""
    macros = Macros(definitions((text, *others)), _is_arithmetic)
    marks = sorted(_marks(tokenize(text), macros))
    pieces, position = [], 0
    for place, mark in marks:
        pieces += [text[position:place], mark]
        position = place
    return "".join([*pieces, text[position:]])


def _marks(tokens: Sequence[Token], macros: Macros) -> Iterator[tuple[int, str]]:
    """Where marks go: the character that follows each, and its text."""
    bodies = sorted(_bodies(tokens))
    weights = _weights(tokens, bodies, macros)
    for body in bodies:
        mark = _MARK.format(weight=weights[body] if weights[body] > 1 else "")
        if tokens[body].text == "{":
            yield tokens[body].end, _IN_BRACES.format(mark=mark)
        else:
            yield tokens[body].start, _BEFORE_STATEMENT.format(mark=mark)
    for token in tokens:
        if token.kind is CppTokenKind.DIRECTIVE:
            yield from _in_macro(token, macros)


def _bodies(tokens: Sequence[Token]) -> Iterator[int]:
    """The first token of each block."""
    trailing = _ends_of_do(tokens)
    for index, token in enumerate(tokens):
        if token.text == "{" and _begins_function(tokens, index):
            yield index
        elif token.kind is CppTokenKind.NAME and index not in trailing:
            body = _body(tokens, index)
            if body is not None:
                yield body


def _weights(tokens: Sequence[Token], bodies: Sequence[int], macros: Macros) -> Mapping[int, int]:
    """As how many blocks each counts, by its first token: what stands in a block within it is the inner
    one's, and what is behind that the outer one's again."""
    counts = dict.fromkeys(bodies, 0)
    opened: list[tuple[int, int]] = []
    for index, token in enumerate(tokens):
        while opened and opened[-1][1] <= index:
            opened.pop()
        if index in counts:
            is_braced = token.text == "{"
            opened.append((index, end_of(tokens, index) if is_braced else _past_statement(tokens, index)))
        if opened:
            counts[opened[-1][0]] += _is_arithmetic(tokens, index) + macros.operators(tokens, index)
    return {body: 1 + max(0, count - _SHORT_BLOCK) // _AT_ONCE for body, count in counts.items()}


def _is_arithmetic(tokens: Sequence[Token], index: int) -> bool:
    """Whether an operator stands here, of a shift the second sign; a reference is no conjunction of bits."""
    token, before = tokens[index], tokens[index - 1] if index else tokens[index]
    if token.text in ("<", ">"):
        is_number = index + 1 < len(tokens) and tokens[index + 1].kind is CppTokenKind.NUMBER
        return is_number and before.text == token.text and before.end == token.start
    if token.text == "&":
        return before.text in (")", "]") or before.kind is CppTokenKind.NUMBER or before.text.islower()
    return token.text in _ARITHMETIC


def _body(tokens: Sequence[Token], index: int) -> int | None:
    """The first token of the statement that a keyword executes; None for other names, and for ``else if``."""
    word, follows = tokens[index].text, index + 1
    if follows >= len(tokens):
        return None
    if word in ("for", "while", "if") and tokens[follows].text == "(":
        follows = end_of(tokens, follows)
    elif word not in ("do", "else") or (word == "else" and tokens[follows].text == "if"):
        return None
    return follows if follows < len(tokens) else None


def _ends_of_do(tokens: Sequence[Token]) -> frozenset[int]:
    """The ``while`` behind the body of each ``do``."""
    result = set()
    for index, token in enumerate(tokens[:-1]):
        if token.text != "do" or token.kind is not CppTokenKind.NAME:
            continue
        follows = index + 1
        end = end_of(tokens, follows) if tokens[follows].text == "{" else _past_statement(tokens, follows)
        if end < len(tokens) and tokens[end].text == "while":
            result.add(end)
    return frozenset(result)


def _past_statement(tokens: Sequence[Token], start: int) -> int:
    """The token behind the semicolon that ends a simple statement."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(tokens[index].text, 0)
        if depth == 0 and tokens[index].text in (";", "}"):
            return index + 1
    return len(tokens)


def _begins_function(tokens: Sequence[Token], brace: int) -> bool:
    """Whether a brace opens the body of a function: it follows a list of parameters."""
    closing = brace - 1
    while closing > 0 and tokens[closing].text in _QUALIFIERS:
        closing -= 1
    if closing > 0 and tokens[closing].text == "}":
        closing = _before_initialisers(tokens, closing)
    if closing > 0 and tokens[closing].text != ")":
        closing = _before_arrow(tokens, closing)
    if closing <= 0 or tokens[closing].text != ")":
        return False
    opening = _opening_index(tokens, closing)
    if opening <= 0:
        return False
    before = tokens[opening - 1]
    if before.text == "decltype":  # what is returned, where an arrow is before it
        arrow = _before_arrow(tokens, opening - 1)
        return arrow > 0 and tokens[arrow].text in (")", *_QUALIFIERS)
    if before.kind is CppTokenKind.NAME:
        return before.text not in _CONTROLS | _NO_FUNCTIONS
    named = opening > 1 and before.text in _OPERATORS
    return before.text in ("]", ">", ")") or (named and "operator" in _texts(tokens, opening - 3, opening))


def _texts(tokens: Sequence[Token], start: int, end: int) -> list[str]:
    return [token.text for token in tokens[max(0, start) : end]]


def _before_arrow(tokens: Sequence[Token], index: int) -> int:
    """The list of parameters before ``-> type``; 0 where there is none."""
    for place in range(index, max(0, index - _LONGEST_TYPE), -1):
        if tokens[place].text in (";", "{", "}"):
            return 0
        if tokens[place].text == "->":
            return place - 1
    return 0


def _before_initialisers(tokens: Sequence[Token], closing: int) -> int:
    """What ends before a constructor's list of initialisers, by the end of its last one; 0 for others."""
    while closing > 0 and tokens[closing].text in (")", "}"):
        named = _opening_index(tokens, closing) - 1
        if named < 2 or tokens[named].kind is not CppTokenKind.NAME:
            return 0
        if tokens[named - 1].text == ":":
            return named - 2
        closing = named - 2 if tokens[named - 1].text == "," else 0
    return 0


def _opening_index(tokens: Sequence[Token], closing: int) -> int:
    """The bracket that a closing one belongs to, -1 where there is none."""
    depth = 0
    for index in range(closing, -1, -1):
        depth += {")": 1, "}": 1, "(": -1, "{": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return index
    return -1


def _in_macro(directive: Token, macros: Macros) -> Iterator[tuple[int, str]]:
    """The marks of a macro's body. Raises HiddenLoopError where it has a loop's keyword without the loop."""
    head = _DEFINE.match(directive.text)
    if head is None:
        return
    body = directive.text[head.end() :].replace("\\\n", "  ")
    tokens = tokenize(body)
    for index, token in enumerate(tokens):
        if token.text in _LOOPS and token.kind is CppTokenKind.NAME and not _is_whole(tokens, index):
            raise HiddenLoopError(
                "The macro on line {line} is a part of a loop; write the loop out.", line=directive.line
            )
    first = directive.start + head.end()
    yield from ((first + place, mark) for place, mark in _marks(tokens, macros))


def _is_whole(tokens: Sequence[Token], index: int) -> bool:
    """Whether a loop's keyword has its condition and something to repeat."""
    if tokens[index].text == "while" and index in _ends_of_do(tokens):
        return True
    return _body(tokens, index) is not None
