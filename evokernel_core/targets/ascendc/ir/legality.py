"""Why a kernel is illegal on a chip, by name of the rule and the place: what can be known before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from attrs import frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.api import ApiRow, TypeRule, api_row
from evokernel_core.hardware.ascend.api.rows import DTYPES
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.allocation import Use
from evokernel_core.targets.ascendc.ir.expr import Expr, State
from evokernel_core.targets.ascendc.ir.nodes import (
    Atomic,
    Clear,
    Copy,
    Fields,
    For,
    Get,
    If,
    Instruction,
    Kernel,
    Let,
    Node,
    Runs,
    Section,
    Slice,
    SliceList,
    accesses,
    expressions_of,
)
from evokernel_core.targets.ascendc.ir.steps import mixed, unmatched
from evokernel_core.targets.ascendc.ir.tile import known_values, walk

MOST_STAGES = 4
"""Tiles under way: a load, a computation and a store of one tile each, and one to spare."""

_TENSOR = re.compile(r"LocalTensor<(\w+)>&? (\w+)")
_BITS, _PATTERN = "selMask", "src1Pattern"
"""How the table calls operands that are bits, one for each element: in bytes, or in words as wide as it."""
_TWO_BYTES = ("half", "bfloat16_t", "int16_t", "uint16_t")


@frozen
class Broken:
    """A rule that a kernel breaks at a place: ``ub-capacity``, ``queue-buffers``, ``queue-stages``,
    ``unwritten-buffer``, ``unread-buffer``, ``hidden-name``, ``queue-order``, ``queue-direction``,
    ``queue-cleared``, ``type``, ``parameter-limit``, ``alignment``, ``no-tiles``, ``preload`` or
    ``tiling``."""

    rule: str
    place: str
    reason: str


def refused_sizes(note: str) -> Sentence:
    """Why ComputeTiling returns false, as far as a requirement says it."""
    if not note:
        return Sentence("ComputeTiling refuses the sizes.")
    return Sentence("ComputeTiling refuses the sizes: {note}.", note=note)


def rough_rules(kernel: Kernel, chip: Chip, sizes: Mapping[str, int]) -> Iterator[Broken]:
    """Those of ``broken_rules`` that take no walk over the nodes; kernels that break none can be priced."""
    used = allocation.bytes_of(kernel)
    if used > chip.ub_bytes:
        reason = Sentence(
            "The buffers take {used} bytes of the {ub_bytes} of the unified buffer.",
            used=used,
            ub_bytes=chip.ub_bytes,
        )
        yield Broken("ub-capacity", "kernel", reason)
    most = chip.memory.max_queue_buffers
    for queues in ((Use.INPUT, Use.THROUGH), (Use.OUTPUT,)):
        number = sum(key.stages for key, use in allocation.uses(kernel).items() if use in queues)
        if number > most:
            reason = Sentence(
                "The queues of one position have {number} buffers, which may be {most}.",
                number=number,
                most=most,
            )
            yield Broken("queue-buffers", "kernel", reason)
    if not _has_tiles(kernel):
        yield Broken("no-tiles", "kernel", "No loop is dealt to cores.")
    _, unmet = known_values(kernel, sizes, chip.aiv)
    if unmet is not None:
        reason = refused_sizes(unmet.note)
        yield Broken("tiling", "ComputeTiling", reason)


def _has_tiles(kernel: Kernel) -> bool:
    return any(isinstance(node, For) and node.cores for node in kernel.nodes)


def broken_rules(kernel: Kernel, chip: Chip, sizes: Mapping[str, int]) -> Iterator[Broken]:
    """Every rule that the kernel breaks on a chip, for given sizes of the task's symbols."""
    yield from rough_rules(kernel, chip, sizes)
    yield from _hidden_names(kernel.body, frozenset(state.name for state in kernel.states()))
    yield from _buffers(kernel)
    yield from _queues(kernel)
    yield from _preloads(kernel)
    known, unmet = known_values(kernel, sizes, chip.aiv)
    if unmet is not None or not _has_tiles(kernel):
        return
    broken: list[Broken] = []

    def visit(node: Node, times: float, values: Mapping[str, int], inside: bool) -> None:
        if isinstance(node, Instruction | Clear):
            broken.extend(_instruction(node.instruction if isinstance(node, Clear) else node, values))
        elif isinstance(node, Copy):
            broken.extend(_alignment("DataCopyPad", node.slice, BLOCK_BYTES, values))
            broken.extend(_rows(node, values))

    walk(kernel, known, visit)
    yield from broken


def _instruction(node: Instruction, values: Mapping[str, int]) -> Iterator[Broken]:
    yield from _types(node)
    yield from _parameters(node, values)
    aligned = api_row(node.key).alignment.get("all", 1)
    if aligned > 1:
        for child, around in _places(node, values):
            yield from _alignment(node.key, child, aligned, around)


def _hidden_names(nodes: Sequence[Node], around: frozenset[str]) -> Iterator[Broken]:
    """Variables and constants that hide others of their name, which what is inside would mean."""
    for node in nodes:
        name = node.var.name if isinstance(node, (Let, Get, For)) else ""
        if name in around:
            yield Broken("hidden-name", name, "Another variable or constant around it has the name.")
        if isinstance(node, (Let, Get)):
            around |= {name}
        elif isinstance(node, (For, If, Section, Atomic)):
            for body in node.bodies:
                yield from _hidden_names(body, around | {name} if name else around)


def _buffers(kernel: Kernel) -> Iterator[Broken]:
    written = allocation.written(kernel)
    read = {child.buffer for node in kernel.nodes for writes, child in accesses(node) if not writes}
    for buffer, use in allocation.uses(kernel).items():
        if buffer.idle:
            continue
        if buffer.stages > MOST_STAGES or buffer.stages < 1 or (not use.is_queue and buffer.stages > 1):
            reason = Sentence(
                "{stages} stages are not from 1 to {most}, or nothing copies the buffer.",
                stages=buffer.stages,
                most=MOST_STAGES,
            )
            yield Broken("queue-stages", buffer.name, reason)
        if buffer.cleared and use is not Use.SCRATCH:
            yield Broken("queue-cleared", buffer.name, "What a queue hands over holds nothing from before.")
        if buffer not in written:
            yield Broken("unwritten-buffer", buffer.name, "Nothing writes what is read.")
        if buffer not in read:
            yield Broken("unread-buffer", buffer.name, "Nothing reads what is written.")
        if buffer.bytes % BLOCK_BYTES or buffer.bytes < BLOCK_BYTES:
            yield Broken(
                "alignment", buffer.name, Sentence("{bytes} bytes are no whole blocks.", bytes=buffer.bytes)
            )


def _queues(kernel: Kernel) -> Iterator[Broken]:
    """What queues cannot hand over."""
    used = allocation.uses(kernel)
    for buffer in unmatched(kernel, used):
        yield Broken("queue-order", buffer.name, "No step uses it after one that fills it.")
    for buffer in sorted(mixed(kernel, used), key=lambda node: node.name):
        reason = "The scalar unit works on it, and no step of its alone takes and gives it."
        yield Broken("queue-direction", buffer.name, reason)
    touched = {
        child.buffer
        for node in kernel.nodes
        if isinstance(node, Instruction)
        for _, child in accesses(node)
        if used[child.buffer] is Use.THROUGH
    }
    for buffer in sorted(touched, key=lambda node: node.name):
        reason = "It is loaded and stored, and an instruction works on it without a hand-over."
        yield Broken("queue-direction", buffer.name, reason)
    cleared = {node.target.buffer for node in kernel.nodes if isinstance(node, Clear)}
    for buffer in sorted(cleared, key=lambda node: node.name):
        if used[buffer] not in (Use.INPUT, Use.THROUGH):
            yield Broken("queue-direction", buffer.name, "Nothing loads what is cleared for a load.")


def _preloads(kernel: Kernel) -> Iterator[Broken]:
    """Preloaded loops whose loads a number decides that is read, or a state, in the turn around."""
    for loop in kernel.nodes:
        if not isinstance(loop, For):
            continue
        late: set[Expr] = set()
        for node in loop.body:
            if isinstance(node, Get) or (isinstance(node, Let) and _mentions(node.value, late)):
                late.add(node.var)
            elif isinstance(node, For) and node.preloaded and _load_mentions(node, late):
                reason = "What its first turn loads is not known in the turn before."
                yield Broken("preload", node.var.name, reason)


def _load_mentions(loop: For, late: set[Expr]) -> bool:
    """Whether the loads of a loop are made of what is known late."""
    inner = set(late)
    for node in loop.body:
        if isinstance(node, Let) and _mentions(node.value, inner):
            inner.add(node.var)
    loads = (node for node in loop.body if isinstance(node, Copy) and node.is_load)
    return any(_mentions(one, inner) for node in loads for one in expressions_of(node))


def _mentions(value: Expr, late: set[Expr]) -> bool:
    return any(part in late or isinstance(part, State) for part in value.walk())


def _rows(node: Copy, values: Mapping[str, int]) -> Iterator[Broken]:
    """The parameters of a copy against the limits of the API table; strides are gaps in bytes."""
    key, stride, step = ("DataCopyPadIn", "srcStride", "dstStride")
    if not node.is_load:
        key, stride, step = ("DataCopyPadOut", "dstStride", "srcStride")
    width, count = node.region.tensor.item_bytes, node.count.evaluate(values)
    rows = node.rows.evaluate(values)
    gap = (node.apart.evaluate(values) - count) * width if rows > 1 else 0
    figures = {"blockCount": rows, "blockLen": count * width, stride: gap}
    if rows > 1:
        figures[step] = node.skipped_blocks.evaluate(values)
    pitch = node.pitch.evaluate(values) * node.slice.buffer.item_bytes
    if pitch % BLOCK_BYTES:
        yield Broken(
            "alignment", key, f"Rows lie {pitch} bytes apart, which is no multiple of {BLOCK_BYTES}."
        )
    if node.is_load:
        figures["padding"] = max(node.zeros.evaluate(values), node.before.evaluate(values)) * width
    yield from beyond_limits(key, figures)


def beyond_limits(key: str, figures: Mapping[str, int]) -> Iterator[Broken]:
    """Parameters of an instruction, by name, against the limits of the API table."""
    for name, given in figures.items():
        limit = api_row(key).limit(name)
        if not limit.low <= given <= limit.high:
            reason = Sentence(
                "{name} is {given}, and takes {low} to {high}.",
                name=name,
                given=given,
                low=limit.low,
                high=limit.high,
            )
            yield Broken("parameter-limit", key, reason)


def _parameters(node: Instruction, values: Mapping[str, int]) -> Iterator[Broken]:
    """Parameters by name against the limits of the API table."""
    limited = {limit.parameter for limit in api_row(node.key).limits}
    for operand in node.operands:
        if not isinstance(operand, Fields):
            continue
        given = dict(operand.values)
        if operand.is_short:
            given["repeatTime"] = node.repeats
        figures = {name: value.evaluate(values) for name, value in given.items() if name in limited}
        yield from beyond_limits(node.key, figures)


def _types(node: Instruction) -> Iterator[Broken]:
    """Types of the operands against those that the API table lets go together."""
    broken = wrong_types(node.key, tuple(child.ctype for _, child in node.slices))
    return (Broken("type", node.key, reason) for reason in broken)


@lru_cache(maxsize=1024)
def wrong_types(key: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """What is wrong with the types of an instruction's operands, the first of which is written."""
    row = api_row(key)
    target, *others = given
    rules, fixed = row.types, _fixed_types(row, target)
    pairs = list(zip(others, (*fixed, *[""] * len(others)), strict=False))
    sources = [own for own, needed in pairs if not needed]
    found = [
        Sentence("It takes {needed} where {own} is given.", needed=needed, own=own)
        for own, needed in pairs
        if needed and own != needed
    ]
    if rules and not any(_matches(rule, target, sources) for rule in rules):
        found.append(
            Sentence(
                "It takes no {sources} for a result of {target}.",
                sources=" and ".join(sources) or "numbers",
                target=target,
            )
        )
    return tuple(found)


def _fixed_types(row: ApiRow, target: str) -> tuple[str, ...]:
    """For each source the type that every call gives it, as of offsets; empty where calls choose."""
    if not row.signatures:
        return ()
    _, *sources = _TENSOR.findall(row.signatures[0]) or ("",)
    named = {_BITS: "uint8_t", _PATTERN: "uint16_t" if target in _TWO_BYTES else "uint32_t"}
    return tuple(named.get(name, own if own in DTYPES else "") for own, name in sources)


def _matches(rule: TypeRule, target: str, sources: list[str]) -> bool:
    wanted = list(rule.sources) or [target]
    if len(wanted) == 1:  # of all sources
        wanted *= len(sources)
    return rule.dst == target and sources == wanted[: len(sources)]


def _places(node: Instruction, values: Mapping[str, int]) -> Iterator[tuple[Slice, Mapping[str, int]]]:
    """Every slice that an instruction is given, with the values at which it stands."""
    for operand in node.operands:
        if isinstance(operand, SliceList):
            for turn in range(operand.count.value):
                yield operand.slice, {**values, operand.var.name: turn}
        elif isinstance(operand, Runs):
            continue  # which may begin at any pair
        elif isinstance(operand, Slice):
            yield operand, values


def _alignment(place: str, slice_: Slice, aligned: int, values: Mapping[str, int]) -> Iterator[Broken]:
    """Slices begin at whole blocks of the unified buffer, for copies and where the API table says so."""
    start = slice_.offset.evaluate(values) * slice_.buffer.item_bytes
    if start % aligned:
        reason = f"It begins {start} bytes into {slice_.buffer.name}, which is no multiple of {aligned}."
        yield Broken("alignment", place, reason)
