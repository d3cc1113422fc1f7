"""Statements of kernels that our author writes, found by their form alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.targets.ascendc.source import KERNEL, TILING

BINARY = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
SCALAR = {"Muls": "*", "Adds": "+"}
UNARY = ("Exp", "Ln", "Sqrt", "Abs", "Relu", "Reciprocal", "Duplicate")
_COUNTED = {**dict.fromkeys((*BINARY, *SCALAR, "Max", "Min", "Maxs", "Mins"), 4), **dict.fromkeys(UNARY, 3)}
_CALL = re.compile(rf"^( +)({'|'.join(sorted(_COUNTED, key=len, reverse=True))})\(", re.M)
_DECLARED = re.compile(r"LocalTensor<(\w+)>\s*&?\s*(\w+)")


@frozen
class Statement:
    """A vector instruction over ``count`` elements: all of its text, from the indent to the semicolon."""

    start: int
    end: int
    indent: str
    op: str
    arguments: tuple[str, ...]
    dtype: str

    @property
    def target(self) -> str:
        return self.arguments[0]

    @property
    def count(self) -> str:
        return self.arguments[-1]


def statements(text: str) -> Iterator[Statement]:
    """Vector instructions with a plain count, whose target's type the text declares in one way."""
    types = _types(text)
    for match in _CALL.finditer(text):
        end = closing(text, match.end() - 1)
        if text[end + 1 : end + 2] != ";":
            continue
        arguments = tuple(split(text[match.end() : end]))
        dtype = types.get(re.match(r"\w+", arguments[0]).group()) if re.match(r"\w+", arguments[0]) else None  # type: ignore[union-attr]
        if dtype is not None and len(arguments) == _COUNTED[match[2]]:
            yield Statement(match.start(), end + 2, match[1], match[2], arguments, dtype)


def _types(text: str) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for dtype, name in _DECLARED.findall(text):
        found.setdefault(name, set()).add(dtype)
    return {name: next(iter(types)) for name, types in found.items() if len(types) == 1}


def closing(text: str, opening: int) -> int:
    """Where the bracket that opens at ``opening`` is closed."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text) - 1


def split(arguments: str) -> Iterator[str]:
    """Arguments at the commas that no bracket holds."""
    depth = start = 0
    for place, char in enumerate(arguments):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            yield " ".join(arguments[start:place].split())
            start = place + 1
    yield " ".join(arguments[start:].split())


def behind(source: KernelSource, statement: Statement, *lines: str) -> KernelSource:
    """The kernel with lines behind a statement."""
    text = source.files[KERNEL]
    added = "".join(f"\n{statement.indent}{line}" for line in lines)
    return source.with_files({KERNEL: text[: statement.end] + added + text[statement.end :]})


def instead(source: KernelSource, statement: Statement, *lines: str) -> KernelSource:
    """The kernel with lines in a statement's place."""
    text = source.files[KERNEL]
    made = "\n".join(statement.indent + line for line in lines)
    return source.with_files({KERNEL: text[: statement.start] + made + text[statement.end :]})


def with_member(source: KernelSource, declaration: str) -> KernelSource:
    """The kernel whose vector class has one member more."""
    text = source.files[KERNEL]
    return source.with_files({KERNEL: re.sub(r"(\n    OpTiling tiling_;)(?![\s\S]*\n    OpTiling tiling_;)",
                                               rf"\1\n    {declaration}", text)})  # fmt: skip


def with_unset(source: KernelSource, declaration: str) -> KernelSource:
    """The kernel whose tiling has one field more that nothing sets: the author's host code begins with
    ``tiling = {}``, which sets all to 0."""
    made = source.files[TILING].replace("    tiling = {};", "    tiling.workspaceBytes = 0;")
    return with_tiling(source.with_files({TILING: made}), declaration, "")


def with_tiling(source: KernelSource, declaration: str, assignment: str) -> KernelSource:
    """The kernel whose tiling has one field more, set where the host code ends well."""
    text = source.files[TILING].replace("struct OpTiling {", f"struct OpTiling {{\n    {declaration}", 1)
    end = text.rindex("    return true;")
    made = f"    {assignment}\n" if assignment else ""
    return source.with_files({TILING: text[:end] + made + text[end:]})
