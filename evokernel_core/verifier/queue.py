"""The verifier service's durable queue: one SQLite file, one row a job.

A job is queued, then running under a lease, then done; a done job holds a verdict or the reason why
there is none. Every change is one ``BEGIN IMMEDIATE`` transaction. A lease is a random word that
only the present holder knows: a worker that lost its job cannot finish it.

Jobs wait for one of the users who want them, in one of two classes. Which is claimed next is a weighted
round robin over classes, then over users, so nobody keeps anybody out; within a user's class the oldest
goes first.
What a user may take a day is counted in the same transactions, so asking in parallel evades nothing.

One server owns a queue at a time (``QueueLock``). The one that starts puts jobs whose server was
killed back into the queue, so nothing is lost, and a verdict is stored once, so nothing is repeated.
"""

from __future__ import annotations

import fcntl
import secrets
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from attrs import frozen
from sqlite_utils.migrations import Migrations
from structlog import get_logger

from evokernel_core.domain.errors import StoreError, VerifierError
from evokernel_core.domain.sentence import Sentence, read
from evokernel_core.verifier.queue_rows import as_text, is_object, set_aside
from evokernel_core.verifier.serving.database import private_database
from evokernel_core.verifier.serving.private import make_private, private_folder
from evokernel_core.verifier.serving.users import NO_LIMIT, OWNER, Priority, Quota
from evokernel_core.verifier.unjudged import (
    DAMAGED,
    hosts_lost,
    jobs_used,
    many_clients,
    many_waiting,
    queue_full,
    time_used,
    worker_died,
)

log = get_logger(__name__)

MAX_DEATHS = 3
"""A job whose worker died this often is given up: the job is what kills it."""

MAX_MOVES = 20
"""A job whose host was lost this often is given up: hosts do not die so often by themselves."""

WEIGHTS = {Priority.INTERACTIVE: 4.0, Priority.BACKGROUND: 1.0}
"""Turns of each class while both wait."""

KEPT_RESULTS = 20_000
"""Finished jobs kept, the newest first."""

TIDY_AFTER = 1000
"""So many results later the oldest are dropped again: a service may run for months."""

MOST_NAMES = 64
"""Clients of one user that may want one job: each is a row, and asking for a known job costs nothing."""

DAYS_KEPT = 40
"""Days of which it is known who used how much."""

_PRAGMAS = ("synchronous = FULL", "foreign_keys = ON")
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


@migrations()  # type: ignore[untyped-decorator]
def m002_users(db: Any) -> None:
    """Jobs of before are the owner's."""
    for column, kind, default in (
        ("user", str, OWNER),
        ("priority", str, Priority.INTERACTIVE.value),
        ("moves", int, 0),
        ("cpu_s_a_day", int, 0),
    ):
        db["jobs"].add_column(column, kind, not_null_default=default)
    db["jobs"].create_index(["state", "priority", "user", "created"])
    db["interests"].add_column("user", str, not_null_default=OWNER)
    db["interests"].add_column("priority", str, not_null_default=Priority.INTERACTIVE.value)
    db["interests"].transform(pk=("job", "user", "client"))
    db.create_table(
        "usage",
        {"user": str, "day": int, "jobs": int, "cpu_s": float},
        pk=("user", "day"),
        not_null={"jobs", "cpu_s"},
    )


@migrations()  # type: ignore[untyped-decorator]
def m003_shares(db: Any) -> None:
    """What each asker's day gives, so that a job can be paid by any of those who want it."""
    db["interests"].add_column("cpu_s_a_day", int, not_null_default=0)
    db.execute(
        "UPDATE interests SET cpu_s_a_day = coalesce("
        "(SELECT cpu_s_a_day FROM jobs WHERE jobs.id = job AND jobs.user = interests.user), 0)"
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
    error: Sentence
    created: float


@frozen
class Claim:
    """A job that the holder of ``lease`` is to run; ``task`` and ``source`` are JSON.

    ``user`` is whose turn it was, and who pays the time.
    """

    id: str
    lease: str
    task: str
    source: str
    user: str = OWNER


@frozen
class Asker:
    """Who wants a job, how urgently, and what that user may take."""

    user: str = OWNER
    client: str = ""
    priority: Priority = Priority.INTERACTIVE
    quota: Quota = NO_LIMIT


class QueueFull(VerifierError):
    """More jobs are waiting than the service, or this user's share of it, takes."""

    retry_after_s = 5


class QuotaUsed(QueueFull):
    """The user has had what a day gives; ``retry_after_s`` is how long the day still lasts."""

    @property
    def retry_after_s(self) -> int:  # type: ignore[override]
        return int(86_400 - time.time() % 86_400) + 1


def _today() -> int:
    """Days since 1970, UTC."""
    return int(time.time() // 86_400)


class QueueLock:
    """Ownership of a data folder, held until the process ends. Raises StoreError if another has it."""

    def __init__(self, folder: Path) -> None:
        private_folder(folder)
        self._file = make_private(folder / "queue.lock").open("w")
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
        self._untidy = 0
        self._mutex = threading.Lock()
        self._classes = Turns({priority.value: weight for priority, weight in WEIGHTS.items()})
        self._users = {priority.value: Turns() for priority in Priority}
        with private_database(folder, "queue", migrations, _PRAGMAS) as self._db:
            self._conn: sqlite3.Connection = self._db.conn
            self._conn.text_factory = as_text
            with self._transaction():
                set_aside(self._conn)

    def close(self) -> None:
        with self._mutex:
            self._db.close()

    def put(
        self, job_id: str, task: str, source: str, client: str = "", *, asker: Asker | None = None
    ) -> QueuedJob:
        """The job, queued if it is new or if the last try ended in an error.

        Asking twice is asking once. ``asker`` (or the owner's ``client``) is recorded as one who wants
        the job; a job that two want waits for the more urgent who can still pay. Raises QueueFull, QuotaUsed.
        """
        asker = asker or Asker(client=client)
        with self._transaction():
            job = self._find(job_id)
            if job is None or job.error:
                self._check_room(asker)
                self._take_one(asker)
                self._insert(job_id, task, source, asker)
            elif not self._wants(job_id, asker.user):
                self._take_one(asker)
            self._want(job_id, asker)
            if job is not None and job.state is QueueState.QUEUED:
                self._assign(job_id)
            return self._found(job_id)

    def _want(self, job_id: str, asker: Asker) -> None:
        """Records who wants a job. Raises QueueFull for a user who wants it under too many names."""
        named = "job = ? AND user = ? AND client != ?"
        if self._db["interests"].count_where(named, [job_id, asker.user, asker.client]) >= MOST_NAMES:
            raise QueueFull(many_clients(asker.user, MOST_NAMES))
        self._conn.execute(
            "INSERT OR REPLACE INTO interests (job, user, client, priority, cpu_s_a_day)"
            " VALUES (?, ?, ?, ?, ?)",
            [job_id, asker.user, asker.client, asker.priority.value, asker.quota.cpu_s_a_day],
        )

    def _assign(self, job_id: str) -> bool:
        """Whose job it is: of those who want it the first of the most urgent, before all those who have CPU
        seconds left today. False: nobody wants it."""
        heir = self._conn.execute(
            "SELECT i.user, i.priority, i.cpu_s_a_day FROM interests i"
            " LEFT JOIN usage u ON u.user = i.user AND u.day = ? WHERE i.job = ?"
            " ORDER BY i.cpu_s_a_day > 0 AND coalesce(u.cpu_s, 0) >= i.cpu_s_a_day, i.priority DESC, i.rowid"
            " LIMIT 1",
            [_today(), job_id],
        ).fetchone()
        if heir is None:
            return False
        self._conn.execute(
            "UPDATE jobs SET user = ?, priority = ?, cpu_s_a_day = ? WHERE id = ?",
            [heir["user"], heir["priority"], heir["cpu_s_a_day"], job_id],
        )
        return True

    def _insert(self, job_id: str, task: str, source: str, asker: Asker) -> None:
        now = time.time()
        self._conn.execute(
            "INSERT OR REPLACE INTO jobs (id, state, task, source, verdict, error, lease, deaths, moves,"
            " created, updated, user, priority, cpu_s_a_day)"
            " VALUES (?, 'queued', ?, ?, '', '', '', 0, 0, ?, ?, ?, ?, ?)",
            [job_id, task, source, now, now, asker.user, asker.priority.value, asker.quota.cpu_s_a_day],
        )

    def _take_one(self, asker: Asker) -> None:
        """Counts a job that is new to the asker, also where others have asked for it. Raises QuotaUsed."""
        jobs, most = self._used(asker.user)[0], asker.quota.jobs_a_day
        if most and jobs >= most:
            raise QuotaUsed(jobs_used(asker.user, most))
        self._charge(asker.user, jobs=1)

    def _check_room(self, asker: Asker) -> None:
        """Raises QueueFull, QuotaUsed where a job more may not wait for the asker."""
        quota = asker.quota
        if self._count(QueueState.QUEUED) >= self._limit:
            raise QueueFull(queue_full(self._limit))
        if quota.cpu_s_a_day and self._used(asker.user)[1] >= quota.cpu_s_a_day:
            raise QuotaUsed(time_used(asker.user, quota.cpu_s_a_day))
        if quota.queued and self._waiting(asker.user) >= quota.queued:
            raise QueueFull(many_waiting(asker.user, quota.queued))

    def _waiting(self, user: str) -> int:
        return int(self._db["jobs"].count_where("state = 'queued' AND user = ?", [user]))

    def _used(self, user: str) -> tuple[int, float]:
        """Jobs and CPU seconds of the user since midnight UTC."""
        row = self._conn.execute(
            "SELECT jobs, cpu_s FROM usage WHERE user = ? AND day = ?", [user, _today()]
        ).fetchone()
        return (row["jobs"], row["cpu_s"]) if row else (0, 0.0)

    def _charge(self, user: str, *, jobs: int = 0, cpu_s: float = 0.0) -> None:
        self._conn.execute(
            "INSERT INTO usage (user, day, jobs, cpu_s) VALUES (?, ?, ?, ?) ON CONFLICT (user, day)"
            " DO UPDATE SET jobs = jobs + excluded.jobs, cpu_s = cpu_s + excluded.cpu_s",
            [user, _today(), jobs, cpu_s],
        )

    def used(self, user: str) -> tuple[int, float]:
        """Jobs and CPU seconds of the user since midnight UTC."""
        with self._mutex:
            return self._used(user)

    def wanted_by(self, job_id: str, user: str) -> bool:
        """Whether the user has asked for the job."""
        with self._mutex:
            return self._wants(job_id, user)

    def _wants(self, job_id: str, user: str) -> bool:
        asked = self._conn.execute(
            "SELECT 1 FROM interests WHERE job = ? AND user = ? LIMIT 1", [job_id, user]
        ).fetchone()
        return asked is not None

    def get(self, job_id: str) -> QueuedJob | None:
        with self._mutex:
            return self._find(job_id)

    def claim(self) -> Claim | None:
        """The next job by turns, now running under a new lease; None when nothing may be run.

        Jobs wait for tomorrow where all who want them have used their CPU seconds of today.
        """
        with self._transaction():
            self._relieve()
            result = self._first()
            if result is None:
                return None
            priority, user, row = result
            lease = secrets.token_hex(16)
            self._conn.execute(
                "UPDATE jobs SET state = 'running', lease = ?, updated = ? WHERE id = ?",
                [lease, time.time(), row["id"]],
            )
        self._classes.take(priority)
        self._users[priority].take(user)
        return Claim(row["id"], lease, row["task"], row["source"], user)

    def _first(self) -> tuple[str, str, sqlite3.Row] | None:
        """The class, user and row of the next job; those whose texts are damaged end here."""
        while result := self._next():
            row = self._conn.execute(
                "SELECT id, task, source FROM jobs WHERE state = 'queued' AND priority = ? AND user = ?"
                " ORDER BY created, id LIMIT 1",
                [*result],
            ).fetchone()
            if all(isinstance(row[name], str) for name in ("task", "source")):
                return *result, row
            log.warning("a job of the queue was damaged and is set aside", job=row["id"])
            self._conn.execute(
                "UPDATE jobs SET state = 'done', error = ?, task = '', source = '' WHERE id = ?",
                [DAMAGED, row["id"]],
            )
        return None

    def _relieve(self) -> None:
        """Gives jobs of users who have no CPU seconds left to others who want them, too."""
        stuck = self._conn.execute(
            "SELECT DISTINCT j.id FROM usage u"
            " JOIN jobs j ON j.user = u.user AND j.state = 'queued'"
            " JOIN interests i ON i.job = j.id AND i.user != j.user"
            " WHERE u.day = ? AND j.cpu_s_a_day > 0 AND u.cpu_s >= j.cpu_s_a_day",
            [_today()],
        ).fetchall()
        for row in stuck:
            self._assign(row["id"])

    def _next(self) -> tuple[str, str] | None:
        """Whose turn it is: a class and a user in it."""
        waiting = {priority.value: self._users_waiting(priority) for priority in Priority}
        classes = [priority for priority, users in waiting.items() if users]
        if not classes:
            return None
        priority = self._classes.next(classes)
        return priority, self._users[priority].next(waiting[priority])

    def _users_waiting(self, priority: Priority) -> list[str]:
        """Users with a queued job of the class and CPU seconds left; one index step for each."""
        users: list[str] = []
        step = (
            "SELECT user, cpu_s_a_day FROM jobs WHERE state = 'queued' AND priority = ? AND user > ?"
            " ORDER BY user LIMIT 1"
        )
        user = ""
        while row := self._conn.execute(step, [priority.value, user]).fetchone():
            user = row["user"]
            if not row["cpu_s_a_day"] or self._used(user)[1] < row["cpu_s_a_day"]:
                users.append(user)
        return users

    def holds(self, claim: Claim) -> bool:
        """Whether the job still is the claim's."""
        with self._mutex:
            held = self._conn.execute(
                "SELECT 1 FROM jobs WHERE id = ? AND state = 'running' AND lease = ?", [claim.id, claim.lease]
            ).fetchone()
            return held is not None

    def finish(self, claim: Claim, *, verdict: str = "", error: str = "", cpu_s: float = 0.0) -> bool:
        """Stores the result. False if the claim no longer holds the job: cancelled or taken back.

        ``cpu_s``: what the work took of its user's day, whoever holds the job now.
        """
        with self._transaction():
            self._charge(claim.user, cpu_s=cpu_s)
            done = self._conn.execute(
                "UPDATE jobs SET state = 'done', verdict = ?, error = ?, lease = '', task = '', source = '',"
                " updated = ? WHERE id = ? AND state = 'running' AND lease = ?",
                [verdict, Sentence(error).written(), time.time(), claim.id, claim.lease],
            ).rowcount
            self._untidy += 1
            if self._untidy >= TIDY_AFTER:
                self._tidy()
            return bool(done)

    def give_back(self, claim: Claim, *, died: bool, host_lost: bool = False, cpu_s: float = 0.0) -> bool:
        """Queues a running job again; ``died`` counts a death of its worker, ``host_lost`` one of a host.

        True if the job waits again, False if it was cancelled or has now been given up.
        """
        with self._transaction():
            self._charge(claim.user, cpu_s=cpu_s)
            row = self._conn.execute(
                "SELECT deaths, moves FROM jobs WHERE id = ? AND state = 'running' AND lease = ?",
                [claim.id, claim.lease],
            ).fetchone()
            if row is None:
                return False
            deaths, moves = row["deaths"] + died, row["moves"] + host_lost
            error = Sentence()
            if deaths >= MAX_DEATHS:
                error = worker_died(deaths)
            elif moves >= MAX_MOVES:
                error = hosts_lost(moves)
            self._conn.execute(
                "UPDATE jobs SET state = ?, deaths = ?, moves = ?, error = ?, lease = '', updated = ?"
                " WHERE id = ?",
                ["done" if error else "queued", deaths, moves, error.written(), time.time(), claim.id],
            )
            return not error

    def withdraw(self, job_id: str, client: str = "", *, user: str = OWNER) -> bool | None:
        """The user's client no longer wants the job; it goes when nobody does. A result stays.

        True if the job is gone, False if it stays, None if the user has no such job.
        """
        with self._transaction():
            job = self._find(job_id)
            mine = "job = ? AND user = ?"
            known = self._conn.execute(f"SELECT 1 FROM interests WHERE {mine}", [job_id, user]).fetchone()
            if job is None or not known:
                return None
            if job.state is QueueState.DONE:
                return False
            self._conn.execute(f"DELETE FROM interests WHERE {mine} AND client = ?", [job_id, user, client])
            return not self._pass_on(job_id)

    def remove(self, job_id: str) -> bool | None:
        """Nobody is asked: True if the job is gone, False if it was done, None if there is no such job."""
        with self._transaction():
            job = self._find(job_id)
            if job is None or job.state is QueueState.DONE:
                return None if job is None else False
            self._conn.execute("DELETE FROM interests WHERE job = ?", [job_id])
            return not self._pass_on(job_id)

    def _pass_on(self, job_id: str) -> bool:
        """The job is that of those who still want it; False: nobody does, and it is gone."""
        if self._assign(job_id):
            return True
        self._conn.execute("DELETE FROM jobs WHERE id = ?", [job_id])
        return False

    def recover(self) -> int:
        """Queues every running job again and drops the oldest results; call it once, at the start."""
        with self._transaction():
            recovered = self._conn.execute(
                "UPDATE jobs SET state = 'queued', lease = '', updated = ? WHERE state = 'running'",
                [time.time()],
            ).rowcount
            self._tidy()
            return int(recovered)

    def _tidy(self) -> None:
        """Drops the oldest results, and what was used on days long ago."""
        old = "SELECT id FROM jobs WHERE state = 'done' ORDER BY updated DESC LIMIT -1 OFFSET ?"
        self._conn.execute(f"DELETE FROM interests WHERE job IN ({old})", [KEPT_RESULTS])
        self._conn.execute(f"DELETE FROM jobs WHERE id IN ({old})", [KEPT_RESULTS])
        self._conn.execute("DELETE FROM usage WHERE day < ?", [_today() - DAYS_KEPT])
        self._untidy = 0

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
        verdict, error = row["verdict"], read(row["error"])
        if verdict and not is_object(verdict):
            verdict, error = "", DAMAGED
        return QueuedJob(row["id"], QueueState(row["state"]), verdict, error, row["created"])


class Turns:
    """Stride scheduling: each turn moves its taker back by 1/weight; the foremost is next.

    Whoever did not wait for a while gains nothing by it: it joins where the queue is now.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = dict(weights or {})
        self._places: dict[str, float] = {}
        self._now = 0.0

    def next(self, waiting: Collection[str]) -> str:
        """Who of ``waiting`` (not empty) is next; names break ties."""
        return min(waiting, key=lambda who: (self._place(who), who))

    def take(self, who: str) -> None:
        """``who`` was served."""
        place = self._place(who)
        self._places[who] = place + 1.0 / self._weights.get(who, 1.0)
        self._now = place
        self._forget()

    def _place(self, who: str) -> float:
        return max(self._places.get(who, self._now), self._now)

    def _forget(self) -> None:
        """Those who are not ahead of the others' place need no entry: memory stays bounded."""
        if len(self._places) > 1000:
            self._places = {who: place for who, place in self._places.items() if place > self._now}
