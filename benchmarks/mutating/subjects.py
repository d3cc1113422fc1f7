"""A task of the table, captured, with the kernel that our own author writes for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from benchmarks.mutating.table import Row, module_text
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.errors import CaptureError, EvoKernelError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.target import ASCENDC


@frozen(eq=False)
class Subject:
    """A row of the table with its task and honest kernel."""

    row: Row
    task: KernelTask
    source: KernelSource

    @property
    def name(self) -> str:
        return f"{self.row.family}: {self.row.name}"


@frozen
class Author:
    """Captures formulas and writes kernels for them."""

    agent: AgentClient
    chip: Chip
    folder: Path

    def subject(self, row: Row) -> Subject:
        """The row's own kernel. Raises EvoKernelError where it has none."""
        task = self._task(row, row.formula)
        return Subject(row, task, write(task, initial(task, self.chip), self.chip))

    def kernel_of(self, subject: Subject, formula: str) -> KernelSource | None:
        """A kernel for another formula that is launched as the subject's is; None where there is none."""
        try:
            task = self._task(subject.row, formula)
            if _interface(task) != _interface(subject.task):
                return None
            return write(task, initial(task, self.chip), self.chip)
        except EvoKernelError:
            return None

    def moved(self, subject: Subject, most: int) -> Iterator[tuple[str, KernelSource]]:
        """Kernels one step away from the subject's, with the step's name."""
        task = subject.task
        seen = {subject.source.source_id}
        for move in moves(task, initial(task, self.chip), self.chip):
            if len(seen) > most:
                return
            try:
                source = write(task, move.strategy, self.chip)
            except EvoKernelError:
                continue
            if source.source_id not in seen:
                seen.add(source.source_id)
                yield str(move.name), source

    def _task(self, row: Row, formula: str) -> KernelTask:
        path = self.folder / f"{re.sub('[^a-z0-9]+', '_', f'{row.family} {row.name}'.lower())}.py"
        text = module_text(row, formula)
        path.write_text(text)
        regions = self.agent.capture(path, text, covered_ops(ASCENDC), whole=True)
        tasks = [region.task for region in regions if region.task is not None]
        if len(tasks) != 1:
            raise CaptureError("{formula} is {count} kernels.", formula=formula, count=len(tasks))
        return tasks[0]


def _interface(task: KernelTask) -> object:
    inputs = [(item.name, item.kind, item.spec.dtype, item.spec.shape) for item in task.graph.inputs]
    outputs = [(spec.dtype, spec.shape) for spec in task.graph.output_specs()]
    return inputs, outputs, [(symbol.name, symbol.size) for symbol in task.symbols]
