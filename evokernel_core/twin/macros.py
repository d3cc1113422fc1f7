"""What macros stand for: how many operators of arithmetic a use of one brings into a block.

A macro's text is nowhere in the block that uses it, and one that uses others twice doubles with each. Counts
are of its definition: its own operators, and how often it repeats those of each argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import define, field, frozen

from evokernel_core.twin.lexer import CppTokenKind, Token, closing_index, split_commas, tokenize

_DEFINE = re.compile(r"#\s*define\s+(?P<name>\w+)(?:\((?P<parameters>[^)]*)\))?")
MOST = 1 << 30
"""Operators beyond which nobody counts."""

IsOperator = Callable[[Sequence[Token], int], bool]


@frozen
class Definition:
    """``parameters`` is None for a macro without a list of them."""

    parameters: tuple[str, ...] | None
    tokens: tuple[Token, ...]


@frozen
class MacroCost:
    """Operators of one use: the macro's own, and how many times those of each argument."""

    own: int
    of: tuple[int, ...] = ()


def definitions(texts: Iterable[str]) -> dict[str, list[Definition]]:
    """The macros of some files, by name; a name may have several texts, one after the other."""
    result: dict[str, list[Definition]] = {}
    for text in texts:
        for token in tokenize(text):
            match = _DEFINE.match(token.text) if token.kind is CppTokenKind.DIRECTIVE else None
            if match is None:
                continue
            given = match["parameters"]
            names = None if given is None else tuple(name.strip() for name in given.split(","))
            body = token.text[match.end() :].replace("\\\n", "  ")
            result.setdefault(match["name"], []).append(Definition(names, tokenize(body)))
    return result


@define
class Macros:
    """Counts the operators of uses; ``is_operator`` says which tokens are one."""

    known: Mapping[str, Sequence[Definition]]
    is_operator: IsOperator
    _costs: dict[str, MacroCost] = field(init=False, factory=dict)
    _open: set[str] = field(init=False, factory=set)

    def operators(self, tokens: Sequence[Token], index: int) -> int:
        """Of the use of a macro whose name is this token, beside those that stand in its arguments; 0 for
        others."""
        if not self._is_used(tokens, index):
            return 0
        written = self._written(tokens, index)
        plain = [sum(self._at(part, place) for place in range(len(part))) for part in written]
        cost = self._cost(tokens[index].text)
        repeated = sum((times - 1) * count for times, count in zip(cost.of, plain, strict=False))
        return min(max(0, cost.own + repeated), MOST)

    def _at(self, tokens: Sequence[Token], index: int) -> int:
        return int(self.is_operator(tokens, index)) + self.operators(tokens, index)

    def _is_used(self, tokens: Sequence[Token], index: int) -> bool:
        token = tokens[index]
        if token.kind is not CppTokenKind.NAME or token.text not in self.known or token.text in self._open:
            return False
        is_called = index + 1 < len(tokens) and tokens[index + 1].text == "("
        return is_called or any(each.parameters is None for each in self.known[token.text])

    def _written(self, tokens: Sequence[Token], index: int) -> list[tuple[Token, ...]]:
        """The arguments of a use."""
        if index + 1 >= len(tokens) or tokens[index + 1].text != "(":
            return []
        try:
            return split_commas(tokens[index + 2 : closing_index(tokens, index + 1)])
        except ValueError:
            return []

    def _cost(self, name: str) -> MacroCost:
        """The most that any text of a macro costs."""
        if name not in self._costs:
            self._open.add(name)
            costs = [self._cost_of(each) for each in self.known[name]]
            self._open.discard(name)
            count = max(len(cost.of) for cost in costs)
            padded = [(*cost.of, *[0] * (count - len(cost.of))) for cost in costs]
            self._costs[name] = MacroCost(
                max(cost.own for cost in costs), tuple(map(max, *padded, padded[0]))
            )
        return self._costs[name]

    def _cost_of(self, definition: Definition) -> MacroCost:
        names = definition.parameters or ()
        own = self._weighed(definition.tokens, {})
        each = [self._weighed(definition.tokens, {name: 1}) - own for name in names]
        return MacroCost(own, tuple(each))

    def _weighed(self, tokens: Sequence[Token], weights: Mapping[str, int]) -> int:
        """The operators of a text in which names stand for some."""
        total, index = 0, 0
        while index < len(tokens):
            total += int(self.is_operator(tokens, index)) + weights.get(tokens[index].text, 0)
            if self._is_used(tokens, index):
                cost, written = self._cost(tokens[index].text), self._written(tokens, index)
                parts = [self._weighed(part, weights) for part in written]
                total += cost.own + sum(a * b for a, b in zip(cost.of, parts, strict=False))
                index += 1 + _length(tokens, index) if written else 0
            index += 1
        return min(total, MOST)


def _length(tokens: Sequence[Token], index: int) -> int:
    """How many tokens the arguments behind a name take, with their brackets."""
    return closing_index(tokens, index + 1) - index - 1
