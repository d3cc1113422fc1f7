"""``textDocument/inlayHint`` and ``inlayHint/resolve``: what a fused kernel would gain, and what a generated
one gives.

Hints are made from what is already known; asking for them starts no work. Clients that resolve hints get the
tooltip and the command of the one that is pointed at, as things are then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen
from lsprotocol import types

from evokernel_core.domain.region import RegionStatus
from evokernel_server.documents.packages import Installed
from evokernel_server.documents.workspace import Document, Tracked
from evokernel_server.offers.evidence import around, better_of, call_words, region_words
from evokernel_server.offers.gain_words import (
    estimate_words,
    estimated_ratio,
    kernel_gain_words,
    ready_words,
    rival_words,
)
from evokernel_server.texts import command_names as names
from evokernel_server.texts.plain import markdown, plain
from evokernel_server.texts.translations import _, told
from evokernel_server.trust import REASON

if TYPE_CHECKING:
    from evokernel_server.host import Host

_LONGEST = 43
"""Characters of the hints of a line that VS Code shows with its default settings; it cuts what is longer."""


@frozen
class Showing:
    """What a client takes. ``parts``: labels in parts, whose commands it asks for when they are pointed at;
    ``lazy``: the same for tooltips; ``links``: Markdown may hold links that run our commands."""

    parts: bool = False
    lazy: bool = False
    links: bool = False


def showing(capabilities: types.ClientCapabilities) -> Showing:
    """What a client says that it takes. ``experimental`` is ours: ``{evokernel: {commandLinks: true}}``."""
    hint = capabilities.text_document.inlay_hint if capabilities.text_document else None
    resolved = hint.resolve_support.properties if hint and hint.resolve_support else ()
    experimental = capabilities.experimental
    ours = experimental.get("evokernel") if isinstance(experimental, Mapping) else None
    return Showing(
        parts="label.command" in resolved,
        lazy="tooltip" in resolved,
        links=isinstance(ours, Mapping) and bool(ours.get("commandLinks")),
    )


def register(server: Host) -> None:
    options = types.InlayHintOptions(resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT, options)
    def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not server.server_options.inlay_hints:
            return []
        return hints(document, params.range, showing(server.client_capabilities))

    @server.feature(types.INLAY_HINT_RESOLVE)
    def resolve(hint: types.InlayHint) -> types.InlayHint:
        return resolved(server, hint)


def hints(document: Document, wanted: types.Range, client: Showing = Showing()) -> list[types.InlayHint]:
    """The hints whose line lies in the wanted range. Nothing is made for the others."""
    if not document.has_torch:
        return []
    lines = range(wanted.start.line, wanted.end.line + 1)
    return [
        *_of_problem(document, lines), *_of_regions(document, lines, client),
        *_of_calls(document, lines, client),
    ]  # fmt: skip


def _of_regions(document: Document, lines: range, client: Showing) -> Iterator[types.InlayHint]:
    """The hints of the lines. Of several on one line the first has figures and the others what sets them
    apart: an editor cuts the hints of a line at some length (VS Code at 43 characters), all together."""
    of_lines: dict[int, list[Tracked]] = {}
    for tracked in document.tracked:
        line = document.text.line_of(tracked.extent.start)
        if line in lines:
            of_lines.setdefault(line, []).append(tracked)
    for line, value in of_lines.items():
        if len(value) > 1:
            value.sort(key=lambda element: _rank(document, element))
        labels = ((element, label) for element in value if (label := _label(document, element)))
        for number, (tracked, label) in enumerate(labels):
            shown = _short_label(document, tracked) if number else label
            words = "" if client.lazy else region_words(document, tracked, client.links)
            yield _hint(document, line, shown, words, client, {"region": tracked.region.id})


def _rank(document: Document, tracked: Tracked) -> tuple[bool, int]:
    """What waits for review comes first, then the smaller code."""
    return tracked.region.id not in document.ready, tracked.extent.end - tracked.extent.start


def _of_calls(document: Document, lines: range, client: Showing) -> Iterator[types.InlayHint]:
    for call in document.calls:
        line = document.text.line_of(call.extent.start)
        if line not in lines or call.name not in document.installed:
            continue
        installed, unfit = document.installed[call.name], document.stale.get(call.name, "")
        if installed is None:
            folder = f"evokernel_kernels/{call.name}"
            words = _("The folder {folder} is missing or damaged; restore it or revert.", folder=folder)
            yield _hint(document, line, _("⚡ kernel package missing"), words)
        elif unfit:  # the figures are not of what runs
            yield _hint(document, line, _("⚡ kernel out of date"), markdown(unfit))
        else:
            words = "" if client.lazy else call_words(installed)
            yield _hint(document, line, _installed_label(installed), words, client, {"name": call.name})


def _hint(
    document: Document,
    line: int,
    label: str,
    tooltip: str,
    client: Showing = Showing(),
    of: Mapping[str, str] | None = None,
) -> types.InlayHint:
    """A hint at the end of a line. ``of`` says what a client asks for more of."""
    end = document.text.starts[line] + len(document.text.line(line))
    asks = of is not None and (client.parts or client.lazy)
    words = plain(label)
    return types.InlayHint(
        position=document.text.position(end),
        label=[types.InlayHintLabelPart(words)] if asks and client.parts else words,
        padding_left=True,
        tooltip=types.MarkupContent(types.MarkupKind.Markdown, tooltip) if tooltip else None,
        data={"uri": document.uri, "version": document.version, **(of or {})} if asks else None,
    )


def resolved(server: Host, hint: types.InlayHint) -> types.InlayHint:
    """The hint with its tooltip and command; as it came where it is of another version, or of code that is
    gone."""
    data = hint.data if isinstance(hint.data, Mapping) else {}
    document = server.documents.get(str(data.get("uri", "")))
    if document is None or document.version != data.get("version"):
        return hint
    tracked, installed = (
        document.region(str(data.get("region", ""))),
        document.installed.get(str(data.get("name", ""))),
    )
    client = showing(server.client_capabilities)
    if tracked is not None:
        words = region_words(document, tracked, client.links)
        command = _command(server, document, tracked)
    elif installed is not None:
        words, command = call_words(installed), _call_command(server, document, installed)
    else:
        return hint
    hint.tooltip = types.MarkupContent(types.MarkupKind.Markdown, words)
    if client.parts and command is not None and not isinstance(hint.label, str):
        for part in hint.label:
            part.command = command
    return hint


def _command(server: Host, document: Document, tracked: Tracked) -> types.Command | None:
    """What a click on a region's hint does."""
    place: dict[str, Any] = {"uri": document.uri, "regionId": tracked.region.id}
    estimate = tracked.captured.estimate
    if tracked.region.status is RegionStatus.NEEDS_SHAPES:
        return _runs(_("Run something that uses this model"), names.OBSERVE, {"uri": document.uri})
    if tracked.region.id in document.ready:
        return _runs(_("Review the kernel"), names.REVIEW, place)
    if estimate is not None and estimate.rival is not None and estimate.rival_leads:
        return _runs(_("Use {name}", name=estimate.rival.name), names.USE_VENDOR, place)
    title = _("Generate {kind} kernel", kind=server.options.kind)
    return _runs(title, names.GENERATE, {**place, "version": document.version})


def _call_command(server: Host, document: Document, installed: Installed) -> types.Command | None:
    """What a click on the hint of a generated call does: the faster kernel where one waits."""
    if server.offers.find(document.path, name=installed.name) is None:
        return None
    place = {"uri": document.uri, "name": installed.name}
    return _runs(_("Review the faster kernel"), names.REVIEW, place)


def _runs(title: str, name: str, argument: Mapping[str, Any]) -> types.Command:
    return types.Command(title, name, arguments=[dict(argument)])


def _of_problem(document: Document, lines: range) -> Iterator[types.InlayHint]:
    """Why a file has no regions, once, at its first definition with tensor code."""
    if document.problem is None or document.tracked:
        return
    line = document.first_line()
    if line in lines:
        label = f"⚡ {_short(document.problem.reason)}"
        yield _hint(document, line, label, markdown(told(document.problem.message)))


def _short(reason: str) -> str:
    return {
        "needs_shapes": _("shapes needed"),
        "no_interpreter": _("no Python with torch"),
        "import_failed": _("file does not import"),
        "agent_failed": _("torch stopped"),
        REASON: _("not trusted"),
    }.get(reason, _("not analysed"))


def _label(document: Document, tracked: Tracked) -> str:
    """The gain or the state first, then the figures, then what tells nested offers apart: a label is cut at
    its end."""
    estimate, ready = tracked.captured.estimate, document.ready.get(tracked.region.id)
    where = around(document, tracked)
    if ready is not None:
        return _fitting(f"⚡ {ready_words(ready)}", where)
    if tracked.region.status is RegionStatus.NEEDS_SHAPES:
        return "⚡ " + _("shapes needed")
    if estimate is None or tracked.region.status is RegionStatus.UNSUPPORTED:
        return ""  # the hover says why there is no offer
    if estimate.rival is not None and estimate.rival_leads:
        return _tailed(f"⚡ {rival_words(estimate, estimate.rival)}", estimate.rival.name, where)
    if not estimate.wins:
        return ""
    return _fitting(f"⚡ {estimate_words(estimate)}", where)


def _short_label(document: Document, tracked: Tracked) -> str:
    """Of an offer beside another one on its line; its figures are in the tooltip."""
    estimate = tracked.captured.estimate
    where = around(document, tracked) or tracked.region.op_category
    if tracked.region.id in document.ready:
        return _tailed("⚡ " + _("ready"), where)
    if estimate is None:
        return _label(document, tracked)
    if estimate.rival is not None and estimate.rival_leads:
        return _tailed(f"⚡ {estimate.rival.name}", where)
    return _tailed(f"⚡ {estimated_ratio(estimate)}", where)


def _tailed(label: str, *more: str) -> str:
    for words in filter(None, more):
        label = _("{label}, {more}", label=label, more=words)
    return label


def _fitting(label: str, where: str) -> str:
    """The label with its place, unless an editor would cut that to letters without a meaning; the tooltip and
    the list of actions have it."""
    longer = _tailed(label, where)
    return longer if len(longer) <= _LONGEST else label


def _installed_label(installed: Installed) -> str:
    before_us, _over = better_of(installed)
    return _tailed(f"⚡ {kernel_gain_words(installed.latency, before_us)}", installed.function)
