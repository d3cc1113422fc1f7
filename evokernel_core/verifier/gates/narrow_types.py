"""Quantities that a kernel's text holds in fewer than 32 bits, and sizes beyond what such a type counts.

What an interface's argument or parameter is converted to is no such quantity: a repeat count is bounded by
the tile. A variable, a field of the tiling data, or a conversion inside an expression is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.lexer import CppTokenKind, Token, tokenize
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import (
    SEED_BITS,
    SHORT_OTHERS,
    CasePlan,
    is_heavy,
    long_sizes,
    total_bytes,
)
from evokernel_core.verifier.gates.texts import lexed_texts

BITS = {"int8_t": 7, "uint8_t": 8, "int16_t": 15, "uint16_t": 16, "short": 15,
        "int8": 7, "uint8": 8, "int16": 15, "uint16": 16}  # fmt: skip
"""How many bits the largest number of a type has."""
WORD = 32
MANY_TILES = 16 * 1024**2
"""Bytes of all tensors at which each of 40 cores has had its 192 KB twice."""
LONG_BATCHED = 1 << 20
"""Rows of batched products that a case may have here, which takes seconds, as few kernels ask for."""
LAST_BEGINS = 1.03125
"""Times what a type counts: of 33 cores and more the last begins beyond it."""
_MASKS = {(1 << bits) - keeps: bits for bits in (15, 16) for keeps in (0, 1)}
"""Numbers that leave so many bits behind ``%`` and ``&``."""
_NO_CALLEES = frozenset(("return", "else", "case", "new", "throw", "if", "while", "for", "switch", "sizeof",
                        "static_cast"))  # fmt: skip
_OPEN, _CLOSE = "([{", ")]}"


def narrow_bits(source: KernelSource) -> tuple[int, ...]:
    """How many bits the types have in which a kernel's text holds a quantity, in rising order."""
    texts = [tokenize(text) for text in lexed_texts(source)]
    own = frozenset(name for tokens in texts for name in _declared(tokens))
    return tuple(sorted({bits for tokens in texts for bits in _held(tokens, own)}))


def wide_cases(task: KernelTask, draw: Draw, bits: Sequence[int]) -> Iterator[CasePlan]:
    """For each type and dimension a case in which that dimension is beyond what the type counts, and the
    others are short, where that is light. It is so far beyond that the last of some cores begins there, too.
    What counts in whole tiles is beyond it at sizes that a larger type has; a number with a sign is asked
    beyond the type without one, too, where it is positive again."""
    numbers = draw.numbers(f"narrow types of {task.task_id}")
    known = {*bits, *(each + 1 for each in bits if each % 8 == 7), *(16 for each in bits if each <= 8)}
    for each in sorted(known):
        for symbol in task.symbols:
            size = max(int((1 << each) * LAST_BEGINS) + numbers.randrange(1, 99, 2), symbol.minimum)
            others = (numbers.randint(*SHORT_OTHERS), 1)
            sizes = long_sizes(task, symbol.name, size, others, batched=LONG_BATCHED)
            if sizes is not None:
                seed, is_beyond = numbers.getrandbits(SEED_BITS), size > symbol.size
                yield CasePlan(tuple(sizes.items()), seed, "normal", may_decline=is_beyond)
    if known:
        yield from _many_tiles(task, numbers)


def _many_tiles(task: KernelTask, numbers: Random) -> Iterator[CasePlan]:
    """One size so large that each core has several tiles, with the others as they are in the file: where one
    begins is beyond a narrow type from the second tile on."""
    for symbol in numbers.sample(task.symbols, len(task.symbols)):
        others = total_bytes(task, {**task.sizes, symbol.name: symbol.minimum})
        each = (total_bytes(task, task.sizes) - others) // max(symbol.size - symbol.minimum, 1)
        size = symbol.minimum + int(MANY_TILES * numbers.uniform(1.0, 1.25)) // max(each, 1)
        sizes = {**task.sizes, symbol.name: size}
        if size > symbol.size and total_bytes(task, sizes) <= 2 * MANY_TILES and not is_heavy(task, sizes):
            yield CasePlan(tuple(sizes.items()), numbers.getrandbits(SEED_BITS), "normal", may_decline=True)
            return


def _declared(tokens: Sequence[Token]) -> Iterator[str]:
    """Functions and members that a text declares: names behind a type, and not what is called."""
    for before, token, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_typed = before.kind is CppTokenKind.NAME and before.text not in _NO_CALLEES
        is_name = token.kind is CppTokenKind.NAME and (is_typed or before.text in ("*", "&", ">"))
        if is_name and behind.text in ("(", ";", "=", "[", "{", ",", ")"):
            yield token.text


def _held(tokens: Sequence[Token], own: frozenset[str]) -> Iterator[int]:
    for at, token in enumerate(tokens):
        if token.kind is CppTokenKind.NAME and token.text in BITS:
            if _holds(tokens, at, own):
                yield BITS[token.text]
        elif token.kind is CppTokenKind.NUMBER:
            yield from _of_number(tokens, at)


def _of_number(tokens: Sequence[Token], at: int) -> Iterator[int]:
    """Bits of a bit field, and those that a mask leaves."""
    try:
        value = int(tokens[at].text.rstrip("uUlL"), 0)
    except ValueError:
        return
    before = [token.text for token in tokens[max(at - 4, 0) : at]]
    is_field = before[3:] == [":"] and before[0] in (";", "{") and before[2].isidentifier()
    if is_field and 0 < value < WORD:
        yield value
    elif before and before[-1] in ("&", "%") and value in _MASKS:
        yield _MASKS[value]


def _holds(tokens: Sequence[Token], at: int, own: frozenset[str]) -> bool:
    """Whether the type's name declares a quantity, or converts one that the kernel itself takes."""
    before = [token.text for token in reversed(tokens[max(at - 3, 0) : at])] + [""] * 3
    behind = tokens[min(at + 1, len(tokens) - 1)]
    if behind.kind is CppTokenKind.NAME:
        return "constexpr" not in before
    if before[0] == "=" or (before[0] == "." and before[2] == "("):  # an alias; x.to(tl.int16)
        return True
    if before[:2] == ["<", "static_cast"] and behind.text == ">":
        return _is_taken(tokens, at - 2, _closing(tokens, at + 2), own)
    if behind.text in ("(", "{"):
        return _is_taken(tokens, at, _closing(tokens, at + 1), own)
    return before[0] == "(" and behind.text == ")" and before[1] != "sizeof"


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at].text in _OPEN) - (tokens[at].text in _CLOSE)
        if depth == 0:
            return at
    return len(tokens) - 1


def _is_taken(tokens: Sequence[Token], first: int, last: int, own: frozenset[str]) -> bool:
    """Whether the kernel itself takes a converted value: it is no whole argument of a function or structure
    of the interface, and nothing that a member of such a structure is set to."""
    before = tokens[first - 1].text if first else ""
    behind = tokens[last + 1].text if last + 1 < len(tokens) else ""
    if before == "=" and behind == ";" and tokens[first - 3].text in (".", "->"):
        return tokens[first - 2].text in own
    if before not in (",", "(", "{") or behind not in (",", ")", "}"):
        return True
    callee = _callee(tokens, first - 1)
    return callee is None or callee in own


def _callee(tokens: Sequence[Token], at: int) -> str | None:
    """The name in front of the bracket around a token; None where there is none."""
    depth = 0
    while at >= 0 and (depth or tokens[at].text not in _OPEN):
        depth += (tokens[at].text in _CLOSE) - (tokens[at].text in _OPEN)
        at -= 1
    at -= 1
    if at >= 0 and tokens[at].text == ">":
        at = next((place for place in range(at, -1, -1) if tokens[place].text == "<"), 0) - 1
    name = tokens[at] if at >= 0 else None
    if name is None or name.kind is not CppTokenKind.NAME or name.text in _NO_CALLEES:
        return None
    return None if name.text.endswith("_t") else name.text
