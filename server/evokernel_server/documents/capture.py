"""Keeps the regions of open documents up to date: captured by the worker, cached, shifted with edits.

A capture starts when a file is opened or saved and when typing pauses. Single kernels come first; the
programs around them take a trace of whole functions, which may be minutes, and follow unless the text has
changed meanwhile; no capture waits for a trace. The result is cached by the text's hash, so undoing an edit
costs nothing. Until the next one arrives, the last regions stay on the page where their text is untouched.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from attrs import define, field

from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import sentence_of
from evokernel_core.domain.serial import from_data
from evokernel_core.synthesis.offers import Estimate
from evokernel_server.documents.line_index import Text
from evokernel_server.documents.mode import Progress
from evokernel_server.documents.workspace import Captured, Document, FileProblem, text_hash
from evokernel_server.jobs.worker import Worker, WorkerError
from evokernel_server.texts.translations import told

log = logging.getLogger(__name__)

CACHE_SIZE = 64
"""Texts whose regions are kept; a region is a few kilobytes."""
_GLANCE_S = 0.05
_SHOWN_EVERY_S = 0.3
"""Single kernels that come one after another are shown no more often."""


@define(eq=False)
class Capture:
    """``changed`` is called with a document whenever its regions or its problem changed, ``progressed``
    whenever its analysis begins or ends, ``planned`` whenever it comes further. ``root_of`` gives the
    folder of the client's that a file is in, ``runs_in`` hears which interpreter a file's code ran in,
    ``say`` what was done."""

    worker: Worker
    pause_s: Callable[[], float]
    changed: Callable[[Document], None]
    enabled: Callable[[Document], bool]
    programs: Callable[[], bool]
    progressed: Callable[[Document], None]
    root_of: Callable[[Document], str]
    runs_in: Callable[[str], None]
    say: Callable[[str], None] = lambda _: None
    planned: Callable[[], None] = lambda: None
    _cache: OrderedDict[str, tuple[Captured, ...]] = field(factory=OrderedDict)
    _timers: dict[str, asyncio.TimerHandle] = field(factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(factory=dict)
    _next: dict[str, Document] = field(factory=dict)
    """Documents that are captured once more behind the capture that runs, however often it was asked for."""
    _progress: dict[str, Progress] = field(factory=dict)
    """How far the analysis of a document is, once its regions are known."""
    _traces: set[asyncio.Task[None]] = field(factory=set)
    _tracing: WeakValueDictionary[str, asyncio.Lock] = field(factory=WeakValueDictionary)
    """One trace of a document at a time; a lock is there while somebody holds it or waits for it."""

    def soon(self, document: Document, *, now: bool = False) -> None:
        """Looks at a text anew after a pause, and captures it where it is trusted; a later call puts the
        pause off."""
        self.forget(document.uri)
        if not document.has_torch:
            return
        pause = 0.0 if now else self.pause_s()
        loop = asyncio.get_running_loop()
        self._timers[document.uri] = loop.call_later(pause, self._begin, document)

    def forget(self, uri: str) -> None:
        """Takes back a capture that has not begun."""
        if timer := self._timers.pop(uri, None):
            timer.cancel()

    def again(self, document: Document) -> None:
        """Captures a text anew: what is known of its inputs has changed."""
        self._cache.pop(_key(document, document.text), None)
        document.captured = ""
        self.soon(document, now=True)

    async def anew(self, document: Document) -> None:
        """Captures a text anew, and returns when that is done, programs and all."""
        self.again(document)
        while document.uri in self._timers or self.is_analysing(document):
            await asyncio.sleep(_GLANCE_S)

    def is_analysing(self, document: Document) -> bool:
        """Whether regions of a document are being captured, or the programs around them traced."""
        traced = any(task.get_name() == document.uri for task in self._traces)
        return document.uri in self._tasks or traced

    def progress(self, document: Document) -> Progress | None:
        return self._progress.get(document.uri)

    def clear(self) -> None:
        """Empties the cache, as after a change of settings."""
        self._cache.clear()

    def _begin(self, document: Document) -> None:
        self._timers.pop(document.uri, None)
        document.settle()
        if not self.enabled(document):
            return
        if document.uri in self._tasks:
            self._next[document.uri] = document
            return
        task = asyncio.get_running_loop().create_task(self._capture(document))
        self._tasks[document.uri] = task
        task.add_done_callback(lambda _: self._ended(document))
        self.progressed(document)

    def _ended(self, document: Document) -> None:
        self._tasks.pop(document.uri, None)
        self.progressed(document)
        if (following := self._next.pop(document.uri, None)) is not None:
            self._begin(following)

    async def _capture(self, document: Document) -> None:
        text, mark = document.text, document.mark()
        if text_hash(text.content) == document.captured and not document.problem:
            self.changed(document)
            return
        result = self._cached(_key(document, text))
        try:
            known = await self._single(document, text, mark) if result is None else result
        except WorkerError as error:
            document.problem = FileProblem(error.reason, error.sentence)
            self.changed(document)
            return
        document.problem = None
        self._show(document, known, text, mark)
        if result is None:
            following = self._follow(document, text, mark, known)
            trace = asyncio.get_running_loop().create_task(following, name=document.uri)
            self._traces.add(trace)
            trace.add_done_callback(lambda ended: self._traced(ended, document))

    def _traced(self, trace: asyncio.Task[None], document: Document) -> None:
        self._traces.discard(trace)
        self.progressed(document)

    def _show(self, document: Document, regions: tuple[Captured, ...], text: Text, mark: int) -> None:
        if not document.accept(regions, text, mark):
            self.soon(document)
        self.changed(document)

    async def _follow(self, document: Document, text: Text, mark: int, single: tuple[Captured, ...]) -> None:
        """Keeps all regions of a text in the cache, and shows those that are not single ones too."""
        key = _key(document, text)
        if not self.programs():
            self._keep(key, single)
            return
        lock = self._tracing.setdefault(document.uri, asyncio.Lock())
        async with lock:
            if document.mark() != mark:
                self._missed(document, text)
                return
            try:
                result = await self._ask(document, text, programs=True)
            except WorkerError as error:
                log.warning("No programs of kernels for %s: %s", document.path, error)
                return
        self._keep(key, result)
        if result == single:
            return
        if document.mark() == mark:
            self._show(document, result, text, mark)
        else:
            self._missed(document, text)

    def _missed(self, document: Document, text: Text) -> None:
        """What was typed meanwhile keeps programs of a text from being shown; an undo may lead back to it, or
        has done so already."""
        if document.captured == text_hash(text.content):
            document.captured = ""
            if document.text.content == text.content:
                self.soon(document)

    async def _single(self, document: Document, text: Text, mark: int) -> tuple[Captured, ...]:
        """The single kernels of a text; where the page has none yet, they are shown as they come."""
        planned, due = list[Captured](), 0.0
        is_first = not document.tracked

        def came(event: Mapping[str, Any]) -> None:
            nonlocal due
            if event["offer"] is None:  # the beginning, also of another worker in place of one that died
                planned.clear()
                return
            planned.append(_captured(event["offer"]))
            if is_first and time.monotonic() >= due:
                due = time.monotonic() + _SHOWN_EVERY_S
                self._show(document, tuple(planned), text, mark)

        return await self._ask(document, text, came, programs=False)

    async def _ask(
        self,
        document: Document,
        text: Text,
        came: Callable[[Mapping[str, Any]], None] = lambda _: None,
        *,
        programs: bool,
    ) -> tuple[Captured, ...]:
        params = {
            "path": str(document.path), "text": text.content, "programs": programs,
            "apart": programs, "workspace": self.root_of(document),
        }  # fmt: skip
        began = time.monotonic()

        def further(event: Mapping[str, Any]) -> None:
            self._progress[document.uri] = Progress(int(event["done"]), int(event["total"]))
            self.planned()
            came(event)

        try:
            answer = await self.worker.request_again("regions", params, on_event=further)
        except WorkerError as error:
            seconds = time.monotonic() - began
            self.say(f"{document.path.name}: not analysed after {seconds:.1f} s ({error.reason}): {error}")
            raise
        finally:
            self._progress.pop(document.uri, None)
        interpreter, regions = sentence_of(answer.get("interpreter", "")), read_regions(answer)
        what = f"region{'s' * (len(regions) != 1)}" + " or programs" * programs
        seconds = time.monotonic() - began
        self.say(f"{document.path.name}: {len(regions)} {what} in {seconds:.1f} s, run by {interpreter}.")
        self.runs_in(told(interpreter))
        return regions

    def _cached(self, key: str) -> tuple[Captured, ...] | None:
        if key in self._cache:
            self._cache.move_to_end(key)
        return self._cache.get(key)

    def _keep(self, key: str, regions: tuple[Captured, ...]) -> None:
        self._cache[key] = regions
        self._cache.move_to_end(key)
        while len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)


def _key(document: Document, text: Text) -> str:
    """Equal texts in two places import different things, and their kernels belong to different packages."""
    return f"{text_hash(text.content)} {document.path}"


def read_regions(result: dict[str, Any]) -> tuple[Captured, ...]:
    """The worker's ``regions`` result as objects."""
    return tuple(map(_captured, result.get("regions", ())))


def _captured(offer: Mapping[str, Any]) -> Captured:
    return Captured(from_data(offer["region"], Region), _estimate(offer.get("estimate")))


def _estimate(data: dict[str, Any] | None) -> Estimate | None:
    """None also where a figure is none that a time can have: it would be divided by, and shown."""
    estimate = from_data(data, Estimate) if data else None
    if estimate is None or estimate.is_sound:
        return estimate
    log.warning("A region's estimate is left out: %s", estimate)
    return None
