"""The audit gate of Triton: rules that a candidate keeps before anything of it is compiled or run.

Only Python's parser reads ``kernel.py``; its tree holds nothing but jit functions whose statements, names and
attributes stand in closed lists (allowed.py), so that running the file defines functions and does no more.
``launch.json`` is data: its names are those of the task, its numbers expressions over the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding, audit_result
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.targets.triton.audit.functions import check_function
from evokernel_core.targets.triton.audit.module import check_module, functions_of
from evokernel_core.targets.triton.audit.problems import of_record
from evokernel_core.targets.triton.audit.record import check_record
from evokernel_core.targets.triton.audit.text import NotPython, check_text, parsed
from evokernel_core.targets.triton.launch import read_launches
from evokernel_core.targets.triton.source import FILES, KERNEL, LAUNCH

__all__ = ["audit"]


def audit(task: KernelTask, source: KernelSource) -> GateResult:
    """The gate's result; its code is that of the first problem. A text that is no Python fails the compile
    gate already here."""
    written = [problem for file in FILES for problem in check_text(file, source.files[file])]
    if written:
        return audit_result(written)
    try:
        return audit_result(_problems(task, source))
    except NotPython as error:
        message = Sentence("{file}:{line}: {why}", file=KERNEL, line=error.line, why=error)
        return GateResult(GateName.COMPILE, GateStatus.FAILED, "syntax", message)


def _problems(task: KernelTask, source: KernelSource) -> Iterator[Finding]:
    tree = parsed(source.files[KERNEL])
    if isinstance(tree, Sentence):
        yield Finding("audit-size", tree, KERNEL, 1)
        return
    functions = functions_of(tree)
    yield from check_module(tree)
    for function in functions.values():
        yield from check_function(function, functions.keys())
    try:
        record = read_launches(source.files[LAUNCH])
    except UsageError as error:
        yield of_record(error.sentence)
        return
    yield from check_record(task, record, functions)
