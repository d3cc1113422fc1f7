"""A kernel's files as a lexer of C++ reads them, whatever language they are in."""

from __future__ import annotations

import re

from evokernel_core.domain.kernel import KernelSource

_COMMENT = re.compile(r"#.*")
_KEYWORD = re.compile(r"\b(?:if|elif|else|while|and|or|not|return|for|in)\b")


def lexed_texts(source: KernelSource) -> tuple[str, ...]:
    """The texts of all files. In Python ``//`` divides and begins no comment, and lines and keywords end an
    expression; the strings of a launch record are expressions over sizes."""
    return tuple(_lexed(name, text) for name, text in source.files.items())


def _lexed(name: str, text: str) -> str:
    if name.endswith(".py"):
        code = _KEYWORD.sub(";", _COMMENT.sub("", text))
        return code.replace("//", "/").replace("\n", ";\n")
    if name.endswith(".json"):
        return text.replace("//", "/").replace('"', ";")
    return text
