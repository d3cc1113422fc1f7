"""One SQLite file with short write transactions, shared by threads and safe among processes.

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
from typing import TYPE_CHECKING, Any, TypeVar

from evokernel_core.closing import Closing
from evokernel_core.domain.errors import StoreError
from evokernel_core.memory.rows import Reader, Row, as_text
from evokernel_core.private import private_file, private_folder

if TYPE_CHECKING:
    from sqlite_utils import Database

BUSY_TIMEOUT_S = 30.0
"""How long to wait for another process's transaction; ours last milliseconds."""

T = TypeVar("T")
_TRIGGERS = {(f"experiences_{event}", "experiences") for event in ("ai", "ad", "au", "forgotten", "changed")}
"""Those of the full-text index, and those that count what was forgotten or changed."""
Given = tuple[Any, ...] | Mapping[str, Any]
"""Values for the ``?`` or ``:name`` of a condition."""


class Connection(Closing):
    """Opens the file, brings its schema up to date, and reads and writes rows (dicts) through sqlite-utils.

    Raises StoreError for a file that is not ours, cannot be opened or stays locked.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._reader = Reader()
        with self._reporting():
            self._prepare()
            self._db = _database(
                sqlite3.connect(
                    self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
                )
            )
            self._file = self._identity()
            self._enter_wal()
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._migrate()

    def _prepare(self) -> None:
        """The file, its owner's alone, as are the journals that SQLite makes beside it with the same mode."""
        if self.path.exists() and not self.path.is_file():
            raise StoreError("The memory {path} is no file; move it aside to start anew.", path=self.path)
        if not self.path.parent.is_dir():
            private_folder(self.path.parent)
        self._refuse_newer()
        for name in (self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))):
            if name == self.path or name.exists():
                private_file(name)

    def _refuse_newer(self) -> None:
        """Looks at the schema without writing: what a newer version keeps, this one would damage."""
        from evokernel_core.memory.migrations.apply import unknown

        if not self.path.exists() or not self.path.stat().st_size:
            return
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        reading = _database(sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S))
        try:
            newer = sorted(ascii(name).strip("'")[:60] for name in unknown(reading))
            foreign = _foreign(reading)
        finally:
            reading.close()
        if foreign:
            raise StoreError(
                "The memory {path} holds the {foreign}, which no EvoKernel made and which would act on "
                "what is written; move the file aside to start anew.",
                path=self.path,
                foreign=foreign,
            )
        if newer:
            raise StoreError(
                "The memory {path} was written by a newer EvoKernel (its schema has {newest}): update "
                "this one, or set EVOKERNEL_HOME to another folder.",
                path=self.path,
                newest=newer[-1],
            )

    def _identity(self) -> tuple[int, int] | None:
        """Device and inode of what stands at the path; None where nothing does."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @property
    def is_there(self) -> bool:
        """Whether the file that was opened still stands at its path. What is written to one that was deleted
        or replaced is lost with its last connection."""
        return self._identity() == self._file

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside are committed together or not at all; an inner one joins the outer. Raises
        StoreError where the file was deleted or replaced."""
        if not self.is_there:
            raise StoreError(
                "The memory {path} was deleted or replaced while it was in use; ask again to go on with "
                "the one that is there now.",
                path=self.path,
            )
        with self._held("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see one state of the file."""
        with self._held("BEGIN"):
            yield

    @contextmanager
    def _held(self, begin: str) -> Iterator[None]:
        with self._lock, self._reporting():
            if self._db.conn.in_transaction:
                yield
                return
            self._db.execute(begin)
            try:
                yield
                self._db.commit()
            except BaseException:
                self._db.rollback()
                raise

    def rows(
        self,
        table: str,
        where: str | None = None,
        given: Given = (),
        *,
        order_by: str | None = None,
        select: str = "*",
        limit: int | None = None,
    ) -> list[Row]:
        """The rows of a table; ``where``, ``order_by`` and ``select`` are SQL."""
        with self._lock, self._reporting():
            result = self._db.table(table).rows_where(
                where, given, order_by=order_by, select=select, limit=limit
            )
            return list(result)

    def query(self, sql: str, given: Given = ()) -> list[Row]:
        """What a statement gives: for joins and groups, which tables alone cannot say."""
        with self._lock, self._reporting():
            return list(self._db.query(sql, given))

    def tuples(self, sql: str, given: Given = ()) -> list[tuple[Any, ...]]:
        """The same as tuples."""
        with self._lock, self._reporting():
            return self._db.execute(sql, given).fetchall()  # type: ignore[no-any-return]

    def execute(self, sql: str, given: Given = ()) -> None:
        """Runs a statement that sqlite-utils has no words for: on temporary tables, or of many rows."""
        with self._lock, self._reporting():
            self._db.execute(sql, given)

    @property
    def is_writing(self) -> bool:
        """Whether a transaction is open: what was written in it may yet be undone."""
        return bool(self._db.conn.in_transaction)

    @property
    def changes(self) -> int:
        """How many rows this connection has ever written: unchanged means that nothing was."""
        return int(self._db.conn.total_changes)

    def compact(self) -> None:
        """Writes the file anew without what was deleted, so that nothing of that is left on the disk."""
        with self._lock, self._reporting():
            self._db.vacuum()
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def count(self, table: str, where: str | None = None, given: Given = ()) -> int:
        with self._lock, self._reporting():
            return int(self._db.table(table).count_where(where, given))

    def readable(self, make: Callable[[Row], T], rows: Iterable[Row]) -> tuple[T, ...]:
        """What ``make`` gives for the rows that can be read; of others the log has a sentence."""
        return tuple(self._reader.readable(make, rows))

    def readable_row(self, make: Callable[[Row], T], table: str, where: str, given: Given) -> T | None:
        """The same for the one row of a table; None where there is none that can be read."""
        return next(iter(self.readable(make, self.rows(table, where, given, limit=1))), None)

    def insert(self, table: str, *rows: Row) -> None:
        with self.transaction():
            self._db.table(table).insert_all(rows)

    def update(self, table: str, key: str | int, changes: Row) -> None:
        """Changes the row of a primary key, which has to be there."""
        with self.transaction():
            self._db.table(table).update(key, changes)

    def upsert(self, table: str, *rows: Row, key: str | None = None) -> None:
        """Adds rows, or changes those of their primary key, or of another that is unique."""
        with self.transaction():
            self._db.table(table).upsert_all(rows, pk=key)

    def add(self, table: str, row: Row, *key: str) -> bool:
        """Adds a row unless there is one with its values in ``key``. Returns whether it was new.

        (Where an insert is to be ignored, sqlite-utils 4.2 looks up a rowid, which most of our tables lack.)
        """
        with self.transaction():
            if self.count(table, " AND ".join(f"{name} = :{name}" for name in key), row):
                return False
            self.insert(table, row)
            return True

    def delete(self, table: str, where: str | None = None, given: Given = ()) -> bool:
        """Returns whether there were such rows."""
        with self.transaction():
            before = self._db.conn.total_changes
            self._db.table(table).delete_where(where, given)
            return bool(self._db.conn.total_changes > before)

    def _enter_wal(self) -> None:
        """SQLite does not wait for the lock that this one-time switch needs, so we do."""
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                self._db.enable_wal()
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _migrate(self) -> None:
        from evokernel_core.memory.migrations.apply import migrations

        if migrations.pending(self._db):
            with self.transaction():
                migrations.apply(self._db)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if is_busy(error):
                raise StoreError(
                    "The memory {path} is locked by another process; close other editors that use it "
                    "and try again.",
                    path=self.path,
                ) from error
            raise StoreError(
                "The memory {path} failed: {error}; check the disk and its rights and try again.",
                path=self.path,
                error=error,
            ) from error
        except sqlite3.DatabaseError as error:
            raise StoreError(
                "The memory {path} cannot be read ({error}); move the file aside to start anew.",
                path=self.path,
                error=error,
            ) from error
        except OSError as error:
            raise StoreError(
                "The memory {path} cannot be opened: {error}.", path=self.path, error=error
            ) from error


def _database(connection: sqlite3.Connection) -> Database:
    """sqlite-utils over a connection of ours. It is imported where a memory is opened: with numpy it takes
    0.15 s and 16 MB, which an editor must not wait for."""
    from sqlite_utils import Database

    connection.text_factory = as_text
    return Database(connection, execute_plugins=False)


def _foreign(database: Database) -> str:
    """A trigger or view that is not of our schema; empty where there is none."""
    for trigger in database.triggers:
        if (trigger.name, trigger.table) not in _TRIGGERS:
            return f"trigger {trigger.name!a}"
    return next((f"view {name!a}" for name in database.view_names()), "")


def is_busy(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def marks(values: Iterable[object]) -> str:
    """Placeholders for an SQL ``IN``: ``?, ?, ?``."""
    return ", ".join("?" for _ in values)
