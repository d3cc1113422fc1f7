"""Applies the pending steps; each is recorded in the transaction that makes it."""

from __future__ import annotations

import sqlite3

from sqlite_utils import Database, Migrations

from evokernel_core.memory.migrations import (
    m001_initial,
    m002_identity,
    m003_rewards,
    m004_spending,
    m006_estimates,
)

migrations = Migrations("evokernel")
migrations(name="m001_initial")(m001_initial.apply)
migrations(name="m002_identity")(m002_identity.apply)
migrations(name="m003_rewards")(m003_rewards.apply)
migrations(name="m004_spending")(m004_spending.apply)
migrations(name="m006_estimates")(m006_estimates.apply)


def apply(connection: sqlite3.Connection) -> None:
    """Brings the schema up to date inside the caller's transaction."""
    migrations.apply(Database(connection, execute_plugins=False))
