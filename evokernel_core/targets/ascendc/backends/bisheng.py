"""The vendor's compiler as a second opinion: what the twin compiles must compile with bisheng too.

It needs CANN's toolkit and no NPU. A kernel that passes is one that the device compiler takes; what the
kernel does and how long it takes is still said by the other backend.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evokernel_core import temporary
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.logs import get_logger
from evokernel_core.targets.ascendc.backends.cann_tools import Toolkit, compile_command, find_toolkit, watched
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.compiler import diagnostics, feedback
from evokernel_core.twin.run import run_process
from evokernel_core.verifier.base import Backend, Case, Execution, Timing, TimingRequest

WALL_SECONDS = 240.0
"""bisheng compiles a kernel once for each kind of core, with more templates than the twin has."""
PROBE = """\
#include "kernel_operator.h"
extern "C" __global__ __vector__ void probe(GM_ADDR y)
{
    AscendC::GlobalTensor<float> global;
    global.SetGlobalBuffer((__gm__ float *)y);
}
"""
"""A kernel that compiles wherever the toolkit is whole."""

log = get_logger(__name__)


@functools.cache
def find_gate() -> Toolkit | None:
    """The toolkit whose compiler judges here: one that is found and compiles a kernel of two lines.

    One that does not is left out with a line in the log; `evokernel doctor --npu` says why.
    """
    toolkit = find_toolkit()
    if toolkit is None:
        return None
    try:
        problem = compile_problem(toolkit, {KERNEL: PROBE})
    except CandidateError as error:
        problem = error.feedback
    if problem:
        log.warning("bisheng does not work and is left out", bisheng=str(toolkit.bisheng), reason=problem)
        return None
    return toolkit


def gate_name(toolkit: Toolkit | None) -> str:
    """What a verifier's name says of it: ``" + bisheng 9.1.0"``, "" without."""
    return f" + bisheng {toolkit.version or 'of unknown version'}" if toolkit else ""


def compile_problem(toolkit: Toolkit, files: Mapping[str, str]) -> str:
    """What bisheng says against ``op_kernel.cpp`` among the files, "" where it compiles. Raises as
    ``said_against``."""
    with temporary.folder("bisheng") as name:
        command = compile_command(toolkit, (KERNEL,), "op_kernel.o", link=False)
        return said_against(toolkit, files, command, Path(name))


def said_against(toolkit: Toolkit, files: Mapping[str, str], command: Sequence[str], folder: Path) -> str:
    """What a command of bisheng's says against files that are put into its folder, "" where it ends well.
    Raises CandidateError with code ``compile-timeout``."""
    for file, text in files.items():
        (folder / file).write_text(text)
    environment = {**toolkit.environment(os.environ), "LC_ALL": "C", "TMPDIR": str(folder)}
    finished = run_process(watched(command), folder, WALL_SECONDS, environment)
    if finished.timed_out:
        raise CandidateError(
            "compile-timeout", "bisheng needs more than {seconds} s.", seconds=f"{WALL_SECONDS:.0f}"
        )
    if not finished.exit_code:
        return ""
    return feedback(diagnostics(finished.stderr, tuple(files)), finished.stderr)


class WithBisheng:
    """A backend whose candidates must compile with the vendor's compiler as well."""

    def __init__(self, backend: Backend, toolkit: Toolkit) -> None:
        self._backend = backend
        self._toolkit = toolkit
        self.name = backend.name + gate_name(toolkit)

    @property
    def author(self) -> KernelAuthor:
        return self._backend.author

    @property
    def latency_source(self) -> LatencySource:
        return self._backend.latency_source

    @property
    def confinement(self) -> str:
        return self._backend.confinement

    @property
    def samples(self) -> bool:
        return self._backend.samples

    def build(self, task: KernelTask, source: KernelSource) -> Any:
        """What the backend builds. Raises CandidateError with bisheng's words where only it refuses."""
        built = self._backend.build(task, source)
        problem = compile_problem(self._toolkit, source.files)
        if problem:
            raise CandidateError(
                "compile-bisheng", "bisheng refuses what the twin compiles:\n{problem}", problem=problem
            )
        return built

    def execute(self, built: Any, case: Case) -> Execution:
        return self._backend.execute(built, case)

    def measure(self, built: Any, request: TimingRequest) -> Timing:
        return self._backend.measure(built, request)
