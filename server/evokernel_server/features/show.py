"""The commands that show: a review, variants, a comparison, why there is no kernel, a timeline.

Clients of ours get data; for all others each opens a page through ``window/showDocument``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from evokernel_core.domain.errors import EvoKernelError
from evokernel_server.documents.packages import package_folder
from evokernel_server.errors import Refused
from evokernel_server.jobs.worker import Cancelled
from evokernel_server.offers.no_candidate import situation
from evokernel_server.offers.why_not import Reason, reasons, reasons_on
from evokernel_server.review.contents import wire
from evokernel_server.review.markdown import review_page, table_page, variants_page
from evokernel_server.texts import command_names as names
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, many, told

if TYPE_CHECKING:
    from evokernel_server.host import Host

Arguments = dict[str, Any]
Answer = dict[str, Any]

_SHORT = 12
"""Characters of a kernel's id that tell it from others."""


def _place(given: Arguments) -> tuple[str, str, str]:
    """The uri, the region's id and the installed kernel's name; one of the last two is empty."""
    place = given.get("place")
    held = place if isinstance(place, dict) else given
    uri, region_id, name = (str(held.get(key) or "") for key in ("uri", "regionId", "name"))
    if not uri or not (region_id or name):
        raise Refused(_("The command needs a uri, and a regionId or a name; run it from a code action."))
    return uri, region_id, name


async def review(server: Host, given: Arguments) -> Answer:
    source_id = str(given.get("sourceId") or "")
    if given.get("again"):
        return await _again(server, *_place(given), source_id)
    result = await server.reviews.review(*_place(given), source_id)
    if not server.own_client:
        page = await asyncio.to_thread(review_page, result)
        await server.pages.show("reviews", f"{result.name}.md", page, _("the review"))
    return {"status": "shown", "message": plain(result.title), "review": wire(result)}


async def _again(server: Host, uri: str, region_id: str, name: str, source_id: str) -> Answer:
    """An open review as it is by now; ``stale``, with the reason, where it holds no more."""
    try:
        result = await server.reviews.again(uri, region_id, name, source_id)
    except EvoKernelError as why:
        return {"status": "stale", "message": told(why)}
    return {"status": "shown", "message": "", "review": wire(result)}


async def variants(server: Host, given: Arguments) -> Answer:
    place = _place(given)
    result = await server.reviews.variants(*place)
    counted = many("{count} verified kernel", "{count} verified kernels", len(result))
    if not server.own_client:
        name = f"{place[2] or place[1]}.variants.md"
        page = variants_page(_("Variants: {what}", what=counted), result)
        await server.pages.show("reviews", name, page, _("the list"))
    return {"status": "shown", "message": _("{what}.", what=counted), "variants": wire(result)}


async def compare(server: Host, given: Arguments) -> Answer:
    uri, region_id, name = _place(given)
    one, other = (str(given.get(key) or "") for key in ("sourceId", "other"))
    files = await server.reviews.compare(uri, region_id, name, one, other)
    changed = [file for file in files if file.is_changed]
    sides = (one[:_SHORT], other[:_SHORT])
    if not server.own_client:
        document = server.documents.get(uri)
        assert document is not None  # it was compared
        folder = package_folder(document.path, f"{name or region_id}_{'_'.join(sides)}")
        await server.notices.show_files(
            folder, changed, sides, _("{one} and {other}", one=sides[0], other=sides[1])
        )
    message = _("Both kernels have the same files.")
    if changed:
        message = _("{changed} of {count} files differ.", changed=len(changed), count=len(files))
    return {"status": "shown", "message": message, "files": wire(files)}


async def why_not(server: Host, given: Arguments) -> Answer:
    """With a line, from 0, of code from there to ``endLine``, which is the same line where it is not given;
    else of the whole document."""
    document = server.documents.opened(str(given.get("uri") or ""))
    line, end = given.get("line"), given.get("endLine")
    lines = (line, end if isinstance(end, int) else line) if isinstance(line, int) else None
    result = reasons_on(document, *lines) if lines is not None else reasons(document)
    message = "; ".join(dict.fromkeys(element.why for element in result))
    if not result:
        analysing = server.capture.is_analysing(document)
        message = situation(document, analysing=analysing, lines=lines)
    if not server.own_client:
        await _tell(server, document.path.name, result, message)
    return {"status": "shown", "message": message, "reasons": wire(result)}


async def _tell(server: Host, file: str, reasons: tuple[Reason, ...], message: str) -> None:
    """One reason as a message, several as a page."""
    if len(reasons) > 1:
        rows = ((str(reason.line + 1), reason.code, reason.why, reason.help) for reason in reasons)
        head = (_("line"), _("code"), _("why"), _("what would help"))
        text = table_page(_("Why code of {file} has no kernel", file=file), head, rows)
        await server.pages.show("reviews", f"{file}.why.md", text, _("the list"))
        return
    helped = f" {reasons[0].help}" if reasons else ""
    said = types.ShowMessageParams(types.MessageType.Info, f"EvoKernel: {message}{helped}")
    server.window_show_message(said)


async def timeline(server: Host, given: Arguments) -> Answer:
    try:
        page = await server.reviews.timeline(*_place(given), str(given.get("sourceId") or ""))
    except Cancelled:
        return {"status": "cancelled", "message": _("The timing was cancelled.")}
    if not server.own_client:
        await server.pages.open(page, _("the timeline"), outside=True)
    return {"status": "shown", "message": _("The times of the timeline are estimated."), "path": str(page)}


COMMANDS: dict[str, Callable[[Host, Arguments], Awaitable[Answer]]] = {
    names.REVIEW: review,
    names.VARIANTS: variants,
    names.COMPARE: compare,
    names.WHY_NOT: why_not,
    names.TIMELINE: timeline,
}
"""The commands of this module, ``command_names.OF_REVIEWING``."""
