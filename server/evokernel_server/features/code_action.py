"""``textDocument/codeAction`` and ``codeAction/resolve``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from evokernel_core.domain.region import RegionStatus
from evokernel_core.domain.settings import ProposerName
from evokernel_server import command_names as names
from evokernel_server.features import inputs
from evokernel_server.features.inlay_hint import estimate_words, latencies, lines_around
from evokernel_server.kernels import REPLACEABLE
from evokernel_server.plain import plain
from evokernel_server.text import Extent
from evokernel_server.workspace import Document, GeneratedCall, Tracked

if TYPE_CHECKING:
    from evokernel_server.app import EvoKernelServer

KIND = types.CodeActionKind.RefactorRewrite


def register(server: EvoKernelServer) -> None:
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
        found = actions(server, document, params.range, asked=bool(only))
        wanted = [action for action in found if _is_wanted(action, only)]
        return wanted if _resolves(server) else [resolved(server, action) for action in wanted]

    @server.feature(types.CODE_ACTION_RESOLVE)
    def resolve(action: types.CodeAction) -> types.CodeAction:
        return resolved(server, action)


def _resolves(server: EvoKernelServer) -> bool:
    """Whether the client asks for what an action leaves out; one that does not (eglot) gets all at once."""
    text = server.client_capabilities.text_document
    return bool(text and text.code_action and text.code_action.resolve_support)


def _is_wanted(action: types.CodeAction, only: Any) -> bool:
    kind = str(getattr(action.kind, "value", action.kind))
    return not only or any(kind.startswith(str(getattr(item, "value", item))) for item in only)


def actions(
    server: EvoKernelServer, document: Document, wanted: types.Range, *, asked: bool
) -> Iterator[types.CodeAction]:
    """What can be done on the lines of a range. ``asked``: a person asked for this kind of actions, which
    also offers kernels that are not modelled to gain enough to be offered unasked."""
    if not server.trusts(document):
        yield from _for_trust(server, document)
    lines = _lines(document, wanted)
    touched = [item for item in document.tracked if _touches(lines, item.extent)]
    touched.sort(key=lambda item: item.extent.end - item.extent.start)  # the innermost first
    yield from _for_rivals(document, touched)
    for tracked in touched:
        if asked or tracked.found.estimate is None or tracked.found.wins:
            yield from _for_region(server, document, tracked)
    for call in document.calls:
        if _touches(lines, call.extent):
            yield from _for_call(server, document, call)
    yield from inputs.actions(server, document, lines)


def _for_trust(server: EvoKernelServer, document: Document) -> Iterator[types.CodeAction]:
    """Asks for trust by the folder's name; where the editor has workspace trust of its own, that is asked."""
    if server.own_client or not document.is_local:
        return
    title = f"Trust {plain(str(server.folder_to_trust(document)))} and run its code to find kernels"
    command = types.Command(title, names.TRUST, arguments=[{"uri": document.uri}])
    yield types.CodeAction(title=title, kind=types.CodeActionKind.QuickFix, command=command)


def _lines(document: Document, wanted: types.Range) -> Extent:
    """The whole lines of a range: a cursor anywhere on a region's line is enough."""
    start = document.text.offset(types.Position(wanted.start.line, 0))
    return Extent(start, document.text.offset(types.Position(wanted.end.line + 1, 0)))


def _touches(lines: Extent, extent: Extent) -> bool:
    return extent.start < lines.end and lines.start < max(extent.end, extent.start + 1)


def _for_region(server: EvoKernelServer, document: Document, tracked: Tracked) -> Iterator[types.CodeAction]:
    region = tracked.region
    if region.status in REPLACEABLE:
        gain = f": {estimate_words(tracked.found.estimate)}" if tracked.found.estimate else ""
        what = f"{lines_around(document, tracked)}{region.op_category}"
        label = f"Generate NPU kernel ({what}{gain})"
        yield types.CodeAction(title=label, kind=KIND, data={"uri": document.uri, "region_id": region.id})
        if server.options.settings.proposer is not ProposerName.SCHEDULE:
            title = f"Show what a model would be asked ({region.op_category})"
            yield _command(title, names.PREVIEW, document, region.id)
    elif region.status is RegionStatus.UNSUPPORTED and _takes_disabled(server):
        yield types.CodeAction(
            title=f"Generate NPU kernel ({region.op_category})",
            kind=KIND,
            disabled=types.CodeActionDisabled(region.reason or "No kernel family covers this region."),
        )
    offer = server.offers.find(document.path, region.id)
    if offer is not None and offer.old is None:
        yield _command(f"Apply the kernel that is ready ({offer.words})", names.APPLY, document, region.id)


def _for_rivals(document: Document, touched: Iterable[Tracked]) -> Iterator[types.CodeAction]:
    """The vendor's operators that no kernel is modelled to beat, each once, for the smallest region."""
    seen: set[str] = set()
    for tracked in touched:
        estimate = tracked.found.estimate
        if estimate is None or estimate.rival is None or tracked.region.status not in REPLACEABLE:
            continue
        rival = estimate.rival
        if estimate.rival_leads and rival.name not in seen:
            seen.add(rival.name)
            what = lines_around(document, tracked) + latencies(estimate, rival)
            title = f"Use {rival.name} ({what})"
            yield _command(title, names.USE_VENDOR, document, tracked.region.id)


def _takes_disabled(server: EvoKernelServer) -> bool:
    text = server.client_capabilities.text_document
    return bool(text and text.code_action and text.code_action.disabled_support)


def _command(title: str, name: str, document: Document, what: str, key: str = "regionId") -> types.CodeAction:
    command = types.Command(title, name, arguments=[{"uri": document.uri, key: what}])
    return types.CodeAction(title=title, kind=KIND, command=command)


def _for_call(server: EvoKernelServer, document: Document, call: GeneratedCall) -> Iterator[types.CodeAction]:
    """A replaced region offers no second replacement, but a way back and a way on."""
    name = call.name
    offer = server.offers.find(document.path, name=name)
    if offer is not None:
        region_id = offer.region.id
        yield _command(f"Apply the faster kernel ({offer.words})", names.APPLY, document, region_id)
        yield _command("Show the faster kernel's diff", names.SHOW_DIFF, document, region_id)
        yield _command("Reject the faster kernel", names.REJECT, document, region_id)
    installed = document.installed.get(name)
    if installed is not None and installed.function:
        yield _command(f"Revert {installed.function}", names.REVERT, document, name, "name")
        return
    yield _command(f"Revert kernel {name}", names.REVERT, document, name, "name")
    if document.installed.get(name) is None and name in document.installed:
        yield _command(f"Restore the package of {name}", names.RESTORE, document, name, "name")
    else:
        yield _command(f"Refine {name} now", names.REFINE_NOW, document, name, "name")


def resolved(server: EvoKernelServer, action: types.CodeAction) -> types.CodeAction:
    """Attaches the command; an action without our data is given back as it came."""
    data = action.data if isinstance(action.data, dict) else {}
    document = server.documents.get(str(data.get("uri", "")))
    if document is None or action.command is not None or "region_id" not in data:
        return action
    argument = {"uri": document.uri, "regionId": data["region_id"], "version": document.version}
    action.command = types.Command(action.title, names.GENERATE, arguments=[argument])
    return action
