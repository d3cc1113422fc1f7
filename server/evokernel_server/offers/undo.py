"""One undo takes an acceptance back, its package included, and one redo brings both again, whether the server
was started anew in between or not. Reverting a kernel by command takes its package, too.

A package goes where an acceptance created it, nothing else calls it, not even the file as it was last saved,
and every file of it is still the one that was written.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from pathlib import Path

from attrs import define, evolve, field

from evokernel_core.domain.placement import Placement, Standing
from evokernel_core.foreign import read_foreign, read_foreign_object
from evokernel_core.import_root import import_root
from evokernel_core.package.integrity import foreign
from evokernel_server.documents.branches import head_of
from evokernel_server.documents.calls import write_package
from evokernel_server.documents.packages import FOLDER, MANIFEST, package_folder, read_installed
from evokernel_server.documents.workspace import Document, Workspace, find_calls
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.tasks import spawn
from evokernel_server.jobs.worker import Worker
from evokernel_server.offers.outcomes import OutcomeLog

log = logging.getLogger(__name__)

MOST_FILES = 20_000
"""Files of a tree that is looked through for other calls; in a larger one packages stay."""
MOST_REMEMBERED = 100
"""Undone acceptances that a redo brings back whole, the latest."""
_IGNORED = {"__pycache__"}


@define(eq=False)
class Undo:
    """``changed`` hears of a document whose packages are others now, ``redone`` of each call that is back."""

    workspace: Workspace
    outcomes: OutcomeLog
    worker: Worker
    store: Store
    changed: Callable[[Document], Awaitable[None]]
    redone: Callable[[Placement], None]
    _gone: list[Placement] = field(factory=list)
    """In the order in which they went: of equal calls in one file the last to go is the first to be back."""
    _unsaved: set[Placement] = field(factory=set)
    """Calls that were undone in an editor and are still in the file on the disk: their packages wait."""
    _turn: asyncio.Lock = field(factory=asyncio.Lock)

    def set_aside(self, file: Path, names: Collection[str]) -> list[Placement]:
        """Calls of these kernels that come now are a new acceptance's, not a redo."""
        old = [placement for placement in self._gone if placement.file == file and placement.name in names]
        self._gone = [placement for placement in self._gone if placement not in old]
        return old

    def put_back(self, placements: Iterable[Placement]) -> None:
        """The new acceptance was refused."""
        self._gone += placements

    async def gone(self, placement: Placement, standing: Standing, *, with_package: bool) -> None:
        """A call was taken out, and where it was the last one its package, if an acceptance created that."""
        self._gone = [*self._gone[1 - MOST_REMEMBERED :], evolve(placement, standing=standing)]
        if with_package and placement.created:
            await self._remove(placement)

    async def restore(self, document: Document) -> None:
        """What was taken out of a reopened file before: a call that is back was redone, and a package that
        stayed because the undo was not saved goes."""
        kept = await self.store(lambda memory: memory.placements(document.path))
        known = {placement.key for placement in self._gone}
        gone = [entry for entry in kept if entry.standing is not Standing.CALLED and entry.key not in known]
        self._gone += reversed(gone)
        for placement in gone:
            if placement.standing is Standing.UNDONE and placement.created:
                await self._remove(placement)
        self.observe(document)

    async def saved(self, file: Path) -> None:
        """A file is on the disk as it is in the editor: what it does not call any more goes."""
        for placement in [placement for placement in self._unsaved if placement.file == file]:
            self._unsaved.discard(placement)
            if placement in self._gone:
                await self._remove(placement)

    def move(self, old: Path, new: Path) -> None:
        """A file has another name."""
        moved = [placement.moved(new) for placement in self._gone if placement.file == old]
        self._gone = [placement for placement in self._gone if placement.file != old] + moved

    async def _remove(self, placement: Placement) -> None:
        async with self._turn:
            if await asyncio.to_thread(_one_shares, self._callers(placement.name), placement):
                return
            if await asyncio.to_thread(_calls, placement.file, placement.name):
                self._unsaved.add(placement)
                return
            try:
                await asyncio.to_thread(remove_unchanged, placement.file, placement.name, placement.source_id)
            except OSError as error:
                log.warning("The package of %s was not removed: %s.", placement.name, error.strerror)
        document = self.workspace.at(placement.file)
        if document is not None:
            await self.changed(document)

    def _callers(self, name: str) -> list[Path]:
        """The files that call a kernel of a name: open documents, and those with an acceptance in place."""
        opened = [
            document.path for document in self.workspace.documents.values() if name in document.counts()
        ]
        return opened + [placement.file for placement in self.outcomes.placements if placement.name == name]

    def observe(self, document: Document) -> None:
        """A call that is back in the text is accepted again, and gets its package."""
        counts = document.counts() if self._gone else {}
        for placement in [placement for placement in reversed(self._gone) if placement.file == document.path]:
            if counts.get(placement.name, 0) > self.outcomes.watched(document.path, placement.name):
                self._gone.remove(placement)
                spawn(self._again(document, placement), "redo")
                return  # the others at the next look: this one is not watched yet

    async def _again(self, document: Document, gone: Placement) -> None:
        try:
            async with self._turn:
                # a package that a person changed meanwhile cannot be read either, and stays as it is
                manifest = package_folder(gone.file, gone.name) / MANIFEST
                missing = not await asyncio.to_thread(manifest.exists)
                if missing and gone.region is not None:
                    await write_package(self.worker, gone.region, gone.source_id)
                head = await asyncio.to_thread(head_of, gone.file)
                placement = evolve(
                    gone, at=time.time(), head=head, created=gone.created or missing, standing=Standing.CALLED
                )
                await self.outcomes.accept(placement)
            self.redone(placement)
            await self.changed(document)
        finally:
            self.observe(document)


def remove_unchanged(file: Path, name: str, source_id: str) -> bool:
    """Removes the package of a kernel beside ``file`` where it is as it was written and no Python file calls
    it. Returns whether it did. Blocks: call it on a thread."""
    folder = package_folder(file, name)
    installed = read_installed(file, name)
    if installed is None or installed.source_id != source_id or _holds_more(folder):
        return False
    if any(_calls(path, name) for path in _python_files(import_root(file), file)):
        return False
    aside = Path(tempfile.mkdtemp(prefix=f".{name}-gone-", dir=folder.parent))
    folder.rename(aside / name)  # readers see a whole package or none
    shutil.rmtree(aside, ignore_errors=True)
    return True


def _one_shares(files: Iterable[Path], placement: Placement) -> bool:
    """Whether one of these files, which call a kernel of a placement's name, calls the one of its very
    package: equal code below two roots has one each. Blocks: call it on a thread."""
    root = import_root(placement.file)
    return any(import_root(file) == root for file in files)


def _holds_more(folder: Path) -> bool:
    """Whether there is something in a package's folder that was not written with it."""
    manifest = read_foreign_object(folder / MANIFEST)
    return bool(set(foreign(folder, manifest)) - _IGNORED)


def _python_files(root: Path, own: Path) -> Iterator[Path | None]:
    """The Python files that could import a package, without ``own``; None where there are too many."""
    count = 0
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if not name.startswith(".") and name != FOLDER]
        count += len(files)
        if count > MOST_FILES:
            yield None
            return
        yield from (path for name in files if name.endswith(".py") and (path := Path(folder, name)) != own)


def _calls(path: Path | None, name: str) -> bool:
    """Whether a file may call a kernel; true for one that nobody looked at."""
    if path is None:
        return True
    try:
        content = read_foreign(path)
    except (OSError, ValueError):
        return False
    return name in content and any(call.name == name for call in find_calls(content))
