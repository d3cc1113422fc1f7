"""``workspace/executeCommand``: each command takes one object and gives ``{"status", "message"}``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import asdict
from lsprotocol import types

from evokernel_core.capture.observe import workspace_of
from evokernel_core.domain.errors import EvoKernelError
from evokernel_server.documents.edits import apply
from evokernel_server.documents.line_index import Extent
from evokernel_server.documents.workspace import Document
from evokernel_server.errors import Refused
from evokernel_server.features.inputs import observe_command, shapes_edit, unknown_words
from evokernel_server.features.lifecycle import reconfigure
from evokernel_server.jobs.forgetting import forget
from evokernel_server.jobs.tasks import spawn
from evokernel_server.offers.overlaps import REPLACEABLE
from evokernel_server.offers.pending import NO_KERNEL_WAITS, Offer, undecided
from evokernel_server.texts import command_names as names
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, told

if TYPE_CHECKING:
    from evokernel_server.host import Host

Arguments = dict[str, Any]
Answer = dict[str, Any]
Work = Callable[["Host", Arguments], Awaitable[Answer]]


def register(server: Host) -> None:
    for name, work in COMMANDS.items():
        _register(server, name, work)

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def work_done_progress_cancel(params: types.WorkDoneProgressCancelParams) -> None:
        server.operations.cancel(params.token)


def _register(server: Host, name: str, work: Work) -> None:
    @server.command(name)
    async def command(*arguments: Any) -> Answer:
        first = arguments[0] if arguments else {}
        given = first if isinstance(first, dict) else {"token": first}
        try:
            return await work(server, given)
        except EvoKernelError as error:
            server.window_show_message(
                types.ShowMessageParams(types.MessageType.Warning, f"EvoKernel: {told(error)}")
            )
            return {"status": "refused", "message": told(error)}


async def generate(server: Host, given: Arguments) -> Answer:
    return await server.kernels.generate(_text(given, "uri"), _text(given, "regionId"))


async def generate_in(server: Host, given: Arguments) -> Answer:
    """Chooses a target for all that follows, and generates the kernel for the same code in it. A client that
    keeps settings hears of the choice by the answer's ``target``, and of the region by its ``regionId``."""
    document, target = _document(server, given), _text(given, "target")
    region = document.region(_text(given, "regionId"))
    if region is None:
        raise Refused(_("That code has changed; ask for its actions again."))
    where = region.extent
    await reconfigure(server, {"target": target})
    await server.capture.anew(document)
    now = [tracked for tracked in document.regions(*REPLACEABLE) if tracked.extent.touches(where)]
    if not now or server.options.target != target:
        raise Refused(_("No kernel can be written in {target} for this code.", target=target))
    best = min(now, key=lambda tracked: abs(_length(tracked.extent) - _length(where)))
    answer = await server.kernels.generate(document.uri, best.region.id)
    return {**answer, "target": target, "regionId": best.region.id}


def _length(extent: Extent) -> int:
    return extent.end - extent.start


async def use_vendor(server: Host, given: Arguments) -> Answer:
    return await server.kernels.use_vendor(_text(given, "uri"), _text(given, "regionId"))


async def apply_offer(server: Host, given: Arguments) -> Answer:
    ids = given.get("regionIds") or ()
    if not isinstance(ids, list | tuple) or not all(isinstance(id_, str) for id_ in ids):
        raise Refused(_("The argument 'regionIds' is a list of regions' ids; run it from a code action."))
    region_id, name, source_id = (str(given.get(key) or "") for key in ("regionId", "name", "sourceId"))
    return await server.kernels.apply(_text(given, "uri"), region_id, name, source_id, tuple(ids))


async def show_diff(server: Host, given: Arguments) -> Answer:
    offer = _offer(server, given)
    await server.notices.show_diff(offer)
    return {"status": "shown", "message": offer.words}


async def preview(server: Host, given: Arguments) -> Answer:
    text = await server.kernels.preview(_text(given, "uri"), _text(given, "regionId"))
    path = await server.notices.show_request(text)
    return {"status": "shown", "message": _("Nothing was sent. The request is in {path}.", path=path)}


async def reject(server: Host, given: Arguments) -> Answer:
    offer, reason = _offer(server, given), str(given.get("reason", ""))
    answer = await server.kernels.reject(offer, reason)
    if not reason:
        spawn(server.notices.ask_why([offer]), "why")
    return answer


async def snooze(server: Host, given: Arguments) -> Answer:
    return await server.kernels.snooze(_offer(server, given))


async def never(server: Host, given: Arguments) -> Answer:
    return dict(await server.nevers.say(_document(server, given), _text(given, "regionId")))


async def offer_again(server: Host, given: Arguments) -> Answer:
    return dict(await server.nevers.offer_again(_document(server, given)))


async def revert(server: Host, given: Arguments) -> Answer:
    return await server.kernels.revert(_text(given, "uri"), _text(given, "name"))


async def restore(server: Host, given: Arguments) -> Answer:
    return await server.kernels.restore_package(_text(given, "uri"), _text(given, "name"))


async def refine_now(server: Host, given: Arguments) -> Answer:
    return await server.kernels.refine_now(_text(given, "uri"), _text(given, "name"))


async def insert_shapes(server: Host, given: Arguments) -> Answer:
    document = server.documents.get(_text(given, "uri"))
    wanted = str(given.get("symbol", ""))
    definitions = document.definitions() if document else ()
    chosen = next((d for d in definitions if d.qualname == wanted or not wanted), None)
    if document is None or chosen is None:
        raise Refused(_("There is no class or function with tensor code here to note shapes for."))
    edit = shapes_edit(document, chosen)
    if edit is None:
        raise Refused(unknown_words(chosen))
    refusal = await apply(server, document, [edit], _("EvoKernel: input shapes"))
    if refusal is not None:
        raise Refused(refusal.reason)
    return {"status": "applied", "message": _("The comment says what was observed.")}


async def observe(server: Host, given: Arguments) -> Answer:
    """Says which command to run; a client that knows us offers it in a terminal instead."""
    document = server.documents.get(_text(given, "uri"))
    if document is None:
        raise Refused(_("There is no open file to observe: open one first."))
    line = await asyncio.to_thread(observe_command, server, document)
    folder = str(await asyncio.to_thread(workspace_of, document.path.parent))
    message = _("Run this once in {folder}, then the shapes are known: {line}", folder=folder, line=line)
    if not server.own_client:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"EvoKernel: {message}"))
    return {"status": "shown", "message": message, "commandLine": line, "folder": folder}


async def analyse(server: Host, given: Arguments) -> Answer:
    """Captures a file anew, as where what it imports was corrected meanwhile."""
    document = server.documents.get(_text(given, "uri"))
    if document is None or not document.has_torch:
        raise Refused(_("There is no open file that could be analysed: open one that imports torch."))
    if not server.trusts(document):
        raise Refused(_("This folder is not trusted, so its code is not run; trust it first."))
    server.capture.again(document)
    message = _("{name} is analysed again.", name=plain(document.path.name))
    return {"status": "analysing", "message": message}


async def trust(server: Host, given: Arguments) -> Answer:
    """Trusts the folder of a file until the client ends. Our own client has the editor's trust instead."""
    document = server.documents.get(_text(given, "uri"))
    if document is None or not document.is_local:
        raise Refused(_("There is no open file whose folder could be trusted: open one first."))
    if server.own_client:
        raise Refused(_("The editor decides what is trusted: run *Workspaces: Manage Workspace Trust*."))
    folder = server.folder_to_trust(document)
    server.trust_folder(folder)
    return {
        "status": "trusted",
        "message": _("{folder} is trusted until this editor ends.", folder=plain(str(folder))),
    }


async def cancel(server: Host, given: Arguments) -> Answer:
    if "jobId" in given:
        ended = await server.jobs.cancel(_text(given, "jobId"))
        return {"status": "cancelled" if ended else "idle", "message": ""}
    token = given.get("token")
    ended = server.operations.cancel(token)
    if token is None:
        ended = server.jobs.cancel_background() or ended
    return {"status": "cancelled" if ended else "idle", "message": ""}


async def status(server: Host, given: Arguments) -> Answer:
    offers = [
        {"uri": o.uri, "regionId": o.region.id, "name": o.name, "words": o.words, "ready": o.old is None}
        for o in undecided(server.offers.pending.values(), server.documents)
    ]
    return {**asdict(server.status.current), "pending": offers}


async def _reviewing(name: str, server: Host, given: Arguments) -> Answer:
    from evokernel_server.features import show  # as in ``app``: not before a person asks for it

    return await show.COMMANDS[name](server, given)


async def dashboard(server: Host, given: Arguments) -> Answer:
    return {"status": "shown", "message": "", "dashboard": await server.dashboard.state()}


async def forget_memory(server: Host, given: Arguments) -> Answer:
    return {"status": "forgotten", "message": await forget(server, _text(given, "what"))}


def _text(given: Arguments, key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise Refused(_("The command needs the argument {key}; run it from a code action.", key=repr(key)))
    return value


def _document(server: Host, given: Arguments) -> Document:
    return server.documents.opened(_text(given, "uri"))


def _offer(server: Host, given: Arguments) -> Offer:
    document = server.documents.get(_text(given, "uri"))
    region_id, name = str(given.get("regionId", "")), str(given.get("name", ""))
    offer = server.offers.find(document.path, region_id, name) if document else None
    if offer is None:
        raise Refused(_(NO_KERNEL_WAITS))
    return offer


COMMANDS: dict[str, Work] = {
    names.GENERATE: generate,
    names.GENERATE_IN: generate_in,
    names.USE_VENDOR: use_vendor,
    names.APPLY: apply_offer,
    names.SHOW_DIFF: show_diff,
    names.PREVIEW: preview,
    names.REJECT: reject,
    names.SNOOZE: snooze,
    names.NEVER: never,
    names.OFFER_AGAIN: offer_again,
    names.REVERT: revert,
    names.RESTORE: restore,
    names.REFINE_NOW: refine_now,
    names.INSERT_SHAPES: insert_shapes,
    names.OBSERVE: observe,
    names.ANALYSE: analyse,
    names.TRUST: trust,
    names.CANCEL: cancel,
    names.STATUS: status,
    **{name: partial(_reviewing, name) for name in names.OF_REVIEWING},
    names.DASHBOARD: dashboard,
    names.FORGET: forget_memory,
}
"""Every command of the server."""
