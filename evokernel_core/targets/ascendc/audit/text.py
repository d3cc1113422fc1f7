"""Rules on the files as they are written: what must hold so that every reader splits them alike.

Comments, literals and directives end where they seem to end, and no condition asks for a macro that
differs between compilers or between two runs of one: then the text that the audit preprocesses is the
text that any backend compiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.lists import names
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.twin.lexer import CppTokenKind, Token, tokenize

MAX_FILE = 4 * 1024**2
"""A network's kernel is megabytes (DenseNet-121: 3.1); the audit reads one in seconds."""
INCLUDES = {
    KERNEL: ("kernel_operator.h", TILING),
    TILING: ("cstdint", "cstddef", "cmath", "algorithm"),
}
DIRECTIVES = ("include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "pragma")
CONDITIONS = names("""
    defined true false __cplusplus __NPU_ARCH__ NPU_ARCH __CCE_AICORE__ __DAV_C220_CUBE__ __DAV_CUBE__
    __DAV_C220_VEC__ __DAV_VEC__ __CCE_KT_TEST__ ASCENDC_CPU_DEBUG
""")
"""What a condition may ask for beside the candidate's own macros: the documented names of the device."""

RESERVED = names("""
    __global__ __aicore__ __vector__ __cube__ __mix__ __schedmode__ __gm__ __ubuf__ __cbuf__ __ca__
    __cb__ __cc__ __fbuf__ __biasbuf__ __inline__ __forceinline__ __restrict__ __cplusplus
    __builtin_inff
""")
"""Names of the language for devices; all others that begin like these belong to compilers."""
EXPANDED = names("__builtin_inff __builtin_inf __builtin_huge_valf __builtin_nanf __func__")
"""What is left of the documented names of the headers."""

_ODD = re.compile(
    r"(?P<cr>\r(?!\n))|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f])|(?P<splice>\\[ \t]+\r?\n)"
    r"|(?P<trigraph>\?\?[=/'()!<>-])|(?P<separator>[\x85\u2028\u2029\ufeff])"
)
_WORDS = {
    "cr": Sentence("A carriage return without a line feed"),
    "control": Sentence("A control character"),
    "splice": Sentence("A blank after the backslash that ends a line"),
    "trigraph": Sentence("A trigraph"),
    "separator": Sentence("A line separator of Unicode"),
}


def check_text(file: str, text: str) -> Iterator[Finding]:
    """Everything that the written text itself breaks."""
    if len(text.encode(errors="replace")) > MAX_FILE:
        message = Sentence(
            "The file has {count} characters; the limit is {most} bytes.", count=len(text), most=MAX_FILE
        )
        yield Finding("audit-size", message, file, 1)
        return
    for match in _ODD.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        message = Sentence("{what} is not allowed.", what=_WORDS[str(match.lastgroup)])
        yield Finding("audit-obfuscated", message, file, line)
    tokens = tokenize(text)
    yield from _spelling(tokens, file)
    for token in tokens:
        if token.kind is CppTokenKind.DIRECTIVE:
            yield from _directive(token, file)


def check_conditions(files: dict[str, str]) -> Iterator[Finding]:
    """Conditions ask for the candidate's own macros and for those of the device."""
    found = [(file, token) for file, text in files.items() for token in tokenize(text)]
    directives = [(file, token) for file, token in found if token.kind is CppTokenKind.DIRECTIVE]
    known = set(CONDITIONS)
    for _, token in directives:
        if match := re.match(r"#\s*define\s+(\w+)", token.text):
            known.add(match[1])
    for file, token in directives:
        if not re.match(r"#\s*(?:if|ifdef|ifndef|elif)\b", token.text):
            continue
        asked = re.findall(r"\b[A-Za-z_]\w*", _bare(token.text))[1:]
        for name in sorted(set(asked) - known):
            message = Sentence("A condition on {name} is not allowed: compilers differ in it.", name=name)
            yield Finding("audit-directive", message, file, token.line)


_NO_CODE = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|//.*|/\*.*?(?:\*/|\Z)""", re.DOTALL)


def _bare(text: str) -> str:
    """A directive without its literals and comments, whichever begins first."""
    return _NO_CODE.sub(" ", text)


def _spelling(tokens: Sequence[Token], file: str) -> Iterator[Finding]:
    """No spelling that means something else than it looks like."""
    for index, token in enumerate(tokens):
        if token.kind is CppTokenKind.STRING and re.match(r'(?:u8|[uUL])?R"', token.text):
            yield Finding("audit-obfuscated", Sentence("A raw string is not allowed."), file, token.line)
        if token.kind is CppTokenKind.NAME and (message := refused_name(token.text)):
            # as it is written: a macro of the compiler (__COUNTER__) is another number in another one
            yield Finding("audit-forbidden-name", message, file, token.line)
        if token.kind is not CppTokenKind.PUNCTUATION:
            continue
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        digraph = (
            following is not None
            and following.start == token.end
            and token.text + following.text in ("%:", "<:", "<%")
        )
        if token.text in "\\`@$\"'" or digraph or not token.text.isascii():
            message = Sentence("{what} is not allowed here; write plain ASCII C++.", what=repr(token.text))
            yield Finding("audit-obfuscated", message, file, token.line)


def refused_name(name: str) -> Sentence:
    """Why a name may not be used: it is one of the compiler's own; empty for others."""
    if re.match(r"_[_A-Z]", name) and name not in RESERVED | EXPANDED:
        return Sentence("{name} is reserved for the compiler; remove it.", name=name)
    return Sentence()


def _directive(token: Token, file: str) -> Iterator[Finding]:
    match = re.match(r"#\s*(\w*)\s*(.*)", token.text, re.DOTALL)
    word, rest = (match[1], match[2]) if match else ("", "")
    if word not in DIRECTIVES:
        message = Sentence("{what} is not allowed; use plain code.", what=f"#{word}")
        yield Finding("audit-directive", message, file, token.line)
    elif word == "include":
        yield from _include(token, rest, file)
    elif word == "pragma" and not re.match(r"(once|unroll)\b", rest):
        message = Sentence("#pragma {what} is not allowed; only once and unroll are.", what=rest[:40])
        yield Finding("audit-directive", message, file, token.line)
    elif word in ("define", "undef"):
        yield from _definition(token, rest, file)


def _include(token: Token, rest: str, file: str) -> Iterator[Finding]:
    match = re.fullmatch(r'[<"]([^">]*)[">]\s*(?://.*|/\*.*\*/)?\s*', rest, re.DOTALL)
    name = match[1] if match else rest.strip()
    if name not in INCLUDES[file]:
        known = ", ".join(map(repr, INCLUDES[file]))
        message = Sentence("Including {file} is not allowed; only {known} are.", file=repr(name), known=known)
        yield Finding("audit-include", message, file, token.line)


def _definition(token: Token, rest: str, file: str) -> Iterator[Finding]:
    if "##" in token.text:
        message = Sentence("Joining names with ## is not allowed; write the name.")
        yield Finding("audit-obfuscated", message, file, token.line)
    match = re.match(r"\w+", rest)
    name = match[0] if match else ""
    if _is_reserved(name) or name in ("GM_ADDR", "LaunchOp") or name.upper().startswith("EVOKERNEL"):
        message = Sentence("{name} must not be redefined; choose another name.", name=name)
        yield Finding("audit-directive", message, file, token.line)
    for used in re.findall(r"\b_[_A-Z]\w*", _bare(rest)):
        if (message := refused_name(used)) and used != name:
            yield Finding("audit-forbidden-name", message, file, token.line)


KEYWORDS = names("""
    alignas alignof auto bool break case char class const constexpr continue decltype default delete do
    double else enum explicit extern false final float for friend if inline int long mutable namespace
    new noexcept nullptr operator override private protected public reinterpret_cast return short signed
    sizeof static static_assert static_cast struct switch template this true typedef typename union
    unsigned using virtual void volatile while
""")


def _is_reserved(name: str) -> bool:
    return name in KEYWORDS or bool(re.match(r"_[_A-Z]", name))
