"""What tools answer: models whose schemas clients are told.

Latencies are microseconds; a ``source`` is ``modelled`` (estimated, by the twin) or ``measured``. In a plan
all are estimated but those that ``measured`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from evokernel_core.domain.region import RegionStatus
from evokernel_core.domain.verdict import Hazard, Latency, LatencySource, Verdict
from evokernel_core.synthesis.offers import Offer, gain_of
from evokernel_core.targets.sources import main_first
from evokernel_core.twin.gaps import Summary
from evokernel_core.twin.hazards import hazard_rules
from evokernel_mcp.foreign import named, quoted, told

MOST_ANSWER = 8_000
"""Characters of a list in an answer. Agents cut what is longer than they take, in the middle: the narrowest,
Codex with a model that it does not know, kept 12,000."""
MOST_HAZARDS = 3_000
"""Characters of all hazards in an answer."""
MOST_MESSAGE = 1_000
MOST_TEXT = 4_000
MOST_NAME = 200
MOST_LINES = 8

T = TypeVar("T")
A = TypeVar("A", bound=BaseModel)


class RegionAnswer(BaseModel):
    """Code that one call of a kernel can replace, or why it has none."""

    id: str = Field(default="", description="None: it has no kernel, and reason says why.")
    symbol: str
    lines: str = Field(description="As 12-15.")
    category: str = ""
    status: str = ""
    reason: str = ""
    now_us: float | None = Field(default=None, description="Eager.")
    kernel_us: float | None = Field(default=None, description="Of the best kernel, verified or planned.")
    bound_us: float | None = Field(default=None, description="Roofline limit.")
    gain: float | None = Field(default=None, description="Share of the time that the kernel saves.")
    within_error: bool | None = Field(default=None, description="The gain may be none.")
    verified: bool | None = None
    measured: list[str] = Field(default=[], description="Which of now_us and kernel_us were measured.")
    vendor: str = Field(default="", description="The function of torch_npu that computes it.")


class DefinitionAnswer(BaseModel):
    symbol: str
    line: int
    end_line: int
    inputs_known: bool = Field(description="Whether the file says its inputs.")


class PlanAnswer(BaseModel):
    path: str
    trusted: bool
    regions: list[RegionAnswer] = []
    definitions: list[DefinitionAnswer] = Field(default=[], description="Of a file that is only parsed.")
    total: int
    next_offset: int | None = None
    interpreter: str = ""
    chip: str = ""
    note: str = ""


class HazardAnswer(BaseModel):
    code: str
    severity: str
    message: str
    file: str = ""
    line: int = 0


class GateAnswer(BaseModel):
    gate: str
    status: str
    code: str = ""
    feedback: str = Field(default="", description="What compilers and kernels say is quoted.")
    seconds: float = 0.0


class LineAnswer(BaseModel):
    line: int
    pipe: str
    us: float


class LatencyAnswer(BaseModel):
    us: float
    source: str
    chip: str
    baseline_us: float
    baseline_source: str
    bound_us: float
    gain: float
    block_dim: int
    pipes: dict[str, float] = Field(description="Busy microseconds of the slowest core by pipe.")
    bottleneck: str
    hot_lines: list[LineAnswer] = Field([], description="Lines of the kernel that take most of a busy pipe.")


class VerdictAnswer(BaseModel):
    """What the verifier found, gate by gate up to the first failure."""

    source_id: str
    verified: bool
    gates: list[GateAnswer]
    hazards: list[HazardAnswer] = []
    more_hazards: int = 0
    latency: LatencyAnswer | None = None
    verifier: str
    confinement: str = ""
    notes: list[str] = Field(default=[], description="Of the kernel's author, quoted.")
    sources: list[str] = Field(default=[], description="Resources with the kernel's files.")


class GenerateAnswer(BaseModel):
    status: str
    reason: str
    attempts: int
    first_us: float | None = None
    kernel: VerdictAnswer | None = None
    vendor: str = ""
    vendor_us: float | None = None
    left_alone: str = Field(default="", description="Why the kernel would not be applied unasked.")


class VerdictsAnswer(BaseModel):
    kernels: list[VerdictAnswer]
    total: int
    next_offset: int | None = None


class LaunchAnswer(BaseModel):
    kernel: str
    block_dim: int
    latency_us: float | None = None
    pipes: dict[str, float] = {}
    bottleneck: str = ""


class PipeAnswer(BaseModel):
    """A pipe of the slowest core: scalar S, vector V, cube M, copies MTE1 to MTE3, FIX."""

    pipe: str
    busy_us: float
    share: float = Field(description="Of the launch.")
    waits: dict[str, float] = Field(description="Microseconds by the pipe that was waited for.")


class GapAnswer(BaseModel):
    """A pipe with nothing to do."""

    pipe: str
    start_us: float
    us: float
    waits_for: str = Field(description="The pipe that let the next instruction begin.")
    before: str = Field(description="That instruction.")
    at: str = Field(description="Its file and line.")


class TimelineAnswer(BaseModel):
    """The launch of a kernel that takes longest, on its slowest core. All times are estimated."""

    source_id: str
    source: Literal["modelled"] = "modelled"
    chip: str
    kernel: str
    us: float
    launches: dict[str, float] = Field(description="All launches with their microseconds.")
    bottleneck: str = Field(description="Bottleneck.")
    core: str
    pipes: list[PipeAnswer] = Field(description="The busiest first.")
    gaps: list[GapAnswer] = Field(description="The longest waits of all pipes, the longest first.")
    page: str = Field(description="The whole timeline as an HTML page on this machine, for the user.")


class OutputAnswer(BaseModel):
    name: str
    elements: int
    min: float | None
    max: float | None
    not_finite: int
    first: list[float | str]


class RunAnswer(BaseModel):
    """A run on the twin; all latencies are estimated."""

    ok: bool
    hazards: list[HazardAnswer] = []
    more_hazards: int = 0
    error: str = ""
    launches: list[LaunchAnswer] = []
    latency_us: float | None = Field(default=None, description="Of a run without an error.")
    outputs: list[OutputAnswer] = []
    printed: str = Field(default="", description="What the program printed, quoted.")
    compile_s: float = 0.0
    run_s: float = 0.0


class OperatorAnswer(BaseModel):
    """An operator's folder, compiled, and a call of it; the latency is estimated."""

    compiled: bool
    missing: list[str] = Field(default=[], description="Names and headers that the compiler did not find.")
    ran: bool
    right: bool
    compared: bool
    error: str = ""
    hazards: list[HazardAnswer] = []
    more_hazards: int = 0
    latency_us: float | None = None


class HazardCodeAnswer(BaseModel):
    code: str
    severity: str
    what: str


class HazardRuleAnswer(BaseModel):
    """One rule, or several codes to choose from."""

    code: str = ""
    severity: str = ""
    what: str = ""
    help: str = Field(default="", description="How to fix it.")
    codes: list[HazardCodeAnswer] = Field(default=[], description="Where words speak of several.")
    next_offset: int | None = None


class BriefAnswer(BaseModel):
    """What a kernel has to compute, under neutral names: x0... inputs, v0... steps, n0... sizes."""

    tensors: list[str] = Field(description="tensors[] of LaunchOp in order: inputs, then outputs.")
    scalars: list[str] = Field(description="scalars[] of ComputeTiling; none: it is not to be read.")
    sizes: list[str] = Field(description="sizes[] of ComputeTiling; none: all shapes are fixed.")
    inputs: list[str]
    steps: list[str]
    outputs: list[str]
    rtol: float
    atol: float
    bound_us: float = Field(description="Roofline limit, estimated.")
    guide: str = Field(
        description="Resource: interface, hardware, API cards, an example, the best kernel so far."
    )
    guide_characters: int


class MemoryItemAnswer(BaseModel):
    id: str
    kind: str
    title: str
    body: str = Field(description="Quoted where it was learned, from models and packs of others.")
    category: str = ""


class MemoryAnswer(BaseModel):
    items: list[MemoryItemAnswer]
    next_offset: int | None = None


class AppliedAnswer(BaseModel):
    path: str
    package: str
    name: str
    note: str


Kind = Literal["api_card", "exemplar", "trace", "success", "failure", "practice", "sequence", "rule"]


_REASONS, _LEAST_REASON = 1_800, 90
"""Characters of all reasons in a plan, and of one at the least."""


def longest_reason(rows: int) -> int:
    """Characters of a reason in a plan of so many rows."""
    return max(_LEAST_REASON, _REASONS // max(rows, 1))


def region_answer(offer: Offer) -> RegionAnswer:
    region, estimate = offer.region, offer.estimate
    first, last = region.span.line, region.span.end_line
    known = RegionAnswer(
        id=region.id,
        symbol=named(region.symbol),
        lines=str(first) if first == last else f"{first}-{last}",
        category=region.op_category,
        status="" if region.status is RegionStatus.CANDIDATE else region.status.value,
        reason=told(region.reason, MOST_TEXT),
    )
    if estimate is None:
        return known
    sources = {
        "now_us": estimate.baseline.word.value if estimate.baseline else estimate.source,
        "kernel_us": estimate.source,
    }
    figures = {
        "now_us": round(estimate.now_us, 2),
        "kernel_us": round(estimate.after_us, 2),
        "bound_us": round(estimate.bound_us, 2),
        "gain": round(estimate.gain, 4),
        "within_error": None if estimate.wins else True,
        "verified": estimate.is_verified or None,
        "measured": [name for name, source in sources.items() if source == LatencySource.MEASURED],
        "vendor": estimate.rival.name if estimate.rival else "",
    }
    return known.model_copy(update=figures)


def planned_answer(offer: Offer, longest: int) -> RegionAnswer:
    """A region in a plan, which is read whole: of one without a kernel only where it is, and why, in so many
    characters."""
    answer = region_answer(offer)
    if offer.region.task is not None or offer.estimate is not None:
        return answer
    cut = answer.reason if len(answer.reason) <= longest else f"{answer.reason[: longest - 1]}…"
    status = "" if offer.region.status is RegionStatus.UNSUPPORTED else answer.status
    return RegionAnswer(symbol=answer.symbol, lines=answer.lines, status=status, reason=cut)


def hazard_answers(hazards: Iterable[Mapping[str, Any]]) -> tuple[list[HazardAnswer], int]:
    """The first hazards and how many more there are: errors before warnings, root causes before what mostly
    follows from them."""
    rules = hazard_rules()
    symptoms = {code for code, rule in rules.items() if rule.is_symptom}
    ranked = sorted(hazards, key=lambda each: (each["severity"] != "error", each["code"] in symptoms))
    shown = fitting(ranked, _hazard, MOST_HAZARDS)
    return shown, len(ranked) - len(shown)


def _hazard(hazard: Mapping[str, Any]) -> HazardAnswer:
    known = {name: hazard[name] for name in ("code", "severity", "line")} | {"file": named(hazard["file"])}
    return HazardAnswer(**known, message=told(hazard["message"], MOST_MESSAGE))


def fitting(items: Iterable[T], told: Callable[[T], A], most: int = MOST_ANSWER) -> list[A]:
    """What is told of the first items, as JSON in so many characters; of the first one in any case."""
    shown: list[A] = []
    for item in items:
        answer = told(item)
        most -= len(answer.model_dump_json())
        if shown and most < 0:
            break
        shown.append(answer)
    return shown


def part_of(
    items: Sequence[T], told: Callable[[T], A], offset: int, limit: int
) -> tuple[list[A], int | None]:
    """The part of a list that an agent takes whole, and where the next one begins."""
    shown = fitting(items[offset : offset + limit], told)
    after = offset + len(shown)
    return shown, after if after < len(items) else None


def verdict_answer(
    source_id: str, verdict: Verdict, notes: Iterable[str] = (), files: Iterable[str] = ()
) -> VerdictAnswer:
    hazards, more = hazard_answers(map(_plain, (hazard for gate in verdict.gates for hazard in gate.hazards)))
    return VerdictAnswer(
        source_id=source_id,
        verified=verdict.feasible,
        gates=[
            GateAnswer(gate=gate.gate.value, status=gate.status.value, code=gate.code,
                       feedback=told(gate.words(), MOST_TEXT), seconds=round(gate.seconds, 2))
            for gate in verdict.gates
        ],
        hazards=hazards,
        more_hazards=more,
        latency=_latency(verdict.latency) if verdict.latency else None,
        verifier=verdict.verifier if "@" not in verdict.verifier else quoted(verdict.verifier, MOST_NAME),
        confinement=verdict.confinement,
        notes=[quoted(note, MOST_MESSAGE) for note in notes],
        sources=source_uris(source_id, files),
    )  # fmt: skip


def source_uris(source_id: str, files: Iterable[str]) -> list[str]:
    """The resources with these files of a kernel, that with the device code first."""
    return [f"evokernel://kernel/{source_id}/{name}" for name in main_first(files)]


def timeline_answer(source_id: str, page: str, summary: Summary) -> TimelineAnswer:
    launches: dict[str, float] = {}
    for name, us in summary.launches:
        launches[name] = round(launches.get(name, 0.0) + us, 3)
    return TimelineAnswer(
        source_id=source_id,
        chip=summary.chip,
        kernel=summary.kernel,
        us=round(summary.us, 3),
        launches=launches,
        bottleneck=summary.bottleneck,
        core=summary.core,
        pipes=[
            PipeAnswer(
                pipe=pipe.pipe, busy_us=round(pipe.busy_us, 3), share=round(pipe.share, 3),
                waits={name: round(us, 3) for name, us in pipe.waits.items()},
            )
            for pipe in sorted(summary.pipes, key=lambda pipe: pipe.busy_us, reverse=True)
        ],
        gaps=[
            GapAnswer(
                pipe=gap.pipe, start_us=round(gap.start_us, 3), us=round(gap.us, 3),
                waits_for=gap.waits_for, before=gap.before, at=gap.at,
            )
            for gap in summary.gaps
        ],
        page=page,
    )  # fmt: skip


def _plain(hazard: Hazard) -> dict[str, Any]:
    """Its message still as a sentence, with what it is made of."""
    return {
        "code": hazard.code,
        "severity": hazard.severity.value,
        "message": hazard.message,
        "file": hazard.file,
        "line": hazard.line,
    }


def _latency(latency: Latency) -> LatencyAnswer:
    return LatencyAnswer(
        us=round(latency.us, 3),
        source=latency.source.value,
        chip=latency.chip,
        baseline_us=round(latency.baseline_us, 3),
        baseline_source=latency.baseline_word.value,
        bound_us=round(latency.roofline_us, 3),
        gain=round(gain_of(latency.baseline_us, latency.us), 3),
        block_dim=latency.block_dim,
        pipes={name: round(us, 3) for name, us in latency.pipes},
        bottleneck=told(latency.bottleneck),
        hot_lines=[
            LineAnswer(line=line.line, pipe=line.pipe, us=round(line.us, 3))
            for line in latency.lines[:MOST_LINES]
        ],
    )
