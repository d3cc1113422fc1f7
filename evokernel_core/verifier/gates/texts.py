"""A kernel's files as a lexer of C++ reads them, whatever language they are in."""

from __future__ import annotations

from evokernel_core.domain.kernel import KernelSource


def lexed_texts(source: KernelSource) -> tuple[str, ...]:
    """The texts of all files. In Python ``//`` divides and begins no comment; the strings of a launch record
    are expressions over sizes."""
    return tuple(_lexed(name, text) for name, text in source.files.items())


def _lexed(name: str, text: str) -> str:
    if name.endswith(".py"):
        return text.replace("//", "/")
    if name.endswith(".json"):
        return text.replace("//", "/").replace('"', " ")
    return text
