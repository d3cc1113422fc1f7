"""What a dashboard shows: jobs, kernels with their trajectories, offers, what was learned, and who verifies.

The memory is read on its own thread and files in another, never on the event loop, and no list is longer than
its bound: an answer stays some tens of kilobytes, however much was ever done.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import define, frozen

from evokernel_core import __version__
from evokernel_core.domain.job import Job, JobKind
from evokernel_core.domain.title import title_of
from evokernel_core.foreign import read_foreign
from evokernel_core.memory.activity import decisions, lessons, progress, trajectory
from evokernel_core.memory.jobs import ENDED
from evokernel_core.memory.store import Memory
from evokernel_core.targets import KERNEL_FILES
from evokernel_server.documents.packages import Installed, read_installed
from evokernel_server.documents.stale import is_other_device
from evokernel_server.documents.status_line import StatusLine
from evokernel_server.documents.workspace import Document, Workspace, find_calls, uri_of
from evokernel_server.jobs.queue import JobQueue
from evokernel_server.jobs.store import Store
from evokernel_server.offers.learned import objection, sentence
from evokernel_server.offers.pending import Offer, Offers, undecided
from evokernel_server.options import Options
from evokernel_server.texts.hazards import with_help
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, told

MOST_JOBS = 40
MOST_KERNELS = 100
MOST_OFFERS = 40
MOST_DECISIONS = 40
MOST_LEARNED = 20
MOST_ATTEMPTS = 120
"""Of one kernel's trajectory."""
_LOOKED_AT = 400
"""Jobs, the last ones of all folders, among which those of this workspace are looked for."""
_MOST_FILES = 50
"""Files that are not open and whose kernels are shown."""
_LONGEST_REASON = 800
"""Characters of why a job came to nothing, with what helps."""
_UNREADABLE = (OSError, ValueError)
Answer = dict[str, Any]


@frozen
class Placed:
    """A generated call on a 0-based line, and the package behind it; None where that is missing. ``unfit`` is
    why the call does not fit its package any more, as far as that was looked at."""

    uri: str
    name: str
    line: int
    installed: Installed | None
    unfit: str = ""


@define(eq=False)
class Dashboard:
    """Gathers what is shown from the services of one server."""

    store: Store
    workspace: Workspace
    jobs: JobQueue
    offers: Offers
    status: StatusLine
    options: Callable[[], Options]

    async def state(self) -> Answer:
        """The object that docs/server.md describes. Raises StoreError where the memory cannot be read."""
        recent = await self.store(lambda memory: memory.recent_jobs(_LOOKED_AT))
        mine = [job for job in recent if self.workspace.covers(Path(job.file))]
        placed = await self._placed(mine)
        lines = {job.id: line for job in mine[:MOST_JOBS] if (line := self._line(job)) is not None}
        known = await self.store(lambda memory: _known(memory, mine[:MOST_JOBS], placed))
        now, pending = self.status.current, list(self.offers.pending.values())
        return {
            "jobs": [
                {**job, "uri": self._uri(job["file"]), "line": lines.get(job["id"], job["line"])}
                for job in known["jobs"]
            ],
            "kernels": [
                {**_kernel(place, self.options().settings.chip), "history": history}
                for place, history in zip(placed, known["histories"], strict=True)
            ],
            "offers": [_offer(offer) for offer in undecided(pending, self.workspace)[:MOST_OFFERS]],
            "memory": known["memory"],
            "verifier": self._verifier(sum(job.state not in ENDED for job in mine)),
            "status": {"mode": now.mode, "text": now.text},
        }

    async def _placed(self, jobs: Sequence[Job]) -> list[Placed]:
        """Calls in open documents as they are read now, and those in the files of finished jobs."""
        documents = [
            place for document in self.workspace.documents.values() for place in _of_document(document)
        ]
        files = dict.fromkeys(Path(job.file) for job in jobs if job.kind is JobKind.GENERATE)
        closed = [file for file in files if self.workspace.at(file) is None][:_MOST_FILES]
        documents += await asyncio.to_thread(_of_files, closed)
        return documents[:MOST_KERNELS]

    def _line(self, job: Job) -> int | None:
        """Where a job's region is now, in an open document."""
        document = self.workspace.at(job.file)
        tracked = document.region(job.region_id) if document else None
        return document.text.line_of(tracked.extent.start) if document and tracked else None

    def _uri(self, file: str) -> str:
        document = self.workspace.at(file)
        return document.uri if document else uri_of(Path(file))

    def _verifier(self, queued: int) -> Answer:
        state = "away" if self.jobs.waiting else "busy" if self.jobs.running else "idle"
        remote = self.options().settings.verifier_url
        return {
            "name": self.status.current.verifier or ("" if remote else self._own_verifier()),
            "where": plain(remote),
            "state": state,
            "queued": queued,
        }

    def _own_verifier(self) -> str:
        """What judges in this process."""
        return f"{KERNEL_FILES[self.options().target].judge} {__version__}"


def _of_document(document: Document) -> Iterator[Placed]:
    for call in document.calls:
        line = document.text.line_of(call.extent.start)
        unfit = document.stale.get(call.name, "")
        yield Placed(document.uri, call.name, line, document.installed.get(call.name), unfit)


def _of_files(files: Iterable[Path]) -> list[Placed]:
    result = []
    for file in files:
        try:
            content = read_foreign(file.resolve())
        except _UNREADABLE:
            continue
        for call in find_calls(content):
            line = content.count("\n", 0, call.extent.start)
            result.append(Placed(uri_of(file), call.name, line, read_installed(file, call.name)))
    return result


def _known(memory: Memory, jobs: Sequence[Job], placed: Sequence[Placed]) -> Answer:
    """What the memory has to say, in one visit to its thread."""
    return {
        "jobs": [_job(memory, job) for job in jobs],
        "histories": [_history(memory, place.installed) for place in placed],
        "memory": {
            "path": str(memory.path),
            "items": memory.count("experiences"),
            "bytes": sum(_size(memory.path.with_name(memory.path.name + end)) for end in ("", "-wal")),
            "decisions": [
                {
                    "at": decision.at,
                    "kind": decision.kind.value,
                    "name": plain(decision.name),
                    "detail": objection(decision.detail),
                }
                for decision in decisions(memory, MOST_DECISIONS)
            ],
            "learned": [sentence(lesson) for lesson in lessons(memory, MOST_LEARNED)],
        },
    }


def _job(memory: Memory, job: Job) -> Answer:
    done = progress(memory, job.id)
    return {
        "id": job.id,
        "file": job.file,
        "line": _line_asked_for(job),
        "kind": job.kind.value,
        "state": job.state.value,
        "stage": done.stage.value if done else "",
        "attempt": done.attempt if done else job.spent,
        "budget": job.budget,
        "bestUs": done.best_us if done else None,
        "bestSource": done.source.value if done and done.source else "",
        "reason": plain(with_help(job.reason), _LONGEST_REASON),
    }


def _line_asked_for(job: Job) -> int:
    """The region's 0-based line when the kernel was asked for; 0 for a damaged one."""
    try:
        return max(0, int(json.loads(job.region)["span"]["line"]) - 1)
    except (ValueError, TypeError, LookupError, RecursionError):
        return 0


def _history(memory: Memory, installed: Installed | None) -> list[Answer]:
    if installed is None or not installed.task_id:
        return []
    latency = installed.latency
    result = trajectory(memory, installed.task_id, latency.chip, latency.source, MOST_ATTEMPTS)
    return [{"attempt": element.attempt, "us": element.us} for element in result]


def _kernel(placed: Placed, chip: str) -> Answer:
    """``us`` and what goes with it are null and empty for a package that is missing."""
    latency = placed.installed.latency if placed.installed else None
    stale = placed.unfit or why_stale(placed.name, placed.installed, chip)
    return {
        "uri": placed.uri,
        "name": placed.name,
        "line": placed.line,
        "us": latency.us if latency else None,
        "source": latency.source.value if latency else "",
        "chip": plain(latency.chip) if latency else "",
        "baselineUs": latency.baseline_us if latency else None,
        "baselineSource": latency.baseline_word.value if latency else "",
        "boundUs": latency.roofline_us if latency else None,
        "bottleneck": plain(told(latency.bottleneck)) if latency else "",
        "verifier": plain(placed.installed.verifier or placed.installed.function) if placed.installed else "",
        "stale": bool(stale),
        "why": plain(stale),
    }


def why_stale(name: str, installed: Installed | None, chip: str) -> str:
    """Why a kernel's figures are not what they would be now, empty where they are: its package is missing or
    was changed, they are of another chip than the one that is configured, or of another version of this
    machine's verifier."""
    if installed is None:
        folder = f"evokernel_kernels/{name}"
        return _("The folder {folder} is missing or damaged; restore it or revert.", folder=folder)
    if is_other_device(installed.latency.chip, chip):
        return _(
            "{name} was made for {made_for}, and the chip is {chip}: refine it.",
            name=name,
            made_for=installed.latency.chip,
            chip=chip,
        )
    modelled_by = installed.verifier.removeprefix("twin ")
    if modelled_by in (installed.verifier, __version__):
        return ""
    return _(
        "{name} was verified with an older twin ({verifier}; now {version}): refine it to re-verify.",
        name=name,
        verifier=installed.verifier,
        version=__version__,
    )


def _offer(offer: Offer) -> Answer:
    """``was`` is what the kernel replaces: the accepted one, or PyTorch's own."""
    old, new, task = offer.old, offer.new, offer.region.task
    return {
        "uri": offer.uri,
        "regionId": offer.region.id,
        "name": offer.name,
        "title": plain(title_of(task, offer.region.symbol)) if task else offer.name,
        "words": offer.words,
        "wasUs": old.us if old else new.baseline_us,
        "wasSource": (old.source if old else new.baseline_word).value,
        "newUs": new.us,
        "source": new.source.value,
        "ready": old is None,
    }


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
