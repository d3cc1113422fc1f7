"""Kernel launches as plain C++: ``k<<<blocks, l2, stream>>>(args);`` becomes a call of the twin.

Everything stays on the line where it was written, so compilers and debuggers keep telling the truth.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse

from attrs import frozen

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.twin.kernels import VECTOR, CoreRatio, DeclaredKernel
from evokernel_core.twin.lexer import CppTokenKind, Token, closing_index, split_commas, tokenize

_MACRO = "ACLRT_LAUNCH_KERNEL"
_ATTRIBUTE = re.compile(r"\[\s*(?:host\s*,\s*)?aicore\s*\]")
_ONE_WORD = r"(?:[a-z][a-z0-9]*(?:_r)?|f(?:max|min)imum_\w+)"
_C_LINKAGE = re.compile(r'extern\s+"C"')
_LINKAGE = re.compile(
    rf'extern\s+"C"(?=\s+(?:{_ATTRIBUTE.pattern}\s*)?__global__\s(?:[^;{{(]|\b__\w+\([^()]*\))*\b{_ONE_WORD}\s*\()'
)
"""Kernels with a name as those of the C library and of POSIX have, which a host cannot have twice with C
linkage: one word, one with _r behind, or fmaximum_num and its kin. Names of several words keep theirs."""
_MARKS = re.compile(rf"<<<|{_MACRO}|{_ATTRIBUTE.pattern}|{_LINKAGE.pattern}")


class LaunchSyntaxError(EvoKernelError):
    """A launch that cannot be read; the message names its line."""


Span = tuple[int, int]
"""Characters of the text, from the first to past the last one."""


@frozen
class LaunchCall:
    """One launch in a file: what is called, its configuration and arguments, as characters of the text."""

    name: str
    start: int
    end: int
    line: int
    callee: Span
    config: tuple[Span, ...]
    arguments: tuple[tuple[Token, ...], ...]
    untyped: bool = False
    """Its arguments may be any addresses: the host does not see the kernel's parameters."""


def find_launches(text: str) -> tuple[LaunchCall, ...]:
    """The launches of a file in order. Raises LaunchSyntaxError for one that is cut short."""
    if "<<<" not in text and _MACRO not in text:
        return ()
    return tuple(_launches(tokenize(text)))


def rewrite_launches(text: str, kernels: Mapping[str, DeclaredKernel] | None = None, file: str = "") -> str:
    """The file with each launch as a call of ``::evokernel::twin::LaunchSite``. Raises LaunchSyntaxError.

    ``kernels`` says on which cores each one runs, vector cores by default. ``file`` tells the launches
    of one file from those of another.
    """
    text = _without_linkage(text, kernels or {})
    if not _MARKS.search(text):
        return text
    pieces: list[str] = []
    position = 0
    text = _with_macros(text, kernels or {}, file)
    for launch in find_launches(text):
        ratio = _ratio(text, launch, kernels or {})
        pieces += [text[position : launch.start], _call(text, launch, ratio, file)]
        position = launch.end
    rewritten = _LINKAGE.sub(lambda line: " " * len(line[0]), "".join([*pieces, text[position:]]))
    return _without_attributes(rewritten)


def _without_linkage(text: str, kernels: Iterable[str]) -> str:
    """The text with what a host file declares of kernels in the linkage that those have."""
    names = "|".join(sorted(map(re.escape, filterfalse(has_c_linkage, kernels))))
    if not names or not _C_LINKAGE.search(text):
        return text
    declared = rf"{_C_LINKAGE.pattern}(?=\s+[\w\s:<>*&]*\b(?:{names})\s*\()"
    return re.sub(declared, lambda line: " " * len(line[0]), text)


def has_c_linkage(kernel: str) -> bool:
    """Whether a kernel that is declared ``extern "C"`` stays so where it is rewritten."""
    return re.fullmatch(_ONE_WORD, kernel) is None


def without_launches(text: str) -> str:
    """The file with no launches, as a package compiles a kernel for the device alone: whatever host function
    is beside it may name kernels that are not there. Raises LaunchSyntaxError."""
    pieces: list[str] = []
    position = 0
    for launch in find_launches(text):
        lines = text.count("\n", launch.start, launch.end)
        pieces += [text[position : launch.start], "static_cast<void>(0)", "\n" * lines]
        position = launch.end
    return "".join([*pieces, text[position:]])


def _with_macros(text: str, kernels: Mapping[str, DeclaredKernel], file: str) -> str:
    """The text with the launches inside ``#define`` rewritten; what is no whole launch stays."""
    pieces: list[str] = []
    position = 0
    for token in tokenize(text) if "#" in text and "<<<" in text else ():
        if token.kind is not CppTokenKind.DIRECTIVE or "<<<" not in token.text:
            continue
        body = token.text.replace("\\\n", "  ")
        inside = body.find("define")
        try:
            changed = (
                rewrite_launches(body[inside:], kernels, f"{file}:{token.start}") if inside > 0 else body
            )
        except LaunchSyntaxError:
            continue
        lines = " \\\n" * token.text.count("\n")
        pieces += [text[position : token.start], body[:inside] if inside > 0 else "", lines, changed]
        position = token.end
    return "".join([*pieces, text[position:]])


def _without_attributes(text: str) -> str:
    """``[aicore]``, an older spelling of ``__aicore__``, as spaces, also where a macro stands for it."""
    if not _ATTRIBUTE.search(text):
        return text
    places: set[int] = set()
    for token in tokenize(text):
        if token.kind is CppTokenKind.DIRECTIVE:
            places |= {token.start + match.start() for match in _ATTRIBUTE.finditer(token.text)}
        elif token.text == "[":
            places.add(token.start)

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"\S", " ", match[0]) if match.start() in places else match[0]

    return _ATTRIBUTE.sub(blank, text)


def _ratio(text: str, launch: LaunchCall, kernels: Mapping[str, DeclaredKernel]) -> CoreRatio:
    """The cores of the kernel that is launched, also where a variable stands for it."""
    name = _last_name(launch.name)
    if name in kernels:
        return kernels[name].ratio
    chosen = {kernels[kernel].ratio for kernel in assigned_names(tokenize(text), name) if kernel in kernels}
    if len(chosen) > 1:
        raise LaunchSyntaxError(
            "The launch on line {line} calls {name}, which stands for kernels of different core "
            "types; launch each kernel by its own name.",
            line=launch.line,
            name=name,
        )
    return chosen.pop() if chosen else VECTOR


def assigned_names(tokens: Sequence[Token], variable: str) -> frozenset[str]:
    """The names in what a file assigns to a variable, also to a pointer to a function."""
    result: set[str] = set()
    for index, token in enumerate(tokens[:-1]):
        if token.text != variable:
            continue
        follows = index + 1
        if tokens[follows].text == ")" and tokens[follows + 1].text == "(":
            follows = closing_index(tokens, follows + 1) + 1
        if tokens[follows].text in ("=", "{"):
            result |= {part.text for part in _statement(tokens, follows) if part.kind is CppTokenKind.NAME}
    return frozenset(result)


def _statement(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """The tokens up to the semicolon outside of all brackets."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(tokens[index].text, 0)
        if depth < 0 or (depth == 0 and tokens[index].text == ";"):
            return tokens[start:index]
    return tokens[start:]


def _call(text: str, launch: LaunchCall, ratio: CoreRatio, file: str) -> str:
    config = ", ".join(f"({text[start:end]})" for start, end in launch.config)
    label = launch.name.replace("\\", "").replace('"', "")
    captures, passed = _arguments(text, launch)
    site = int.from_bytes(hashlib.sha256(f"{file}:{launch.start}".encode()).digest()[:7])
    cores = f"{{{ratio.cube}, {ratio.vector}, {str(ratio.mixed).lower()}}}"
    body = f"{text[slice(*launch.callee)]}({', '.join(passed)});"
    closure = f"[{', '.join(['=', *captures])}]() mutable {{ {body} }}"
    call = f'::evokernel::twin::LaunchSite<{site:#x}>("{label}", {cores}, {closure}, {config})'
    lost_lines = text.count("\n", launch.start, launch.end) - call.count("\n")
    return call + "\n" * lost_lines


def _last_name(name: str) -> str:
    """``kernel`` of ``space::kernel<T>``."""
    return name.partition("<")[0].rpartition("::")[2]


def _arguments(text: str, launch: LaunchCall) -> tuple[list[str], list[str]]:
    """Captures that evaluate each argument once, on the host, and what the kernel is called with.

    A literal stays where it is: 0 may mean a null pointer, and braces have no type of their own.
    """
    captures, passed = [], []
    for index, part in enumerate(launch.arguments):
        written = text[part[0].start : part[-1].end]
        literal = len(part) == 1 and part[0].kind is not CppTokenKind.NAME
        if literal or part[0].text == "{" or written == "NULL" or not _balanced(part):
            passed.append(written)
            continue
        captures.append(f"evokernelArgument{index} = ({written})")
        name = f"evokernelArgument{index}"
        passed.append(f"::evokernel::twin::Untyped({name})" if launch.untyped else name)
    return captures, passed


def _balanced(tokens: Sequence[Token]) -> bool:
    """Whether a comma inside template arguments cannot have cut this part."""
    opened = sum({"<": 1, "<<<": 3}.get(token.text, 0) for token in tokens)
    closed = sum({">": 1, ">>>": 3}.get(token.text, 0) for token in tokens)
    return opened == closed


def _launches(tokens: Sequence[Token]) -> Iterator[LaunchCall]:
    for index, token in enumerate(tokens):
        if token.text == "<<<" and token.kind is CppTokenKind.PUNCTUATION:
            yield _launch(tokens, index)
        elif token.text == _MACRO and token.kind is CppTokenKind.NAME:
            yield _macro_launch(tokens, index)


def _launch(tokens: Sequence[Token], opening: int) -> LaunchCall:
    line = tokens[opening].line
    first = _callee_start(tokens, opening)
    end_config = _find(tokens, opening + 1, ">>>", line)
    config = split_commas(tokens[opening + 1 : end_config])
    if not 2 <= len(config) <= 4 or not all(config):
        raise LaunchSyntaxError(
            "The launch on line {line} has {count} parameters between <<< and >>>; write "
            "<<<blockDim, nullptr, stream>>>.",
            line=line,
            count=len(config),
        )
    if end_config + 1 >= len(tokens) or tokens[end_config + 1].text != "(":
        raise LaunchSyntaxError(
            "The launch on line {line} lacks its argument list; write (...) after >>>.", line=line
        )
    end = _closed(tokens, end_config + 1, line)
    return LaunchCall(
        name="".join(token.text for token in tokens[first:opening]),
        start=tokens[first].start,
        end=tokens[end].end,
        line=line,
        callee=(tokens[first].start, tokens[opening - 1].end),
        config=tuple((part[0].start, part[-1].end) for part in config),
        arguments=tuple(part for part in split_commas(tokens[end_config + 2 : end]) if part),
    )


def _macro_launch(tokens: Sequence[Token], index: int) -> LaunchCall:
    """``ACLRT_LAUNCH_KERNEL(name)(blockDim, stream, args...)``."""
    line = tokens[index].line
    wrong = LaunchSyntaxError(
        "The launch on line {line} cannot be read; write {macro}(name)(blockDim, stream, arguments).",
        line=line,
        macro=_MACRO,
    )
    if index + 4 >= len(tokens) or tokens[index + 1].text != "(" or tokens[index + 3].text != ")":
        raise wrong
    if tokens[index + 4].text != "(":
        raise wrong
    end = _closed(tokens, index + 4, line)
    parts = split_commas(tokens[index + 5 : end])
    if len(parts) < 2 or not all(parts):
        raise wrong
    stream = (parts[1][0].start, parts[1][-1].end)
    return LaunchCall(
        name=tokens[index + 2].text,
        start=tokens[index].start,
        end=tokens[end].end,
        line=line,
        callee=(tokens[index + 2].start, tokens[index + 2].end),
        config=((parts[0][0].start, parts[0][-1].end), stream, stream),
        arguments=tuple(parts[2:]),
        untyped=True,
    )


def _closed(tokens: Sequence[Token], opening: int, line: int) -> int:
    try:
        return closing_index(tokens, opening)
    except ValueError as error:
        raise LaunchSyntaxError(
            "The argument list of the launch on line {line} is never closed.", line=line
        ) from error


def _find(tokens: Sequence[Token], start: int, text: str, line: int) -> int:
    for index in range(start, len(tokens)):
        if tokens[index].text == text:
            return index
        if tokens[index].text == ";":
            break
    raise LaunchSyntaxError(
        "The launch on line {line} lacks its {text}; write <<<blockDim, nullptr, stream>>>.",
        line=line,
        text=text,
    )


def _callee_start(tokens: Sequence[Token], opening: int) -> int:
    """The index of the first token of ``ns::kernel<T, 2>`` that stands before ``<<<``."""
    index = opening - 1
    if index >= 0 and tokens[index].text in (">", ">>>"):
        index = _template_start(tokens, index) - 1
    if index < 0 or tokens[index].kind is not CppTokenKind.NAME:
        raise LaunchSyntaxError(
            "The launch on line {line} names no kernel before <<<.", line=tokens[opening].line
        )
    while index >= 2 and tokens[index - 1].text == "::" and tokens[index - 2].kind is CppTokenKind.NAME:
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
    raise LaunchSyntaxError(
        "The template arguments before <<< on line {line} do not match.", line=tokens[closing].line
    )
