"""Functions of the host that device code calls: the device compiler has no code for them.

A function runs on the device where it is marked ``__aicore__`` (or ``__global__``, or one of the marks of
vector functions); every other one is the host's, and only constant expressions may use it in device code.
The check resolves names by scope and number of arguments among the program's own files, and says nothing
where it cannot tell which function is meant.

Compilers differ about ``constexpr`` functions without a mark: kernels of ours may not call them, public ones
do (asc-devkit's data_copy sample).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.twin.functions import (
    Declarations,
    DeclaredFunction,
    Scope,
    angle_end,
    closed,
    read_declarations,
    split_arguments,
)
from evokernel_core.twin.lexer import CppTokenKind, Token, tokenize

INCLUDE = Path(__file__).parent / "include"
_NOT_TYPES = frozenset(
    ("return", "else", "do", "case", "throw", "and", "or", "not", "new", "goto", "co_return")
)
_CONSTANT = frozenset(("static_assert", "sizeof", "decltype", "alignof", "alignas", "noexcept"))
_CONTROL = frozenset(("if", "for", "while", "switch", "catch", *_CONSTANT))


@frozen
class HostCall:
    """A call on ``line`` of ``file`` from device code; ``callee`` is the host's function."""

    file: str
    line: int
    callee: DeclaredFunction

    @property
    def message(self) -> Sentence:
        """The error as a compiler would say it."""
        return Sentence(
            "{where}: device code calls {name}, which {declared} declares for the host; "
            "call a function that is marked __aicore__.",
            where=f"{self.file}:{self.line}",
            name=self.callee.name,
            declared=f"{self.callee.file}:{self.callee.line}",
        )


def host_calls(
    files: Mapping[str, Sequence[Token]], *, constexpr_on_device: bool = False
) -> tuple[HostCall, ...]:
    """The calls of host functions in device code, in order. ``files``: active tokens by name.

    ``constexpr_on_device``: device code may call functions that are only ``constexpr``.
    """
    declared = read_declarations(files)
    result = [
        call
        for function in declared.everything()
        if function.device and function.body
        for call in _Body(declared, function).host_calls()
        if not (constexpr_on_device and call.callee.constexpr)
    ]
    return tuple(dict.fromkeys(result))


@frozen
class _Api:
    """What the AscendC interface declares: its free functions by name, and its macros."""

    functions: Mapping[str, tuple[DeclaredFunction, ...]]
    macros: frozenset[str]


@cache
def _api() -> _Api:
    texts = {path.name: tokenize(path.read_text()) for path in sorted(INCLUDE.rglob("*.h"))}
    declared = read_declarations(texts)
    functions: dict[str, list[DeclaredFunction]] = {}
    for function in declared.everything():
        if function.scope in ((), ("AscendC",)):
            functions.setdefault(function.name, []).append(function)
    return _Api({name: tuple(value) for name, value in functions.items()}, frozenset(declared.macros))


@frozen
class _Body:
    """The tokens of one device function, its parameters first."""

    declared: Declarations
    function: DeclaredFunction

    def host_calls(self) -> Iterator[HostCall]:
        """The calls whose only possible callees are the host's."""
        tokens = self.function.body
        shadowing = _variables(tokens)
        constant = {index for low, high in _constant_spans(tokens) for index in range(low, high)}
        for index, token in enumerate(tokens):
            if token.kind is not CppTokenKind.NAME or token.text in _CONTROL or index in constant:
                continue
            callees, count = self._called(index, shadowing)
            fitting = [callee for callee in callees if callee.takes(count)]
            if not fitting or any(callee.device for callee in fitting):
                continue
            if not self._may_be_api(index, fitting[0], count):
                yield HostCall(self.function.file, token.line, fitting[0])

    def _may_be_api(self, index: int, callee: DeclaredFunction, count: int) -> bool:
        """Whether the interface has such a function too, so that overloads decide, or a macro."""
        tokens, name = self.function.body, self.function.body[index].text
        if name in _api().macros or name in self.declared.macros:
            return True
        if callee.scope in self.declared.bases or (index and tokens[index - 1].text == "::"):
            return False
        return any(function.takes(count) for function in _api().functions.get(name, ()))

    def _called(self, index: int, shadowing: frozenset[str]) -> tuple[Sequence[DeclaredFunction], int]:
        """The functions that a name at ``index`` may call, and with how many arguments."""
        tokens = self.function.body
        before = tokens[index - 1].text if index else ""
        made = self._constructed(index)
        if made is not None:
            return made
        opening = _call_opening(tokens, index)
        if opening is None or _is_declared_here(tokens, index):
            return (), 0
        inside = tokens[opening + 1 : closed(tokens, opening, len(tokens)) - 1]
        count = len(split_arguments(inside))
        if before in (".", "->"):
            return self._member(index), count
        if before == "::":
            return self._qualified(index), count
        if tokens[index].text in shadowing:
            return (), count
        return self._found(self.function.scope, tokens[index].text), count

    def _constructed(self, index: int) -> tuple[Sequence[DeclaredFunction], int] | None:
        """The constructors of ``Type name;``, ``Type name(...)`` and ``Type name{...}``."""
        tokens, end = self.function.body, len(self.function.body)
        behind = index + 1
        if behind < end and tokens[behind].text == "<":
            behind = angle_end(tokens, behind, end) or end
        if (
            behind + 1 >= end
            or tokens[behind].kind is not CppTokenKind.NAME
            or tokens[index].text in _NOT_TYPES
        ):
            return None
        place = self._class(tokens[index].text)
        opening = tokens[behind + 1].text
        if place is None or opening not in (";", "(", "{"):
            return None
        count = 0
        if opening != ";":
            last = closed(tokens, behind + 1, end)
            count = len(split_arguments(tokens[behind + 2 : last - 1]))
        return self.declared.functions.get((place, place[-1]), ()), count

    def _class(self, name: str) -> Scope | None:
        """The scope of a class as the function sees its name."""
        scope = self.function.scope
        for length in range(len(scope), -1, -1):
            if (*scope[:length], name) in self.declared.bases:
                return (*scope[:length], name)
        return None

    def _found(self, scope: Scope, name: str) -> Sequence[DeclaredFunction]:
        """The functions that an unqualified name means: those of the innermost scope that has any."""
        for length in range(len(scope), -1, -1):
            here = scope[:length]
            if here in self.declared.bases:
                members, known = self._members(here, name)
                if members or not known:
                    return members
            elif callees := self.declared.functions.get((here, name)):
                return callees
        return [
            function
            for used in self.declared.used
            for function in self.declared.functions.get(((used,), name), ())
        ]

    def _members(self, place: Scope, name: str) -> tuple[Sequence[DeclaredFunction], bool]:
        """The members of that name, and whether all that the class inherits from is known."""
        function = self.declared.functions.get((place, name))
        if function:
            return function, True
        for base in self.declared.bases[place]:
            outer = next(
                (
                    (*place[:length], base)
                    for length in range(len(place) - 1, -1, -1)
                    if (*place[:length], base) in self.declared.bases
                ),
                None,
            )
            if outer is None or outer == place:
                return (), False
            members, known = self._members(outer, name)
            if members or not known:
                return members, known
        return (), True

    def _qualified(self, index: int) -> Sequence[DeclaredFunction]:
        """The functions of ``A::B::name``, which begins in any scope around the function."""
        tokens, names = self.function.body, [self.function.body[index].text]
        while index >= 2 and tokens[index - 1].text == "::" and tokens[index - 2].kind is CppTokenKind.NAME:
            index -= 2
            names.insert(0, tokens[index].text)
        if index and tokens[index - 1].text == "::":
            return self.declared.functions.get((tuple(names[:-1]), names[-1]), ())
        scope = self.function.scope
        for length in range(len(scope), -1, -1):
            if function := self.declared.functions.get(((*scope[:length], *names[:-1]), names[-1])):
                return function
        return ()

    def _member(self, index: int) -> Sequence[DeclaredFunction]:
        """The functions of ``this->name`` and of ``variable.name`` where the variable's class is known."""
        tokens = self.function.body
        if index < 2 or tokens[index - 2].kind is not CppTokenKind.NAME:
            return ()
        owner = tokens[index - 2].text
        if owner == "this":
            place = next((s for s in _outwards(self.function.scope) if s in self.declared.bases), None)
        elif index >= 3 and tokens[index - 3].text in (".", "->", "::"):
            return ()
        else:
            place = self._type_of(owner, index)
        return self._members(place, tokens[index].text)[0] if place is not None else ()

    def _type_of(self, variable: str, before: int) -> Scope | None:
        """The class of a variable that the function itself declares."""
        tokens = self.function.body
        for index in range(before, 0, -1):
            if tokens[index].text != variable or tokens[index - 1].text in (".", "->", "::", ","):
                continue
            start = index - 1
            while start > 0 and tokens[start].text in ("&", "*", "const"):
                start -= 1
            if tokens[start].kind is CppTokenKind.NAME and tokens[start].text not in _NOT_TYPES:
                if start and tokens[start - 1].text == "::":
                    return None
                return self._class(tokens[start].text)
        return None


def _outwards(scope: Scope) -> Iterator[Scope]:
    for length in range(len(scope), 0, -1):
        yield scope[:length]


def _call_opening(tokens: Sequence[Token], index: int) -> int | None:
    """The bracket of a call of the name at ``index``, with or without template arguments."""
    following = index + 1
    if following < len(tokens) and tokens[following].text == "<":
        following = angle_end(tokens, following, len(tokens)) or len(tokens)
    return following if following < len(tokens) and tokens[following].text == "(" else None


def _is_declared_here(tokens: Sequence[Token], index: int) -> bool:
    """``Type name(...)`` and ``Type<T> name(...)`` declare a variable."""
    if not index:
        return False
    before = tokens[index - 1]
    if before.text == ">":
        start = index - 1
        while start > 0 and tokens[start - 1].text not in ("(", ";", "{", "}", "=", "?", "return"):
            start -= 1
        opened = next((i for i in range(start, index) if tokens[i].text == "<"), None)
        return opened is not None and angle_end(tokens, opened, index) == index
    return before.kind is CppTokenKind.NAME and before.text not in _NOT_TYPES


def _variables(tokens: Sequence[Token]) -> frozenset[str]:
    """The names that look like variables or parameters of the function: they hide functions."""
    return frozenset(
        token.text
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if token.kind is CppTokenKind.NAME
        and after.text in ("=", ";", ",", ")", "{", "[", ":")
        and (
            before.text in (">", "&", "*")
            or (before.kind is CppTokenKind.NAME and before.text not in _NOT_TYPES)
        )
    )


def _constant_spans(tokens: Sequence[Token]) -> Iterable[tuple[int, int]]:
    """Where the compiler evaluates: constants, template arguments, lengths of arrays, ``sizeof``."""
    end = len(tokens)
    for index, token in enumerate(tokens):
        following = tokens[index + 1].text if index + 1 < end else ""
        if token.text == "constexpr" and following == "(":
            yield index, closed(tokens, index + 1, end)
        elif token.text == "constexpr":
            yield index, next((i for i in range(index, end) if tokens[i].text == ";"), end)
        elif token.text in _CONSTANT and following == "(":
            yield index, closed(tokens, index + 1, end)
        elif token.kind is CppTokenKind.NAME and following == "<":
            yield index + 1, angle_end(tokens, index + 1, end) or index + 1
        elif token.kind is CppTokenKind.NAME and following == "[" and _is_declared_here(tokens, index):
            yield index + 1, closed(tokens, index + 1, end)
