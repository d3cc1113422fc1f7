"""Faster kernels that wait for a decision, and when a person is told of them.

An offer follows from what is durable: the installed package, the memory's best kernel of its task, and
the outcomes. So a restart loses none. A message is shown for a gain of a tenth or more, for an open
file, grouped, at most once in a while; every offer is also a code action and a count in the status.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path

from attrs import define, evolve, field, frozen

from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.placement import Placement
from evokernel_core.domain.region import Region
from evokernel_core.domain.verdict import Baseline, Latency, LatencySource
from evokernel_server.documents.packages import Installed
from evokernel_server.documents.workspace import Workspace
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.tasks import spawn
from evokernel_server.offers.outcomes import OutcomeLog
from evokernel_server.offers.placement_state import is_never
from evokernel_server.options import ServerOptions
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, marked, source_word, sourced

NO_KERNEL_WAITS = marked("No kernel is pending here any more: you or another window decided about it.")

_GATHER_S = 0.2
"""Offers that arrive this close together share a message."""


Question = tuple[Path, str, str, float]


@frozen
class Offer:
    """A verified kernel that is faster than the installed one, or not installed yet (``old`` None)."""

    uri: str
    file: Path
    region: Region
    name: str
    source_id: str
    old: Latency | None
    new: Latency
    verifier: str

    def placement(self, at: float) -> Placement:
        assert self.region.task is not None
        return Placement(self.file, self.name, self.region.id, self.region.task.task_id, self.source_id, at)

    @property
    def key(self) -> Question:
        """The same kernel may be offered in several places and against several installed ones: each is
        a question of its own."""
        return self.file, self.region.id, self.source_id, self.old.us if self.old else 0.0

    @property
    def words(self) -> str:
        """Evidence in one line: what, from, to, and the source of the figures."""
        was = f"{microseconds(self.old.us)} → " if self.old else ""
        where = f"{self.region.symbol} ({self.file.name})"  # a line would move with the next edit
        return _(
            "{what} in {where}: {figures} {source} on {chip}, {verifier}",
            what=self.region.op_category,
            where=where,
            figures=f"{was}{microseconds(self.new.us)}",
            source=source_word(self.new.source.value),
            chip=self.new.chip,
            verifier=self.verifier,
        )


def microseconds(value: float) -> str:
    """A latency with as many digits as it deserves."""
    if value >= 100:
        return f"{value:,.0f} µs"
    return f"{value:.1f} µs" if value >= 1 else f"{value:.2g} µs"


def baseline_words(us: float, baseline: Baseline | None) -> str:
    """The ops one by one: what was measured with its source, what is modelled with its interval."""
    if baseline is None:
        return sourced(microseconds(us), LatencySource.MODELLED.value)
    told = {"figure": sourced(microseconds(us), baseline.word.value)}
    if baseline.source:
        return _("{figure} ({row})", row=plain(baseline.source), **told)
    low, high = microseconds(baseline.low_us).removesuffix(" µs"), microseconds(baseline.high_us)
    return _("{figure} ({low} to {high})", low=low, high=high, **told)


def percent(share: float) -> str:
    """A share in whole per cent."""
    return f"{100 * share:.0f} %"


def was_words(latency: Latency) -> str:
    """The ops one by one, behind a kernel's own figure: with the word where that is another one."""
    was = microseconds(latency.baseline_us)
    return was if latency.source is latency.baseline_word else sourced(was, latency.baseline_word.value)


def gain(old: Latency, new: Latency) -> float:
    """The share of the old latency that the new one saves; 0 for figures that do not compare."""
    if (old.source, old.chip) != (new.source, new.chip) or old.us <= 0:
        return 0.0
    return 1.0 - new.us / old.us


@define(eq=False)
class Offers:
    """``ask`` shows a group of offers; ``is_open`` tells whether a file is open in the client."""

    store: Store
    outcomes: OutcomeLog
    options: Callable[[], ServerOptions]
    ask: Callable[[list[Offer]], Awaitable[None]]
    is_open: Callable[[Path], bool]
    changed: Callable[[int], None]
    pending: dict[tuple[Path, str], Offer] = field(factory=dict)
    _shown: set[Question] = field(factory=set)
    _told: set[Question] = field(factory=set)
    _snoozed: dict[Question, float] = field(factory=dict)
    _toasts: list[float] = field(factory=list)
    _gathering: asyncio.Task[None] | None = None

    async def consider(self, uri: str, file: Path, region: Region, installed: Installed) -> Offer | None:
        """Offers the memory's best kernel of a region where it is enough faster than the installed one."""
        best = await self.store(
            lambda memory: memory.best(installed.task_id, installed.latency.chip, installed.latency.source)
        )
        if best is None or best.verdict.latency is None or best.source.source_id == installed.source_id:
            return None
        offer = Offer(
            uri, file, region, installed.name, best.source.source_id,
            installed.latency, best.verdict.latency, best.verdict.verifier,
        )  # fmt: skip
        if gain(installed.latency, offer.new) < self.options().least_gain:
            return None
        return await self.put(offer)

    async def put(self, offer: Offer) -> Offer | None:
        """Keeps an offer unless the person has rejected that kernel; a better one replaces a worse."""
        if await self.is_rejected(offer):
            return None
        key = (offer.file, offer.region.id)
        older = self.pending.get(key)
        self.pending[key] = offer
        if older is not None and older.source_id != offer.source_id:
            await self.outcomes.record(OutcomeKind.EXPIRED, older.placement(0.0), "superseded")
        self.changed(len(self.pending))
        self.soon()
        return offer

    async def is_rejected(self, offer: Offer) -> bool:
        """Whether the person turned this kernel down for this place, or wants none there."""
        key = offer.placement(0.0).key
        past = await self.store(lambda memory: memory.outcomes(key))
        rejected = any(o.kind is OutcomeKind.REJECTED and o.source_id == offer.source_id for o in past)
        return rejected or is_never(past)

    def ready(self, file: Path) -> dict[str, Latency]:
        """The kernels of a file that wait for review and were not put off, by region."""
        return {
            offer.region.id: offer.new
            for offer in self.pending.values()
            if offer.file == file and offer.old is None and self._is_awake(offer)
        }

    def find(self, file: Path, region_id: str = "", name: str = "") -> Offer | None:
        """The offer for a region, or for the kernel of a generated call."""
        for offer in self.pending.values():
            if offer.file == file and (offer.region.id == region_id or (name and offer.name == name)):
                return offer
        return None

    def count(self, file: Path, region_ids: Collection[str]) -> int:
        """How many kernels of a file wait for a decision and were not put off. Of those that are not called
        yet: in the regions that are in its text."""
        return sum(
            offer.file == file
            and self._is_awake(offer)
            and (offer.old is not None or offer.region.id in region_ids)
            for offer in self.pending.values()
        )

    def cover(self, file: Path, region_ids: Iterable[str]) -> None:
        """Takes back the kernels that wait for code which is another kernel's fallback by now. They come back
        with that code: nobody decided about them."""
        for region_id in region_ids:
            offer = self.pending.get((file, region_id))
            if offer is not None and offer.old is None:
                self.take(offer)

    def take(self, offer: Offer) -> None:
        """Removes an offer that was decided; should an older package come back, it is a new question."""
        self.pending.pop((offer.file, offer.region.id), None)
        self._forget_told(offer)
        self.changed(len(self.pending))

    def move(self, old: Path, new: Path) -> None:
        """What was offered for a file is offered for another, which it has become."""
        for offer in [offer for offer in self.pending.values() if offer.file == old]:
            del self.pending[(old, offer.region.id)]
            region = evolve(offer.region, file=str(new))
            self.pending[(new, offer.region.id)] = evolve(offer, uri=new.as_uri(), file=new, region=region)
        self.changed(len(self.pending))

    async def end(self, file: Path) -> None:
        """A file was deleted, and with it the question."""
        for offer in [offer for offer in self.pending.values() if offer.file == file]:
            self.take(offer)
            await self.outcomes.record(OutcomeKind.EXPIRED, offer.placement(0.0), "deleted")

    def _forget_told(self, offer: Offer) -> None:
        self._shown.discard(offer.key)
        self._told.discard(offer.key)

    def snooze(self, offer: Offer) -> None:
        self.sleep(offer, self.options().snooze_s)
        self.changed(len(self.pending))

    def sleep(self, offer: Offer, seconds: float) -> None:
        """Says nothing of an offer for a while."""
        self._snoozed[offer.key] = time.monotonic() + seconds
        self._forget_told(offer)
        asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        self.changed(len(self.pending))
        self.soon()

    def was_told(self, offer: Offer) -> None:
        """The person knows of an offer: no message is needed."""
        self._told.add(offer.key)

    def soon(self) -> None:
        """Tells the person, together with what else arrives in a moment."""
        if self._gathering is None or self._gathering.done():
            self._gathering = spawn(self._tell(), "offers")

    def _later(self, seconds: float) -> None:
        """Looks again at what is pending, where that can still lead to a message in this session."""
        if len(self._toasts) < self.options().toasts_per_session:
            asyncio.get_running_loop().call_later(seconds, self.soon)

    async def _tell(self) -> None:
        await asyncio.sleep(_GATHER_S)
        group = [offer for offer in self.pending.values() if self._may_show(offer)]
        if not group:
            return
        if not self._allowed():
            self._later(self.options().toast_interval_s)
            return
        self._toasts.append(time.monotonic())
        for offer in group:
            self._shown.add(offer.key)
            await self.outcomes.record(OutcomeKind.SHOWN, offer.placement(0.0))
        self._gathering = None  # a message may stay unanswered for long; the next group does not wait
        await self.ask(group)

    def _may_show(self, offer: Offer) -> bool:
        known = offer.key in self._shown or offer.key in self._told
        return self._is_awake(offer) and not known and self.is_open(offer.file)

    def _is_awake(self, offer: Offer) -> bool:
        return self._snoozed.get(offer.key, 0.0) <= time.monotonic()

    def _allowed(self) -> bool:
        options = self.options()
        if len(self._toasts) >= options.toasts_per_session:
            return False
        return not self._toasts or time.monotonic() - self._toasts[-1] >= options.toast_interval_s

    async def expire(self) -> None:
        """The session ends: what was shown and not answered says nothing about the kernel."""
        for offer in self.pending.values():
            if offer.key in self._shown:
                await self.outcomes.record(OutcomeKind.EXPIRED, offer.placement(0.0))


def undecided(offers: Iterable[Offer], workspace: Workspace) -> list[Offer]:
    """Those that a person can decide about: of an open file, kernels of code that is in its text."""
    return [offer for offer in offers if _is_in_text(offer, workspace)]


def _is_in_text(offer: Offer, workspace: Workspace) -> bool:
    document = workspace.at(offer.file)
    if offer.old is not None or document is None or document.region(offer.region.id) is not None:
        return True
    is_known = document.captured or document.tracked or offer.region.id in document.replaced
    return not is_known
