"""Durable jobs: what was asked for and how far it got."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any

import attrs

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.job import Job, JobState
from evokernel_core.domain.sentence import Sentence
from evokernel_core.memory.connection import Connection, marks
from evokernel_core.memory.rows import Row, decoded, record, text

ENDED = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Jobs(Connection):
    """The queue of the language server."""

    def put_job(self, job: Job) -> bool:
        """Adds a job unless its id is there. Returns whether it was new."""
        row = attrs.asdict(job) | _plain(kind=job.kind, state=job.state, reason=job.reason)
        return self.add("jobs", row, "id")

    def update_job(self, id: str, **changes: Any) -> Job:
        """Changes fields of a job (state, spent, reason, ...) and its ``updated`` time.

        Raises StoreError for an unknown job.
        """
        names = {field.name for field in attrs.fields(Job)} - {"id"}
        if not changes.keys() <= names:
            raise TypeError(f"{sorted(changes.keys() - names)} are not fields of a job.")
        values = {"updated": time.time(), **changes}
        with self.transaction():
            if self.count("jobs", "id = ?", (id,)):
                self.update("jobs", id, _plain(**values))
            job = self.job(id)
        if job is None:
            raise StoreError("The job {id} is not in the memory; ask for the kernel again.", id=id)
        return job

    def job(self, id: str) -> Job | None:
        return self.readable_row(_job, "jobs", "id = ?", (id,))

    def jobs(self, states: Iterable[JobState] = tuple(JobState), *, file: str = "") -> tuple[Job, ...]:
        """Jobs in these states, of one file where it is given, oldest first."""
        names = [state.value for state in states]
        where = f"state IN ({marks(names)}) AND (? = '' OR file = ?)"
        rows = self.rows("jobs", where, (*names, file, file), order_by="created, id")
        return self.readable(_job, rows)

    def recent_jobs(self, most: int) -> tuple[Job, ...]:
        """At most ``most`` jobs: unfinished ones first, the one that changed last before all others."""
        ended = f"state IN ({marks(ENDED)})"
        given = tuple(state.value for state in ENDED)
        rows = self.query(f"SELECT * FROM jobs ORDER BY {ended}, updated DESC, id LIMIT ?", (*given, most))
        return self.readable(_job, rows)


def _plain(**values: Any) -> dict[str, Any]:
    """Fields of a job as the table keeps them."""
    kept = {name: getattr(value, "value", value) for name, value in values.items()}
    if "reason" in kept:
        kept["reason"] = Sentence(kept["reason"]).written()
    return kept


@decoded
def _job(row: Row) -> Job:
    return record(Job, row, id=_id(row), file=_path(row))


def _id(row: Row) -> str:
    """Raises ValueError for what is no id: locks are files of these names."""
    result = text(row, "id")
    if not _ID.fullmatch(result):
        raise ValueError("id")
    return result


def _path(row: Row) -> str:
    """Raises ValueError for what names no file."""
    path = text(row, "file")
    if "\0" in path:
        raise ValueError("file")
    return path
