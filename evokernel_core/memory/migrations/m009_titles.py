"""What titles of experiences are made of, so that they can be said in another language; null where a title is
a text alone, as all are that earlier versions wrote."""

from __future__ import annotations

from sqlite_utils import Database


def apply(db: Database) -> None:
    db["experiences"].add_column("said", bytes)
