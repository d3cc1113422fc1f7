"""The memory, off the event loop: one thread owns the database and does what it is handed in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evokernel_core.domain.errors import StoreError

if TYPE_CHECKING:
    from evokernel_core.memory.store import Memory

T = TypeVar("T")
log = logging.getLogger(__name__)


class Store:
    """``await store(lambda memory: ...)`` runs a short transaction and gives its result.

    The file is opened at the first use, and anew where it was deleted or replaced. Another process's lock
    is waited for on the thread. ``failed`` hears the sentence of each StoreError: a person has to act, as
    where the disk is full. ``trouble`` is that of the last transaction, empty where it was done; ``changed``
    is called when it changes. ``wrote`` hears of each transaction that wrote something, once that is durable.
    """

    def __init__(
        self,
        path: Path,
        failed: Callable[[str], None] = lambda _: None,
        changed: Callable[[], None] = lambda: None,
        wrote: Callable[[], None] = lambda: None,
    ) -> None:
        self.trouble = ""
        self._path = path
        self._failed = failed
        self._changed = changed
        self._wrote = wrote
        self._memory: Memory | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memory")

    async def __call__(self, work: Callable[[Memory], T]) -> T:
        try:
            done, wrote = await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)
        except StoreError as error:
            self._failed(error.sentence)
            self._note(error.sentence)
            raise
        self._note("")
        if wrote:
            self._wrote()
        return done

    def _note(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._changed()

    def _run(self, work: Callable[[Memory], T]) -> tuple[T, bool]:
        if self._memory is not None and not self._memory.is_there:
            log.warning("The memory %s was deleted or replaced; it is opened anew.", self._path)
            self._close()
        if self._memory is None:
            from evokernel_core.memory.store import Memory  # on the thread: the server starts without it

            self._memory = Memory(self._path)
        before = self._memory.changes
        return work(self._memory), self._memory.changes > before

    def close(self) -> None:
        """Finishes what was handed in, then closes the file. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._thread.submit(self._close)
        self._thread.shutdown(wait=True)

    def _close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None
