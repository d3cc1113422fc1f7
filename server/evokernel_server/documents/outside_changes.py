"""What changes outside the editor: deleted packages, checkouts, files rewritten by other tools.

A client that watches files is asked to (``watched``), and ours is the rest: files outside its folders, and
all for a client that does not. Only the folders of open torch files are watched, their packages, the
repository's HEAD, and what was observed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import define, field

from evokernel_core.import_root import import_root
from evokernel_core.private import private_folder
from evokernel_server.documents.packages import FOLDER

log = logging.getLogger(__name__)


@define(eq=False)
class Watcher:
    """``changed`` hears of each path, on the event loop, a moment after the last change to it.
    ``observations`` is where the calls of observed programs are kept."""

    changed: Callable[[Path], None]
    observations: Path
    client_covers: Callable[[Path], bool] = lambda _: False
    """Whether the client watches a folder."""
    settle_s: float = 0.2
    _observer: Any = None
    _loop: asyncio.AbstractEventLoop | None = None
    _watched: set[Path] = field(factory=set)
    _timers: dict[Path, asyncio.TimerHandle] = field(factory=dict)

    def cover(self, file: Path) -> None:
        """Watches what matters to an open file. Blocks for a moment: call it on a thread."""
        self._watch(file.parent, recursive=False)
        with contextlib.suppress(OSError):  # a home that is not written to has no observations to come
            private_folder(self.observations)
        self._watch(self.observations, recursive=False)
        packages = import_root(file) / FOLDER
        if packages.is_dir():
            self._watch(packages, recursive=True)
        elif packages.parent != file.parent:
            self._watch(packages.parent, recursive=False)
        git = next((p / ".git" for p in file.parents if (p / ".git").is_dir()), None)
        if git is not None:
            self._watch(git, recursive=False)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def stop(self) -> None:
        observer, self._observer = self._observer, None
        for timer in self._timers.values():
            timer.cancel()
        if observer is not None:
            observer.stop()

    def _watch(self, folder: Path, *, recursive: bool) -> None:
        if folder in self._watched or self.client_covers(folder) or not folder.is_dir():
            return
        from watchdog.events import FileSystemEvent, FileSystemEventHandler
        from watchdog.observers import Observer

        class Handler(FileSystemEventHandler):  # type: ignore[misc]
            def on_any_event(handler, event: FileSystemEvent) -> None:  # noqa: N805
                if event.event_type in {"created", "modified", "moved", "deleted", "closed"}:
                    self._heard(event.src_path)
                    self._heard(event.dest_path)

        # a package that is replaced by a rename makes watchdog warn about its own bookkeeping
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="watchdog")
        if self._observer is None:
            self._observer = Observer()
            self._observer.daemon = True
            self._observer.start()
        try:
            self._observer.schedule(Handler(), str(folder), recursive=recursive)
        except OSError as error:
            log.warning("Changes in %s are not watched: %s", folder, error)
            return
        self._watched.add(folder)

    def _heard(self, path: object) -> None:
        if path and self._loop is not None and not self._loop.is_closed():
            text = path.decode() if isinstance(path, bytes) else str(path)
            self._loop.call_soon_threadsafe(self._soon, Path(text))

    def heard(self, path: Path) -> None:
        """The client says that something happened to a path."""
        self._soon(path)

    def _soon(self, path: Path) -> None:
        if timer := self._timers.pop(path, None):
            timer.cancel()
        self._timers[path] = asyncio.get_running_loop().call_later(self.settle_s, self._tell, path)

    def _tell(self, path: Path) -> None:
        self._timers.pop(path, None)
        self.changed(path)
