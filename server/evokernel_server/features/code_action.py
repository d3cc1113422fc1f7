"""``textDocument/codeAction`` and ``codeAction/resolve``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.settings import ProposerName
from evokernel_core.targets import files_of_device
from evokernel_server.documents.workspace import Document, GeneratedCall, Tracked
from evokernel_server.features import inputs
from evokernel_server.features.diagnostic import attach
from evokernel_server.offers.evidence import lines_around
from evokernel_server.offers.gain_words import estimate_words, rival_words
from evokernel_server.offers.overlaps import REPLACEABLE
from evokernel_server.offers.pending import Offer
from evokernel_server.offers.why_not import reasons_on
from evokernel_server.texts import command_names as names
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, told
from evokernel_server.trust import REASON

if TYPE_CHECKING:
    from evokernel_server.host import Host

KIND = "refactor.rewrite.evokernel"
"""A kind of our own, so that a client can bind a key to it; it belongs to ``refactor.rewrite``."""
_WAITING = (REASON, RegionStatus.NEEDS_SHAPES.value)
"""What another run of the analysis would not change."""


def register(server: Host) -> None:
    options = types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, KIND], resolve_provider=True
    )

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not document.has_torch:
            return []
        server.documents.touch(document.uri)
        only = params.context.only
        result = actions(server, document, params.range, asked=bool(only))
        wanted = [action for action in result if _is_wanted(action, only)]
        if wanted:
            attach(wanted, server.diagnostics.of(document))
        ready = wanted if _resolves(server) else [resolved(server, action) for action in wanted]
        return [*ready, *_explained(document, params.range, only)]

    @server.feature(types.CODE_ACTION_RESOLVE)
    def resolve(action: types.CodeAction) -> types.CodeAction:
        return resolved(server, action)


def _resolves(server: Host) -> bool:
    """Whether the client asks for what an action leaves out; one that does not (eglot) gets all at once."""
    text = server.client_capabilities.text_document
    return bool(text and text.code_action and text.code_action.resolve_support)


def _is_wanted(action: types.CodeAction, only: Any) -> bool:
    """``only`` names kinds with all that lie below them."""
    kind = str(getattr(action.kind, "value", action.kind))
    asked = [str(getattr(kind_, "value", kind_)) for kind_ in only or ()]
    return not asked or any(not request or f"{kind}.".startswith(f"{request}.") for request in asked)


def actions(
    server: Host, document: Document, wanted: types.Range, *, asked: bool
) -> Iterator[types.CodeAction]:
    """What can be done on the lines of a range. ``asked``: a person asked for this kind of actions, which
    also offers kernels that are not modelled to gain enough to be offered unasked."""
    if not server.trusts(document):
        yield from _for_trust(server, document)
    lines = document.text.lines(wanted.start.line, wanted.end.line)
    touched = [tracked for tracked in document.tracked if lines.touches(tracked.extent)]
    touched.sort(key=lambda tracked: tracked.extent.end - tracked.extent.start)  # the innermost first
    yield from _for_rivals(document, touched)
    for tracked in touched:
        waits = server.offers.find(document.path, tracked.region.id) is not None
        if asked or waits or tracked.captured.estimate is None or tracked.captured.wins:
            yield from _for_region(server, document, tracked)
    if any(tracked.region.id in document.ready for tracked in touched):
        yield from _for_all_ready(document)
    if asked and document.hidden:
        title = _("Offer kernels again where you said never")
        command = types.Command(title, names.OFFER_AGAIN, arguments=[{"uri": document.uri}])
        yield types.CodeAction(title=title, kind=KIND, command=command)
    for call in document.calls:
        if lines.touches(call.extent):
            yield from _for_call(server, document, call)
    yield from inputs.actions(server, document, lines)
    if document.problem is not None and document.problem.reason not in _WAITING and server.trusts(document):
        title = _("Analyse again")
        command = types.Command(title, names.ANALYSE, arguments=[{"uri": document.uri}])
        yield types.CodeAction(title=title, kind=types.CodeActionKind.QuickFix, command=command)


def _explained(document: Document, wanted: types.Range, only: Any) -> Iterator[types.CodeAction]:
    """Why code of the lines has no kernel on offer, and what would help. Who asks for rewrites is offered
    kernels that gain little instead."""
    first, last = wanted.start.line, wanted.end.line
    if only and KIND not in [str(getattr(kind, "value", kind)) for kind in only]:
        return
    if any(reason.code != REASON for reason in reasons_on(document, first, last)):
        title = _("Explain why no kernel is offered here")
        asked = {"uri": document.uri, "line": first, "endLine": last}
        command = types.Command(title, names.WHY_NOT, arguments=[asked])
        yield types.CodeAction(title=title, kind=KIND, command=command)


def _for_trust(server: Host, document: Document) -> Iterator[types.CodeAction]:
    """Asks for trust by the folder's name; where the editor has workspace trust of its own, that is asked."""
    if server.own_client or not document.is_local:
        return
    folder = plain(str(server.folder_to_trust(document)))
    title = _("Trust {folder} and run its code to find kernels", folder=folder)
    command = types.Command(title, names.TRUST, arguments=[{"uri": document.uri}])
    yield types.CodeAction(title=title, kind=types.CodeActionKind.QuickFix, command=command)


def _for_region(server: Host, document: Document, tracked: Tracked) -> Iterator[types.CodeAction]:
    region = tracked.region
    offer = server.offers.find(document.path, region.id)
    if offer is not None and offer.old is None:
        yield from _for_ready(document, offer)
    elif region.status in REPLACEABLE:
        gain = f": {estimate_words(tracked.captured.estimate)}" if tracked.captured.estimate else ""
        what = f"{lines_around(document, tracked)}{region.op_category}"
        label = _("Generate {kind} kernel ({what})", kind=server.options.kind, what=f"{what}{gain}")
        yield types.CodeAction(title=label, kind=KIND, data={"uri": document.uri, "region_id": region.id})
        yield from _for_other_targets(server, document, region)
        if server.options.settings.proposer is not ProposerName.SCHEDULE:
            title = _("Show what a model would be asked ({what})", what=region.op_category)
            yield _command(title, names.PREVIEW, document, region.id)
    elif region.status is RegionStatus.UNSUPPORTED and _takes_disabled(server):
        yield types.CodeAction(
            title=_("Generate {kind} kernel ({what})", kind=server.options.kind, what=region.op_category),
            kind=KIND,
            disabled=types.CodeActionDisabled(
                told(region.reason) or _("No kernel family covers this region.")
            ),
        )
    if offer is not None or tracked.captured.wins:
        title = _("Never offer a kernel for this code ({what})", what=region.op_category)
        yield _command(title, names.NEVER, document, region.id)


def _for_other_targets(server: Host, document: Document, region: Region) -> Iterator[types.CodeAction]:
    """Kernels in the targets that the machine could run too, where nobody has chosen one."""
    for files in server.other_targets():
        title = _("Generate {kind} kernel ({what})", kind=files.kind, what=region.op_category)
        argument = {"uri": document.uri, "regionId": region.id, "target": files.target}
        command = types.Command(title, names.GENERATE_IN, arguments=[argument])
        yield types.CodeAction(title=title, kind=KIND, command=command)


def _for_ready(document: Document, offer: Offer) -> Iterator[types.CodeAction]:
    """What a person can answer to a kernel that waits for review."""
    what = offer.region.op_category
    for title, name in (
        (_("Review the {what} kernel that is ready ({words})", what=what, words=offer.words), names.REVIEW),
        (_("Accept the {what} kernel that is ready", what=what), names.APPLY),
        (_("Reject the {what} kernel that is ready", what=what), names.REJECT),
        (_("Snooze the {what} kernel that is ready", what=what), names.SNOOZE),
    ):
        yield _command(title, name, document, offer.region.id)


def _for_all_ready(document: Document) -> Iterator[types.CodeAction]:
    """Accepts all kernels of a file that wait, by one edit; of overlapping ones those that save most."""
    chosen: list[Tracked] = []
    gain = {id: latency.baseline_us - latency.us for id, latency in document.ready.items()}
    for tracked in sorted(document.to_review(), key=lambda tracked: gain[tracked.region.id], reverse=True):
        if not any(tracked.extent.touches(other.extent) for other in chosen):
            chosen.append(tracked)
    if len(chosen) > 1:
        argument = {"uri": document.uri, "regionIds": [choice.region.id for choice in chosen]}
        title = _("Accept the {count} kernels of this file that are ready", count=len(chosen))
        command = types.Command(title, names.APPLY, arguments=[argument])
        yield types.CodeAction(title=title, kind=KIND, command=command)


def _for_rivals(document: Document, touched: Iterable[Tracked]) -> Iterator[types.CodeAction]:
    """The vendor's operators that no kernel is modelled to beat, each once, for the smallest region."""
    seen: set[str] = set()
    for tracked in touched:
        estimate = tracked.captured.estimate
        if estimate is None or estimate.rival is None or tracked.region.status not in REPLACEABLE:
            continue
        rival = estimate.rival
        if estimate.rival_leads and rival.name not in seen:
            seen.add(rival.name)
            what = lines_around(document, tracked) + rival_words(estimate, rival)
            title = _("Use {name} ({what})", name=rival.name, what=what)
            yield _command(title, names.USE_VENDOR, document, tracked.region.id)


def _takes_disabled(server: Host) -> bool:
    text = server.client_capabilities.text_document
    return bool(text and text.code_action and text.code_action.disabled_support)


def _command(title: str, name: str, document: Document, what: str, key: str = "regionId") -> types.CodeAction:
    command = types.Command(title, name, arguments=[{"uri": document.uri, key: what}])
    return types.CodeAction(title=title, kind=KIND, command=command)


def _for_call(server: Host, document: Document, call: GeneratedCall) -> Iterator[types.CodeAction]:
    """A replaced region offers no second replacement, but a way back and a way on."""
    name = call.name
    offer = server.offers.find(document.path, name=name)
    if offer is not None:
        region_id = offer.region.id
        title = _("Accept the faster kernel ({what})", what=offer.words)
        yield _command(title, names.APPLY, document, region_id)
        yield _command(_("Review the faster kernel of {name}", name=name), names.REVIEW, document, region_id)
        yield _command(_("Reject the faster kernel"), names.REJECT, document, region_id)
        yield _command(_("Snooze the faster kernel"), names.SNOOZE, document, region_id)
    installed = document.installed.get(name)
    if installed is not None and installed.function:
        yield _command(_("Revert {name}", name=installed.function), names.REVERT, document, name, "name")
        return
    yield _command(_("Revert kernel {name}", name=name), names.REVERT, document, name, "name")
    if document.installed.get(name) is None and name in document.installed:
        yield _command(_("Restore the package of {name}", name=name), names.RESTORE, document, name, "name")
    else:
        yield _command(_("Refine {name} now", name=name), names.REFINE_NOW, document, name, "name")
        yield from _for_evidence(document, name)


def _for_evidence(document: Document, name: str) -> Iterator[types.CodeAction]:
    """What there is to look at of an installed kernel, and of a faster one that waits."""
    yield _command(_("Review {name}", name=name), names.REVIEW, document, name, "name")
    yield _command(_("List the variants of {name}", name=name), names.VARIANTS, document, name, "name")
    installed = document.installed.get(name)
    files = files_of_device(installed.latency.chip) if installed is not None else None
    if files is None or files.has_timelines:
        yield _command(_("Show the timeline of {name}", name=name), names.TIMELINE, document, name, "name")


def resolved(server: Host, action: types.CodeAction) -> types.CodeAction:
    """Attaches the command; an action without our data is given back as it came."""
    data = action.data if isinstance(action.data, dict) else {}
    document = server.documents.get(str(data.get("uri", "")))
    if document is None or action.command is not None or "region_id" not in data:
        return action
    argument = {"uri": document.uri, "regionId": data["region_id"], "version": document.version}
    action.command = types.Command(action.title, names.GENERATE, arguments=[argument])
    return action
