"""Static rules on one file: what a kernel or its tiling may mention at all.

Each rule takes tokens and yields findings. They work on tokens, not on text, so comments and
strings can neither hide code nor raise an alarm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from attrs import frozen

from evokernel_core.twin.lexer import Kind, Token, closing_index
from evokernel_core.verifier.gates.audit_words import (
    CALL_KEYWORDS,
    FORBIDDEN_KEYWORDS,
    FORBIDDEN_NAMES,
    KEYWORDS,
    UNDERSCORED,
)

KERNEL_INCLUDES = ("kernel_operator.h", "tiling.h")
TILING_INCLUDES = ("cstdint", "cstddef", "cmath", "algorithm")
DIRECTIVES = ("include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma")
MAX_FILE = 2 * 1024 * 1024
MAX_TABLE = 64
"""Numbers in one braced list; a longer list is a table of results rather than of masks or strides."""


@frozen
class Finding:
    """One broken rule: its stable code, the sentence, and where."""

    code: str
    message: str
    file: str
    line: int


def finding(code: str, token: Token, file: str, message: str) -> Finding:
    return Finding(f"audit-{code}", message, file, token.line)


def check_directives(tokens: Sequence[Token], file: str, includes: Sequence[str]) -> Iterator[Finding]:
    """Only the named headers, and no preprocessor tricks."""
    for token in tokens:
        if token.kind is not Kind.DIRECTIVE:
            continue
        word, _, rest = re.sub(r"^#\s*", "", token.text).partition(" ")
        word, rest = ((match := re.match(r"\w*", word)) and match[0]) or "", rest.strip()
        if word not in DIRECTIVES:
            yield finding("directive", token, file, f"#{word} is not allowed; use plain code.")
        elif word == "include":
            yield from _check_include(token, file, includes)
        elif word == "pragma" and not re.match(r"(once|unroll)\b", rest):
            yield finding(
                "directive", token, file, f"#pragma {rest} is not allowed; only once and unroll are."
            )
        elif "##" in token.text:
            yield finding("obfuscated", token, file, "Joining names with ## is not allowed; write the name.")
        elif word in ("define", "undef") and (bad := _redefined(rest)):
            yield finding("directive", token, file, f"{bad} must not be redefined; choose another name.")


def _check_include(token: Token, file: str, includes: Sequence[str]) -> Iterator[Finding]:
    match = re.fullmatch(
        r'#\s*include\s*[<"]([^">]*)[">]\s*(?://.*|/\*.*\*/)?', token.text.strip(), re.DOTALL
    )
    name = match[1] if match else token.text
    if name not in includes:
        allowed = ", ".join(includes)
        yield finding("include", token, file, f"Including {name!r} is not allowed; only {allowed} are.")


def _redefined(rest: str) -> str:
    match = re.match(r"\w+", rest)
    name = match[0] if match else ""
    risky = (
        name in KEYWORDS
        or name in FORBIDDEN_KEYWORDS
        or name.startswith("__")
        or name in ("GM_ADDR", "LaunchOp")
    )
    return name if risky or name.upper().startswith("EVOKERNEL") else ""


def words_of(tokens: Sequence[Token]) -> Iterator[Token]:
    """The names of a file, those inside macro definitions included."""
    for token in tokens:
        if token.kind is Kind.NAME:
            yield token
        elif token.kind is Kind.DIRECTIVE and not re.match(r"#\s*include", token.text):
            body = re.sub(r"//.*|/\*.*?\*/", " ", token.text, flags=re.DOTALL)
            for match in re.finditer(r"[A-Za-z_]\w*", body):
                yield Token(Kind.NAME, match[0], token.start, token.end, token.line)


def check_names(tokens: Sequence[Token], file: str) -> Iterator[Finding]:
    """No name that reaches outside the kernel."""
    for token in words_of(tokens):
        name = token.text
        if name in FORBIDDEN_KEYWORDS or name in FORBIDDEN_NAMES:
            yield finding("forbidden-name", token, file, f"{name} is not allowed in a kernel; remove it.")
        elif name.startswith("__") and name not in UNDERSCORED:
            yield finding("forbidden-name", token, file, f"{name} is reserved for the compiler; remove it.")
        elif name.lower().startswith("evokernel"):
            yield finding("forbidden-name", token, file, f"{name} is the verifier's; choose another name.")


def check_text(tokens: Sequence[Token], file: str) -> Iterator[Finding]:
    """No spelling that means something else than it looks like."""
    for index, token in enumerate(tokens):
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        adjacent = index + 1 < len(tokens) and tokens[index + 1].start == token.end
        if token.kind is not Kind.PUNCTUATION:
            continue
        digraph = adjacent and token.text + following in ("%:", "<:", "<%")
        if token.text in "\\`@$" or digraph or not token.text.isascii():
            message = f"{token.text!r} is not allowed here; write plain ASCII C++."
            yield finding("obfuscated", token, file, message)


def check_std(tokens: Sequence[Token], file: str, allowed: frozenset[str]) -> Iterator[Finding]:
    """Of ``std`` only what is a type, or arithmetic in the tiling."""
    for index, token in enumerate(tokens):
        if token.kind is not Kind.NAME or token.text != "std":
            continue
        member = tokens[index + 2].text if index + 2 < len(tokens) else ""
        if index + 1 >= len(tokens) or tokens[index + 1].text != "::" or member not in allowed:
            yield finding("forbidden-name", token, file, f"std::{member} is not allowed here; do without it.")


def check_namespaces(tokens: Sequence[Token], file: str) -> Iterator[Finding]:
    """Nothing is added to the namespaces of others, and nothing but the two entry points is extern."""
    for index, token in enumerate(tokens):
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if token.text == "namespace" and following in ("AscendC", "std"):
            if index == 0 or tokens[index - 1].text != "using":
                message = f"Namespace {following} belongs to others; put helpers in one of your own."
                yield finding("namespace", token, file, message)
        elif token.text == "[" and following == "[" and tokens[index + 1].start == token.end:
            inside = tokens[index + 2].text if index + 2 < len(tokens) else ""
            if inside not in ("maybe_unused", "nodiscard", "fallthrough", "likely", "unlikely"):
                yield finding("forbidden-name", token, file, f"The attribute {inside} is not allowed.")


def check_tables(tokens: Sequence[Token], file: str) -> Iterator[Finding]:
    """No list of numbers long enough to hold results that were computed elsewhere."""
    for index, token in enumerate(tokens):
        if token.text == "{":
            try:
                inside = tokens[index + 1 : closing_index(tokens, index)]
            except ValueError:
                continue
            if not any(t.text in (";", "{") for t in inside):
                numbers = sum(t.kind is Kind.NUMBER for t in inside)
                if numbers > MAX_TABLE:
                    message = (
                        f"A table of {numbers} numbers is not allowed; compute the values in the kernel."
                    )
                    yield finding("constant-table", token, file, message)


def check_state(tokens: Sequence[Token], file: str) -> Iterator[Finding]:
    """Nothing survives from one launch to the next: no variable outside functions, no static one."""
    for index, token in enumerate(tokens):
        if token.text == "static" and not _is_constant_or_function(tokens, index):
            yield finding("global-state", token, file, "A static variable is not allowed; make it constexpr.")
    for statement in _outer_statements(tokens):
        texts = [token.text for token in statement]
        if _declares_variable(texts):
            message = (
                f"The variable {' '.join(texts[:3])} outside of functions is not allowed; make it constexpr."
            )
            yield finding("global-state", statement[0], file, message)


def _is_constant_or_function(tokens: Sequence[Token], index: int) -> bool:
    for token in tokens[index + 1 : index + 40]:
        if token.text in ("constexpr", "(", "__aicore__"):
            return True
        if token.text in (";", "=", "{"):
            return False
    return False


def _outer_statements(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The statements that stand in no braces but those of a namespace or extern "C"."""
    code = [token for token in tokens if token.kind is not Kind.DIRECTIVE]
    start = index = 0
    while index < len(code):
        text = code[index].text
        if text == ";":
            yield code[start : index + 1]
            start = index + 1
        elif (text == "{" and _opens_namespace(code[start:index])) or text == "}":
            start = index + 1
        elif text == "{":
            try:
                index = closing_index(code, index)
            except ValueError:
                return
            if index + 1 < len(code) and code[index + 1].text not in (";", ",", "="):
                after_type = any(
                    token.text in ("class", "struct", "enum") for token in code[start : start + 8]
                )
                if not after_type or code[index + 1].kind is not Kind.NAME:
                    start = index + 1
        index += 1


def _opens_namespace(before: Sequence[Token]) -> bool:
    texts = [token.text for token in before]
    return "namespace" in texts or (len(texts) == 2 and texts[0] == "extern")


def _declares_variable(texts: Sequence[str]) -> bool:
    if len(texts) < 3 or texts[0] in ("using", "typedef", "static_assert", "friend", "template"):
        return False
    if texts[0] in ("class", "struct", "enum") and texts[-2] in ("}", texts[1]):
        return False
    if "constexpr" in texts:
        return False
    head = texts[: texts.index("{")] if "{" in texts else texts
    head = head[: head.index("=")] if "=" in head else head
    return "(" not in head


def declared_names(tokens: Sequence[Token]) -> frozenset[str]:
    """Names that the file itself declares: functions, variables, types, parameters and macros."""
    names = set()
    for before, token in pairwise(tokens):
        if token.kind is Kind.NAME and token.text not in KEYWORDS:
            is_type = before.kind is Kind.NAME and before.text not in ("return", "else", "case", "do")
            if is_type or before.text in (">", "*", "&"):
                names.add(token.text)
    for token in tokens:
        if token.kind is Kind.DIRECTIVE and (match := re.match(r"#\s*define\s+(\w+)", token.text)):
            names.add(match[1])
    return frozenset(names)


def check_callees(tokens: Sequence[Token], file: str, allowed: frozenset[str]) -> Iterator[Finding]:
    """AscendC's names begin with a capital; any other callee must be the file's own or ``allowed``."""
    known = declared_names(tokens) | CALL_KEYWORDS | allowed
    for index, token in enumerate(tokens[:-1]):
        if token.kind is not Kind.NAME or tokens[index + 1].text != "(":
            continue
        name = token.text
        is_std = index >= 2 and tokens[index - 2].text == "std"
        if is_std or name in FORBIDDEN_NAMES or name in FORBIDDEN_KEYWORDS:
            continue  # said by another rule
        if not name[0].isupper() and name not in known and not name.startswith("__"):
            yield finding(
                "callee", token, file, f"{name}() is not AscendC's nor the kernel's own; do without it."
            )
