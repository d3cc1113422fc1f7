"""Changes of a schedule that leave results as they are: the kind of a launch, waits, the scalar unit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.mutating.changes import mutant, put
from benchmarks.mutating.mutant import PLAIN, Kind, Mutant
from benchmarks.mutating.subjects import Subject
from benchmarks.mutating.text import BINARY, SCALAR, instead, statements, with_member, with_tiling
from evokernel_core.targets.ascendc.source import KERNEL

_GUARD = """    if ASCEND_IS_AIC {
        return;
    }
    if (GetBlockIdx() >= tiling.blocks) {
        return;
    }
"""


def launch_kind(subject: Subject) -> Iterator[Mutant]:
    """Vector kernels that are launched on cube and vector cores."""
    source, text = subject.source, subject.source.files[KERNEL]
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
            with_tiling(source.with_files({KERNEL: made}), "uint32_t blocks;", host),
            (PLAIN,),
        )


def missing_sync(subject: Subject) -> Iterator[Mutant]:
    """One flag with all of its waits, one barrier, or one hand-over of a queue is gone. Flags to and from the
    scalar unit of a vector kernel stay: the compiler inserts those where they are left out (--cce-auto-sync).
    So do pairs of flags right behind a barrier of all pipes, which waits for more than they do, and barriers
    that end a kernel, behind which nothing reads.
    """
    source, text = subject.source, subject.source.files[KERNEL]
    for match in re.finditer(r"\n +(PipeBarrier<\w+>\(\)|SyncAll\([^;]*\));", text):
        if _ends_kernel(text, match.start(), match.end()):
            continue
        yield mutant(
            Kind.SYNC, subject, f"no {match[1]}", put(source, match.start(), match.end(), ""), (PLAIN,)
        )
    pairs = re.finditer(r"\n +SetFlag<HardEvent::(\w+)>\(([^;]*)\);\s*WaitFlag<HardEvent::\1>\(\2\);", text)
    for match in pairs:
        if _is_inserted(text, match[1]) or text[: match.start()].endswith("PipeBarrier<PIPE_ALL>();"):
            continue
        yield mutant(
            Kind.SYNC,
            subject,
            f"no pair of {match[1]}",
            put(source, match.start(), match.end(), ""),
            (PLAIN,),
        )
    for event in sorted(set(re.findall(r"SetFlag<HardEvent::(\w+)>", text))):
        if _is_inserted(text, event):
            continue
        made = re.sub(rf"\n +(Set|Wait)Flag<HardEvent::{event}>\([^;]*\);", "", text)
        yield mutant(Kind.SYNC, subject, f"no {event} at all", source.with_files({KERNEL: made}), (PLAIN,))
    for flag in sorted(set(re.findall(r"CrossCoreWaitFlag(?:<[^>]*>)?\((\w+)\)", text))):
        made = re.sub(rf"\n +CrossCore(Set|Wait)Flag(<[^>]*>)?\({flag}\);", "\n;", text)
        yield mutant(Kind.SYNC, subject, f"no {flag}", source.with_files({KERNEL: made}), (PLAIN,))
    for match in re.finditer(r"(\w+)\.EnQue\((\w+)\);", text):
        yield from _without_queue(subject, match[1], match[2])


def _ends_kernel(text: str, start: int, end: int) -> bool:
    """Whether nothing but closing brackets stands behind a statement of a kernel function."""
    is_in_kernel = text.rfind("__global__", 0, start) > text.rfind("\n}", 0, start)
    return is_in_kernel and re.match(r"[\s}]*\n}", text[end:]) is not None


def _is_inserted(text: str, event: str) -> bool:
    return "__global__ __vector__" in text and "S" in event.split("_")


def _without_queue(subject: Subject, queue: str, tensor: str) -> Iterator[Mutant]:
    """The tensor reaches its reader through a member, and nothing waits for what fills it."""
    text = subject.source.files[KERNEL]
    typed = re.search(rf"{queue}\.DeQue<(\w+)>\(\)", text)
    if typed is None:
        return
    made = text.replace(f"{queue}.EnQue({tensor});", f"unsynced_ = {tensor};")
    made = re.sub(rf"{queue}\.DeQue<\w+>\(\)", "unsynced_", made)
    source = with_member(subject.source.with_files({KERNEL: made}), f"LocalTensor<{typed[1]}> unsynced_;")
    yield mutant(Kind.SYNC, subject, f"no EnQue of {queue}", source, (PLAIN,))


def scalar_rewrite(subject: Subject) -> Iterator[Mutant]:
    """A vector instruction as a loop of the scalar unit: by the interface's calls, through pointers into the
    unified buffer, and through an array on the stack."""
    for item in statements(subject.source.files[KERNEL]):
        if item.op not in {**BINARY, **SCALAR} or item.dtype == "half":
            continue
        for words, loop in _LOOPS.items():
            target, left, right, count = item.arguments
            other = right if item.op in SCALAR else _ELEMENT[words].format(right, item.dtype)
            value = f"{_ELEMENT[words].format(left, item.dtype)} {({**BINARY, **SCALAR})[item.op]} {other}"
            lines = [line.format(target=target, value=value, count=count, dtype=item.dtype) for line in loop]
            waits = [
                [f"{call}<HardEvent::{event}>(6);" for call in ("SetFlag", "WaitFlag")]
                for event in ("V_S", "S_V")
            ]
            source = instead(subject.source, item, *waits[0], *lines, *waits[1])
            yield mutant(Kind.SCALAR, subject, f"{item.op} by the scalar unit, {words}", source, (PLAIN,))


_POINTER = "reinterpret_cast<__ubuf__ {1} *>(({0}).GetPhyAddr())[i]"
_ELEMENT = {
    "by calls": "({0}).GetValue(i)",
    "through pointers": _POINTER,
    "through the stack": "({0}).GetValue(i)",
}
_LOOPS = {
    "by calls": (
        "for (uint32_t i = 0; i < {count}; ++i) {{",
        "    ({target}).SetValue(i, static_cast<{dtype}>({value}));",
        "}}",
    ),
    "through pointers": (
        "for (uint32_t i = 0; i < {count}; ++i) {{",
        "    reinterpret_cast<__ubuf__ {dtype} *>(({target}).GetPhyAddr())[i] = {value};",
        "}}",
    ),
    "through the stack": (
        "for (uint32_t start = 0; start < {count}; start += 64) {{",
        "    {dtype} values[64];",
        "    for (uint32_t i = start; i < {count} && i < start + 64; ++i) {{",
        "        values[i - start] = {value};",
        "    }}",
        "    for (uint32_t i = start; i < {count} && i < start + 64; ++i) {{",
        "        ({target}).SetValue(i, values[i - start]);",
        "    }}",
        "}}",
    ),
}
"""How a loop goes over the elements."""
