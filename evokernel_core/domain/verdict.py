"""Verdict: what the verifier found, gate by gate."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.sentence import Sentence, joined


class GateName(StrEnum):
    AUDIT = "audit"
    COMPILE = "compile"
    CORRECTNESS = "correctness"
    LATENCY = "latency"


class GateStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"


class LatencySource(StrEnum):
    MODELLED = "modelled"
    MEASURED = "measured"

    @property
    def word(self) -> str:
        """What people read."""
        return "estimated" if self is LatencySource.MODELLED else self.value


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@frozen
class Hazard:
    """One broken rule of the hardware; ``code`` is stable, e.g. ``ub-capacity``."""

    code: str
    severity: Severity
    message: Sentence = field(converter=Sentence)
    file: str = ""
    line: int = 0


NUMERIC = "numeric"
"""The code of a correctness gate that found other results than PyTorch's."""
SLOWER = "slower"
"""The code of a kernel that was timed first, and not compared with PyTorch, since it gains nothing."""


@frozen
class Deviation:
    """How far results were from PyTorch's where inputs are random: the largest difference of an element, and
    the root mean square of all differences as a share of that of PyTorch's results, each the largest of all
    outputs and cases."""

    largest: float
    relative: float

    def joined(self, other: Deviation) -> Deviation:
        """That of two sets of cases."""
        return Deviation(max(self.largest, other.largest), max(self.relative, other.relative))


@frozen
class DrawnCase:
    """What a kernel was run with: sizes by name, none where those of the file are all there are, how inputs
    were drawn, and the seed that draws them again."""

    sizes: tuple[tuple[str, int], ...]
    distribution: str
    seed: int

    def words(self, *, seed: bool = True) -> Sentence:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes) or Sentence("the sizes of the file")
        if not seed:
            return Sentence(
                "(with {sizes}; inputs: {distribution})", sizes=sizes, distribution=self.distribution
            )
        return Sentence(
            "(with {sizes}; inputs: {distribution}, seed {seed})",
            sizes=sizes,
            distribution=self.distribution,
            seed=self.seed,
        )


@frozen
class GateResult:
    """One gate. ``code`` classifies a failure (e.g. ``numeric``, ``timeout``); ``feedback`` says it
    in words that a proposer can act on; ``hazards`` are those found in this gate. ``deviation`` is what
    correctness saw of a kernel that passed; None in verdicts from before that was kept. ``case`` is the one
    that failed, None where none ran."""

    gate: GateName
    status: GateStatus
    code: str = ""
    feedback: Sentence = field(default=Sentence(), converter=Sentence)
    seconds: float = 0.0
    hazards: tuple[Hazard, ...] = ()
    deviation: Deviation | None = None
    case: DrawnCase | None = None

    def words(self, *, seed: bool = True) -> Sentence:
        """The feedback with what the kernel was run with; the seed is no word for who writes kernels."""
        return joined([self.feedback, self.case.words(seed=seed)]) if self.case else self.feedback


@frozen
class LineTime:
    """What the calls on one line of a kernel's file took of a pipe of the slowest core, in microseconds."""

    pipe: str
    file: str
    line: int
    calls: int
    us: float


@frozen
class Baseline:
    """Microseconds of a graph op by op, as PyTorch runs it. ``source`` names the published row where ``us``
    was measured, and is empty where it is modelled: then half of what was measured of the category lies
    between ``low_us`` and ``high_us``."""

    us: float
    low_us: float
    high_us: float
    source: str = ""

    @property
    def word(self) -> LatencySource:
        """How ``us`` is known."""
        return LatencySource.MEASURED if self.source else LatencySource.MODELLED


_SHORTEST_US, _LONGEST_US = 1e-3, 3.6e9


@frozen
class Latency:
    """Microseconds of the full-size launch, with its source and chip.

    ``pipes`` are busy microseconds of the slowest core by pipe (S, V, MTE2, MTE3, ...).
    ``roofline_us`` is the lower bound by bytes moved and operations; ``baseline_us`` is the latency of the
    same graph run op by op, ``baseline`` all that is known of it, None in earlier verdicts. ``lines``
    are those that take most of the busiest
    pipes, and ``balance`` the mean time of all cores as a share of the slowest one's, 1 where nobody counted.
    """

    us: float
    source: LatencySource
    chip: str
    block_dim: int
    pipes: tuple[tuple[str, float], ...]
    bottleneck: Sentence = field(converter=Sentence)
    roofline_us: float
    baseline_us: float
    lines: tuple[LineTime, ...] = ()
    balance: float = 1.0
    baseline: Baseline | None = None

    @property
    def is_sound(self) -> bool:
        """Whether a kernel can take so long: a nanosecond at least, an hour at most."""
        return _SHORTEST_US <= self.us <= _LONGEST_US

    @property
    def baseline_word(self) -> LatencySource:
        """How ``baseline_us`` is known."""
        return self.baseline.word if self.baseline else LatencySource.MODELLED


def evenness(latency: Latency, cores: int) -> float:
    """The mean time of the cores that a launch uses, as a share of the slowest one's; ``cores`` is how many
    there are."""
    used = min(max(1, latency.block_dim), cores)
    return min(1.0, latency.balance * cores / used)


@frozen
class Verdict:
    """The gates in order up to the first failure. ``verifier`` names who spoke (``twin 0.1.0``,
    ``cann@host``). ``shapes`` are the bindings of the symbols that correctness ran with. ``draw`` is the
    secret, in hex, that sizes, seeds and distributions came from: with it the same cases run again.
    ``replayed`` says that it was given, so that the kernel may have known its cases. ``confinement`` says
    how far the candidate was confined, in the words of docs/security.md; it is "" in verdicts from before
    that was recorded. ``full_size`` says what of the file's own sizes was compared with PyTorch, where
    they are too large to be run as they are; "" elsewhere and in earlier verdicts. ``eager`` says what came
    of the user's own code beside the graph; None where nobody had that code, and in earlier verdicts."""

    task_id: str
    source_id: str
    verifier: str
    gates: tuple[GateResult, ...]
    latency: Latency | None = None
    shapes: tuple[tuple[tuple[str, int], ...], ...] = ()
    draw: str = ""
    replayed: bool = False
    confinement: str = ""
    full_size: Sentence = field(default=Sentence(), converter=Sentence)
    eager: EagerComparison | None = None

    @property
    def feasible(self) -> bool:
        """All gates passed and a latency is known."""
        return self.latency is not None and all(g.status is GateStatus.PASSED for g in self.gates)

    @property
    def failed_gate(self) -> GateResult | None:
        return next((g for g in self.gates if g.status is GateStatus.FAILED), None)

    @property
    def deviation(self) -> Deviation | None:
        """How far a kernel's results were from PyTorch's, None where nobody kept that."""
        return next((gate.deviation for gate in self.gates if gate.deviation), None)

    @property
    def is_slower(self) -> bool:
        """Nothing is wrong that is known: its ``latency`` was no gain, and so it was not compared."""
        failed = self.failed_gate
        return failed is not None and (failed.gate, failed.code) == (GateName.LATENCY, SLOWER)

    def is_open(self, below_us: float) -> bool:
        """Whether the kernel was timed only, and would be compared where ``below_us`` are to be beaten."""
        return self.is_slower and self.latency is not None and self.latency.us < below_us
