"""The words of a message about faster kernels: what is gained, what a review costs, and why it is faster."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from attrs import frozen

from evokernel_server.offers.pending import Offer, gain, microseconds
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, many, source_word, sourced

MOST_TOLD = 3
"""Kernels that one message describes; of others it gives the number."""
_LONGEST_STEP = 120
Files = Mapping[str, str]
"""Texts of a kernel by the names of their files."""


@frozen
class Review:
    """What a person would have to read: ``lines`` of ``files`` that are new or changed. ``step`` is the last
    step of refinement that led to the kernel, "" for a first draft."""

    lines: int
    files: int
    step: str


def review_of(before: Files, after: Files, step: str) -> Review:
    """``before`` is empty where nothing is installed: then all lines are to be read."""
    changed = {name: _changed_lines(before.get(name, ""), text) for name, text in after.items()}
    return Review(sum(changed.values()), sum(map(bool, changed.values())), plain(step, _LONGEST_STEP))


def _changed_lines(before: str, after: str) -> int:
    """Lines that a diff would show on its longer side."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal")


def notice(group: Sequence[tuple[Offer, Review]]) -> str:
    """One message for offers that arrived together, those that gain most first."""
    ordered = sorted(group, key=lambda row: _saved(row[0]), reverse=True)
    told = [_sentences(offer, review) for offer, review in ordered[:MOST_TOLD]]
    if len(ordered) == 1:
        return f"EvoKernel: {told[0]}"
    left = len(ordered) - len(told)
    more = [many("{count} more is in the list.", "{count} more are in the list.", left)] if left else []
    head = many("{count} kernel is pending.", "{count} kernels are pending.", len(ordered))
    listed = " ".join(f"({n}) {words}" for n, words in enumerate(told, 1))
    return " ".join([f"EvoKernel: {head}", listed, *more])


def _saved(offer: Offer) -> float:
    """Microseconds of a launch, beside what is installed or else the ops one by one."""
    return (offer.old.us if offer.old else offer.new.baseline_us) - offer.new.us


def _sentences(offer: Offer, review: Review) -> str:
    return f"{_gained(offer)} {_cost(review)} {_why(offer, review)}"


def _gained(offer: Offer) -> str:
    where = f"{offer.region.symbol} ({offer.file.name})"
    figures = {
        "what": offer.region.op_category,
        "where": where,
        "new": microseconds(offer.new.us),
        "source": source_word(offer.new.source.value),
        "chip": offer.new.chip,
    }
    if offer.old is None:
        return _(
            "A kernel for {what} in {where} is ready: {new} {source} on {chip}, eager {old}.",
            old=sourced(microseconds(offer.new.baseline_us), offer.new.baseline_word.value),
            **figures,
        )
    return _(
        "{what} in {where} takes {share} less: {old} → {new} {source} on {chip}.",
        old=microseconds(offer.old.us),
        share=_share(gain(offer.old, offer.new)),
        **figures,
    )


def _share(part: float) -> str:
    """A small gain, which a person's ``leastGain`` may let through, is not none."""
    return f"{part:.0%}" if part >= 0.01 else f"{part:.1%}"


def _cost(review: Review) -> str:
    files = many("{count} file", "{count} files", review.files)
    return many("To review: {count} line in {files}.", "To review: {count} lines in {files}.", review.lines,
                files=files)  # fmt: skip


def _why(offer: Offer, review: Review) -> str:
    """A refined kernel by its last step, a first one by what it joins; both by what is left to gain."""
    times = f"{offer.new.us / offer.new.roofline_us:.1f}"
    if review.step and offer.old is not None:
        return _(
            "Why: “{step}” was changed; it takes {times} times its roofline limit now.",
            step=review.step,
            times=times,
        )
    return many(
        "Why: it takes {times} times its roofline limit, PyTorch's operation {eager} times.",
        "Why: {count} ops are fused; that takes {times} times the roofline limit, eager {eager} times.",
        len(offer.region.task.graph.nodes) if offer.region.task else 1,
        times=times,
        eager=f"{offer.new.baseline_us / offer.new.roofline_us:.1f}",
    )
