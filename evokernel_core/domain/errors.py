"""The one tree of exceptions.

    EvoKernelError
    ├── UsageError              wrong arguments or configuration (exit status 2)
    │   ├── TaskRefused         a task that asks for more than the allow-list of operations and sizes
    │   ├── PackageChanged      a kernel package whose files are not the ones that were verified
    │   └── ExtraMissing        packages that the light install leaves out
    ├── CaptureError            no graph could be had from the user's file; carries a reason code
    │   ├── ShapesNeeded        nothing in the file says the input shapes
    │   ├── InterpreterUnavailable  no interpreter, or one without torch
    │   ├── ImportFailed        the user's file raised while it was imported or built
    │   ├── UnsupportedRegion   an op, a dtype or control flow that no family covers
    │   └── AgentFailed         the torch agent hung, died or broke the protocol
    ├── PlanError               a graph or schedule that no kernel can be written for
    ├── BuildError              the C++ compiler failed outside the candidate's code
    │   └── CompilerMissing     no C++ compiler, or only old ones; the work can be queued
    ├── VerifierError           the verifier could not judge (not: the kernel is wrong)
    │   └── VerifierUnavailable a remote verifier is away; the work can be queued
    ├── ProposerError           a proposer could not write a kernel
    │   ├── BudgetExhausted     no token or attempt is left
    │   ├── ProposalsExhausted  the proposer has nothing new left to try
    │   ├── NothingToGain       the model says that a kernel cannot be made faster
    │   ├── AnswerUnreadable    the model's answer is cut off, empty or not in the format asked for
    │   └── EndpointError       the model endpoint refused, timed out or broke the protocol
    ├── StoreError              the memory database cannot be read or written
    ├── KeyringUnavailable      the system's keyring is missing, locked or silent
    ├── EditConflict            the text under an edit changed since it was planned
    └── InternalError           a defect of EvoKernel's own, with the exception's type

Each message is one sentence that says what happened and what to do. It is given as a template with named
values, ``PlanError("{op} of {dtype} is not covered.", op=op, dtype=dtype)``, and kept as a Sentence, which
the language server says in the language of the editor; ``str`` of an error is English.
"""

from __future__ import annotations

from evokernel_core.domain.sentence import Sentence


class EvoKernelError(Exception):
    """Base of every error that EvoKernel raises on purpose."""

    exit_status = 1

    def __init__(self, template: str = "", /, **values: object) -> None:
        super().__init__(Sentence(template, **values))

    @property
    def sentence(self) -> Sentence:
        """What happened and what to do, still to be translated."""
        return Sentence(self.args[0])


class UsageError(EvoKernelError):
    """Wrong arguments or configuration."""

    exit_status = 2


class TaskRefused(UsageError):
    """A task from elsewhere that is no computation which kernels are written for."""


class PackageChanged(UsageError):
    """Files of a kernel package are not the ones that were verified."""


class ExtraMissing(UsageError):
    """Packages are missing that the light install leaves out."""


class CaptureError(EvoKernelError):
    """No graph could be captured; ``reason`` is a stable code for programs."""

    reason = "capture_failed"


class ShapesNeeded(CaptureError):
    """Nothing in the file says the shapes of the inputs."""

    reason = "needs_shapes"


class InterpreterUnavailable(CaptureError):
    """There is no Python interpreter, or it has no torch."""

    reason = "no_interpreter"


class ImportFailed(CaptureError):
    """The user's file raised while it was imported or its model was built."""

    reason = "import_failed"


class UnsupportedRegion(CaptureError):
    """An op, a dtype or control flow that no kernel family covers."""

    reason = "unsupported"


class AgentFailed(CaptureError):
    """The torch agent hung, died or broke the protocol."""

    reason = "agent_failed"


class PlanError(EvoKernelError):
    """A graph or schedule for which no kernel can be written."""


class StrategyError(PlanError):
    """A stored strategy that is no schedule of this version: the task can be drafted anew."""


class BuildError(EvoKernelError):
    """The C++ tool chain is missing or failed outside the candidate's code."""


class CompilerMissing(BuildError):
    """This machine has no C++ compiler that is new enough; the work can be queued until it has one."""


class VerifierError(EvoKernelError):
    """The verifier could not judge; this says nothing about the kernel."""


class VerifierUnavailable(VerifierError):
    """A remote verifier is away; the work can be queued."""


class ProposerError(EvoKernelError):
    """A proposer could not write a kernel; ``exhausted`` says that asking again is no use, ``tokens`` are
    those that a model was paid for it."""

    exhausted = False
    tokens = 0


class BudgetExhausted(ProposerError):
    """No token or attempt is left."""

    exhausted = True


class ProposalsExhausted(ProposerError):
    """The proposer has nothing new left to try from where it stands."""

    exhausted = True


class NothingToGain(ProposerError):
    """The model says that nothing is to gain; what is there is its result, and no failure."""


class AnswerUnreadable(ProposerError):
    """A model's answer that is cut off, empty or not in the format that was asked for."""


class EndpointError(ProposerError):
    """The model endpoint refused, timed out or broke the protocol."""


class StoreError(EvoKernelError):
    """The memory database cannot be read or written."""


class KeyringUnavailable(EvoKernelError):
    """The system's keyring is missing, locked or silent."""


class EditConflict(EvoKernelError):
    """The text under an edit changed since the edit was planned."""


class InternalError(EvoKernelError):
    """A defect of our own; it costs one region, and its traceback is in the log."""

    reason = "internal"
