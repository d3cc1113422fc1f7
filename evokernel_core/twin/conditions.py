"""The preprocessor's conditions: which parts of a file a set of macros leaves in."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import define

from evokernel_core.twin.lexer import CppTokenKind, Token, tokenize

MAX_DEPTH = 32
BUILT_IN: Mapping[str, str] = {"__NPU_ARCH__": "2201", "NPU_ARCH": "2201", "__CCE_AICORE__": "220"}
"""Macros that the twin's own headers define."""
DEVICE_COMPILER: Mapping[str, str] = {"__CCE__": "1"}
"""Macros of the device compiler's own, by which files choose what only it can read."""

_DIRECTIVE = re.compile(r"#\s*(\w+)\s*(.*)", re.DOTALL)
_OBJECT = re.compile(r"([A-Za-z_]\w*)(?!\()(?:\s+(.*))?$", re.DOTALL)


@define
class _Branch:
    """One open ``#if``: whether its outside is active, whether this part is, whether one was taken."""

    outside: bool
    active: bool
    taken: bool


def active_tokens(text: str, macros: dict[str, str]) -> Iterator[Token]:
    """The tokens that the conditions leave in, directives included; ``macros`` learns from ``#define``.

    A condition that cannot be evaluated leaves both of its sides in.
    """
    yield from _active(tokenize(text), macros)


def _active(tokens: Iterable[Token], macros: dict[str, str]) -> Iterator[Token]:
    stack: list[_Branch] = []
    active = True
    for token in tokens:
        if token.kind is not CppTokenKind.DIRECTIVE:
            if active:
                yield token
            continue
        match = _DIRECTIVE.match(token.text)
        name, rest = (match[1], _joined(match[2])) if match else ("", "")
        if name in ("if", "ifdef", "ifndef"):
            value = _condition(name, rest, macros) if active else False
            stack.append(_Branch(active, value is not False, value is True))
        elif name in ("elif", "else") and stack:
            _next_branch(stack[-1], name, rest, macros)
        elif name == "endif" and stack:
            stack.pop()
        elif active:
            _learn(name, rest, macros)
            yield token
        active = all(branch.active for branch in stack)


def _next_branch(branch: _Branch, name: str, rest: str, macros: Mapping[str, str]) -> None:
    if not branch.outside or branch.taken:
        branch.active = False
        return
    value = True if name == "else" else _condition("if", rest, macros)
    branch.active = value is not False
    branch.taken = value is True


def _joined(text: str) -> str:
    return re.sub(r"//.*|/\*.*?\*/", " ", text.replace("\\\n", " ")).strip()


def _learn(name: str, rest: str, macros: dict[str, str]) -> None:
    match = _OBJECT.match(rest)
    if name == "define" and match:
        macros[match[1]] = (match[2] or "").strip()
    elif name == "undef":
        macros.pop(rest, None)


def _condition(name: str, text: str, macros: Mapping[str, str]) -> bool | None:
    """The value of a condition, None where it cannot be told."""
    if name != "if":
        return (text.split(maxsplit=1)[0] in macros) is (name == "ifdef") if text.split() else None
    try:
        return _Expression(_words(text, macros, 0)).value() != 0
    except (ValueError, ZeroDivisionError, RecursionError):
        return None


_WORD = re.compile(r"\s*(defined\b|[A-Za-z_]\w*|\d[\w']*|&&|\|\||[<>=!]=|<<|>>|[-+*/%<>!()~&|^?:])")


def _words(text: str, macros: Mapping[str, str], depth: int) -> list[str]:
    """The words of an expression with macros put in. Raises ValueError for what is none."""
    if depth > MAX_DEPTH:
        raise ValueError("macros that never end")
    words: list[str] = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise ValueError(f"not an expression: {text}")
        word, position = match[1], match.end()
        if word == "defined":
            inner = re.compile(r"\s*\(?\s*([A-Za-z_]\w*)\s*\)?").match(text, position)
            if inner is None:
                raise ValueError("defined what?")
            words.append("1" if inner[1] in macros else "0")
            position = inner.end()
        elif re.match(r"[A-Za-z_]", word):
            words += _expanded(word, macros, depth)
        else:
            words.append(word)
    return words


def _expanded(name: str, macros: Mapping[str, str], depth: int) -> list[str]:
    if name in ("true", "false"):
        return ["1" if name == "true" else "0"]
    if name not in macros:
        return ["0"]
    return ["(", *_words(macros[name], macros, depth + 1), ")"]


_LEVELS: Sequence[tuple[str, ...]] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)


_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "||": lambda left, right: int(bool(left) or bool(right)),
    "&&": lambda left, right: int(bool(left) and bool(right)),
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
}


class _Expression:
    """A constant expression of the preprocessor over integers."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.index = words, 0

    def value(self) -> int:
        result = self._level(0)
        if self.index != len(self.words):
            raise ValueError("words after the end of an expression")
        return result

    def _peek(self) -> str:
        return self.words[self.index] if self.index < len(self.words) else ""

    def _level(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self._peek() in _LEVELS[level]:
            symbol = self._peek()
            self.index += 1
            left = _OPERATORS[symbol](left, self._level(level + 1))
        return left

    def _unary(self) -> int:
        word = self._peek()
        self.index += 1
        match word:
            case "!":
                return int(not self._unary())
            case "-":
                return -self._unary()
            case "+":
                return self._unary()
            case "~":
                return ~self._unary()
            case "(":
                inner = self._level(0)
                if self._peek() != ")":
                    raise ValueError("a parenthesis is never closed")
                self.index += 1
                return inner
        return int(re.sub(r"(?i)(?<=[0-9a-f])[ul']+$", "", word), 0)
