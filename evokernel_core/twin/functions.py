"""The functions of a program's own files: where each is declared, and for which side it is compiled.

A reading of tokens, not a compiler: what it does not understand it passes over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, field, frozen

from evokernel_core.twin.lexer import CppTokenKind, Token, closing_index, tokenize

Scope = tuple[str, ...]
"""The namespaces and classes around something, the outermost first; those without a name are left out."""

DEVICE_MARKS = frozenset(
    ("__aicore__", "__global__", "__simd_vf__", "__simd_callee__", "__simt_vf__", "__simt_callee__")
)
_SPECIFIERS = frozenset(
    (
        "inline",
        "static",
        "constexpr",
        "virtual",
        "explicit",
        "friend",
        "extern",
        "typename",
        "const",
        "__inline__",
    )
)
_WITH_BRACKETS = frozenset(("alignas", "decltype", "noexcept", "explicit", "requires", "defined"))
_CLASS_WORDS = frozenset(("class", "struct", "union"))
_ACCESS = frozenset(("public", "private", "protected"))
_NO_ARGUMENTS = frozenset((";", "{", "}", "?", "|", "<<<", ")", "]"))
"""What stands in no template arguments."""


@frozen
class DeclaredFunction:
    """A declaration. It takes ``least`` to ``most`` arguments, any number where ``most`` is None; ``body``
    has the tokens from the parameter list to the last brace, none where it is only declared."""

    name: str
    scope: Scope
    device: bool
    constexpr: bool
    least: int
    most: int | None
    body: Sequence[Token]
    file: str
    line: int

    def takes(self, count: int) -> bool:
        """Whether it can be called with so many arguments."""
        return self.least <= count and (self.most is None or count <= self.most)


@define
class Declarations:
    """What files declare: functions by scope and name, the bases of each class, and macros."""

    functions: dict[tuple[Scope, str], list[DeclaredFunction]] = field(factory=dict)
    bases: dict[Scope, tuple[str, ...]] = field(factory=dict)
    used: set[str] = field(factory=set)
    macros: set[str] = field(factory=set)

    def everything(self) -> Iterator[DeclaredFunction]:
        """All functions in the order in which they were read."""
        for function in self.functions.values():
            yield from function


def read_declarations(files: Mapping[str, Sequence[Token]]) -> Declarations:
    """The declarations of files, given by name with their active tokens."""
    declarations = Declarations()
    marks = set(DEVICE_MARKS)
    for tokens in files.values():
        _learn_macros(tokens, declarations.macros, marks)
    for file, tokens in files.items():
        code = tuple(token for token in tokens if token.kind is not CppTokenKind.DIRECTIVE)
        _Reader(code, file, declarations, frozenset(marks)).read(0, len(code), ())
    return declarations


_DEFINE = re.compile(r"#\s*define\s+(\w+)")


def _learn_macros(tokens: Iterable[Token], macros: set[str], marks: set[str]) -> None:
    """The macros of a file; one that stands for a mark of the device is a mark too."""
    for token in tokens:
        match = _DEFINE.match(token.text) if token.kind is CppTokenKind.DIRECTIVE else None
        if match is None:
            continue
        macros.add(match[1])
        rest = token.text[match.end() :].replace("\\\n", " ")
        stands_for = {part.text for part in tokenize(rest)}
        if not rest.startswith("(") and stands_for & (marks | {"aicore"}):
            marks.add(match[1])


def angle_end(tokens: Sequence[Token], opening: int, end: int) -> int | None:
    """The index behind template arguments that begin with ``<`` at ``opening``, None for a comparison."""
    depth = 0
    index = opening
    while index < end:
        text = tokens[index].text
        if text == "<":
            depth += 1
        elif text in (">", ">>>"):
            depth -= len(text)
            if depth <= 0:
                return index + 1
        elif text in ("(", "["):
            index = closed(tokens, index, end) - 1
        elif text in _NO_ARGUMENTS or (text == "&" and tokens[index - 1].text == "&"):
            return None
        index += 1
    return None


def closed(tokens: Sequence[Token], opening: int, end: int) -> int:
    """The index behind a bracket's other half, ``end`` where there is none."""
    try:
        return min(closing_index(tokens, opening) + 1, end)
    except ValueError:
        return end


def split_arguments(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The parts between commas that stand in no bracket and in no template arguments."""
    parts: list[Sequence[Token]] = []
    start = index = 0
    while index < len(tokens):
        text = tokens[index].text
        if text in ("(", "[", "{"):
            index = closed(tokens, index, len(tokens))
            continue
        if text == "<" and index and tokens[index - 1].kind is CppTokenKind.NAME:
            index = angle_end(tokens, index, len(tokens)) or index + 1
            continue
        if text == ",":
            parts.append(tokens[start:index])
            start = index + 1
        index += 1
    return [*parts, tokens[start:]] if tokens else []


@frozen
class _Reader:
    """Reads the declarations of one file into ``declared``."""

    tokens: Sequence[Token]
    file: str
    declared: Declarations
    marks: frozenset[str]

    def read(self, index: int, end: int, scope: Scope) -> None:
        """Reads what stands in a namespace or class, from ``index`` to ``end``."""
        while index < end:
            text = self.tokens[index].text
            following = self.tokens[index + 1].text if index + 1 < end else ""
            if text in (";", "}"):
                index += 1
            elif text in _ACCESS and following == ":":
                index += 2
            elif text == "namespace":
                index = self._namespace(index, end, scope)
            elif text == "extern" and index + 2 < end and self.tokens[index + 2].text == "{":
                inside = closed(self.tokens, index + 2, end)
                self.read(index + 3, inside - 1, scope)
                index = inside
            elif text == "using" and following == "namespace":
                index = self._skip(index, end)
                self.declared.used.add(self.tokens[min(index, end) - 2].text)
            elif text in ("using", "typedef", "static_assert", "enum"):
                index = self._skip(index, end)
            else:
                index = self._declaration(index, end, scope)

    def _skip(self, index: int, end: int) -> int:
        """Behind the semicolon that ends a statement."""
        while index < end:
            if self.tokens[index].text == ";":
                return index + 1
            if self.tokens[index].text in ("(", "[", "{"):
                index = closed(self.tokens, index, end)
            else:
                index += 1
        return end

    def _namespace(self, index: int, end: int, scope: Scope) -> int:
        names: list[str] = []
        inline = index > 0 and self.tokens[index - 1].text == "inline"
        index += 1
        while index < end and self.tokens[index].text not in ("{", ";", "="):
            if self.tokens[index].kind is CppTokenKind.NAME and self.tokens[index].text != "inline":
                names.append(self.tokens[index].text)
            index += 1
        if index >= end or self.tokens[index].text != "{":
            return self._skip(index, end)
        inside = closed(self.tokens, index, end)
        self.read(index + 1, inside - 1, scope if inline else (*scope, *names))
        return inside

    def _declaration(self, start: int, end: int, scope: Scope) -> int:
        """Reads a class, a function or a variable and returns the index behind it."""
        index, names = start, 0
        class_at: int | None = None
        while index < end:
            behind = self._group(index, end)
            if behind is not None:
                index = behind
                continue
            token = self.tokens[index]
            if token.text in _CLASS_WORDS and class_at is None:
                class_at = index
            if token.text == "operator":
                opening = self._operator(index, end)
                return self._function("operator", start, opening, end, scope)
            if token.text == "(":
                name = self._declared_name(index)
                if name is not None and (names > 1 or name.lstrip("~") in scope[-1:]):
                    return self._function(name, start, index, end, scope)
                index = closed(self.tokens, index, end)
                continue
            if token.text in (";", "="):
                return self._skip(index, end)
            if token.text == "{" and class_at is not None:
                return self._class(class_at, index, end, scope)
            if token.text == "{":
                return closed(self.tokens, index, end)
            names += token.kind is CppTokenKind.NAME and token.text not in (_SPECIFIERS | self.marks)
            index += 1
        return end

    def _group(self, index: int, end: int) -> int | None:
        """Behind a template's parameters, template arguments or square brackets that begin at ``index``."""
        text = self.tokens[index].text
        following = self.tokens[index + 1].text if index + 1 < end else ""
        if text == "template" and following == "<":
            return angle_end(self.tokens, index + 1, end) or index + 2
        if text == "<" and index and self.tokens[index - 1].kind is CppTokenKind.NAME:
            return angle_end(self.tokens, index, end) or index + 1
        return closed(self.tokens, index, end) if text == "[" else None

    def _operator(self, index: int, end: int) -> int:
        """The parameter list of an operator; the first brackets of ``operator()`` are its name."""
        while index < end and self.tokens[index].text != "(":
            index += 1
        again = closed(self.tokens, index, end)
        return again if again < end and self.tokens[again].text == "(" else index

    def _class(self, word: int, opening: int, end: int, scope: Scope) -> int:
        head = self.tokens[word + 1 : opening]
        colon = next((i for i, token in enumerate(head) if token.text == ":"), len(head))
        names = [
            token.text for token in head[:colon] if token.kind is CppTokenKind.NAME and token.text != "final"
        ]
        inside = closed(self.tokens, opening, end)
        place = (*scope, names[0]) if names else scope
        if names:
            bases = [token.text for token in head[colon:] if token.kind is CppTokenKind.NAME]
            kept = (base for base in bases if base not in (_ACCESS | {"virtual"}))
            self.declared.bases[place] = tuple(kept)
        self.read(opening + 1, inside - 1, place)
        return inside

    def _declared_name(self, opening: int) -> str | None:
        """The name in front of a parameter list, with ``A::`` where it says its class; None for none."""
        index = opening - 1
        if index >= 0 and self.tokens[index].text == ">":
            index = _angle_start(self.tokens, index) - 1
        if index < 0 or self.tokens[index].kind is not CppTokenKind.NAME:
            return None
        name = self.tokens[index].text
        if name.startswith("__") or name in _WITH_BRACKETS or name in self.declared.macros:
            return None
        if index and self.tokens[index - 1].text == "~":
            name, index = f"~{name}", index - 1
        while index >= 2 and self.tokens[index - 1].text == "::":
            index -= 2
            if self.tokens[index].text == ">":
                index = _angle_start(self.tokens, index) - 1
            if index < 0 or self.tokens[index].kind is not CppTokenKind.NAME:
                return None
            name = f"{self.tokens[index].text}::{name}"
        return name

    def _function(self, name: str, start: int, opening: int, end: int, scope: Scope) -> int:
        """Notes a function whose parameter list begins at ``opening``; returns the index behind it."""
        *outer, last = name.split("::")
        parameters = closed(self.tokens, opening, end)
        behind, body, implicit = self._tail(parameters, end)
        head = self.tokens[start:opening]
        device = implicit or any(
            token.text in self.marks or (token.text == "aicore" and head[i - 1].text in ("[", ","))
            for i, token in enumerate(head)
        )
        constexpr = any(token.text == "constexpr" for token in head)
        least, most = _arity(self.tokens[opening + 1 : parameters - 1])
        tokens = self.tokens[opening:behind] if body else ()
        function = DeclaredFunction(
            last,
            (*scope, *outer),
            device,
            constexpr,
            least,
            most,
            tokens,
            self.file,
            self.tokens[opening].line,
        )
        self.declared.functions.setdefault((function.scope, last), []).append(function)
        return behind

    def _tail(self, index: int, end: int) -> tuple[int, bool, bool]:
        """What follows a parameter list: the index behind it, whether it is a body, and whether the compiler
        writes the function itself."""
        while index < end:
            text = self.tokens[index].text
            if text == ";":
                return index + 1, False, False
            if text == "=":
                behind = self._skip(index, end)
                return behind, False, self.tokens[index + 1].text == "default"
            if text == ":":
                index = self._initialisers(index + 1, end)
                continue
            if text == "{":
                return closed(self.tokens, index, end), True, False
            index = closed(self.tokens, index, end) if text in ("(", "[") else index + 1
        return end, False, False

    def _initialisers(self, index: int, end: int) -> int:
        """Behind the list ``a(1), b{2}`` of a constructor."""
        while index < end:
            while index < end and self.tokens[index].text not in ("(", "{"):
                index += 1
            index = closed(self.tokens, index, end) if index < end else end
            if index >= end or self.tokens[index].text != ",":
                return index
        return end


def _angle_start(tokens: Sequence[Token], closing: int) -> int:
    depth = 0
    for index in range(closing, -1, -1):
        depth += {">": 1, ">>>": 3, "<": -1, "<<<": -3}.get(tokens[index].text, 0)
        if depth <= 0:
            return index
    return 0


def _arity(parameters: Sequence[Token]) -> tuple[int, int | None]:
    """The least and the largest number of arguments, None for any number."""
    parts = split_arguments(parameters)
    if len(parts) == 1 and [token.text for token in parts[0]] in ([], ["void"]):
        return 0, 0
    needed = sum(not any(token.text in ("=", "EVK_AT", ".") for token in part) for part in parts)
    variadic = any(token.text == "." for part in parts for token in part)
    return needed, None if variadic else len(parts)
