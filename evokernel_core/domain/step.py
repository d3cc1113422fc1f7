"""A training sample: one step of a search, from what its author was shown to what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.files import Files
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource

SCHEMA = "evokernel-steps/2"
"""2 has the target and the files of a kernel by name; 1 had two texts, of AscendC."""


class Purpose(StrEnum):
    """What samples are for. ``SUPERVISED``: steps to imitate; ``REINFORCEMENT``: all steps, with rewards."""

    SUPERVISED = "supervised"
    REINFORCEMENT = "reinforcement"


class Author(StrEnum):
    """Who wrote the kernel: rules of EvoKernel's own, or a language model."""

    SCHEDULE = "schedule"
    MODEL = "model"


class Result(StrEnum):
    """``TIMED_ONLY``: no faster than the best before it, and therefore not compared with PyTorch."""

    VERIFIED = "verified"
    TIMED_ONLY = "timed_only"
    FAILED = "failed"


@frozen
class ShownItem:
    """An experience that the author was shown."""

    kind: ExperienceKind
    title: str
    body: str


@frozen
class Parent:
    """The kernel that the step began from, and its verdict in words."""

    target: str
    files: Mapping[str, str] = field(converter=Files)
    strategy: Strategy
    verdict: str


@frozen
class State:
    """What the author knew. ``parent`` is None in a draft; ``feedback`` is the failure of the attempt before
    this one in the verifier's words, "" where that was none; ``context`` is in the order of the memory."""

    task: KernelTask
    stage: Stage
    parent: Parent | None
    feedback: str
    context: tuple[ShownItem, ...]


@frozen
class Action:
    """The next kernel; ``diff`` is unified, from the parent (from nothing in a draft)."""

    target: str
    files: Mapping[str, str] = field(converter=Files)
    diff: str
    strategy: Strategy
    author: Author


@frozen
class StepOutcome:
    """What came of it. ``gate`` and ``code`` are of the failure, "" where there was none; ``words`` the
    verdict in words. Latencies are microseconds of the source that ``latency_source`` says, all None where
    the kernel failed; ``baseline_us`` is the same graph op by op, ``bound_us`` the roofline.
    ``speedup`` is the parent's latency over this one, None without a parent that the same verifier verified.
    ``raw_reward`` is the verifier's, in [-1, 1]; ``reward`` the same in units of the spread of such rewards
    before it. ``person`` is the last that a person did with the kernel, None for nothing."""

    result: Result
    gate: str
    code: str
    words: str
    chip: str
    verifier: str
    latency_source: LatencySource | None
    latency_us: float | None
    baseline_us: float | None
    bound_us: float | None
    speedup: float | None
    raw_reward: float
    reward: float
    person: OutcomeKind | None


@frozen
class Step:
    """``id`` is the sha256 of state and action, ``group`` that of the state alone: samples of one group
    answer the same question, so that their rewards can be compared."""

    schema: str
    id: str
    group: str
    purpose: Purpose
    state: State
    action: Action
    outcome: StepOutcome
