"""One undo takes an acceptance back, its package included, and one redo brings both again.

A package goes where this session's acceptance created it, nothing else calls it, and every file of it is
still the one that was written.
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

from attrs import define, evolve, field, frozen

from evokernel_core.ascendc.print.integrity import foreign
from evokernel_core.domain.region import Region
from evokernel_core.foreign import read_foreign, read_foreign_object
from evokernel_server.calls import write_package
from evokernel_server.outcomes import OutcomeLog, Placement
from evokernel_server.packages import FOLDER, MANIFEST, import_root, package_folder, read_installed
from evokernel_server.tasks import spawn
from evokernel_server.worker import Worker
from evokernel_server.workspace import Document, Workspace, find_calls

log = logging.getLogger(__name__)

MOST_FILES = 20_000
"""Files of a tree that is looked through for other calls; in a larger one packages stay."""
MOST_REMEMBERED = 100
"""Acceptances that an undo, or undone ones that a redo, takes back whole; older ones leave their package."""
_IGNORED = {"__pycache__"}


@frozen
class Accepted:
    """An acceptance of this session; ``created``: it wrote a package where there was none."""

    placement: Placement
    region: Region
    created: bool


@define(eq=False)
class Undo:
    """``changed`` hears of a document whose packages are others now."""

    workspace: Workspace
    outcomes: OutcomeLog
    worker: Worker
    changed: Callable[[Document], Awaitable[None]]
    _accepted: dict[Placement, Accepted] = field(factory=dict)
    _gone: list[Accepted] = field(factory=list)
    _turn: asyncio.Lock = field(factory=asyncio.Lock)

    def remember(self, placement: Placement, region: Region, *, created: bool) -> None:
        self._accepted[placement] = Accepted(placement, region, created)
        for oldest in list(self._accepted)[:-MOST_REMEMBERED]:
            del self._accepted[oldest]

    def succeed(self, old: Placement, new: Placement) -> None:
        """Another kernel came into the package of an acceptance."""
        accepted = self._accepted.pop(old, None)
        if accepted is not None:
            self._accepted[new] = evolve(accepted, placement=new)

    def set_aside(self, file: Path, names: Collection[str]) -> list[Accepted]:
        """Calls of these kernels that come now are a new acceptance's, not a redo."""
        old = [item for item in self._gone if item.placement.file == file and item.placement.name in names]
        self._gone = [item for item in self._gone if item not in old]
        return old

    def put_back(self, accepted: Iterable[Accepted]) -> None:
        """The new acceptance was refused."""
        self._gone += accepted

    async def gone(self, placement: Placement, undone: bool) -> None:
        """A call was taken out: where its acceptance was undone, its package goes too."""
        accepted = self._accepted.pop(placement, None)
        if accepted is None:
            return
        self._gone = [*self._gone[1 - MOST_REMEMBERED :], accepted]
        if not (undone and accepted.created):
            return
        for heir in [p for p in self._accepted if (p.file, p.name) == (placement.file, placement.name)]:
            self._accepted[heir] = evolve(self._accepted[heir], created=True)  # it goes with the last call
        await self._remove(placement)

    async def _remove(self, placement: Placement) -> None:
        async with self._turn:
            if self._is_called(placement.name):
                return
            try:
                await asyncio.to_thread(remove_unchanged, placement.file, placement.name, placement.source_id)
            except OSError as error:
                log.warning("The package of %s was not removed: %s.", placement.name, error.strerror)
        document = self.workspace.at(placement.file)
        if document is not None:
            await self.changed(document)

    def _is_called(self, name: str) -> bool:
        """Whether an open document, or an acceptance that is in place, calls a kernel."""
        open_calls = any(name in document.counts() for document in self.workspace.documents.values())
        return open_calls or any(placement.name == name for placement in self.outcomes.placements)

    def observe(self, document: Document) -> None:
        """A call that is back in the text is accepted again, and gets its package."""
        counts = document.counts() if self._gone else {}
        for accepted in [item for item in self._gone if item.placement.file == document.path]:
            name = accepted.placement.name
            if counts.get(name, 0) > self.outcomes.watched(document.path, name):
                self._gone.remove(accepted)
                spawn(self._again(document, accepted), "redo")
                return  # the others at the next look: this one is not watched yet

    async def _again(self, document: Document, accepted: Accepted) -> None:
        placement = evolve(accepted.placement, at=time.time())
        try:
            async with self._turn:
                if await asyncio.to_thread(read_installed, placement.file, placement.name) is None:
                    await write_package(self.worker, accepted.region, placement.source_id)
                await self.outcomes.accept(placement)
                self.remember(placement, accepted.region, created=accepted.created)
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
