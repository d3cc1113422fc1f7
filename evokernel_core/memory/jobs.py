"""Durable jobs: what was asked for and how far it got."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import attrs

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.memory.connection import Connection, Row, decoded, marks


class Jobs(Connection):
    """The queue of the language server."""

    def put_job(self, job: Job) -> bool:
        """Adds a job unless its id is there. Returns whether it was new."""
        row = attrs.asdict(job) | {"kind": job.kind.value, "state": job.state.value}
        return self.insert("jobs", row, "ON CONFLICT (id) DO NOTHING")

    def update_job(self, id: str, **changes: Any) -> Job:
        """Changes fields of a job (state, spent, reason, ...) and its ``updated`` time.

        Raises StoreError for an unknown job.
        """
        names = {field.name for field in attrs.fields(Job)} - {"id"}
        if not changes.keys() <= names:
            raise TypeError(f"{sorted(changes.keys() - names)} are not fields of a job.")
        values = {"updated": time.time(), **changes}
        sets = ", ".join(f"{name} = :{name}" for name in values)
        with self.transaction():
            plain = {name: getattr(value, "value", value) for name, value in values.items()}
            self.execute(f"UPDATE jobs SET {sets} WHERE id = :id", {**plain, "id": id})
            job = self.job(id)
        if job is None:
            raise StoreError(f"The job {id} is not in the memory; ask for the kernel again.")
        return job

    def job(self, id: str) -> Job | None:
        row = self.row("SELECT * FROM jobs WHERE id = ?", (id,))
        return _job(row) if row else None

    def jobs(self, states: Iterable[JobState] = tuple(JobState), *, file: str = "") -> tuple[Job, ...]:
        """Jobs in these states, of one file where it is given, oldest first."""
        names = [state.value for state in states]
        rows = self.rows(
            f"SELECT * FROM jobs WHERE state IN ({marks(names)}) AND (? = '' OR file = ?)"
            " ORDER BY created, id",
            (*names, file, file),
        )
        return tuple(_job(row) for row in rows)


@decoded
def _job(row: Row) -> Job:
    data = dict(row)
    return Job(**(data | {"kind": JobKind(data["kind"]), "state": JobState(data["state"])}))
