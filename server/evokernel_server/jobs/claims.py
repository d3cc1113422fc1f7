"""Which live server runs a job: a locked file per job, released by the system however it ends."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO

from evokernel_core.domain.errors import StoreError
from evokernel_core.private import private_folder, private_opener
from evokernel_server.texts.translations import _


class Claims:
    """Locks under ``folder``; two servers of one person never run the same job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.held: dict[str, IO[bytes]] = {}

    def take(self, job_id: str) -> bool:
        """Whether the job is now ours. Raises StoreError where no lock can be made."""
        if job_id in self.held:
            return True
        try:
            return self._take(job_id)
        except OSError as error:
            raise StoreError(
                _(
                    "A job cannot be locked in {folder} ({why}); check the disk and its rights.",
                    folder=self._folder,
                    why=error.strerror,
                )
            ) from error

    def _take(self, job_id: str) -> bool:
        private_folder(self._folder)
        file = open(self._folder / f"{job_id}.lock", "ab", opener=private_opener)  # noqa: SIM115
        try:
            _lock(file)
        except OSError:
            file.close()
            return False
        self.held[job_id] = file
        return True

    def release(self, job_id: str, *, finished: bool = False) -> None:
        """Gives the job up. The file goes only with a finished job, which nobody takes again."""
        file = self.held.pop(job_id, None)
        if file is None:
            return
        if finished:
            with contextlib.suppress(OSError):
                Path(file.name).unlink()
        file.close()

    def release_all(self) -> None:
        for job_id in list(self.held):
            self.release(job_id)


def _lock(file: IO[bytes]) -> None:
    """Raises OSError where another process holds the lock."""
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
