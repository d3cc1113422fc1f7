"""What host code refers to and no source of the operator defines: parts for other chips and operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_UNDEFINED = re.compile(r"undefined reference to [`'](.+?)'(?:$|;)", re.MULTILINE)
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_DATA = ("_ZTV", "_ZTI", "_ZTS")
"""Prefixes of virtual tables, type informations and their names (Itanium C++ ABI, 5.1.4)."""
_SLOTS = 64
"""Functions that the table of a missing class may have to hold."""

_HEAD = r"""#include <cxxabi.h>
#include <cstdio>
#include <cstdlib>

[[noreturn]] static void Missing(const char *symbol)
{
    int status = 0;
    const char *name = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
    const char *text = name == nullptr ? symbol : name;
    std::fprintf(stderr, "The host code calls %s, which no source for this chip defines.\n", text);
    std::_Exit(3);
}
"""


def undefined(output: str) -> tuple[str, ...]:
    """The names, as the linker spells them, that it found nowhere."""
    return tuple(dict.fromkeys(_UNDEFINED.findall(output)))


def definitions(symbols: Iterable[str]) -> str:
    """C++ text that defines each symbol so that its use, and nothing else, ends the program with a sentence.

    Raises ValueError where a symbol is none of an object file's.
    """
    parts = [_HEAD]
    for index, symbol in enumerate(symbols):
        if _SYMBOL.fullmatch(symbol) is None:
            raise ValueError(f"{symbol!r} is no symbol; link with --no-demangle.")
        parts.append(_definition(index, symbol, symbol.startswith(_DATA)))
    return "\n".join(parts)


def _definition(index: int, symbol: str, data: bool) -> str:
    called = f"Missing{index}"
    lines: Sequence[str] = (f'static void {called}() {{ Missing("{symbol}"); }}',)
    if data:
        slots = ", ".join([f"reinterpret_cast<void *>(&{called})"] * _SLOTS)
        table = f'extern "C" void *const Table{index}[] __asm__("{symbol}");'
        lines = (*lines, table, f"void *const Table{index}[] = {{nullptr, nullptr, {slots}}};")
    else:
        entry = f'extern "C" void Entry{index}() __asm__("{symbol}");'
        lines = (*lines, entry, f"void Entry{index}() {{ {called}(); }}")
    return "\n".join(lines)
