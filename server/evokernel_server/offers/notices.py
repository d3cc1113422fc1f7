"""Messages that ask a person something: a faster kernel, and its diff."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import define
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.outcome import Objection, OutcomeKind
from evokernel_core.foreign import read_foreign
from evokernel_server.documents.packages import package_folder
from evokernel_server.documents.private_pages import Pages
from evokernel_server.documents.workspace import uri_of
from evokernel_server.jobs.requests import Kernels
from evokernel_server.offers.announcement import Review, notice, review_of
from evokernel_server.offers.learned import objection
from evokernel_server.offers.pending import Offer
from evokernel_server.review.contents import File
from evokernel_server.review.markdown import diff_of
from evokernel_server.texts.plain import plain
from evokernel_server.texts.strategies import move_words
from evokernel_server.texts.translations import _, marked, told

APPLY, DIFF, REVIEW = marked("Accept"), marked("Show diff"), marked("Review")
REJECT, SNOOZE = marked("Reject"), marked("Snooze")
SHOW_DIFF_METHOD = "evokernel/showDiff"
REFINED_METHOD = "evokernel/refined"
REVIEW_METHOD = "evokernel/review"
"""A client of ours is to show the review of a place: ``{uri, regionId, name}``."""


@define(eq=False)
class Notices:
    """``own_client`` tells whether the client knows our notifications."""

    server: LanguageServer
    kernels: Kernels
    pages: Pages
    own_client: Callable[[], bool]

    async def ask(self, group: Sequence[Offer]) -> None:
        """Shows one message for a group of offers and does what the person chose."""
        if self.own_client():
            for offer in group:
                self.server.protocol.notify(REFINED_METHOD, _refined(offer))
        words = notice([(offer, await self._review(offer)) for offer in group])
        looks = [REVIEW, APPLY] if self.own_client() else [APPLY, DIFF]
        actions = [*looks, REJECT, SNOOZE]
        while (choice := await self._choose(words, actions)) == DIFF:
            for offer in group:
                await self.show_diff(offer)
            actions = [APPLY, REJECT, SNOOZE]
        if choice == REVIEW:
            self._show_review(group[0])  # the others wait: who decides about one is not led away from it
            return
        for offer in group:
            await self._do(choice, offer)
        if choice == REJECT:
            await self.ask_why(group)

    def _show_review(self, offer: Offer) -> None:
        place = {"uri": offer.uri, "regionId": offer.region.id, "name": offer.name}
        self.server.protocol.notify(REVIEW_METHOD, place)

    async def _review(self, offer: Offer) -> Review:
        """What there is to read of an offer, beside the installed kernel."""
        source = await self.kernels.store(lambda memory: memory.source(offer.source_id))
        if source is None:
            return Review(0, 0, "")
        after = source.files
        files = await asyncio.to_thread(_against_installed, offer, after) if offer.old else []
        before = {file.name: file.before for file in files}
        return await asyncio.to_thread(review_of, before, after, move_words(source.strategy.move))

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
            try:
                await self.kernels.apply_offer(offer)
            except EvoKernelError as error:
                words = types.ShowMessageParams(types.MessageType.Warning, f"EvoKernel: {told(error)}")
                self.server.window_show_message(words)
        elif choice == REJECT:
            await self.kernels.reject(offer)
        elif choice == SNOOZE:
            await self.kernels.snooze(offer)

    async def show_diff(self, offer: Offer) -> None:
        """Shows each file in which the offered kernel differs from the installed one, a diff of its own."""
        source = await self.kernels.store(lambda memory: memory.source(offer.source_id))
        proposed = source.files if source else {}
        files = await asyncio.to_thread(_against_installed, offer, proposed)
        await self.kernels.outcomes.record(OutcomeKind.OPENED_DIFF, offer.placement(0.0))
        await self.show_files(
            package_folder(offer.file, offer.name), files, (_("accepted"), _("offered")), offer.words
        )

    async def show_files(
        self, folder: Path, files: Sequence[File], sides: tuple[str, str], words: str
    ) -> None:
        """Shows the files that differ, one after the other; ``sides`` say which kernels the two texts are."""
        for file in files:
            if file.is_changed and self.own_client():
                data = {"uri": uri_of(folder / file.name), "original": file.before, "proposed": file.after}
                title = f"{folder.name}/{file.name}: {words}"
                self.server.protocol.notify(SHOW_DIFF_METHOD, {**data, "title": title})
            elif file.is_changed:
                diff = await asyncio.to_thread(diff_of, file, *sides)
                name = f"{folder.name}.{file.name}.diff"
                await self.pages.show("diffs", name, f"{plain(words)}\n{diff}", _("the diff"))

    async def show_request(self, text: str) -> Path:
        """Shows what a model would be asked; gives the file that it is in."""
        return await self.pages.show("requests", "preview.json", text, _("the request"))


def _refined(offer: Offer) -> dict[str, object]:
    return {
        "uri": offer.uri, "regionId": offer.region.id, "name": offer.name, "sourceId": offer.source_id,
        "oldUs": offer.old.us if offer.old else None, "newUs": offer.new.us,
        "source": offer.new.source.value, "chip": offer.new.chip, "verifier": offer.verifier,
    }  # fmt: skip


def _against_installed(offer: Offer, proposed: Mapping[str, str]) -> list[File]:
    """The offered files beside the installed ones, empty where those are missing or cannot be read."""
    folder = package_folder(offer.file, offer.name)
    return [File(name, _read(folder / name), text) for name, text in proposed.items()]


def _read(path: Path) -> str:
    try:
        return read_foreign(path)
    except (OSError, ValueError):
        return ""
