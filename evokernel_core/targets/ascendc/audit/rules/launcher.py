"""The launcher launches kernels and does nothing else; every output reaches one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.audit.kinds import FUNCTIONS, CursorKind
from evokernel_core.targets.ascendc.audit.unit import LAUNCHER, Node, Unit, at
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.lexer import CppTokenKind as TokenKind
from evokernel_core.twin.lexer import tokenize

_PARAMETERS_AS_WRITTEN = "void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling"
PARAMETERS = ("void *", "unsigned char *const *", "unsigned char *", "const OpTiling &")
_ARGUMENT = r"tensors \[ \d+ \]|workspace(?: \+ tiling \. \w+)?|tiling(?: \. \w+)?"
_CAPTURE = rf" , evokernelArgument\d+ = \( (?:{_ARGUMENT}) \)"
_LAUNCH = re.compile(
    r':: evokernel :: twin :: LaunchSite < 0x[0-9a-f]+ > \( "(?:\w+::)*\w+" , '
    r"\{ \d+ , \d+ , (?:true|false) \} , "
    rf"\[ =(?P<captures>(?:{_CAPTURE})*) \] \( \) mutable "
    r"\{ (?:\w+ :: )*(?P<kernel>\w+) \( (?:evokernelArgument\d+(?: , (?=\w))?)* ?\) ; \} , "
    r"\( tiling(?: \. \w+)? \. blockDim \) , \( nullptr \) , \( stream \) \) ;"
)
"""One launch as the twin writes it for the compiler, its tokens joined by blanks."""
_TENSOR = re.compile(r"tensors \[ (\d+) \]")
_EXPECTED = (
    "<<<tiling.blockDim, nullptr, stream>>>"
    "(tensors[i], ..., workspace, workspace + tiling.x, tiling.x, tiling);"
)


def check_launcher(unit: Unit, written: str, task: KernelTask) -> Iterator[Finding]:
    """The launcher's shape, what has C linkage, and the tensors that kernels get.

    ``written`` is op_kernel.cpp as its author wrote it: of the kernels' own keyword the compiler sees
    nothing.
    """
    launchers = [node for node in unit.nodes if node.is_launcher and node.children]
    kernels = sum(token.text == "__global__" and token.kind is TokenKind.NAME for token in tokenize(written))
    if not kernels:
        message = Sentence("There is no __global__ function; write one.")
        yield Finding("audit-launcher", message, KERNEL, 1)
    elif len(launchers) != 1 or not _has_signature(launchers[0]):
        message = Sentence("There is no LaunchOp({parameters}).", parameters=_PARAMETERS_AS_WRITTEN)
        yield Finding("audit-launcher", message, KERNEL, 1)
    else:
        launched: set[str] = set()
        yield from _check_body(unit, launchers[0], task, launched)
        if launched:
            yield from _check_linkage(unit, launched, kernels)


def _has_signature(node: Node) -> bool:
    parameters = [child for child in node.children if child.kind == CursorKind.PARAMETER]
    names = [parameter.name for parameter in parameters]
    types = tuple(parameter.type.spelling for parameter in parameters)
    return types == PARAMETERS and names == ["stream", "tensors", "workspace", "tiling"]


def _check_body(unit: Unit, launcher: Node, task: KernelTask, launched: set[str]) -> Iterator[Finding]:
    (body,) = (child for child in launcher.children if child.kind == CursorKind.COMPOUND)
    tokens = (token for token in tokenize(unit.slice(body)) if token.kind is not TokenKind.DIRECTIVE)
    text = " ".join(token.text for token in tokens)[1:-1].strip()
    launches = list(_LAUNCH.finditer(text))
    launched.update(launch["kernel"] for launch in launches)
    if not launches or _LAUNCH.sub("", text).strip():
        message = Sentence(
            "The body of LaunchOp must be launches of the kernels and nothing else: {code}", code=_EXPECTED
        )
        yield at(body, "launcher", message)
        return
    used = {int(index) for launch in launches for index in _TENSOR.findall(launch["captures"])}
    yield from _check_tensors(used, body, task)


def _check_tensors(used: set[int], body: Node, task: KernelTask) -> Iterator[Finding]:
    inputs = sum(operand.kind is not InputKind.SCALAR for operand in task.graph.inputs)
    total = inputs + len(task.graph.outputs)
    if used and max(used) >= total:
        message = Sentence(
            "LaunchOp uses tensors[{index}], but the task has {count}.", index=max(used), count=total
        )
        yield at(body, "launcher", message)
    for index in range(inputs, total):
        if index not in used:
            message = Sentence(
                "LaunchOp never passes tensors[{index}], output {output} of the task.",
                index=index,
                output=index - inputs,
            )
            yield at(body, "output-unused", message)


def _check_linkage(unit: Unit, launched: set[str], kernels: int) -> Iterator[Finding]:
    """Only the launcher and what it launches have C linkage, and each kernel is launched."""
    outside = [
        node for node in unit.nodes if node.parent is not None and node.parent.kind == CursorKind.LINKAGE
    ]
    for node in outside:
        if node.kind == CursorKind.FUNCTION_DECL and node.name in launched | {LAUNCHER}:
            if not any(child.kind == CursorKind.COMPOUND for child in node.children):
                message = Sentence("{name} is declared more than once; define it once.", name=node.name)
                yield at(node, "extern", message)
        elif node.kind in FUNCTIONS or node.kind == CursorKind.VARIABLE:
            message = Sentence('Only the kernels that are launched and LaunchOp are extern "C".')
            yield at(node, "extern", message)
    if kernels != len(launched):
        message = Sentence(
            "There are {count} __global__ functions, and LaunchOp launches {launched} of them.",
            count=kernels,
            launched=len(launched),
        )
        yield Finding("audit-extern", message, KERNEL, 1)
    own = {node.name for node in outside if node.kind == CursorKind.FUNCTION_DECL}
    for name in sorted(launched - own):
        message = Sentence('{name} is launched, but is no extern "C" __global__ function.', name=name)
        yield Finding("audit-launcher", message, KERNEL, 1)
