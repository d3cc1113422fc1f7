"""The audit gate: rules that a candidate must keep before anything of it is compiled or run.

The candidate's files are preprocessed by the compiler in the sandbox, its own part of the result is parsed
by libclang in the sandbox, and rules look at the tree: what it declares, what it calls, which types and
constructs it uses. A few rules look at the files as written (text.py), so that all readers split them
alike. docs/security.md lists what the rules are for.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from evokernel_core import temporary
from evokernel_core.compiler.findings import Finding, audit_result
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.targets.ascendc.audit import seen
from evokernel_core.targets.ascendc.audit.front_end import front_end_of
from evokernel_core.targets.ascendc.audit.reader import Unreadable
from evokernel_core.targets.ascendc.audit.rules import findings
from evokernel_core.targets.ascendc.audit.rules.launcher import check_launcher
from evokernel_core.targets.ascendc.audit.rules.tiling import check_arguments
from evokernel_core.targets.ascendc.audit.text import check_conditions, check_text
from evokernel_core.targets.ascendc.audit.unit import ParseError
from evokernel_core.targets.ascendc.audit.words import check_words
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.twin.build import CandidateError, Twin, prepare

__all__ = ["audit"]


def audit(task: KernelTask, source: KernelSource) -> GateResult:
    """The gate's result; its code is that of the first finding.

    A text that does not compile fails the compile gate already here: there is no tree to audit. Raises
    BuildError where the tools fail.
    """
    files = {name: source.files[name] for name in (KERNEL, TILING)}
    written = [violation for file, text in files.items() for violation in check_text(file, text)]
    written += check_conditions(files)
    if written:
        return audit_result(written)
    try:
        with _uncollected():
            return _audit_tree(task, files, prepare())
    except CandidateError as error:
        return GateResult(GateName.COMPILE, GateStatus.FAILED, error.code, error.feedback)


@contextmanager
def _uncollected() -> Iterator[None]:
    """A tree of many thousand nodes is all in use until its end: a collector that looks for cycles meanwhile
    goes over it, and over all that torch loaded, and finds nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _audit_tree(task: KernelTask, files: Mapping[str, str], twin: Twin) -> GateResult:
    eyes = front_end_of(twin)
    with temporary.folder("audit") as name:
        work = Path(name)
        texts = seen.own_texts(twin, files, work)
        contents = [part for text in texts for part in (*text.findings, *check_words(text))]
        if contents:
            return audit_result(contents)
        errors: list[ParseError] = []
        for index, text in enumerate(texts):
            is_kernel = index == 0 or bool(text.of(KERNEL).lines)
            try:
                unit = eyes.parse(text.for_parser())
            except Unreadable:
                message = Sentence(
                    "The file is nested too deeply or too long for the audit; write it plainly."
                )
                return audit_result([*contents, Finding("audit-size", message, KERNEL, 1)])
            errors += unit.errors
            contents += findings(unit, eyes.interface, len(task.graph.nodes))
            contents += check_arguments(unit, task)
            if is_kernel:
                contents += check_launcher(unit, files[KERNEL], task)
        if not contents and errors:
            seen.explain(twin, work)
            first = errors[0]
            message = Sentence("The audit does not understand this: {message}.", message=first.message)
            contents.append(Finding("audit-parse", message, first.file, first.line))
    return audit_result(contents)
