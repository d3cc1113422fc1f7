"""What the report shows, in classes without a word of how it is drawn."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.domain.verdict import LatencySource


@frozen
class Evidence:
    """Where latencies come from. Figures of two of them are never put side by side."""

    source: LatencySource
    chip: str

    def __str__(self) -> str:
        return f"{self.source.word} on {self.chip}"


@frozen
class TaskFigures:
    """The kernels of a task by one evidence (None: none has a latency). ``failed`` of ``tried`` broke a gate,
    ``timed_only`` were no gain and not compared.

    Latencies in microseconds, None where none was verified: ``first_us`` of the kernel that was verified
    first, ``best_us`` of the best, ``eager_us`` of eager PyTorch, ``bound_us`` the roofline limit with a
    launch. ``person`` is the last that the user did with one of them, "" for nothing. ``where`` is the
    function and line for which it was last asked, "" where nobody noted it; ``shape`` the largest input's.
    """

    task: str
    name: str
    category: str
    evidence: Evidence | None
    tried: int
    verified: int
    timed_only: int
    failed: int
    first_us: float | None = None
    best_us: float | None = None
    eager_us: float | None = None
    bound_us: float | None = None
    verifier: str = ""
    person: str = ""
    where: str = ""
    shape: str = ""

    @property
    def gain(self) -> float | None:
        """Eager latency over the best one."""
        return self.eager_us / self.best_us if self.eager_us and self.best_us else None


@frozen
class Try:
    """Attempt ``n`` (from 1) on a task by one evidence: microseconds where it has a latency, ``result`` as in
    training samples (``none``: no kernel), ``what`` was tried, and the best verified latency so far."""

    n: int
    stage: str
    result: str
    us: float | None
    best_us: float | None
    what: str


@frozen
class Point:
    """At ``n`` attempts behind a task's first verified kernel, the geometric mean over tasks of that kernel's
    latency over the best one's, with its 95 % interval; ``searching`` of the tasks had so many attempts."""

    n: int
    mean: float
    low: float
    high: float
    searching: int


@frozen
class Belief:
    """What the memory held of what a kernel was made from, just before; and what came of the kernel:
    the verifier's reward, and the same as it was paid, both in [-1, 1]."""

    stage: str
    category: str
    task: str
    believed: float
    raw: float
    paid: float


@frozen
class Agreement:
    """Spearman's rank correlation of belief and reward over ``n`` kernels of a stage, with its 95 %
    interval; None where all were believed, or rewarded, alike."""

    stage: str
    n: int
    rho: float | None = None
    low: float | None = None
    high: float | None = None


@frozen
class Reaction:
    """How often people did something with kernels of a category."""

    category: str
    kind: str
    count: int


@frozen
class Item:
    """An item of the memory and its value in a stage; ``category`` is "" over all of them."""

    q: float
    updates: int
    stage: str
    category: str
    title: str


@frozen
class Report:
    """Everything on the page. ``tries`` and ``curves`` are by evidence in words, ``tries`` then by task."""

    version: str
    kernels: tuple[TaskFigures, ...]
    tries: dict[str, dict[str, tuple[Try, ...]]]
    curves: dict[str, tuple[Point, ...]]
    beliefs: tuple[Belief, ...]
    agreements: tuple[Agreement, ...]
    reactions: tuple[Reaction, ...]
    objections: tuple[tuple[str, int], ...]
    items: tuple[Item, ...]
    counts: tuple[tuple[str, int], ...]

    @property
    def evidences(self) -> tuple[Evidence, ...]:
        """Measured ones first."""
        result = dict.fromkeys(kernel.evidence for kernel in self.kernels if kernel.evidence)
        return tuple(
            sorted(result, key=lambda element: (element.source is LatencySource.MODELLED, element.chip))
        )
