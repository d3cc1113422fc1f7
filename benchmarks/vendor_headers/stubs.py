"""Stubs of the device compiler's intrinsics, made from the names that it says it does not know.

What a name is follows from how it is spelled, as the public samples use such names: ``set_flag`` is a
function, ``VA0`` a constant, ``mem_dsb_t`` an enumeration, ``TCubeTiling`` a structure. Members of
enumerations and structures come from messages too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from attrs import define, field

from vendor_headers.intrinsics import DTYPES, PRODUCTS, conversion
from vendor_headers.messages import Message

_UNKNOWN = (
    re.compile(r"^use of undeclared identifier '(?P<name>\w+)'"),
    re.compile(r"^unknown type name '(?P<name>\w+)'"),
    re.compile(r"^call to function '(?P<name>\w+)' that is neither visible in the template definition"),
    re.compile(r"^no template named '(?P<name>\w+)'"),
)
_MEMBER = re.compile(r"^no member named '(?P<member>\w+)' in '(?P<owner>(?:\w+::)*\w+)'")
_NUMBERS = re.compile(r"^(get_|sff|sbitset|bcnt|clz|ld_dev|vabs_|abs$|floor$|ceil$|round$)")
"""Functions whose result is computed with; the result of others converts to what is asked for."""
_STATEMENTS = re.compile(
    r"^(v|copy_|load_|set_|wait_|mad|create_|broadcast_|scatter|img2col|ffts_|pipe_|st_)"
)
"""Functions that act and have no result."""
_PARAMETER = re.compile(r"^[A-Z]$|^[a-z]{1,2}$")
"""Names of one letter, which are left over where a declaration before was not understood."""

_HEAD = """\
#pragma once
template <typename T, typename... Dtypes> using OneOf = std::enable_if_t<(std::is_same_v<T, Dtypes> || ...)>;
struct IntrinsicResult {
    template <typename T> __host__ __device__ constexpr operator T() const { return T{}; }
};
"""


class Kind(StrEnum):
    FUNCTION = "function"
    STATEMENT = "statement"
    NUMBER = "number"
    CONSTANT = "constant"
    ENUMERATION = "enumeration"
    STRUCTURE = "structure"
    QUALIFIER = "qualifier"


_SPELLINGS = ((_NUMBERS, Kind.NUMBER), (_STATEMENTS, Kind.STATEMENT))


def kind_of(name: str, is_type: bool) -> Kind | None:
    """What a name that the compiler does not know is, used as a type or not; None for one that is no name of
    the device compiler."""
    if _PARAMETER.match(name):
        return None
    if name.startswith("__") and name.endswith("__"):
        return Kind.QUALIFIER
    if name.endswith("_t"):
        return Kind.ENUMERATION
    if is_type or name[0].isupper():
        return Kind.CONSTANT if name.upper() == name and not is_type else Kind.STRUCTURE
    return next((kind for rule, kind in _SPELLINGS if rule.match(name)), Kind.FUNCTION)


@define
class Stubs:
    """Grows with messages; ``text`` is the header."""

    kinds: dict[str, Kind] = field(factory=dict)
    members: dict[str, set[str]] = field(factory=dict)

    def learn(self, messages: Iterable[Message], checkout: Path) -> bool:
        """Takes up the names that messages in headers of the checkout call unknown, and members that anything
        asks of structures that are stubs. Whether there was a new one."""
        grown = False
        for message in messages:
            if message.is_in(checkout):
                grown |= self._name(message.text)
            grown |= self._member(message.text)
        return grown

    def _name(self, text: str) -> bool:
        name = next((found["name"] for rule in _UNKNOWN if (found := rule.match(text))), "")
        is_type = " type " in text.partition("'")[0]
        kind = kind_of(name, is_type) if name and name not in self.kinds else None
        if kind is None:
            return False
        self.kinds[name] = kind
        return True

    def _member(self, text: str) -> bool:
        found = _MEMBER.match(text)
        owner = found["owner"].rpartition("::")[2] if found else ""
        if found is None or self.kinds.get(owner) not in (Kind.ENUMERATION, Kind.STRUCTURE):
            return False
        members = self.members.setdefault(owner, set())
        if found["member"] in members:
            return False
        members.add(found["member"])
        return True

    def text(self) -> str:
        lines = [*self._lines(), *self._tiling_namespace()]
        return _HEAD + "".join(f"{line}\n" for line in lines)

    def _tiling_namespace(self) -> Iterator[str]:
        """Tiling structures stand in a namespace too, as samples write them."""
        names = sorted(name for name in self.kinds if name.endswith("Tiling"))
        yield f"namespace AscendC::tiling {{ {' '.join(f'using ::{name};' for name in names)} }}"

    def _lines(self) -> Iterator[str]:
        order = list(Kind)[::-1]
        for name, kind in sorted(self.kinds.items(), key=lambda item: (order.index(item[1]), item[0])):
            members = sorted(self.members.get(name, ()))
            match kind:
                case Kind.QUALIFIER:
                    yield f"#define {name} __aicore__" if "callee" in name else f"#define {name}"
                case Kind.STRUCTURE:
                    yield f"struct {name} {{ {' '.join(f'uint32_t {member} = 0;' for member in members)} }};"
                case Kind.ENUMERATION:
                    values = ", ".join((*members, f"{name}_OTHER"))
                    yield f"enum {name} {{ {values} }};"
                case Kind.CONSTANT:
                    yield f"constexpr IntrinsicResult {name}{{}};"
                case Kind.NUMBER:
                    yield f"template <typename... Args> __device__ int64_t {name}(Args...);"
                case Kind.STATEMENT:
                    yield from _statements(name)
                case Kind.FUNCTION:
                    yield f"template <typename... Args> __device__ IntrinsicResult {name}(Args...);"


def _statements(name: str) -> Iterator[str]:
    """An intrinsic without a result, for the dtypes that are known of it."""
    if name == "mad":
        for result, left, right in PRODUCTS:
            operands = f"__cc__ {result} *, __ca__ {left} *, __cb__ {right} *, Args..."
            yield f"template <typename... Args> __device__ void mad({operands});"
    elif name in DTYPES:
        dtypes = ", ".join(DTYPES[name])
        head = f"template <typename T, typename... Args> __device__ OneOf<T, {dtypes}>"
        yield f"{head} {name}(__ubuf__ T *, Args...);"
    else:
        operands = "".join(f"__ubuf__ {dtype} *, " for dtype in conversion(name))
        yield f"template <typename... Args> __device__ void {name}({operands}Args...);"
