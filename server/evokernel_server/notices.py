"""Messages that ask a person something: a faster kernel, and its diff."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from evokernel_core import paths
from evokernel_core.domain.outcome import Objection, OutcomeKind
from evokernel_core.foreign import read_foreign
from evokernel_core.private import private_folder
from evokernel_server.kernels import Kernels
from evokernel_server.learned import objection
from evokernel_server.notice_words import Review, notice, review_of
from evokernel_server.offers import Offer
from evokernel_server.packages import package_folder
from evokernel_server.words import _, marked
from evokernel_server.workspace import uri_of

APPLY, DIFF, REJECT, SNOOZE = marked("Apply"), marked("Show diff"), marked("Reject"), marked("Snooze")
SHOW_DIFF_METHOD = "evokernel/showDiff"
REFINED_METHOD = "evokernel/refined"
_TILING_FILE, _KERNEL_FILE = "tiling.h", "op_kernel.cpp"


@define(eq=False)
class Notices:
    """``own_client`` tells whether the client knows our notifications."""

    server: LanguageServer
    kernels: Kernels
    own_client: Callable[[], bool]

    async def ask(self, group: Sequence[Offer]) -> None:
        """Shows one message for a group of offers and does what the person chose."""
        if self.own_client():
            for offer in group:
                self.server.protocol.notify(REFINED_METHOD, _refined(offer))
        words = notice([(offer, await self._review(offer)) for offer in group])
        actions = [APPLY, DIFF, REJECT, SNOOZE]
        while (choice := await self._choose(words, actions)) == DIFF:
            for offer in group:
                await self.show_diff(offer)
            actions = [APPLY, REJECT, SNOOZE]
        for offer in group:
            await self._do(choice, offer)
        if choice == REJECT:
            await self.ask_why(group)

    async def _review(self, offer: Offer) -> Review:
        """What there is to read of an offer, beside the installed kernel."""
        source = await self.kernels.store(lambda memory: memory.source(offer.source_id))
        if source is None:
            return Review(0, 0, "")
        after = {_TILING_FILE: source.tiling_h, _KERNEL_FILE: source.op_kernel_cpp}
        before = await asyncio.to_thread(_installed_files, offer) if offer.old else {}
        return await asyncio.to_thread(review_of, before, after, source.strategy.move)

    async def ask_why(self, group: Sequence[Offer]) -> None:
        """Asks what was wrong with kernels that were turned down; the next one keeps to the answer. Who
        dismisses the question has said enough."""
        reasons = {objection(reason.value).capitalize(): reason for reason in Objection}
        why = _("EvoKernel: what was wrong with it? The next kernel keeps to your answer.")
        chosen = reasons.get(await self._choose(why, list(reasons)))
        if chosen is not None:
            for offer in group:
                await self.kernels.outcomes.record(OutcomeKind.EXPLAINED, offer.placement(0.0), chosen)

    async def _choose(self, words: str, actions: Sequence[str]) -> str:
        shown = {_(action): action for action in actions}
        params = types.ShowMessageRequestParams(
            types.MessageType.Info, words, [types.MessageActionItem(title) for title in shown]
        )
        try:
            answer = await self.server.window_show_message_request_async(params)
        except JsonRpcException:
            return ""
        return shown.get(answer.title, "") if answer else ""

    async def _do(self, choice: str, offer: Offer) -> None:
        """Dismissing the message is not a decision: the offer stays."""
        if choice == APPLY:
            await self.kernels.apply_offer(offer)
        elif choice == REJECT:
            await self.kernels.reject(offer)
        elif choice == SNOOZE:
            await self.kernels.snooze(offer)

    async def show_diff(self, offer: Offer) -> None:
        """Shows the installed kernel beside the offered one."""
        original = await asyncio.to_thread(_installed_text, offer)
        source = await self.kernels.store(lambda memory: memory.source(offer.source_id))
        proposed = _both_files(source.tiling_h, source.op_kernel_cpp) if source else ""
        await self.kernels.outcomes.record(OutcomeKind.OPENED_DIFF, offer.placement(0.0))
        title = f"{offer.name}: {offer.words}"
        if self.own_client():
            kernel = uri_of(package_folder(offer.file, offer.name) / _KERNEL_FILE)
            data = {"uri": kernel, "original": original, "proposed": proposed, "title": title}
            self.server.protocol.notify(SHOW_DIFF_METHOD, data)
        else:
            await self._show_file(offer.name, original, proposed, title)

    async def _show_file(self, name: str, original: str, proposed: str, title: str) -> None:
        lines = difflib.unified_diff(
            original.splitlines(keepends=True), proposed.splitlines(keepends=True),
            f"{name} (installed)", f"{name} (offered)",
        )  # fmt: skip
        path = paths.cache_dir() / "diffs" / f"{re.sub(r'[^A-Za-z0-9_]', '_', name)[:100]}.diff"
        await self._open(path, f"{title}\n" + "".join(lines))

    async def show_request(self, text: str) -> Path:
        """Shows what a model would be asked; gives the file that it is in."""
        path = paths.cache_dir() / "requests" / "preview.json"
        await self._open(path, text)
        return path

    async def _open(self, path: Path, text: str) -> None:
        """Writes a text and opens it where the client can, else says where it is."""
        await asyncio.to_thread(private_folder, path.parent)
        await asyncio.to_thread(path.write_text, text, "utf-8")
        window = self.server.client_capabilities.window
        if window and window.show_document and window.show_document.support:
            await self.server.window_show_document_async(
                types.ShowDocumentParams(uri_of(path), take_focus=True)
            )
        else:
            self.server.window_show_message(
                types.ShowMessageParams(
                    types.MessageType.Info, _("EvoKernel: what you asked for is in {path}", path=path)
                )
            )


def _refined(offer: Offer) -> dict[str, object]:
    return {
        "uri": offer.uri, "regionId": offer.region.id, "name": offer.name, "sourceId": offer.source_id,
        "oldUs": offer.old.us if offer.old else None, "newUs": offer.new.us,
        "source": offer.new.source.value, "chip": offer.new.chip, "verifier": offer.verifier,
    }  # fmt: skip


def _installed_text(offer: Offer) -> str:
    found = _installed_files(offer)
    return _both_files(found[_TILING_FILE], found[_KERNEL_FILE]) if found else ""


def _installed_files(offer: Offer) -> dict[str, str]:
    """Empty where they cannot be read."""
    folder = package_folder(offer.file, offer.name)
    try:
        return {name: read_foreign(folder / name) for name in (_TILING_FILE, _KERNEL_FILE)}
    except (OSError, ValueError):
        return {}


def _both_files(tiling_h: str, op_kernel_cpp: str) -> str:
    """One text to compare: a refinement may change the tile sizes alone."""
    return f"// {_TILING_FILE}\n{tiling_h}\n// {_KERNEL_FILE}\n{op_kernel_cpp}"
