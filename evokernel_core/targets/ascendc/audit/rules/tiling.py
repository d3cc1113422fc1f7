"""The tiling is a small plain structure, and computes sizes and not results."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.audit.kinds import FUNCTIONS, CursorKind
from evokernel_core.targets.ascendc.audit.rules.pointers import TILING_POINTERS
from evokernel_core.targets.ascendc.audit.unit import Node, Unit, at
from evokernel_core.targets.ascendc.source import TILING

STRUCTURE, FUNCTION = "OpTiling", "ComputeTiling"
MAX_BYTES, MAX_FLOAT_BYTES = 4096, 256
"""What any task may hand over; the second of all floating-point members: factors of an operation, not a row
of its results."""
OPERATION_BYTES, OPERATION_FLOAT_BYTES = 256, 8
"""What each operation of the task adds: a network of a hundred kernels has the sizes and tiles of all."""

_SIZES, _SCALARS = Sentence("sizes"), Sentence("scalars")
_HOLDING = (CursorKind.VARIABLE, CursorKind.PARAMETER, CursorKind.FIELD)


def check_tiling(unit: Unit, operations: int) -> Iterator[Finding]:
    """The structure's members and size, and pointers and linkage in the tiling's file; the task has so many
    ``operations``."""
    for node in unit.nodes:
        if node.kind == CursorKind.STRUCT and node.name == STRUCTURE and node.type.size >= 0:
            yield from _structure(node, operations)
        elif node.file != TILING:
            continue
        elif node.kind == CursorKind.LINKAGE:
            yield at(node, "tiling", Sentence("extern is not allowed in the tiling."))
        elif node.kind in _HOLDING and node.type.pointers and not _is_argument(node):
            message = Sentence(
                "The tiling's only pointers are const int64_t *sizes and const float *scalars."
            )
            yield at(node, "tiling", message)


def check_arguments(unit: Unit, task: KernelTask) -> Iterator[Finding]:
    """That ComputeTiling reads no size and no scalar by a number that the task does not have: behind them is
    memory of nobody, and where there are none, no memory at all."""
    scalars = sum(operand.kind is InputKind.SCALAR for operand in task.graph.inputs)
    for node in unit.nodes:
        if node.file != TILING or node.kind not in FUNCTIONS or node.name != FUNCTION:
            continue
        if any(around.kind == CursorKind.NAMESPACE for around in node.ancestors()):
            continue  # a stage's own, which the outer one calls
        names = [child.name for child in node.children if child.kind == CursorKind.PARAMETER]
        known = zip(names, ((len(task.symbols), _SIZES), (scalars, _SCALARS)), strict=False)
        for name, (count, what) in known:
            read = [int(size) for size in re.findall(rf"\b{name}\s*\[\s*(\d+)\s*\]", unit.slice(node))]
            if name and max(read, default=-1) >= count:
                message = Sentence(
                    "ComputeTiling reads {place}, but the task has {count} {what}.",
                    place=f"{name}[{max(read)}]",
                    count=count,
                    what=what,
                )
                yield at(node, "tiling", message)


def _is_argument(node: Node) -> bool:
    return node.kind != CursorKind.FIELD and node.type.spelling in TILING_POINTERS


def _structure(node: Node, operations: int) -> Iterator[Finding]:
    most = MAX_BYTES + OPERATION_BYTES * operations
    if node.type.size > most:
        message = Sentence(
            "{name} has {size} bytes; the limit is {most}.", name=STRUCTURE, size=node.type.size, most=most
        )
        yield at(node, "tiling", message)
    floats, most_floats = 0, MAX_FLOAT_BYTES + OPERATION_FLOAT_BYTES * operations
    for member in node.children:
        if member.kind not in (CursorKind.FIELD, CursorKind.STRUCT, CursorKind.ENUM, CursorKind.ACCESS):
            message = Sentence("{name} holds plain members and nothing else.", name=STRUCTURE)
            yield at(member, "tiling", message)
        elif (
            member.kind == CursorKind.FIELD
            and CursorKind.FIRST_FLOAT <= member.type.stripped <= CursorKind.HALF
        ):
            floats += max(member.type.size, 0)
    if floats > most_floats:
        message = Sentence(
            "{name} holds {size} bytes of fractions; the limit is {most}.",
            name=STRUCTURE,
            size=floats,
            most=most_floats,
        )
        yield at(node, "tiling", message)
