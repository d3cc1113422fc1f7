"""What a proposer is given, what it answers, and the protocol between them and the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from attrs import field, frozen

from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.synthesis.preconditions import Precondition
from evokernel_core.synthesis.residual import UNTAUGHT, Residual
from evokernel_core.synthesis.step_model import StepModel
from evokernel_core.verifier.base import Cancelled, never


@frozen
class Candidate:
    """A kernel that was verified. ``parent`` is the source_id it was refined from, "" for a draft."""

    source: KernelSource
    verdict: Verdict
    parent: str = ""

    @property
    def latency_us(self) -> float:
        """Latency of a feasible candidate, infinite for any other."""
        latency = self.verdict.latency
        return latency.us if latency is not None and self.verdict.feasible else float("inf")


@frozen
class Precedent:
    """The best kernel of another task."""

    task: KernelTask
    kernel: Candidate


Precedents = Callable[[], tuple[Precedent, ...]]


def no_precedents() -> tuple[Precedent, ...]:
    """The precedents of a context that no memory gave."""
    return ()


@frozen
class Begun:
    """A kernel whose verdict is awaited; ``parent`` as a Candidate's."""

    source: KernelSource
    parent: str = ""


@frozen
class Context:
    """What the engine knows when it asks for a kernel.

    ``experiences`` come from the memory, best first. ``start`` is the kernel to refine, None while
    drafting. ``children`` are the earlier attempts on this task that a proposer should not repeat:
    those made from ``start``, or every draft while drafting; ``candidates`` all that were verified for it in
    this run. ``feedback`` is the last failure in the
    verifier's words, empty after a success. ``tried`` are the source_ids of every kernel that was
    already verified for this task, or is being verified. ``unwanted`` are schedules that people turned
    down for similar tasks, not to begin with; ``asked`` the reasons for which they rejected kernels of
    this one. ``away_from`` are cells: drafts of others are wanted first. ``residual`` says how far
    estimates for this chip are from verdicts, ``preconditions`` which schedules fail on it; ``order`` says
    what moves give, where a step model is asked instead of estimates. ``job`` is
    the run's id, for what it may spend, ``attempts_left`` the kernels that it may still verify of its
    ``budget`` (0: none is set), ``history`` the best latency after each attempt; once
    ``cancelled`` says so, nobody waits for an answer. ``precedents`` gives the kernels behind the
    experiences, for a proposer that reads code.
    """

    experiences: tuple[Experience, ...] = ()
    start: Candidate | None = None
    children: tuple[Candidate, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    feedback: str = ""
    tried: frozenset[str] = frozenset()
    unwanted: tuple[Strategy, ...] = ()
    asked: tuple[str, ...] = ()
    away_from: tuple[Descriptor, ...] = ()
    residual: Residual = UNTAUGHT
    preconditions: tuple[Precondition, ...] = ()
    order: StepModel | None = field(default=None, eq=False, repr=False)
    job: str = ""
    attempts_left: int = 10_000
    budget: int = 0
    history: tuple[float | None, ...] = ()
    cancelled: Cancelled = field(default=never, eq=False, repr=False)
    precedents: Precedents = field(default=no_precedents, eq=False, repr=False)


@frozen
class Priced:
    """What the author says a schedule takes, and the features by which that is judged later."""

    family: str
    estimate_us: float
    features: tuple[tuple[str, float], ...]


@frozen
class Proposal:
    """A kernel to verify. ``used`` are ids of the experiences that shaped it; they get the reward. ``shown``
    are those of all that the proposer was shown.
    ``tokens`` are those that a language model spent on it. ``learned`` are items among ``used`` that
    the memory may not hold yet; they are added before they are valued. ``timed_first``: a refinement by a
    rule of our own, which nobody wants to see compared with PyTorch where it is no faster. ``priced`` is its
    estimate, None where nobody made one; ``others`` are further kernels for the same question, to be verified
    next."""

    source: KernelSource
    used: tuple[str, ...] = ()
    tokens: int = 0
    learned: tuple[Experience, ...] = ()
    timed_first: bool = False
    shown: tuple[str, ...] = ()
    priced: Priced | None = None
    others: tuple[Proposal, ...] = ()


class Proposer(Protocol):
    """Writes kernels. Both methods raise ProposerError; one whose ``exhausted`` is true says that
    nothing new is left (for ``refine``: nothing from that start point)."""

    @property
    def name(self) -> str: ...

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        """A kernel from nothing but the task and the memory."""
        ...

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        """A kernel that should be faster than ``context.start``."""
        ...


@runtime_checkable
class MoveProposer(Proposer, Protocol):
    """A proposer whose refinements are named moves, each a memory item with a value of its own."""

    def practices(self, task: KernelTask, context: Context) -> tuple[Experience, ...]:
        """One item per move that is still open from ``context.start``, in the proposer's own order.

        ``refine`` then prefers, of moves that promise as much, the first in ``context.experiences``.
        """
        ...
