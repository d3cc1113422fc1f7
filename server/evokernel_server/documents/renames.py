"""What is known of a file follows it to another name, and ends where it is deleted.

Jobs, decisions, offers, watched calls and observed inputs are kept by the file's path. A kernel package lies
where the file's imports start and records what calls it, so it is written again for the new place.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from attrs import define, field

from evokernel_core.capture.observations import ObservationStore
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.placement import Placement, key_end
from evokernel_server.jobs.queue import JobQueue
from evokernel_server.jobs.store import Store
from evokernel_server.offers.outcomes import OutcomeLog
from evokernel_server.offers.pending import Offers
from evokernel_server.offers.undo import Undo

log = logging.getLogger(__name__)

_MOST_FILES = 5_000
"""Files of a renamed folder that are looked at; what is known of more of them stays under the old names."""


@define(eq=False)
class Moves:
    """``repackage`` writes the package of a moved call beside its file's new place, ``arrived`` hears of each
    file under its new name, and of a deleted one, which may be open or there again. One move at a time: the
    next may be of the same file."""

    store: Store
    jobs: JobQueue
    outcomes: OutcomeLog
    offers: Offers
    undo: Undo
    observations: ObservationStore
    repackage: Callable[[Placement], Awaitable[None]]
    arrived: Callable[[Path], Awaitable[None]]
    _turn: asyncio.Lock = field(factory=asyncio.Lock)

    async def renamed(self, old: Path, new: Path) -> None:
        """A file, or a folder with all that is in it, has another name."""
        async with self._turn:
            inside = await asyncio.to_thread(lambda: list(_python_files(new)))
            for before, after in self._pairs(old, new, [*inside, *await self._known()]):
                await self._move(before, after)

    async def deleted(self, path: Path) -> None:
        """A file, or a folder with all that is in it, is gone."""
        async with self._turn:
            for file in {file for file in await self._known() if file.is_relative_to(path)}:
                self.outcomes.end(file)
                await self.offers.end(file)
                await self.jobs.end(file)
                await self.arrived(file)

    async def _known(self) -> list[Path]:
        """Files of which jobs or watches tell."""
        jobs = await self.store(lambda memory: memory.jobs())
        return [Path(job.file) for job in jobs] + [placement.file for placement in self.outcomes.placements]

    def _pairs(self, old: Path, new: Path, files: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
        """Old and new path of each file, once."""
        seen = {old}
        yield old, new
        for file in files:
            top = new if file.is_relative_to(new) else old
            if file.is_relative_to(top) and file != top:
                before = old / file.relative_to(top)
                if before not in seen:
                    seen.add(before)
                    yield before, new / file.relative_to(top)

    async def _move(self, old: Path, new: Path) -> None:
        placements = self.outcomes.move(old, new)
        self.offers.move(old, new)
        await self.jobs.move(old, new)
        self.undo.move(old, new)
        await self.store(lambda memory: _move_decisions(memory, old, new))
        await asyncio.to_thread(self.observations.move, old, new)
        for placement in placements:
            try:
                await self.repackage(placement)
            except EvoKernelError as error:
                log.warning("The package of %s is not written for %s: %s", placement.name, new.name, error)
        await self.arrived(new)


def _move_decisions(memory: Any, old: Path, new: Path) -> None:
    with memory.transaction():
        memory.move_outcomes(key_end(old), key_end(new))
        memory.move_placements(old, new)


def _python_files(top: Path) -> Iterator[Path]:
    result = 0
    for folder, _, names in os.walk(top):
        for name in names:
            if name.endswith(".py"):
                result += 1
                if result > _MOST_FILES:
                    return
                yield Path(folder) / name
