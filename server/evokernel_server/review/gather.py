"""Reviews, variants, comparisons and timelines of verified kernels: what the commands gather for a place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from attrs import define, evolve, frozen

from evokernel_core.domain.experience import Stage
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.placement import Placement, place_key
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import Sentence, sentence_of
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.memory.candidates import Stored
from evokernel_core.memory.store import Memory
from evokernel_core.private import private_opener
from evokernel_core.twin.page_words import with_words
from evokernel_core.vendor.rival import Rival
from evokernel_server.documents.edits import read_edits
from evokernel_server.documents.line_index import Edit, Text
from evokernel_server.documents.packages import Installed, read_installed, read_kernel
from evokernel_server.documents.workspace import Document
from evokernel_server.errors import Refused
from evokernel_server.jobs.requests import Kernels
from evokernel_server.offers.overlaps import REPLACEABLE
from evokernel_server.offers.pending import NO_KERNEL_WAITS, microseconds
from evokernel_server.offers.placement_state import is_never, waiting
from evokernel_server.review.contents import (
    File,
    Guard,
    InnerKernel,
    Review,
    ReviewedKernel,
    Variant,
    Vendor,
    kernel_of,
)
from evokernel_server.review.explanations import what_changed, why_faster
from evokernel_server.texts.plain import plain
from evokernel_server.texts.strategies import changes_between, steps_between, strategy_changes
from evokernel_server.texts.translations import _, marked, sourced, spoken, told

_TRIES = 5
"""How often a plan is made anew for a document that changed meanwhile."""
_SUBJECTS = ("name", "names", "value")
"""What guards call that which they are about."""


@define(frozen=True, slots=False)
class Planned:
    """What applying would do to a text: the package's name, the edits that call it, the guards in words."""

    name: str
    before: Text
    edits: tuple[Edit, ...]
    version: int
    guards: tuple[Guard, ...]
    rival: Rival | None

    @cached_property
    def after(self) -> Text:
        """The text as the edits leave it, which are the ones that applying makes."""
        after = self.before
        for edit in sorted(self.edits, key=lambda edit: edit.start, reverse=True):
            after = after.apply(edit)
        return after

    def changed_line(self, start: int) -> int:
        """The line in the text after the edits, from 0, of the edit that is nearest to an offset in the text
        before: that of a region, not the import's."""
        if not self.edits:
            return self.before.line_of(start)
        nearest = min(self.edits, key=lambda edit: abs(edit.start - start))
        above = (edit for edit in self.edits if edit.start < nearest.start)
        moved = sum(len(edit.text) - (edit.end - edit.start) for edit in above)
        return self.after.line_of(nearest.start + moved)


@define(eq=False)
class Reviews:
    """Every method raises EvoKernelError with a sentence for the person."""

    kernels: Kernels
    chip: Callable[[], str]

    async def review(self, uri: str, region_id: str, name: str, source_id: str = "") -> Review:
        """The review of the kernel that waits for a decision at a place, else of the best one, or of the one
        that is named. That it was opened is kept as an outcome."""
        spot = await spot_of(self.kernels, uri, region_id, name)
        verified = await self._verified(spot)
        chosen = await self._chosen(spot, verified, source_id)
        review = await self._gather(spot, verified, chosen)
        if spot.installed is None or chosen.source.source_id != spot.installed.source_id:
            placement = spot.placement(review.name, chosen.source.source_id)
            await self.kernels.outcomes.record(OutcomeKind.OPENED_DIFF, placement)
        return review

    async def again(self, uri: str, region_id: str, name: str, source_id: str) -> Review:
        """What a review that is open shows by now. Raises Refused where nothing can be decided about its
        kernel any more, as another window has."""
        spot = await spot_of(self.kernels, uri, region_id, name)
        verified = await self._verified(spot)
        chosen = verified.named(source_id)
        if source_id in verified.rejected or await self._is_decided(spot):
            raise Refused(_(NO_KERNEL_WAITS))
        return await self._gather(spot, verified, chosen)

    async def _is_decided(self, spot: Spot) -> bool:
        """Whether somebody decided about the kernel that was pending at a place where none is called."""
        key = place_key(spot.document.path, spot.region.id)
        outcomes = await self.kernels.store(lambda memory: memory.outcomes(key))
        was_ready = any(outcome.kind is OutcomeKind.READY for outcome in outcomes)
        answered = spot.installed is None and was_ready and waiting(outcomes) is None
        return answered or is_never(outcomes)

    async def variants(self, uri: str, region_id: str, name: str) -> tuple[Variant, ...]:
        """All verified kernels of a place's task, the fastest first and those that were measured before."""
        spot = await spot_of(self.kernels, uri, region_id, name)
        verified = await self._verified(spot)
        if not verified.fit:
            raise Refused(_(NONE))
        best = verified.best(spot.wanted)
        accepted = await self._installed(spot.installed, verified) if spot.installed else None
        compared = accepted or best or verified.fit[0]
        tried = await self.kernels.store(lambda memory: memory.attempts(task_id=spot.task.task_id))
        numbers = {attempt.source_id: number for number, attempt in reversed([*enumerate(tried, 1)])}
        return tuple(
            Variant(
                _shown(entry, spot),
                attempt=numbers.get(entry.source.source_id, 0),
                changes=changes_between(compared.source.strategy, entry.source.strategy),
                installed=_is_same(entry, accepted),
                rejected=entry.source.source_id in verified.rejected,
                best=_is_same(entry, best),
            )
            for entry in verified.fit
        )

    async def compare(
        self, uri: str, region_id: str, name: str, source_id: str, other: str
    ) -> tuple[File, ...]:
        """The files of two verified kernels of a place: ``source_id``'s before, ``other``'s after."""
        spot = await spot_of(self.kernels, uri, region_id, name)
        verified = await self._verified(spot)
        before, after = (verified.named(choice).source for choice in (source_id, other))
        return _files(before, after)

    async def timeline(self, uri: str, region_id: str, name: str, source_id: str = "") -> Path:
        """The page of a verified kernel's timeline; modelled, also for a kernel that was measured."""
        spot = await spot_of(self.kernels, uri, region_id, name)
        chosen = await self._chosen(spot, await self._verified(spot), source_id)
        params = {"region": to_data(spot.region), "source_id": chosen.source.source_id}
        title = _("EvoKernel: timing {what}", what=spot.region.op_category)
        async with self.kernels.operations.begin(title, "timed") as shown:
            answer = await self.kernels.worker.request("timeline", params, cancel=shown.cancel)
        templates = (answer.get("summary") or {}).get("templates") or ()
        return await asyncio.to_thread(said_page, Path(str(answer["path"])), templates)

    async def _verified(self, spot: Spot) -> Verified:
        chip = spot.installed.latency.chip if spot.installed else self.chip()
        task_id = spot.task.task_id

        def read(memory: Memory) -> Verified:
            return verified_of(memory.candidates(task_id, chip=chip), frozenset(memory.rejections(task_id)))

        return await self.kernels.store(read)

    async def _chosen(self, spot: Spot, verified: Verified, source_id: str) -> Stored:
        """The kernel that is asked about. Raises Refused where there is none."""
        if source_id:
            return verified.named(source_id)
        result = verified.of(spot.offered) or verified.best(spot.wanted)
        if result is None and spot.installed is not None:
            result = await self._installed(spot.installed, verified)
        if result is None:
            raise Refused(_(NONE))
        return result

    async def _installed(self, installed: Installed, verified: Verified) -> Stored | None:
        """The installed kernel; as its package tells of it where this memory never saw it."""
        result = verified.of(installed.source_id)
        return result or await asyncio.to_thread(_of_package, installed)

    async def _plan(self, spot: Spot, source: KernelSource) -> Planned:
        """Plans the edit on the document as it is; anew where it changes meanwhile."""
        document = spot.document
        for _turn in range(_TRIES):
            text, version = document.text, document.version
            answer = await self.kernels.worker.request_again("plan", _asked(spot, text, source))
            if document.version == version:
                return planned_of(text, version, answer)
        raise Refused(_("The file changes too fast for a review; ask again when you pause."))

    async def _gather(self, spot: Spot, verified: Verified, chosen: Stored) -> Review:
        planned = await self._plan(spot, chosen.source)
        kernel, document = _shown(chosen, spot), spot.document
        start = _start(spot, planned)
        vendor = _vendor(planned.rival, kernel)
        old = await self._installed(spot.installed, verified) if spot.installed else None
        installed = _shown(old, spot) if old else None
        changes: tuple[str, ...] = ()
        if old is not None and installed is not None:
            differences = strategy_changes(old.source.strategy, chosen.source.strategy)
            steps = steps_between(verified.all, installed.source_id, kernel.source_id)
            changes = what_changed(installed, kernel, differences, steps)
        where = f"{spot.region.symbol} ({document.path.name})"
        return Review(
            uri=document.uri,
            file=document.path.name,
            region_id=spot.region.id,
            name=spot.name or planned.name,
            title=plain(_("{what} in {where}", what=spot.region.op_category, where=where)),
            line=planned.before.line_of(start),
            change_line=planned.changed_line(start),
            version=planned.version,
            before=planned.before.content,
            after=planned.after.content,
            guards=planned.guards,
            why=(*why_faster(kernel, spot.task, chosen.source.strategy, vendor), *changes),
            kernel=kernel,
            installed=installed,
            vendor=vendor,
            files=_files(old.source if old else None, chosen.source),
            parts=await self._parts(spot),
        )

    async def _parts(self, spot: Spot) -> tuple[InnerKernel, ...]:
        """The regions inside a region that is not replaced yet which have a verified kernel of their own."""
        around = spot.document.region(spot.region.id)
        if around is None or spot.name:
            return ()
        inside = [
            region
            for region in spot.document.regions(*REPLACEABLE)
            if region is not around and around.extent.holds(region.extent) and region.region.task is not None
        ]
        chip = self.chip()

        def read(memory: Memory) -> list[Stored | None]:
            return [
                best_of(memory, tracked.region.task.task_id, chip)
                for tracked in inside
                if tracked.region.task
            ]

        result = zip(inside, await self.kernels.store(read), strict=True) if inside else ()
        line_of = spot.document.text.line_of
        return tuple(
            InnerKernel(tracked.region.id, line_of(tracked.extent.start), _part_words(tracked.region, best))
            for tracked, best in result
            if best is not None
        )


def _asked(spot: Spot, text: Text, source: KernelSource) -> dict[str, Any]:
    """What the worker is to plan: the edit of a text where the kernel is not called yet. Raises Refused."""
    kernel = {"source": to_data(source)}
    if spot.name in spot.document.counts():
        return {"region": to_data(spot.region), **kernel}
    region = spot.document.anchored(spot.region)
    if region is None:
        raise Refused(_("The code of this region changed since its kernel was made; generate it again."))
    return {"region": to_data(region), "text": text.content, **kernel}


def _shown(stored: Stored, spot: Spot) -> ReviewedKernel:
    """A comparison with other code of the same mathematics says nothing of the code here."""
    verdict = stored.verdict
    if verdict.eager is not None and verdict.eager.source_hash != spot.region.source_hash:
        verdict = evolve(verdict, eager=None)
    return kernel_of(stored.source, verdict, latency_of(stored), spot.task)


def _is_same(one: Stored, other: Stored | None) -> bool:
    return other is not None and one.source.source_id == other.source.source_id


def _of_package(installed: Installed) -> Stored | None:
    kernel = read_kernel(installed)
    return Stored(*kernel, "", Stage.DRAFT) if kernel is not None else None


def planned_of(text: Text, version: int, answer: Mapping[str, Any]) -> Planned:
    rival = from_data(answer["rival"], Rival) if answer.get("rival") else None
    guards = tuple(guard_of(sentence_of(sentence)) for sentence in answer["guards"])
    return Planned(str(answer["name"]), text, read_edits(text, answer["edits"]), version, guards, rival)


def guard_of(sentence: Sentence) -> Guard:
    """A condition apart from what it is about, where its sentence begins with that."""
    words = plain(told(sentence))
    subjects = (plain(str(sentence.values[key])) for key in _SUBJECTS if key in sentence.values)
    name = next((subject for subject in subjects if subject and words.startswith(subject)), "")
    return Guard(name, words.removeprefix(name).lstrip(" :："))


def _vendor(rival: Rival | None, kernel: ReviewedKernel) -> Vendor | None:
    """The operator, with the figure that compares with the kernel's where there is one."""
    if rival is None:
        return None
    same = [figure for figure in rival.figures if figure[1] == kernel.source]
    us, word = (same or rival.figures)[0]
    return Vendor(rival.name, us, word)


def _start(spot: Spot, planned: Planned) -> int:
    """The offset of the call, else of the region's code, in the text before."""
    calls = [call for call in spot.document.calls if call.name == spot.name]
    tracked = spot.document.region(spot.region.id)
    if calls:
        return calls[0].extent.start
    return (tracked.extent if tracked else planned.before.extent(spot.region.span)).start


def _part_words(region: Region, best: Stored) -> str:
    latency = latency_of(best)
    before = sourced(microseconds(latency.baseline_us), latency.baseline_word.value)
    after = sourced(microseconds(latency.us), latency.source.value)
    return f"{region.op_category}: {before} → {after}"


def _files(before: KernelSource | None, after: KernelSource) -> tuple[File, ...]:
    """The files of either kernel, with "" for one that a kernel does not have."""
    old = before.files if before else {}
    return tuple(File(name, old.get(name, ""), after.files.get(name, "")) for name in {**after.files, **old})


NONE = marked("No kernel of this code is verified yet; generate one first.")


@frozen
class Verified:
    """The verified kernels of a task, one verdict each, the fastest first; ``rejected`` are ids."""

    all: tuple[Stored, ...]
    fit: tuple[Stored, ...]
    rejected: frozenset[str]

    def of(self, source_id: str) -> Stored | None:
        return next((entry for entry in self.fit if entry.source.source_id == source_id), None)

    def named(self, source_id: str) -> Stored:
        """Raises Refused where no verified kernel has that id."""
        result = self.of(source_id)
        if result is None:
            raise Refused(_("No verified kernel of this code has that id; ask for the variants again."))
        return result

    def best(self, wanted: LatencySource | None) -> Stored | None:
        """The fastest kernel that nobody rejected, by figures of one source; without one by measured figures
        where there are any."""
        allowed = (entry for entry in self.fit if entry.source.source_id not in self.rejected)
        return next((entry for entry in allowed if wanted in (None, latency_of(entry).source)), None)


def verified_of(candidates: Sequence[Stored], rejected: frozenset[str]) -> Verified:
    """One verdict for each kernel: the latest, and of those with a measured latency where there is one."""
    result: dict[str, Stored] = {}
    for candidate in candidates:
        if candidate.verdict.feasible:
            known = result.get(candidate.source.source_id)
            if known is None or _is_measured(candidate) or not _is_measured(known):
                result[candidate.source.source_id] = candidate
    fit = sorted(result.values(), key=lambda element: (not _is_measured(element), latency_of(element).us))
    return Verified(tuple(candidates), tuple(fit), rejected)


def latency_of(stored: Stored) -> Latency:
    assert stored.verdict.latency is not None  # of what is feasible
    return stored.verdict.latency


def _is_measured(stored: Stored) -> bool:
    return latency_of(stored).source is LatencySource.MEASURED


def best_of(memory: Memory, task_id: str, chip: str) -> Stored | None:
    kinds = (LatencySource.MEASURED, LatencySource.MODELLED)
    return next(filter(None, (memory.best(task_id, chip, kind) for kind in kinds)), None)


def said_page(page: Path, templates: Iterable[str]) -> Path:
    """The page whose words are translated, or the page itself where English is spoken. ``templates`` are
    those of what it says. Raises OSError."""
    language = spoken()
    words = {template: _(template) for template in templates if template}
    if not language or not words:
        return page
    made = page.with_suffix(f".{language}.html")
    text = with_words(page.read_text("utf-8"), language.replace("_", "-"), words)
    staged = made.with_suffix(".part")
    with open(staged, "w", encoding="utf-8", opener=private_opener) as file:
        file.write(text)
    return staged.replace(made)


@frozen
class Spot:
    """A place that a command names: a region of an open document, and where its kernel is called already the
    package. ``offered`` is the kernel that waits for a decision there."""

    document: Document
    region: Region
    task: KernelTask
    name: str = ""
    installed: Installed | None = None
    offered: str = ""

    @property
    def wanted(self) -> LatencySource | None:
        """Whose figures compare with those of the installed kernel."""
        return self.installed.latency.source if self.installed else None

    def placement(self, name: str, source_id: str) -> Placement:
        """How outcomes name a kernel that is looked at here."""
        return Placement(self.document.path, name, self.region.id, self.task.task_id, source_id, 0.0)


async def spot_of(kernels: Kernels, uri: str, region_id: str, name: str) -> Spot:
    """What a command's place is. Raises Refused where nothing is there."""
    document = kernels.workspace.opened(uri)
    if not kernels.trusts(document.path):
        raise Refused(_("This folder is not trusted, so its code is not run; trust it first."))
    offer = kernels.offers.find(document.path, region_id, name)
    name = name or _called(kernels, document, region_id) or (offer.name if offer and offer.old else "")
    region = await _region(kernels, document, region_id, name)
    if region is None and offer is not None:
        region = offer.region
    if region is None or region.task is None or region.site is None:
        raise Refused(_("The code of this region changed meanwhile; ask again at its present place."))
    installed = await asyncio.to_thread(read_installed, document.path, name) if name else None
    if installed is not None and installed.function:
        raise Refused(
            _("{name} calls the vendor's operator, of which there is no kernel to show.", name=name)
        )
    return Spot(document, region, region.task, name, installed, offer.source_id if offer else "")


def _called(kernels: Kernels, document: Document, region_id: str) -> str:
    """The name of the kernel that took a region's place."""
    placed = kernels.outcomes.placements
    here = (
        placement
        for placement in placed
        if (placement.file, placement.region_id) == (document.path, region_id)
    )
    return next((placement.name for placement in here if placement.name in document.counts()), "")


async def _region(kernels: Kernels, document: Document, region_id: str, name: str) -> Region | None:
    if name:
        return await kernels.region_of(document.path, name)
    tracked = document.region(region_id)
    return tracked.region if tracked is not None else None
