"""What an attempt teaches: a trace always, a summary where the status changed, a rule from failures.

The paper does not say when to summarise. We do at a change of status: the first feasible kernel of a
task, a kernel at least 10 % faster than the best before it, and a class of error not yet seen on the
task. Rules follow AdaExplore's form ("You cannot ...", one prohibited action, no reason, no fix).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, Latency, Verdict
from evokernel_core.memory.experiences import make_experience
from evokernel_core.synthesis.privacy import Privacy
from evokernel_core.targets import TARGETS, load_lessons

NOTABLE_GAIN = 1.1
"""How much faster a kernel must be for a success of its own."""

GATES: Mapping[GateName, Sentence] = {
    GateName.AUDIT: Sentence("audit"),
    GateName.COMPILE: Sentence("compile"),
    GateName.CORRECTNESS: Sentence("correctness"),
    GateName.LATENCY: Sentence("latency"),
}
"""The gates in words."""
STAGES: Mapping[Stage, Sentence] = {Stage.DRAFT: Sentence("draft"), Stage.REFINE: Sentence("refine")}


@frozen
class Trial:
    """An attempt as the lessons see it. ``best_us`` is the best latency before it, infinite if none."""

    task: KernelTask
    features: Mapping[str, float]
    stage: Stage
    source: KernelSource
    verdict: Verdict
    best_us: float
    bottleneck: str
    seen_errors: frozenset[str]


def bottleneck_pipe(latency: Latency | None) -> str:
    """The busiest pipe, empty where nothing is known."""
    if latency is None or not latency.pipes:
        return ""
    return max(latency.pipes, key=lambda pipe: pipe[1])[0]


def error_class(verdict: Verdict) -> str:
    """A stable name of what failed: gate and code; empty for a feasible kernel."""
    failed = verdict.failed_gate
    return f"{failed.gate.value}:{failed.code}" if failed else ""


def lessons(trial: Trial) -> tuple[Experience, ...]:
    """The trace, and a success or failure summary where the status changed."""
    result = [_trace(trial)]
    if trial.verdict.feasible:
        if trial.verdict.latency and trial.verdict.latency.us * NOTABLE_GAIN <= trial.best_us:
            result.append(_success(trial))
    elif not trial.verdict.is_slower and error_class(trial.verdict) not in trial.seen_errors:
        result.append(_failure(trial))
    return tuple(result)


def rules(verdict: Verdict, target: str) -> tuple[Experience, ...]:
    """Rules that the failure of a target's kernel is evidence for. Wrong numbers alone give none: they say
    nothing general."""
    if verdict.failed_gate is None or target not in TARGETS:  # memories may come from later versions
        return ()
    texts = load_lessons(target).rules(verdict.failed_gate)
    return tuple(make_experience(ExperienceKind.RULE, text, str(text)) for text in dict.fromkeys(texts))


def is_refuted(experience: Experience) -> bool:
    """Whether a rule forbids what a target's interface has, as memories and packs of earlier versions may."""
    return experience.kind is ExperienceKind.RULE and any(
        load_lessons(name).is_refuted(experience.body) for name in TARGETS
    )


def _trace(trial: Trial) -> Experience:
    strategy = trial.source.strategy
    title = Sentence(
        "{stage} {family} {category}: {step}",
        stage=STAGES[trial.stage],
        step=strategy.move or STAGES[Stage.DRAFT],
        **_about(trial),
    )
    payload = {"source_id": trial.source.source_id, "strategy": to_data(strategy)}
    return _experience(ExperienceKind.TRACE, title, _describe(trial), trial, payload)


def _success(trial: Trial) -> Experience:
    latency = trial.verdict.latency
    assert latency is not None
    strategy = trial.source.strategy
    step = strategy.move or Sentence("first draft")
    title = Sentence("{category} with {family}: {step} works", step=step, **_about(trial))
    if trial.best_us != float("inf"):
        title = Sentence(
            "{category} with {family}: {step} {gain} times as fast as before",
            step=step,
            gain=f"{trial.best_us / latency.us:.2f}",
            **_about(trial),
        )
    payload = {
        "strategy": to_data(strategy),
        "source_id": trial.source.source_id,
        "latency_us": latency.us,
        "latency_source": latency.source.value,
        "chip": latency.chip,
    }
    return _experience(ExperienceKind.SUCCESS, title, _describe(trial), trial, payload)


def _failure(trial: Trial) -> Experience:
    failure = error_class(trial.verdict)
    title = Sentence("{category} with {family}: {failure} failed", failure=failure, **_about(trial))
    payload = {"source_id": trial.source.source_id}
    return _experience(ExperienceKind.FAILURE, title, _describe(trial), trial, payload)


def _about(trial: Trial) -> dict[str, str]:
    return {"category": trial.task.op_category, "family": Sentence(trial.source.strategy.family)}


def step_title(step: Sentence, pipe: str, family: str) -> Sentence:
    """The title of a step of refinement in kernels of a family whose busiest pipe is ``pipe``, "" for any."""
    told = {"step": step, "family": Sentence(family)}
    if not pipe:
        return Sentence("{step} for any-bound {family}", **told)
    return Sentence("{step} for {pipe}-bound {family}", pipe=pipe, **told)


def _experience(
    kind: ExperienceKind, title: Sentence, body: str, trial: Trial, payload: Mapping[str, object]
) -> Experience:
    return make_experience(
        kind,
        title,
        body,
        op_category=trial.task.op_category,
        task_id=trial.task.task_id,
        bottleneck=trial.bottleneck,
        payload=json.dumps(payload, sort_keys=True),
        features=trial.features,
    )


def _describe(trial: Trial) -> str:
    """Operations, schedule and verdict in words, none of them of the file: lessons are shown to models and
    carried to other memories."""
    strategy = trial.source.strategy
    ops = " ".join(dict.fromkeys(node.op for node in trial.task.graph.nodes))
    settings = ", ".join(f"{name}={value}" for name, value in strategy.all_settings().items())
    lines = [f"Task: {ops}.", f"Schedule {strategy.family}: {settings}.", *strategy.notes]
    return "\n".join(
        [*lines, Privacy(trial.task).verdict(summary(trial.verdict), trial.source, trial.verdict)]
    )


def summary(verdict: Verdict) -> Sentence:
    """One sentence about a verdict, for logs, events and prompts: it says how the inputs of a failure were
    drawn, and not what would draw them again."""
    latency = verdict.latency
    if verdict.feasible and latency:
        told = Sentence(
            "Verified: {figure} on {chip} (roofline limit {bound}).",
            figure=f"{latency.us:.2f} us {latency.source.word}",
            chip=latency.chip,
            bound=f"{latency.roofline_us:.2f}",
        )
        return joined([told, latency.bottleneck])
    failed = verdict.failed_gate
    if failed is None:
        return Sentence("Not verified: no latency is known.")
    if verdict.is_slower:
        return Sentence("Timed only: {feedback}", feedback=failed.feedback)
    return Sentence(
        "Failed at {gate} ({code}): {feedback}",
        gate=GATES[failed.gate],
        code=failed.code,
        feedback=failed.words(seed=False),
    )


def failure(verdict: Verdict) -> Sentence:
    """What is wrong with a kernel, empty where nothing is known to be."""
    return Sentence() if verdict.feasible or verdict.is_slower else summary(verdict)
