"""What figures rest on, in words: for hints, hovers and titles."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.domain.region import Region
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.synthesis.offers import Estimate, better_us
from evokernel_core.targets.sources import workers_of
from evokernel_core.vendor.rival import Rival
from evokernel_server.documents.packages import Installed
from evokernel_server.documents.workspace import Document, Tracked
from evokernel_server.offers.gain_words import estimate_words, estimated_ratio, rival_words, speed_words
from evokernel_server.offers.overlaps import choice
from evokernel_server.offers.pending import baseline_words, microseconds, percent
from evokernel_server.texts import command_names as names
from evokernel_server.texts.hyperlinks import command_link
from evokernel_server.texts.plain import code, markdown, plain
from evokernel_server.texts.translations import _, source_word, sourced, told

CAUTION_ABOVE = 10.0
"""A gain beyond this factor is shown with a word of caution."""
_MOST_OFFERS = 8
"""Offers for overlapping code that are listed."""


def evidence(tracked: Tracked) -> str:
    """Markdown: what the figures of a region's hint rest on."""
    region, estimate = tracked.region, tracked.captured.estimate
    if estimate is None:
        return markdown(told(region.reason))
    lines = [
        _("**{what}** in {where}", what=markdown(region.op_category), where=code(region.symbol)),
        "- " + _("eager: {us}", us=markdown(baseline_words(estimate.now_us, estimate.baseline))),
        *_rival_line(estimate.rival),
        "- " + _("with fused kernels: {us}", us=_estimated(estimate, estimate.after_us)),
        "- " + _gain(estimate) + _over(estimate) + _why_not_offered(estimate),
        "- " + _("roofline limit: {us}", us=_estimated(estimate, estimate.bound_us)),
        "- "
        + _(
            "{source} on {chip}, not yet verified",
            source=markdown(source_word(estimate.source)),
            chip=markdown(estimate.chip),
        ),
        *_inputs(region),
    ]
    if estimate.after_us > 0 and estimate.now_us / estimate.after_us > CAUTION_ABOVE:
        lines.append("- " + _("a gain above 10x deserves a second look at what is compared"))
    return "\n".join(lines)


def installed_evidence(installed: Installed) -> str:
    """Markdown: what the figures of a generated call rest on."""
    latency = installed.latency
    if installed.function:
        return "\n".join(
            [
                _(
                    "**{name}**, as its documentation says; no verifier runs it",
                    name=markdown(installed.function),
                ),
                "- " + _("{figure} on {chip}", figure=_figure(latency), chip=markdown(latency.chip)),
                _one_by_one(latency),
                "- " + _("roofline limit: {us}", us=_modelled(latency.roofline_us)),
            ]
        )
    before, over = better_of(installed)
    return "\n".join(
        [
            _(
                "**{name}**, verified by {verifier}",
                name=markdown(installed.name),
                verifier=markdown(installed.verifier),
            ),
            _launch(latency),
            _one_by_one(latency),
            *_rival_line(installed.rival),
            "- " + speed_words(before, latency.us) + over,
            _bound(latency),
        ]
    )


def ready_evidence(tracked: Tracked, latency: Latency) -> str:
    """Markdown: what the figures of a kernel that waits for review rest on."""
    region = tracked.region
    lines = [
        _(
            "**{what}** in {where}: a verified kernel is pending review; nothing was edited",
            what=markdown(region.op_category),
            where=code(region.symbol),
        ),
        _launch(latency),
        _one_by_one(latency),
        _bound(latency),
        *_inputs(region),
    ]
    return "\n".join(lines)


def _figure(latency: Latency) -> str:
    return sourced(microseconds(latency.us), latency.source.value)


def _modelled(us: float) -> str:
    return sourced(microseconds(us), LatencySource.MODELLED.value)


def _estimated(estimate: Estimate, us: float) -> str:
    return sourced(microseconds(us), estimate.source)


def _launch(latency: Latency) -> str:
    return "- " + _(
        "{figure} on {chip}, {count} {workers}",
        figure=_figure(latency),
        chip=markdown(latency.chip),
        count=latency.block_dim,
        workers=told(workers_of(latency.chip)),
    )


def _one_by_one(latency: Latency) -> str:
    return "- " + _("eager: {us}", us=markdown(baseline_words(latency.baseline_us, latency.baseline)))


def _bound(latency: Latency) -> str:
    us, what = _modelled(latency.roofline_us), markdown(told(latency.bottleneck))
    return "- " + _("roofline limit: {us}; bottleneck: {what}", us=us, what=what)


def region_words(document: Document, tracked: Tracked, links: bool) -> str:
    """Markdown: the evidence of a region, what else is offered for the same code, and the pipes of its kernel
    where one is ready."""
    ready = document.ready.get(tracked.region.id)
    known = evidence(tracked) if ready is None else ready_evidence(tracked, ready)
    lines = [known, *_choice(document, tracked, links)]
    return "\n".join([*lines, *(("", *picture(ready)) if ready else ())])


def call_words(installed: Installed) -> str:
    """Markdown: the evidence of a generated call with its pipes."""
    return "\n".join([installed_evidence(installed), "", *picture(installed.latency)]).rstrip()


def lines_around(document: Document, tracked: Tracked) -> str:
    """``lines 3-7: `` where smaller regions are offered among them, so that the two are told apart."""
    where = around(document, tracked)
    return _("{where}: ", where=where) if where else ""


def around(document: Document, tracked: Tracked) -> str:
    """The same as words of a sentence: ``lines 3-7``."""
    if tracked.region.id not in document.holders():
        return ""
    first, last = _ends(document, tracked)
    if last > first:
        return _("lines {first}-{last}", first=first, last=last)
    return _("all of line {first}", first=first)


def _choice(document: Document, chosen: Tracked, links: bool) -> Iterator[str]:
    """The kernels of which a person chooses one, the smaller first."""
    offered = choice(document, chosen)
    if offered:
        yield "\n" + _("**Choose one** of these kernels for overlapping lines:")
    for number, tracked in enumerate(offered[:_MOST_OFFERS], 1):
        what = f"{markdown(tracked.region.op_category)}, {_place(document, tracked)}"
        if links and tracked is not chosen and tracked.captured.wins:
            argument = {"uri": document.uri, "regionId": tracked.region.id, "version": document.version}
            what = command_link(what, names.GENERATE, argument)
        here = _(" ← here") if tracked is chosen else ""
        yield f"{number}. {what}: {_gain_words(tracked)}{here}"
    if len(offered) > _MOST_OFFERS:
        yield "\n" + _("and {count} more", count=len(offered) - _MOST_OFFERS)


def _place(document: Document, tracked: Tracked) -> str:
    first, last = _ends(document, tracked)
    if last > first:
        return _("lines {first}-{last}", first=first, last=last)
    return _("line {first}", first=first)


def _ends(document: Document, tracked: Tracked) -> tuple[int, int]:
    """First and last line of a region, from 1."""
    line_of = document.text.line_of
    return line_of(tracked.extent.start) + 1, line_of(tracked.extent.end) + 1


def _gain_words(tracked: Tracked) -> str:
    estimate = tracked.captured.estimate
    if estimate is None:
        return ""
    if estimate.rival is not None and estimate.rival_leads:
        return markdown(f"{estimate.rival.name}, {rival_words(estimate, estimate.rival)}")
    return markdown(estimate_words(estimate))


def _gain(estimate: Estimate) -> str:
    """The share that is saved, and how many times as fast that is, as the hint says it."""
    times, share = estimated_ratio(estimate), percent(estimate.gain)
    if not times:
        return _("gain: {share}", share=share)
    return _("gain: {share} ({times})", share=share, times=times)


def better_of(installed: Installed) -> tuple[float, str]:
    """The better of the ops one by one and the vendor's operator, and ``over`` which where it is that."""
    latency, rival = installed.latency, installed.rival
    before = better_us(latency.baseline_us, rival, latency.source.value)
    return before, _over_words(rival) if rival is not None and before < latency.baseline_us else ""


def _over(estimate: Estimate) -> str:
    """What a gain is over, where that is not the ops one by one."""
    rival = estimate.rival
    better = better_us(estimate.now_us, rival, estimate.source)
    return _over_words(rival) if rival is not None and better < estimate.now_us else ""


def _over_words(rival: Rival) -> str:
    return _(" over {name}", name=rival.name)


def _why_not_offered(estimate: Estimate) -> str:
    if estimate.wins:
        return ""
    return _(
        ", not offered: the gain is within the model error, {error}; *Generate Kernel at Cursor* "
        "still writes it",
        error=percent(estimate.error),
    )


def _inputs(region: Region) -> Iterator[str]:
    if region.task is not None:
        sizes = region.task.sizes
        for operand in region.task.graph.inputs:
            shape = "×".join(str(size) for size in operand.spec.sizes(sizes)) or _("scalar")
            yield f"- {code(operand.expression or operand.name)}: {operand.spec.dtype} {shape}"


def _rival_line(rival: Rival | None) -> Iterator[str]:
    if rival is not None:
        row = f" ({markdown(rival.source)})" if rival.source else ""
        words = _("as one operator, {name}: {figures}", name=code(rival.name), figures=_figures(rival))
        yield f"- {words}{row}"


def _figures(rival: Rival) -> str:
    return ", ".join(sourced(microseconds(us), word) for us, word in rival.figures)


_CELLS = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_MOST = 12
_LONGEST_NAME = 16


def picture(latency: Latency) -> Iterator[str]:
    """Lines of Markdown: a bar for each pipe, the busiest first, with its share of the latency. None where a
    verdict told of no pipes."""
    busy = sorted(
        ((_name(name), us / latency.us) for name, us in latency.pipes if 0 < us < float("inf")),
        key=lambda busy: -busy[1],
    )[:_MOST]
    if not busy:
        return
    width = max(len(name) for name, _share in busy)
    yield "```text"
    for name, share in busy:
        mark = "  ← " + _("bottleneck") if name == _name(latency.bottleneck) else ""
        yield f"{name:<{width}}  {bar(share)}  {100 * share:>3.0f} %{mark}"
    yield "```"


def bar(share: float) -> str:
    """A share of 0 to 1 as a bar of constant width; what is more is a full bar."""
    eighths = round(min(max(share, 0.0), 1.0) * _CELLS * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(_CELLS, "░")


def _name(text: str) -> str:
    """The name of a pipe, which a package may have made up: nothing in it ends the block that it is in."""
    return plain(text.replace("`", "’"), _LONGEST_NAME)
