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
from evokernel_server.offers import microseconds, percent, ready_words
from evokernel_server.packages import Installed
from evokernel_server.plain import code, markdown, plain
from evokernel_server.review_words import CAUTION_ABOVE
from evokernel_server.trust import REASON
from evokernel_server.workspace import Document, Tracked

if TYPE_CHECKING:
    from evokernel_server.app import EvoKernelServer


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
            yield _hint(document, line, label, tooltip(document, tracked))
    for call in document.calls:
        line = document.text.line_of(call.extent.start)
        installed = document.installed.get(call.name)
        if installed is not None:
            yield _hint(document, line, _installed_label(installed), installed_evidence(installed))
        elif call.name in document.installed:
            words = f"The folder evokernel_kernels/{call.name} is missing or damaged; restore it or revert."
            yield _hint(document, line, "⚡ kernel package missing", words)


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
        "needs_shapes": "shapes needed",
        "no_interpreter": "no Python with torch",
        "import_failed": "file does not import",
        "agent_failed": "torch stopped",
        REASON: "not trusted",
    }.get(reason, "not analysed")


def _label(document: Document, tracked: Tracked) -> str:
    estimate = tracked.found.estimate
    ready = document.ready.get(tracked.region.id)
    if ready is not None:
        return f"⚡ {lines_around(document, tracked)}{ready_words(ready)}"
    if tracked.region.status is RegionStatus.NEEDS_SHAPES:
        return "⚡ shapes needed"
    if estimate is None or tracked.region.status is RegionStatus.UNSUPPORTED:
        return ""  # the hover says why there is no offer
    what = lines_around(document, tracked)
    if estimate.rival is not None and estimate.rival_leads:
        return f"⚡ {what}{estimate.rival.name}: {latencies(estimate, estimate.rival)}"
    if not estimate.wins:
        return ""
    return f"⚡ {what}{estimate_words(estimate)} (bound {_bare(estimate.bound_us)})"


def lines_around(document: Document, tracked: Tracked) -> str:
    """``lines 3-7: `` where smaller regions are offered among them, so that the two are told apart."""
    extent = tracked.extent
    inside = (other for other in document.tracked if other is not tracked and extent.holds(other.extent))
    if not any(inside):
        return ""
    first, last = (document.text.position(place).line + 1 for place in (extent.start, extent.end))
    return f"lines {first}-{last}: " if last > first else f"all of line {first}: "


def _bare(value: float) -> str:
    return microseconds(value).removesuffix(" µs")


def _installed_label(installed: Installed) -> str:
    latency = installed.latency
    if installed.function:
        figure = f"{microseconds(latency.us)} {latency.source.value}"
        return f"⚡ {installed.function}: {figure} (was {_bare(latency.baseline_us)} modelled)"
    return (
        f"⚡ {microseconds(latency.us)} {latency.source.value}"
        f" (was {_bare(latency.baseline_us)}, {_gain(installed)},"
        f" bound {_bare(latency.roofline_us)})"
    )


def _gain(installed: Installed) -> str:
    """The gain over the better of the ops one by one and the vendor's operator."""
    latency, rival = installed.latency, installed.rival
    before = better_us(latency.baseline_us, rival, latency.source.value)
    over = f" over {rival.name}" if rival is not None and before < latency.baseline_us else ""
    return f"gain {percent(gain_of(before, latency.us))}{over}"


def latencies(estimate: Estimate, rival: Rival) -> str:
    """The ops now and the vendor's operator in their place, each figure with its word."""
    return f"{microseconds(estimate.now_us)} {estimate.source} → {_figures(rival)}"


def _figures(rival: Rival) -> str:
    return ", ".join(f"{microseconds(us)} {word}" for us, word in rival.figures)


def _rival_line(rival: Rival | None) -> Iterator[str]:
    if rival is not None:
        row = f" ({markdown(rival.source)})" if rival.source else ""
        yield f"- as one operator, {code(rival.name)}: {_figures(rival)}{row}"


def tooltip(document: Document, tracked: Tracked) -> str:
    """Markdown: what is known of a region's kernel, verified where one waits for review."""
    ready = document.ready.get(tracked.region.id)
    return evidence(tracked) if ready is None else ready_evidence(tracked, ready)


def ready_evidence(tracked: Tracked, latency: Latency) -> str:
    """Markdown: what the figures of a kernel that waits for review rest on."""
    region = tracked.region
    lines = [
        f"**{markdown(region.op_category)}** in {code(region.symbol)}: a verified kernel waits for review;"
        " nothing was edited",
        f"- {microseconds(latency.us)} {latency.source.value} on {markdown(latency.chip)},"
        f" {latency.block_dim} vector cores",
        f"- the same ops one by one: {microseconds(latency.baseline_us)}",
        f"- bound: {microseconds(latency.roofline_us)}; bottleneck: {markdown(latency.bottleneck)}",
        *_inputs(region),
    ]
    return "\n".join(lines)


def evidence(tracked: Tracked) -> str:
    """Markdown: what the figures of a region's hint rest on."""
    region, estimate = tracked.region, tracked.found.estimate
    if estimate is None:
        return markdown(region.reason)
    lines = [
        f"**{markdown(region.op_category)}** in {code(region.symbol)}",
        f"- op by op now: {microseconds(estimate.now_us)}",
        *_rival_line(estimate.rival),
        f"- with fused kernels: {microseconds(estimate.after_us)}",
        f"- gain: {percent(estimate.gain)}{_over(estimate)}{_why_not_offered(estimate)}",
        f"- bound by bytes and operations: {microseconds(estimate.bound_us)}",
        f"- {markdown(estimate.source)} on {markdown(estimate.chip)}, not yet verified",
        *_inputs(region),
    ]
    if estimate.after_us > 0 and estimate.now_us / estimate.after_us > CAUTION_ABOVE:
        lines.append("- a gain above 10x deserves a second look at what is compared")
    return "\n".join(lines)


def _over(estimate: Estimate) -> str:
    """What a gain is over, where that is not the ops one by one."""
    rival = estimate.rival
    better = better_us(estimate.now_us, rival, estimate.source)
    return f" over {rival.name}" if rival is not None and better < estimate.now_us else ""


def _why_not_offered(estimate: Estimate) -> str:
    if estimate.wins:
        return ""
    return (
        f", not offered: that is no more than the model's own error of {percent(MODEL_ERROR)};"
        " the code actions of kind refactor.rewrite and *Generate NPU Kernel at Cursor* still write it"
    )


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
                f"**{markdown(installed.function)}**, as its documentation says; no verifier runs it",
                f"- {microseconds(latency.us)} {latency.source.value} on {markdown(latency.chip)}",
                f"- the same ops one by one: {microseconds(latency.baseline_us)} modelled",
                f"- bound: {microseconds(latency.roofline_us)} modelled",
            ]
        )
    return "\n".join(
        [
            f"**{markdown(installed.name)}**, verified by {markdown(installed.verifier)}",
            f"- {microseconds(latency.us)} {latency.source.value} on {markdown(latency.chip)},"
            f" {latency.block_dim} vector cores",
            f"- the same ops one by one: {microseconds(latency.baseline_us)}",
            *_rival_line(installed.rival),
            f"- {_gain(installed)}",
            f"- bound: {microseconds(latency.roofline_us)}; bottleneck: {markdown(latency.bottleneck)}",
        ]
    )


def estimate_words(estimate: Estimate) -> str:
    """The gain in a few words, for titles."""
    now, after = microseconds(estimate.now_us), microseconds(estimate.after_us)
    return f"{now} → {after} {estimate.source}, gain {percent(estimate.gain)}{_over(estimate)}"
