"""``textDocument/inlayHint``: what a fused kernel would gain, and what a generated one gives.

Hints are made from what is already known; asking for them starts no work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.verdict import Latency
from evokernel_core.synthesis.offers import Estimate, better_us, gain_of
from evokernel_core.twin.accuracy import MODEL_ERROR
from evokernel_core.vendor.rival import Rival
from evokernel_server.offers import microseconds
from evokernel_server.packages import Installed
from evokernel_server.plain import code, markdown, plain
from evokernel_server.trust import REASON
from evokernel_server.words import _, source_word
from evokernel_server.workspace import Document, Tracked

if TYPE_CHECKING:
    from evokernel_server.app import EvoKernelServer

CAUTION_ABOVE = 10.0
"""A gain beyond this factor is shown with a word of caution."""


def register(server: EvoKernelServer) -> None:
    options = types.InlayHintOptions(resolve_provider=False)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT, options)
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not server.server_options.inlay_hints:
            return []
        return hints(document, params.range)


def hints(document: Document, wanted: types.Range) -> list[types.InlayHint]:
    """The hints whose line lies in the wanted range."""
    if not document.has_torch:
        return []
    first, last = wanted.start.line, wanted.end.line
    return [hint for hint in _all(document) if first <= hint.position.line <= last]


def _all(document: Document) -> Iterator[types.InlayHint]:
    yield from _problem(document)
    for tracked in document.tracked:
        label = _label(document, tracked)
        if label:
            line = document.text.line_of(tracked.extent.start)
            yield _hint(document, line, label, evidence(tracked))
    for call in document.calls:
        line = document.text.line_of(call.extent.start)
        installed = document.installed.get(call.name)
        if installed is not None:
            yield _hint(document, line, _installed_label(installed), installed_evidence(installed))
        elif call.name in document.installed:
            folder = f"evokernel_kernels/{call.name}"
            words = _("The folder {folder} is missing or damaged; restore it or revert.", folder=folder)
            yield _hint(document, line, _("⚡ kernel package missing"), words)


def _hint(document: Document, line: int, label: str, tooltip: str) -> types.InlayHint:
    end = document.text.starts[line] + len(document.text.line(line))
    return types.InlayHint(
        position=document.text.position(end),
        label=plain(label),
        padding_left=True,
        tooltip=types.MarkupContent(types.MarkupKind.Markdown, tooltip),
    )


def _problem(document: Document) -> Iterator[types.InlayHint]:
    """Why a file has no regions, once, at its first definition with tensor code."""
    if document.problem is None or document.tracked:
        return
    yield _hint(
        document,
        document.first_line(),
        f"⚡ {_short(document.problem.reason)}",
        markdown(document.problem.message),
    )


def _short(reason: str) -> str:
    return {
        "needs_shapes": _("shapes needed"),
        "no_interpreter": _("no Python with torch"),
        "import_failed": _("file does not import"),
        "agent_failed": _("torch stopped"),
        REASON: _("not trusted"),
    }.get(reason, _("not analysed"))


def _label(document: Document, tracked: Tracked) -> str:
    estimate = tracked.found.estimate
    if tracked.region.status is RegionStatus.NEEDS_SHAPES:
        return f"⚡ {_short('needs_shapes')}"
    if estimate is None or tracked.region.status is RegionStatus.UNSUPPORTED:
        return ""  # the hover says why there is no offer
    what = lines_around(document, tracked)
    if estimate.rival is not None and estimate.rival_leads:
        return f"⚡ {what}{estimate.rival.name}: {latencies(estimate, estimate.rival)}"
    if not estimate.wins:
        return ""
    bound = _("(bound {us})", us=_bare(estimate.bound_us))
    return f"⚡ {what}{estimate_words(estimate)} {bound}"


def lines_around(document: Document, tracked: Tracked) -> str:
    """``lines 3-7: `` where smaller regions are offered among them, so that the two are told apart."""
    extent = tracked.extent
    inside = (other for other in document.tracked if other is not tracked and extent.holds(other.extent))
    if not any(inside):
        return ""
    first, last = (document.text.position(place).line + 1 for place in (extent.start, extent.end))
    if last > first:
        return _("lines {first}-{last}: ", first=first, last=last)
    return _("all of line {first}: ", first=first)


def _bare(value: float) -> str:
    return microseconds(value).removesuffix(" µs")


def _installed_label(installed: Installed) -> str:
    latency = installed.latency
    if installed.function:
        was = _("(was {us} modelled)", us=_bare(latency.baseline_us))
        return f"⚡ {installed.function}: {_figure(latency)} {was}"
    return "⚡ " + _(
        "{figure} (was {was}, {gain}, bound {bound})",
        figure=_figure(latency),
        was=_bare(latency.baseline_us),
        gain=_gain(installed),
        bound=_bare(latency.roofline_us),
    )


def _figure(latency: Latency) -> str:
    return f"{microseconds(latency.us)} {source_word(latency.source.value)}"


def _gain(installed: Installed) -> str:
    """The gain over the better of the ops one by one and the vendor's operator."""
    latency, rival = installed.latency, installed.rival
    before = better_us(latency.baseline_us, rival, latency.source.value)
    over = rival is not None and before < latency.baseline_us
    return _gain_words(gain_of(before, latency.us), rival.name if rival is not None and over else "")


def _gain_words(share: float, over: str) -> str:
    """``over`` names what a gain is over, where that is not the ops one by one."""
    if over:
        return _("gain {share} over {name}", share=_percent(share), name=over)
    return _("gain {share}", share=_percent(share))


def latencies(estimate: Estimate, rival: Rival) -> str:
    """The ops now and the vendor's operator in their place, each figure with its word."""
    return f"{microseconds(estimate.now_us)} {source_word(estimate.source)} → {_figures(rival)}"


def _figures(rival: Rival) -> str:
    return ", ".join(f"{microseconds(us)} {source_word(word)}" for us, word in rival.figures)


def _rival_line(rival: Rival | None) -> Iterator[str]:
    if rival is not None:
        row = f" ({markdown(rival.source)})" if rival.source else ""
        figures = f"{_figures(rival)}{row}"
        yield "- " + _("as one operator, {name}: {figures}", name=code(rival.name), figures=figures)


def evidence(tracked: Tracked) -> str:
    """Markdown: what the figures of a region's hint rest on."""
    region, estimate = tracked.region, tracked.found.estimate
    if estimate is None:
        return markdown(region.reason)
    lines = [
        _("**{what}** in {where}", what=markdown(region.op_category), where=code(region.symbol)),
        "- " + _("op by op now: {us}", us=microseconds(estimate.now_us)),
        *_rival_line(estimate.rival),
        "- " + _("with fused kernels: {us}", us=microseconds(estimate.after_us)),
        "- " + _("gain: {share}", share=_share(estimate)) + _why_not_offered(estimate),
        "- " + _("bound by bytes and operations: {us}", us=microseconds(estimate.bound_us)),
        "- "
        + _(
            "{source} on {chip}, not yet verified",
            source=source_word(estimate.source),
            chip=markdown(estimate.chip),
        ),
        *_inputs(region),
    ]
    if estimate.after_us > 0 and estimate.now_us / estimate.after_us > CAUTION_ABOVE:
        lines.append("- " + _("a gain above 10x deserves a second look at what is compared"))
    return "\n".join(lines)


def _over(estimate: Estimate) -> str:
    """The vendor's operator where a gain is over that and not over the ops one by one."""
    rival = estimate.rival
    better = better_us(estimate.now_us, rival, estimate.source)
    return rival.name if rival is not None and better < estimate.now_us else ""


def _share(estimate: Estimate) -> str:
    name = _over(estimate)
    share = _percent(estimate.gain)
    return _("{share} over {name}", share=share, name=name) if name else share


def _why_not_offered(estimate: Estimate) -> str:
    if estimate.wins:
        return ""
    return _(
        ", not offered: that is no more than the model's own error of {error};"
        " the code actions of kind refactor.rewrite and *Generate NPU Kernel at Cursor* still write it",
        error=_percent(MODEL_ERROR),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _inputs(region: Region) -> Iterator[str]:
    if region.task is not None:
        sizes = region.task.sizes
        for item in region.task.graph.inputs:
            shape = "×".join(str(size) for size in item.spec.sizes(sizes)) or "scalar"
            yield f"- {code(item.expression or item.name)}: {item.spec.dtype} {shape}"


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
                "- " + _("the same ops one by one: {us} modelled", us=microseconds(latency.baseline_us)),
                "- " + _("bound: {us} modelled", us=microseconds(latency.roofline_us)),
            ]
        )
    return "\n".join(
        [
            _(
                "**{name}**, verified by {verifier}",
                name=markdown(installed.name),
                verifier=markdown(installed.verifier),
            ),
            "- "
            + _(
                "{figure} on {chip}, {count} vector cores",
                figure=_figure(latency),
                chip=markdown(latency.chip),
                count=latency.block_dim,
            ),
            "- " + _("the same ops one by one: {us}", us=microseconds(latency.baseline_us)),
            *_rival_line(installed.rival),
            f"- {_gain(installed)}",
            "- "
            + _(
                "bound: {us}; bottleneck: {what}",
                us=microseconds(latency.roofline_us),
                what=markdown(latency.bottleneck),
            ),
        ]
    )


def estimate_words(estimate: Estimate) -> str:
    """The gain in a few words, for titles."""
    now, after = microseconds(estimate.now_us), microseconds(estimate.after_us)
    gain = _gain_words(estimate.gain, _over(estimate))
    return _(
        "{now} → {after} {source}, {gain}",
        now=now,
        after=after,
        source=source_word(estimate.source),
        gain=gain,
    )
