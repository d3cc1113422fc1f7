"""Changes of a schedule that leave results as they are: the kind of a launch, waits, the scalar unit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import evolve

from benchmarks.mutating.changes import mutant, put
from benchmarks.mutating.mutant import PLAIN, Kind, Mutant
from benchmarks.mutating.subjects import Subject
from benchmarks.mutating.text import BINARY, SCALAR, instead, statements, with_member, with_tiling

_GUARD = """    if ASCEND_IS_AIC {
        return;
    }
    if (GetBlockIdx() >= tiling.blocks) {
        return;
    }
"""


def launch_kind(subject: Subject) -> Iterator[Mutant]:
    """Vector kernels that are launched on cube and vector cores."""
    source, text = subject.source, subject.source.op_kernel_cpp
    if text.count("__global__ __vector__") != 1 or "SyncAll" in text:
        return
    for ratio, blocks in ((1, "tiling.blocks"), (2, "(tiling.blocks + 1) / 2"), (2, "tiling.blocks")):
        made = text.replace("GetBlockNum()", "tiling_.blocks").replace("tiling_.blockDim", "tiling_.blocks")
        made = made.replace("__global__ __vector__", f"__global__ __mix__(1, {ratio})")
        made = made.replace("    TPipe pipe;", _GUARD + "    TPipe pipe;")
        host = f"tiling.blocks = tiling.blockDim; tiling.blockDim = {blocks};"
        yield mutant(
            Kind.LAUNCH,
            subject,
            f"__mix__(1, {ratio}) of {blocks}",
            with_tiling(evolve(source, op_kernel_cpp=made), "uint32_t blocks;", host),
            (PLAIN,),
        )


def missing_sync(subject: Subject) -> Iterator[Mutant]:
    """One flag with all of its waits, one barrier, or one hand-over of a queue is gone."""
    source, text = subject.source, subject.source.op_kernel_cpp
    for match in re.finditer(r"\n +(PipeBarrier<\w+>\(\)|SyncAll\([^;]*\));", text):
        yield mutant(
            Kind.SYNC, subject, f"no {match[1]}", put(source, match.start(), match.end(), ""), (PLAIN,)
        )
    pairs = re.finditer(r"\n +SetFlag<HardEvent::(\w+)>\(([^;]*)\);\s*WaitFlag<HardEvent::\1>\(\2\);", text)
    for match in pairs:
        yield mutant(
            Kind.SYNC,
            subject,
            f"no pair of {match[1]}",
            put(source, match.start(), match.end(), ""),
            (PLAIN,),
        )
    for event in sorted(set(re.findall(r"SetFlag<HardEvent::(\w+)>", text))):
        made = re.sub(rf"\n +(Set|Wait)Flag<HardEvent::{event}>\([^;]*\);", "", text)
        yield mutant(Kind.SYNC, subject, f"no {event} at all", evolve(source, op_kernel_cpp=made), (PLAIN,))
    for flag in sorted(set(re.findall(r"CrossCoreWaitFlag(?:<[^>]*>)?\((\w+)\)", text))):
        made = re.sub(rf"\n +CrossCore(Set|Wait)Flag(<[^>]*>)?\({flag}\);", "\n;", text)
        yield mutant(Kind.SYNC, subject, f"no {flag}", evolve(source, op_kernel_cpp=made), (PLAIN,))
    for match in re.finditer(r"(\w+)\.EnQue\((\w+)\);", text):
        yield from _without_queue(subject, match[1], match[2])


def _without_queue(subject: Subject, queue: str, tensor: str) -> Iterator[Mutant]:
    """The tensor reaches its reader through a member, and nothing waits for what fills it."""
    text = subject.source.op_kernel_cpp
    typed = re.search(rf"{queue}\.DeQue<(\w+)>\(\)", text)
    if typed is None:
        return
    made = text.replace(f"{queue}.EnQue({tensor});", f"unsynced_ = {tensor};")
    made = re.sub(rf"{queue}\.DeQue<\w+>\(\)", "unsynced_", made)
    source = with_member(evolve(subject.source, op_kernel_cpp=made), f"LocalTensor<{typed[1]}> unsynced_;")
    yield mutant(Kind.SYNC, subject, f"no EnQue of {queue}", source, (PLAIN,))


def scalar_rewrite(subject: Subject) -> Iterator[Mutant]:
    """A vector instruction as a loop of the scalar unit."""
    for item in statements(subject.source.op_kernel_cpp):
        if item.op not in {**BINARY, **SCALAR}:
            continue
        target, left, right, count = item.arguments
        value = f"({right}).GetValue(i)" if item.op in BINARY else right
        operator = {**BINARY, **SCALAR}[item.op]
        if item.dtype == "half":
            value = f"static_cast<float>({value})"
        result = f"static_cast<{item.dtype}>(({left}).GetValue(i) {operator} {value})"
        if item.dtype == "half":
            result = f"static_cast<half>(static_cast<float>(({left}).GetValue(i)) {operator} {value})"
        yield mutant(
            Kind.SCALAR,
            subject,
            f"{item.op} by the scalar unit",
            instead(
                subject.source,
                item,
                "SetFlag<HardEvent::V_S>(6);",
                "WaitFlag<HardEvent::V_S>(6);",
                f"for (uint32_t i = 0; i < {count}; ++i) {{",
                f"    ({target}).SetValue(i, {result});",
                "}",
                "SetFlag<HardEvent::S_V>(6);",
                "WaitFlag<HardEvent::S_V>(6);",
            ),
            (PLAIN,),
        )
