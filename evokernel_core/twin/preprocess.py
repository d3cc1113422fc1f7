"""Kernel launches as plain C++: ``k<<<blocks, l2, stream>>>(args);`` becomes a call of the twin.

Everything stays on the line where it was written, so compilers and debuggers keep telling the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.twin.lexer import Kind, Token, closing_index, split_commas, tokenize


class LaunchSyntaxError(EvoKernelError):
    """A launch that cannot be read; the message names its line."""


@frozen
class Launch:
    """One launch in a file: what is called, its configuration and arguments, as characters of the text."""

    name: str
    start: int
    end: int
    line: int
    config: tuple[tuple[int, int], ...]
    arguments: tuple[int, int]


def find_launches(text: str) -> tuple[Launch, ...]:
    """The launches of a file in order. Raises LaunchSyntaxError for one that is cut short."""
    if "<<<" not in text:
        return ()
    tokens = tokenize(text)
    return tuple(_launches(text, tokens))


def rewrite_launches(text: str) -> str:
    """The file with each launch as a call of ``::evokernel::twin::Launch``. Raises LaunchSyntaxError."""
    pieces: list[str] = []
    position = 0
    for launch in find_launches(text):
        pieces += [text[position : launch.start], _call(text, launch)]
        position = launch.end
    return "".join([*pieces, text[position:]])


def _call(text: str, launch: Launch) -> str:
    config = ", ".join(f"({text[start:end]})" for start, end in launch.config)
    arguments = text[slice(*launch.arguments)]
    label = launch.name.replace("\\", "").replace('"', "")
    callee = text[launch.start : launch.config[0][0]].rpartition("<<<")[0]
    call = f'::evokernel::twin::Launch("{label}", {config}, [=]() {{ {callee}({arguments}); }})'
    lost_lines = text.count("\n", launch.start, launch.end) - call.count("\n")
    return call + "\n" * lost_lines


def _launches(text: str, tokens: Sequence[Token]) -> Iterator[Launch]:
    for index, token in enumerate(tokens):
        if token.text == "<<<" and token.kind is Kind.PUNCTUATION:
            yield _launch(text, tokens, index)


def _launch(text: str, tokens: Sequence[Token], opening: int) -> Launch:
    line = tokens[opening].line
    first = _callee_start(tokens, opening)
    end_config = _find(tokens, opening + 1, ">>>", line)
    config = split_commas(tokens[opening + 1 : end_config])
    if len(config) != 3 or not all(config):
        raise LaunchSyntaxError(
            f"The launch on line {line} has {len(config)} parameters between <<< and >>>; "
            "write <<<blockDim, nullptr, stream>>>."
        )
    if end_config + 1 >= len(tokens) or tokens[end_config + 1].text != "(":
        raise LaunchSyntaxError(f"The launch on line {line} lacks its argument list; write (...) after >>>.")
    try:
        end = closing_index(tokens, end_config + 1)
    except ValueError as error:
        raise LaunchSyntaxError(f"The argument list of the launch on line {line} is never closed.") from error
    name = "".join(token.text for token in tokens[first:opening])
    return Launch(
        name=name,
        start=tokens[first].start,
        end=tokens[end].end,
        line=line,
        config=tuple((part[0].start, part[-1].end) for part in config),
        arguments=(tokens[end_config + 1].end, tokens[end].start),
    )


def _find(tokens: Sequence[Token], start: int, text: str, line: int) -> int:
    for index in range(start, len(tokens)):
        if tokens[index].text == text:
            return index
        if tokens[index].text == ";":
            break
    raise LaunchSyntaxError(
        f"The launch on line {line} lacks its {text}; write <<<blockDim, nullptr, stream>>>."
    )


def _callee_start(tokens: Sequence[Token], opening: int) -> int:
    """The index of the first token of ``ns::kernel<T, 2>`` that stands before ``<<<``."""
    index = opening - 1
    if index >= 0 and tokens[index].text in (">", ">>>"):
        index = _template_start(tokens, index) - 1
    if index < 0 or tokens[index].kind is not Kind.NAME:
        raise LaunchSyntaxError(f"The launch on line {tokens[opening].line} names no kernel before <<<.")
    while index >= 2 and tokens[index - 1].text == "::" and tokens[index - 2].kind is Kind.NAME:
        index -= 2
    return index - 1 if index >= 1 and tokens[index - 1].text == "::" else index


def _template_start(tokens: Sequence[Token], closing: int) -> int:
    depth = 0
    for index in range(closing, -1, -1):
        depth += {">": 1, ">>>": 3, "<": -1, "<<<": -3}.get(tokens[index].text, 0)
        if depth == 0:
            return index
        if tokens[index].text in ";{}":
            break
    raise LaunchSyntaxError(f"The template arguments before <<< on line {tokens[closing].line} do not match.")
