"""What a file of training samples holds, how it was chosen, and what to ask before it is passed on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import fields, frozen

from evokernel_core import __version__
from evokernel_core.domain.step import SCHEMA, Action, Parent, Purpose, ShownItem, State, Step, StepOutcome
from evokernel_core.synthesis.steps import SampleChoice, Tally

CONSENT = (
    "The tasks are the mathematics of files that were opened with EvoKernel: operations, shapes, dtypes and "
    "constants. Ask their owners before you pass the samples on.",
    "Names, paths, source text and the words of people are not in them; what a user did with a kernel is "
    "(`outcome.person`).",
    "Kernels of the author `schedule` are written by EvoKernel (Apache-2.0). Those of the author `model` are "
    "a language model's: the terms of its provider say whether other models may be trained on them.",
)
_FILTERS: Mapping[Purpose, tuple[str, ...]] = {
    Purpose.SUPERVISED: (
        "a first step was verified",
        "a later step was verified and is faster than its start, verified by the same verifier on the same "
        "chip",
    ),
    Purpose.REINFORCEMENT: ("a verifier rewarded the step, whatever came of it",),
}
_ALWAYS = (
    "the kernel differs for the compiler from every kernel that was verified before from the same start",
    "everything in the sample can be said under neutral names",
)


@frozen
class DataCard:
    """``counts`` are samples by what is named: task (only how many), category, stage, result, latency (its
    source and chip), verifier, author. ``dropped`` are attempts by reason. ``fields`` are those of a line."""

    schema: str
    version: str
    purpose: Purpose
    samples: int
    attempts: int
    tasks: int
    filters: tuple[str, ...]
    counts: Mapping[str, Mapping[str, int]]
    dropped: Mapping[str, int]
    consent: tuple[str, ...]
    fields: tuple[str, ...]


def data_card(choice: SampleChoice, tally: Tally) -> DataCard:
    """The card of what was written with this choice."""
    most = (f"at most {choice.per_task} samples of a task, the best ones",) if choice.per_task else ()
    models = () if choice.models else ("no language model wrote the kernel",)
    return DataCard(
        schema=SCHEMA,
        version=__version__,
        purpose=choice.purpose,
        samples=tally.kept,
        attempts=tally.attempts,
        tasks=len(tally.counts.get("task", ())),
        filters=(*_FILTERS[choice.purpose], *_ALWAYS, *models, *most),
        counts={what: dict(value.most_common()) for what, value in tally.counts.items() if what != "task"},
        dropped={str(why): number for why, number in tally.dropped.most_common()},
        consent=CONSENT,
        fields=tuple(field_paths()),
    )


def field_paths() -> Iterator[str]:
    """The fields of a line, with those of the objects in it."""
    inner = {"state": State, "action": Action, "outcome": StepOutcome, "parent": Parent, "context": ShownItem}

    def paths(kind: type, prefix: str) -> Iterator[str]:
        for field in fields(kind):
            path = f"{prefix}{field.name}"
            if field.name in inner:
                yield from paths(inner[field.name], f"{path}[]." if field.name == "context" else f"{path}.")
            else:
                yield path

    return paths(Step, "")


def as_markdown(card: DataCard) -> str:
    """The card as a page."""
    blocks = [
        f"# Training samples for {card.purpose.value} fine-tuning",
        f"{card.samples} samples of {card.tasks} tasks, from {card.attempts} attempts. One JSON object a "
        f"line, schema `{card.schema}`, written by EvoKernel {card.version}.",
        "## Kept where",
        *_list(card.filters),
        "## Dropped",
        *(_table("attempts", card.dropped) or ["nothing"]),
    ]
    for what, counts in card.counts.items():
        blocks += [f"## By {what}", *_table("samples", counts)]
    blocks += [
        "Latencies are microseconds: estimated ones (`modelled`) by a time model, measured ones of a chip."
    ]
    blocks += ["## Licence and consent", *_list(card.consent)]
    blocks += ["## Fields", ", ".join(f"`{field}`" for field in card.fields)]
    return "\n\n".join(blocks) + "\n"


def _table(what: str, counts: Mapping[str, int]) -> list[str]:
    if not counts:
        return []
    return ["\n".join([f"| {what} | |", "|---:|---|", *(f"| {n} | {name} |" for name, n in counts.items())])]


def _list(items: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {item}" for item in items)] if items else []
