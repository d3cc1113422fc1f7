"""What CUDA mode spells in another way than AscendC, changed in copies of kernels; lines stay lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KERNEL = re.compile(
    r"(__global__|__aicore__)((?:\s|\w|\([\d, ]*\)|\"C\"|\[\[[\w:]+\]\])*?)(__aicore__|__global__)"
)
_LAUNCH = re.compile(r"<<<[^;{}]*?>>>\s*\(")
_OPENING, _CLOSING = "([{", ")]}"


def rewritten(text: str) -> str:
    """A kernel's text as CUDA mode takes it."""
    return with_addresses(without_double_space(text))


def without_double_space(text: str) -> str:
    """``__global__ __aicore__`` as ``__global__``: CUDA mode takes one execution space at a time, and a
    kernel is device code."""
    return _KERNEL.sub(lambda found: "__global__" + found[2] if found[1] != found[3] else found[0], text)


def with_addresses(text: str) -> str:
    """Arguments of launches as ``Launched(argument)``: to host code a device address is a plain pointer,
    which the launch makes one of global memory (prelude.h)."""
    pieces, done = [], 0
    for launch in _LAUNCH.finditer(text):
        for start, end in _arguments(text, launch.end()):
            pieces += [text[done:start], f"Launched({text[start:end]})"]
            done = end
    return "".join((*pieces, text[done:]))


def _arguments(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each argument behind an opening parenthesis, without the space around it."""
    depth, begin = 0, start
    for place in range(start, len(text)):
        letter = text[place]
        if depth == 0 and letter in (",", ")"):
            argument = text[begin:place]
            if argument.strip():
                yield begin + len(argument) - len(argument.lstrip()), begin + len(argument.rstrip())
            begin = place + 1
            if letter == ")":
                return
        depth += (letter in _OPENING) - (letter in _CLOSING)


def in_device_function(text: str, line: int, column: int) -> bool:
    """Whether a position, counted from 1, is in a function of the device: one of the blocks around it begins
    with ``__aicore__`` or ``__global__``."""
    depth, end = 0, sum(len(item) + 1 for item in text.split("\n")[: line - 1]) + column - 1
    for place in range(end - 1, -1, -1):
        depth += (text[place] == "}") - (text[place] == "{")
        if depth < 0:
            depth = 0
            head = re.split(r"[;{}]", text[:place])[-1]
            if "__aicore__" in head or "__global__" in head:
                return True
    return False
