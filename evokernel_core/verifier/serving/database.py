"""Databases that only their owner can read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from evokernel_core.domain.errors import StoreError
from evokernel_core.verifier.serving.private import make_private, private_folder


@contextmanager
def private_database(
    folder: Path, what: str, migrations: Migrations, pragmas: Sequence[str] = ()
) -> Iterator[Database]:
    """The database ``what`` of a folder, in today's form, which threads share. Raises StoreError, also for
    what fails inside."""
    try:
        path = make_private(private_folder(folder) / f"{what}.db")
        connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        database = Database(connection)
        database.enable_wal()
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        migrations.apply(database)
        yield database
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"The verifier's {what} in {folder} cannot be opened ({error}); choose another folder."
        ) from error
