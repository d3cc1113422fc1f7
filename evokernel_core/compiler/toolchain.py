"""What a target has on a machine beside its author: tools to prepare, and to try kernels with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.check import Check
from evokernel_core.domain.first_run import RunStep
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateResult


class Toolchain(Protocol):
    """Tools of a target."""

    def backends(self) -> Mapping[str, Callable[[KernelAuthor, str], Any]]:
        """What judges its kernels, by name: opens a ``verifier.base.Backend`` for an author's device, given
        the Python that runs on it ("" where none is known). Raises VerifierUnavailable where the machine
        lacks tools."""

    def signature(self, backend: str) -> str:
        """What verdicts of a backend on this machine are signed with beside its name and version."""

    def prepare(self) -> None:
        """Builds what judging kernels needs beside the twin, so that the first need not wait. Raises
        BuildError."""

    def checks(self, python: str, *, asked: bool) -> Iterator[Check]:
        """What the target has and lacks here beside the twin, with the interpreter that models run in, ""
        where none is known. What is missing fails only where the target was ``asked`` for."""

    def first_run(self, python: str) -> Iterator[RunStep]:
        """The steps of a first run on a device; ``python`` is the interpreter that runs there."""

    def write_timeline(
        self, author: KernelAuthor, task: KernelTask, source: KernelSource, request: Any, page: Path
    ) -> Any:
        """Times one launch for a ``verifier.base.TimingRequest``, writes its timeline as a page, and gives
        what it comes to, a ``twin.gaps.Summary``. Raises CandidateError, BuildError, OSError."""


class Lessons(Protocol):
    """Rules of a target's language and hardware."""

    def rules(self, failed: GateResult) -> list[Sentence]:
        """The rules that a failed gate is evidence for."""

    def is_refuted(self, text: str) -> bool:
        """Whether a rule forbids a name that the interface has."""
