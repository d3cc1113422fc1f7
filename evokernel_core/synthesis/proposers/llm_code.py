"""Code in prompts: kernels of similar tasks with what made them fast, and where a kernel spends its time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Any

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import ProposerError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.language import Language, SourceToken
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency, LineTime
from evokernel_core.synthesis.privacy import Privacy, neutral
from evokernel_core.synthesis.proposers.base import Candidate, Precedent
from evokernel_core.targets.sources import language_of, main_file

LONGEST_CODE = 16_000
"""Characters of a similar task's kernel; a longer one is not shown."""
LONGEST_DIFF = 3_000
"""Characters of what changed; a longer change is cut behind a line."""
LEAST_SHARED = 0.5
"""The share of their operations that similar tasks have in common."""
LONGEST_STATEMENT = 4
"""Lines of one statement."""
LONGEST_ABOUT = 600
"""Characters that say what a similar task computes."""


def precedent(task: KernelTask, known: Iterable[Precedent], author: KernelAuthor) -> dict[str, Any] | None:
    """The kernel of the most similar task under names of ours, None where none is similar. One that this
    version cannot write again is left out: it would bring names of a file along."""
    similar = [entry for entry in known if _shared(task, entry.task) >= LEAST_SHARED]
    shown = (_shown(entry, author) for entry in sorted(similar, key=lambda entry: -_shared(task, entry.task)))
    return next(filter(None, shown), None)


def _shared(task: KernelTask, other: KernelTask) -> float:
    """The share of their operations that two tasks of a category have in common, 0 for other tasks."""
    ops, others = ({node.op for node in each.graph.nodes} for each in (task, other))
    return len(ops & others) / max(len(ops | others), 1) if task.op_category == other.op_category else 0.0


def _shown(precedent: Precedent, author: KernelAuthor) -> dict[str, Any] | None:
    latency = precedent.kernel.verdict.latency
    try:
        kernel = Privacy(precedent.task).files(precedent.kernel.source, author)
    except ProposerError:
        return None
    code = "\n".join(f"{name}:\n{text}" for name, text in kernel.files.items())
    if latency is None or len(code) > LONGEST_CODE:
        return None
    return {"us": latency.us, "source": latency.source.value, "about": _about(precedent), "code": code}


def _about(precedent: Precedent) -> str:
    """The task's operations with the shapes of their results."""
    task = neutral(precedent.task)
    steps = [
        f"{node.op} -> {', '.join(f'{spec.dtype} {list(spec.shape)}' for spec in node.outputs)}"
        for node in task.graph.nodes
    ]
    sizes = [f"{name} = {size}" for name, size in task.sizes.items()]
    return "; ".join([*steps, *sizes])[:LONGEST_ABOUT]


def change(start: KernelSource, kernel: KernelSource) -> str:
    """A unified diff of all files, cut to what a prompt has room for."""
    lines = [
        line for name, text in kernel.files.items() for line in _diff(name, start.files.get(name, ""), text)
    ]
    kept: list[str] = []
    room = LONGEST_DIFF
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept.append(f"({len(lines) - len(kept)} further lines of the change are left out)")
            break
        kept.append(line)
    return "\n".join(kept)


def _diff(name: str, before: str, after: str) -> Iterator[str]:
    yield from unified_diff(before.splitlines(), after.splitlines(), name, name, n=2, lineterm="")


def hot_lines(start: Candidate, shown: KernelSource) -> list[dict[str, Any]]:
    """The lines of a kernel that take most of its busiest pipes, as ``shown`` has them: the same
    kernel, but for names."""
    latency = start.verdict.latency
    if latency is None:
        return []
    kernel, language = main_file(shown.target), language_of(shown.target)
    text = shown.files[kernel].splitlines()
    tokens = (language.tokens(kernel, source.files[kernel]) for source in (start.source, shown))
    places = _same_lines(*tokens)
    result = ((line, places.get(line.line)) for line in _longest(latency) if line.file == kernel)
    return [
        {
            "pipe": line.pipe,
            "us": line.us,
            "calls": line.calls,
            "method": _method(text[:place], language),
            "text": _statement(text[place - 1 :], language),
        }
        for line, place in result
        if place is not None
    ]


def _same_lines(first: Sequence[SourceToken], second: Sequence[SourceToken]) -> dict[int, int]:
    """Where lines of a kernel stand in the one under other names, whose lines may be broken elsewhere. None
    where they are not the same kernel."""
    if len(first) != len(second):
        return {}
    pairs = zip(reversed(first), reversed(second), strict=True)
    return {a.line: b.line for a, b in pairs}  # the first token of a line says where it is


def _method(lines: list[str], language: Language) -> str:
    """The function in which the last of the lines stands, as far as the text shows one."""
    return next(filter(None, (_function(line, language.head) for line in reversed(lines))), "")


def _function(line: str, before: str) -> str:
    """The function whose head the line is, empty where it is none."""
    head, parenthesis, _ = line.partition(before)[2].partition("(")
    return re.split(r"\W+", head)[-1] if parenthesis else ""


def _statement(lines: list[str], language: Language) -> str:
    """The statement that begins with the first of the lines, in one line."""
    parts: list[str] = []
    for line in lines[:LONGEST_STATEMENT]:
        parts.append(line.partition(language.comment)[0].strip())
        if language.is_complete(" ".join(parts)):
            break
    return " ".join(parts)


def _longest(latency: Latency) -> list[LineTime]:
    busy = dict(latency.pipes)
    return sorted(latency.lines, key=lambda line: (-busy.get(line.pipe, 0.0), -line.us))
