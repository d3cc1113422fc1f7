"""The verifier service's durable queue: one SQLite file, one row a job.

A job is queued, then running under a lease, then done; a done job holds a verdict or the reason why
there is none. Every change is one ``BEGIN IMMEDIATE`` transaction. A lease is a random word that
only the present holder knows: a worker that lost its job cannot finish it.

One server owns a queue at a time (``QueueLock``). The one that starts puts jobs whose server was
killed back into the queue, so nothing is lost, and a verdict is stored once, so nothing is repeated.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from attrs import frozen
from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from evokernel_core.domain.errors import StoreError, VerifierError

MAX_DEATHS = 3
"""A job whose worker died this often is given up: the job is what kills it."""

KEPT_RESULTS = 20_000
"""Finished jobs kept, the newest first."""

migrations = Migrations("evokernel.verifier.queue")


@migrations()  # type: ignore[untyped-decorator]
def m001_jobs(db: Any) -> None:
    db.create_table(
        "jobs",
        {
            "id": str,
            "state": str,
            "task": str,
            "source": str,
            "verdict": str,
            "error": str,
            "lease": str,
            "deaths": int,
            "created": float,
            "updated": float,
        },
        pk="id",
        not_null={"state", "deaths", "created", "updated"},
    )
    db["jobs"].create_index(["state", "created"])
    db.create_table(
        "interests",
        {"job": str, "client": str},
        pk=("job", "client"),
        foreign_keys=[("job", "jobs", "id")],
    )


class QueueState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


@frozen
class QueuedJob:
    """A job as the queue knows it. ``verdict`` is JSON; ``error`` is one sentence; done has one of them."""

    id: str
    state: QueueState
    verdict: str
    error: str
    created: float


@frozen
class Claim:
    """A job that the holder of ``lease`` is to run; ``task`` and ``source`` are JSON."""

    id: str
    lease: str
    task: str
    source: str


class QueueFull(VerifierError):
    """More jobs are waiting than the service takes."""


class QueueLock:
    """Ownership of a data folder, held until the process ends. Raises StoreError if another has it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "queue.lock").open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise StoreError(
                f"Another verifier service already uses {folder}; stop it or choose another --data folder."
            ) from error

    def release(self) -> None:
        self._file.close()


class JobQueue:
    """The queue of one data folder. Safe to call from several threads of the process that owns it."""

    def __init__(self, folder: Path, *, limit: int = 10_000) -> None:
        self._limit = limit
        self._mutex = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / "queue.db"
            os.close(os.open(path, os.O_CREAT, 0o600))
            self._conn = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._conn.row_factory = sqlite3.Row
            self._db = Database(self._conn)
            self._db.enable_wal()
            self._conn.execute("PRAGMA synchronous = FULL")
            self._conn.execute("PRAGMA foreign_keys = ON")
            migrations.apply(self._db)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The verifier's queue in {folder} cannot be opened ({error}); choose another folder."
            ) from error

    def close(self) -> None:
        with self._mutex:
            self._db.close()

    def put(self, job_id: str, task: str, source: str, client: str = "") -> QueuedJob:
        """The job, queued if it is new or if the last try ended in an error.

        Asking twice is asking once. ``client`` is recorded as one who wants the job.
        Raises QueueFull.
        """
        now = time.time()
        with self._transaction():
            job = self._find(job_id)
            if job is None or job.error:
                if self._count(QueueState.QUEUED) >= self._limit:
                    raise QueueFull(f"The queue already holds {self._limit} jobs; ask again later.")
                self._conn.execute(
                    "INSERT OR REPLACE INTO jobs (id, state, task, source, verdict, error, lease, deaths,"
                    " created, updated) VALUES (?, 'queued', ?, ?, '', '', '', 0, ?, ?)",
                    [job_id, task, source, now, now],
                )
            self._conn.execute("INSERT OR IGNORE INTO interests VALUES (?, ?)", [job_id, client])
            return self._found(job_id)

    def get(self, job_id: str) -> QueuedJob | None:
        with self._mutex:
            return self._find(job_id)

    def claim(self) -> Claim | None:
        """The oldest queued job, now running under a new lease; None when nothing waits."""
        with self._transaction():
            row = self._conn.execute(
                "SELECT id, task, source FROM jobs WHERE state = 'queued' ORDER BY created, id LIMIT 1"
            ).fetchone()
            if row is None:
                return None
            lease = secrets.token_hex(16)
            self._conn.execute(
                "UPDATE jobs SET state = 'running', lease = ?, updated = ? WHERE id = ?",
                [lease, time.time(), row["id"]],
            )
            return Claim(row["id"], lease, row["task"], row["source"])

    def holds(self, claim: Claim) -> bool:
        """Whether the job still is the claim's."""
        with self._mutex:
            held = self._conn.execute(
                "SELECT 1 FROM jobs WHERE id = ? AND state = 'running' AND lease = ?", [claim.id, claim.lease]
            ).fetchone()
            return held is not None

    def finish(self, claim: Claim, *, verdict: str = "", error: str = "") -> bool:
        """Stores the result. False if the claim no longer holds the job: cancelled or taken back."""
        with self._transaction():
            done = self._conn.execute(
                "UPDATE jobs SET state = 'done', verdict = ?, error = ?, lease = '', task = '', source = '',"
                " updated = ? WHERE id = ? AND state = 'running' AND lease = ?",
                [verdict, error, time.time(), claim.id, claim.lease],
            ).rowcount
            return bool(done)

    def give_back(self, claim: Claim, *, died: bool) -> bool:
        """Queues a running job again; ``died`` counts a death of its worker.

        True if the job waits again, False if it was cancelled or has now been given up.
        """
        with self._transaction():
            row = self._conn.execute(
                "SELECT deaths FROM jobs WHERE id = ? AND state = 'running' AND lease = ?",
                [claim.id, claim.lease],
            ).fetchone()
            if row is None:
                return False
            deaths = row["deaths"] + died
            given_up = deaths >= MAX_DEATHS
            error = f"The worker died {deaths} times on this kernel; report it with the service's log."
            self._conn.execute(
                "UPDATE jobs SET state = ?, deaths = ?, error = ?, lease = '', updated = ? WHERE id = ?",
                ["done" if given_up else "queued", deaths, error if given_up else "", time.time(), claim.id],
            )
            return not given_up

    def withdraw(self, job_id: str, client: str = "") -> bool | None:
        """The client no longer wants the job; it goes when nobody does. A result stays.

        True if the job is gone, False if it stays, None if there is no such job.
        """
        with self._transaction():
            job = self._find(job_id)
            if job is None:
                return None
            self._conn.execute("DELETE FROM interests WHERE job = ? AND client = ?", [job_id, client])
            wanted = self._conn.execute("SELECT 1 FROM interests WHERE job = ? LIMIT 1", [job_id]).fetchone()
            if wanted or job.state is QueueState.DONE:
                return False
            self._conn.execute("DELETE FROM jobs WHERE id = ?", [job_id])
            return True

    def recover(self) -> int:
        """Queues every running job again and drops the oldest results; call it once, at the start."""
        with self._transaction():
            recovered = self._conn.execute(
                "UPDATE jobs SET state = 'queued', lease = '', updated = ? WHERE state = 'running'",
                [time.time()],
            ).rowcount
            old = "SELECT id FROM jobs WHERE state = 'done' ORDER BY updated DESC LIMIT -1 OFFSET ?"
            self._conn.execute(f"DELETE FROM interests WHERE job IN ({old})", [KEPT_RESULTS])
            self._conn.execute(f"DELETE FROM jobs WHERE id IN ({old})", [KEPT_RESULTS])
            return int(recovered)

    def counts(self) -> dict[QueueState, int]:
        with self._mutex:
            return {state: self._count(state) for state in QueueState}

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._mutex:
            self._conn.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._conn.execute("ROLLBACK")
                raise
            self._conn.execute("COMMIT")

    def _count(self, state: QueueState) -> int:
        return int(self._db["jobs"].count_where("state = ?", [state.value]))

    def _found(self, job_id: str) -> QueuedJob:
        job = self._find(job_id)
        if job is None:
            raise StoreError(f"Job {job_id} vanished from the verifier's queue; ask for it again.")
        return job

    def _find(self, job_id: str) -> QueuedJob | None:
        row = self._conn.execute(
            "SELECT id, state, verdict, error, created FROM jobs WHERE id = ?", [job_id]
        ).fetchone()
        if row is None:
            return None
        return QueuedJob(row["id"], QueueState(row["state"]), row["verdict"], row["error"], row["created"])
