"""One SQLite connection with short write transactions, shared by threads and safe among processes.

WAL lets readers go on while one process writes. A write takes the lock at once (BEGIN IMMEDIATE), so
that a read-modify-write such as a Q update never meets SQLITE_BUSY in its middle; another process's
lock is waited for.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from evokernel_core.domain.errors import StoreError
from evokernel_core.memory.migrations import NAMES
from evokernel_core.memory.rows import Reader, Row, as_text
from evokernel_core.private import private_file, private_folder

BUSY_TIMEOUT_S = 30.0
"""How long to wait for another process's transaction; ours last milliseconds."""

T = TypeVar("T")
_TRIGGERS = {(f"experiences_{event}", "experiences") for event in ("ai", "ad", "au")}
"""Those of the full-text index."""
Parameters = tuple[Any, ...] | Mapping[str, Any]


class Connection:
    """Opens the file, brings its schema up to date and runs statements.

    Raises StoreError for a file that is not ours, cannot be opened or stays locked.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._depth = 0
        self._reader = Reader()
        with self._reporting():
            self._prepare()
            self._db = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            self._db.row_factory = Row
            self._db.text_factory = as_text
            self._enter_wal()
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA recursive_triggers=ON")
            self._migrate()

    def _prepare(self) -> None:
        """The file, its owner's alone, as are the journals that SQLite makes beside it with the same mode."""
        if self.path.exists() and not self.path.is_file():
            raise StoreError(f"The memory {self.path} is no file; move it aside to start anew.")
        if not self.path.parent.is_dir():
            private_folder(self.path.parent)
        self._refuse_newer()
        for name in (self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))):
            if name == self.path or name.exists():
                private_file(name)

    def _refuse_newer(self) -> None:
        """Looks at the schema without writing: what a newer version keeps, this one would damage."""
        if not self.path.exists() or not self.path.stat().st_size:
            return
        reading = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_S
        )
        reading.text_factory = as_text
        try:
            newer = sorted(ascii(name).strip("'")[:60] for name in applied(reading) - NAMES)
            foreign = _foreign(reading)
        finally:
            reading.close()
        if foreign:
            raise StoreError(
                f"The memory {self.path} holds the {foreign}, which no EvoKernel made and which would act on "
                "what is written; move the file aside to start anew."
            )
        if newer:
            raise StoreError(
                f"The memory {self.path} was written by a newer EvoKernel (its schema has {newer[-1]}): "
                "update this one, or set EVOKERNEL_HOME to another folder."
            )

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside are committed together or not at all; an inner one joins the outer."""
        with self._lock, self._reporting():
            if self._depth:
                yield
                return
            self._db.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
            except BaseException:
                if self._db.in_transaction:  # SQLite ends it by itself after some errors
                    self._db.execute("ROLLBACK")
                raise
            else:
                self._db.execute("COMMIT")
            finally:
                self._depth -= 1

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        with self._lock, self._reporting():
            return self._db.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return next(iter(self.rows(sql, parameters)), None)

    def readable(self, make: Callable[[Row], T], rows: Iterable[Row]) -> tuple[T, ...]:
        """What ``make`` gives for the rows that can be read; of others the log has a sentence."""
        return tuple(self._reader.readable(make, rows))

    def readable_row(self, make: Callable[[Row], T], sql: str, parameters: Parameters = ()) -> T | None:
        """The same for the first row; None where there is none that can be read."""
        return next(iter(self.readable(make, self.rows(sql, parameters)[:1])), None)

    def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """Runs one writing statement; returns the number of rows that it changed."""
        with self.transaction():
            return self._db.execute(sql, parameters).rowcount

    def insert(self, table: str, values: Mapping[str, Any], conflict: str = "") -> bool:
        """Adds a row; ``conflict`` is an upsert clause. Returns whether a row was written."""
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        return self.execute(f"INSERT INTO {table} ({names}) VALUES ({marks}) {conflict}", values) > 0

    def _enter_wal(self) -> None:
        """SQLite does not wait for the lock that this one-time switch needs, so we do."""
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _migrate(self) -> None:
        """sqlite-utils imports numpy where it finds it, so it is loaded only when there is work."""
        if not applied(self._db) >= NAMES:
            from evokernel_core.memory.migrations.apply import apply

            with self.transaction():
                apply(self._db)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            what = "is locked by another process" if is_busy(error) else f"failed: {error}"
            advice = "close other editors that use it" if is_busy(error) else "check the disk and its rights"
            raise StoreError(f"The memory {self.path} {what}; {advice} and try again.") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"The memory {self.path} cannot be read ({error}); move the file aside to start anew."
            ) from error
        except OSError as error:
            raise StoreError(f"The memory {self.path} cannot be opened: {error}.") from error


def applied(database: sqlite3.Connection) -> set[str]:
    """The steps of the schema's history that a database has."""
    table = "SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'"
    if not database.execute(table).fetchone():
        return set()
    return {row[0] for row in database.execute("SELECT name FROM _sqlite_migrations")}


def _foreign(database: sqlite3.Connection) -> str:
    """A trigger or view that is not of our schema; empty where there is none."""
    for kind, name, table in database.execute("SELECT type, name, tbl_name FROM sqlite_master"):
        if kind == "view" or (kind == "trigger" and (name, table) not in _TRIGGERS):
            return f"{kind} {name!a}"
    return ""


def is_busy(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def marks(values: Iterable[object]) -> str:
    """Placeholders for an SQL ``IN``: ``?, ?, ?``."""
    return ", ".join("?" for _ in values)
