"""What builds, tries and times kernels in AscendC on a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.check import Check
from evokernel_core.domain.first_run import RunStep
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc import backends
from evokernel_core.twin.gaps import Summary
from evokernel_core.verifier.base import TimingRequest


@frozen
class AscendCToolchain:
    """``compiler.toolchain.Toolchain``; what it needs is imported when it is asked for."""

    def backends(self) -> Mapping[str, Callable[[KernelAuthor, str], Any]]:
        return backends.BACKENDS

    def signature(self, backend: str) -> str:
        return backends.signature(backend)

    def prepare(self) -> None:
        from evokernel_core.targets.ascendc.audit.front_end import front_end_of
        from evokernel_core.twin.build import prepare

        front_end_of(prepare())

    def checks(self, python: str, *, asked: bool) -> Iterator[Check]:
        yield from ()

    def first_run(self, python: str) -> Iterator[RunStep]:
        from evokernel_core.targets.ascendc.first_run.first_run import first_run

        return first_run(python)

    def write_timeline(
        self,
        author: KernelAuthor,
        task: KernelTask,
        source: KernelSource,
        request: TimingRequest,
        page: Path,
    ) -> Summary:
        from evokernel_core.targets.ascendc.backends.twin import TwinBackend

        backend = TwinBackend(author)
        return backend.write_timeline(backend.build(task, source), request, page)
