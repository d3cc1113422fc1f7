"""The audit gate: static rules that a candidate must keep before anything of it is compiled.

The rules close ways to look right or fast without computing the result on the device: host code in
the launcher or the tiling, raw pointers past the unified buffer, state kept between launches, tables
of results, and names that reach the verifier. docs/security.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.twin.lexer import CLOSING, Kind, Token, closing_index, tokenize
from evokernel_core.verifier.gates import audit_rules as rules
from evokernel_core.verifier.gates.audit_rules import Finding, finding
from evokernel_core.verifier.gates.audit_words import BUILT_IN_TYPES, STD_TILING, STD_TYPES

KERNEL = "op_kernel.cpp"
TILING = "tiling.h"
MAX_FINDINGS = 5
NOT_OPERANDS = frozenset(
    ("(", ",", "=", "{", ";", "}", "return", "+", "-", "*", "/", "&", "|", "<", ">", "!", "[")
)


def audit(task: KernelTask, source: KernelSource) -> GateResult:
    """The gate's result; its code is that of the first finding."""
    found = sorted(dict.fromkeys(findings(task, source)), key=lambda item: (item.file, item.line))
    if not found:
        return GateResult(GateName.AUDIT, GateStatus.PASSED)
    lines = [f"{item.file}:{item.line}: {item.message}" for item in found[:MAX_FINDINGS]]
    if len(found) > MAX_FINDINGS:
        lines.append(f"(and {len(found) - MAX_FINDINGS} more)")
    return GateResult(GateName.AUDIT, GateStatus.FAILED, found[0].code, "\n".join(lines))


def findings(task: KernelTask, source: KernelSource) -> Iterator[Finding]:
    """Every broken rule of both files."""
    for file, text in ((KERNEL, source.op_kernel_cpp), (TILING, source.tiling_h)):
        if len(text) > rules.MAX_FILE:
            yield Finding(
                "audit-size", f"The file has {len(text)} characters; the limit is {rules.MAX_FILE}.", file, 1
            )
            return
    kernel, tiling = tokenize(source.op_kernel_cpp), tokenize(source.tiling_h)
    yield from _common(kernel, KERNEL, rules.KERNEL_INCLUDES, STD_TYPES)
    yield from _common(tiling, TILING, rules.TILING_INCLUDES, STD_TILING)
    yield from rules.check_callees(kernel, KERNEL, rules.declared_names(tiling))
    yield from rules.check_callees(tiling, TILING, STD_TILING)
    yield from check_pointers(kernel)
    yield from check_tiling_pointers(tiling)
    yield from check_entry_points(kernel, task)


def _common(
    tokens: Sequence[Token], file: str, includes: Sequence[str], std: frozenset[str]
) -> Iterator[Finding]:
    yield from rules.check_directives(tokens, file, includes)
    yield from rules.check_names(tokens, file)
    yield from rules.check_text(tokens, file)
    yield from rules.check_std(tokens, file, std)
    yield from rules.check_namespaces(tokens, file)
    yield from rules.check_tables(tokens, file)
    yield from rules.check_state(tokens, file)


def check_pointers(tokens: Sequence[Token]) -> Iterator[Finding]:
    """Global memory is reached through GlobalTensor only: a raw access is neither checked nor timed."""
    inside = _argument_spans(tokens, "SetGlobalBuffer")
    launcher = _launcher_body(tokens)
    scopes = _scopes(tokens)
    for index, token in enumerate(tokens):
        if launcher and launcher[0] <= index <= launcher[1]:
            continue
        if _is_pointer_cast(tokens, index) and not any(low < index < high for low, high in inside):
            message = "A cast to a pointer is allowed only inside SetGlobalBuffer(...); use tensors."
            yield finding("raw-pointer", token, KERNEL, message)
        elif token.kind is Kind.NAME and _is_accessed(tokens, index) and _is_address(token, index, scopes):
            message = f"{token.text} is an address in global memory; read and write it with DataCopy."
            yield finding("raw-pointer", token, KERNEL, message)


def _is_pointer_cast(tokens: Sequence[Token], index: int) -> bool:
    """``reinterpret_cast<`` anything that is a pointer, or ``T *)`` followed by an operand."""
    if tokens[index].text == "reinterpret_cast":
        return True
    is_star = tokens[index].text == "*" and index + 2 < len(tokens) and tokens[index + 1].text == ")"
    return is_star and (tokens[index + 2].kind is Kind.NAME or tokens[index + 2].text in ("(", "&"))


_Scopes = Mapping[str, Sequence[tuple[int, int]]]
"""The spans of tokens in which a name is an address."""


def _scopes(tokens: Sequence[Token]) -> _Scopes:
    """Where each address is known: a parameter in its function, any other one in the block around it."""
    addresses = dict(_address_names(tokens))
    around: dict[int, tuple[int, ...]] = {}
    closing: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.text in CLOSING:
            opened.append(index)
        elif token.text in CLOSING.values() and opened:
            closing[opened.pop()] = index
        elif index in addresses:
            around[index] = tuple(opened)
    found: dict[str, list[tuple[int, int]]] = {}
    for index, name in addresses.items():
        found.setdefault(name, []).append(_scope(tokens, around[index], closing, index))
    return found


def _scope(
    tokens: Sequence[Token], around: tuple[int, ...], closing: Mapping[int, int], index: int
) -> tuple[int, int]:
    """The tokens in which a name that is declared at ``index`` is known; ``around`` are the brackets that
    it lies in. Where the text is not closed, that is all."""
    last = len(tokens)
    if around and tokens[around[-1]].text == "(":
        end = closing.get(around[-1], last)
        after = next((i for i in range(end, last) if tokens[i].text in ("{", ";", ":")), last)
        if after < last and tokens[after].text == "{":
            return index, closing.get(after, last)
        if after < last and tokens[after].text == ";":
            return index, end
    block = next((i for i in reversed(around) if tokens[i].text == "{"), 0)
    return block, closing.get(block, last)


def _is_address(token: Token, index: int, scopes: _Scopes) -> bool:
    return any(low <= index < high for low, high in scopes.get(token.text, ()))


def _address_names(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Where parameters and variables of type GM_ADDR or ``__gm__ T *`` are declared, and their names."""
    for index, token in enumerate(tokens[:-1]):
        if token.text == "GM_ADDR" and tokens[index + 1].kind is Kind.NAME:
            yield index + 1, tokens[index + 1].text
        elif token.text == "__gm__":
            for offset in range(index + 1, min(index + 6, len(tokens) - 1)):
                if tokens[offset].text == "*" and tokens[offset + 1].kind is Kind.NAME:
                    yield offset + 1, tokens[offset + 1].text
                    break


def _is_accessed(tokens: Sequence[Token], index: int) -> bool:
    """``name[...]``, ``name->...`` or ``*name`` where the star is no multiplication or declaration."""
    if index + 1 < len(tokens) and tokens[index + 1].text in ("[", "->"):
        return True
    if index < 2 or tokens[index - 1].text != "*":
        return False
    return tokens[index - 2].text in NOT_OPERANDS


def _argument_spans(tokens: Sequence[Token], callee: str) -> list[tuple[int, int]]:
    spans = []
    for index, token in enumerate(tokens[:-1]):
        if token.text == callee and tokens[index + 1].text == "(":
            try:
                spans.append((index + 1, closing_index(tokens, index + 1)))
            except ValueError:
                continue
    return spans


def check_tiling_pointers(tokens: Sequence[Token]) -> Iterator[Finding]:
    """The tiling sees sizes and scalars, never an address."""
    for index, token in enumerate(tokens):
        if token.text in ("reinterpret_cast", "extern"):
            yield finding("tiling", token, TILING, f"{token.text} is not allowed in the tiling.")
        elif token.text == "*" and index and _is_pointer_declarator(tokens, index):
            message = "The tiling's only pointers are const int64_t *sizes and const float *scalars."
            yield finding("tiling", token, TILING, message)


def _is_pointer_declarator(tokens: Sequence[Token], index: int) -> bool:
    """A star after a type, unless the type is that of the two parameters."""
    before = tokens[index - 1].text
    if not (before in BUILT_IN_TYPES or before.endswith("_t") or before in ("const", "OpTiling")):
        return False
    allowed = (["const", "int64_t"], ["const", "float"])
    return [token.text for token in tokens[max(0, index - 2) : index]] not in allowed


def check_entry_points(tokens: Sequence[Token], task: KernelTask) -> Iterator[Finding]:
    """Kernels, one launcher whose body is launches of them, and every output handed to one."""
    externs = [index for index, token in enumerate(tokens) if token.text == "extern"]
    globals_ = [index for index, token in enumerate(tokens) if token.text == "__global__"]
    first = tokens[0] if tokens else Token(Kind.NAME, "", 0, 0, 1)
    if not globals_:
        yield finding("launcher", first, KERNEL, "There is no __global__ function; write one.")
        return
    body = _launcher_body(tokens)
    if body is None:
        message = "There is no LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, tiling)."
        yield finding("launcher", first, KERNEL, message)
        return
    if len(externs) != len(globals_) + 1:
        yield finding("extern", first, KERNEL, 'Only the kernels and LaunchOp are extern "C", each once.')
    names = frozenset(_kernel_name(tokens, index) for index in globals_)
    yield from _check_launches(tokens[body[0] + 1 : body[1]], tokens[body[0]], names, task)


def _launcher_body(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """The indices of the braces of LaunchOp's body."""
    for index, token in enumerate(tokens[:-1]):
        if token.text == "LaunchOp" and tokens[index + 1].text == "(":
            try:
                brace = closing_index(tokens, index + 1) + 1
                if brace < len(tokens) and tokens[brace].text == "{":
                    return brace, closing_index(tokens, brace)
            except ValueError:
                return None
    return None


def _kernel_name(tokens: Sequence[Token], index: int) -> str:
    """The name before the parameter list of the function that is declared at ``index``."""
    for before, token in zip(tokens[index:], tokens[index + 1 :], strict=False):
        if token.text == "(" and not before.text.startswith("__"):
            return before.text
    return ""


_LAUNCH = re.compile(
    r"(?:\w+ :: )*(?P<kernel>\w+) <<< (?P<tiling>tiling(?: \. \w+)?) \. blockDim , nullptr , stream >>> "
    r"\( (?P<arguments>[^;]*) \) ;"
)
"""One launch in the launcher's body, its tokens joined by blanks."""
_ARGUMENT = re.compile(r"tensors \[ (\d+) \]|workspace(?: \+ tiling \. \w+)?|tiling(?: \. \w+)?")


def _check_launches(
    body: Sequence[Token], brace: Token, kernels: frozenset[str], task: KernelTask
) -> Iterator[Finding]:
    """The body is launches and nothing else, of all the kernels, with nothing else for arguments."""
    text = " ".join(token.text for token in body)
    launches = list(_LAUNCH.finditer(text))
    if not launches or _LAUNCH.sub("", text).strip() or {item["kernel"] for item in launches} != kernels:
        expected = "<<<tiling.blockDim, nullptr, stream>>>(tensors[0], ..., workspace, tiling);"
        message = f"The body of LaunchOp must be launches of the kernels and nothing else: {expected}"
        yield finding("launcher", brace, KERNEL, message)
        return
    used = set()
    for launch in launches:
        for argument in launch["arguments"].split(" , "):
            found = _ARGUMENT.fullmatch(argument)
            if found is None:
                allowed = "tensors[i], workspace, workspace + tiling.x, tiling and tiling.x"
                message = f"LaunchOp passes {argument}; it may pass {allowed}."
                yield finding("launcher", brace, KERNEL, message)
                return
            if found[1]:
                used.add(int(found[1]))
    yield from _check_tensors(used, brace, task)


def _check_tensors(used: set[int], brace: Token, task: KernelTask) -> Iterator[Finding]:
    inputs = sum(item.kind is not InputKind.SCALAR for item in task.graph.inputs)
    count = inputs + len(task.graph.outputs)
    if used and max(used) >= count:
        message = f"LaunchOp passes tensors[{max(used)}], but the task has {count} tensors."
        yield finding("launcher", brace, KERNEL, message)
    for index in range(inputs, count):
        if index not in used:
            message = f"LaunchOp never passes tensors[{index}], output {index - inputs} of the task."
            yield finding("output-unused", brace, KERNEL, message)
