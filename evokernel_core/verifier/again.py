"""Judges a kernel again that came in a package, from whomever."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from attrs import evolve

from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.interpreter import find_interpreter
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.verifier.confined import ConfinedReferences
from evokernel_core.verifier.factory import open_verifier


def verify_again(
    task: KernelTask,
    source: KernelSource,
    settings: Settings,
    near: Path,
    *,
    backend: str = "",
    trust: bool = False,
    replay: str = "",
) -> Verdict:
    """The verdict of a backend, by default the first of the target; the reference runs in a sandbox unless
    ``trust`` says that the package is one's own.

    ``near`` is the package's folder. Raises InterpreterUnavailable, VerifierError, UsageError.
    """
    # a Python that came with the package is not run: any torch computes its reference
    interpreter = find_interpreter(settings.interpreter, *([near] if trust else []))
    with ExitStack() as stack:
        path = str(interpreter.path)
        reference: AgentClient | ConfinedReferences = AgentClient(path) if trust else ConfinedReferences(path)
        stack.enter_context(reference)
        settings = evolve(settings, interpreter=path)
        name = "" if settings.verifier_url else backend
        return open_verifier(settings, reference, name, replay=replay, thorough=True).verify(task, source)
