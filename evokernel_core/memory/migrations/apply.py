"""The steps in their order; sqlite-utils records each in the transaction that makes it."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from evokernel_core.memory.migrations import m010_targets

SCHEMA = "m010_targets"
OF_PREVIEWS = (
    *("m001_initial", "m002_identity", "m003_rewards", "m004_spending", "m005_compressed"),
    *("m006_estimates", "m007_placements", "m008_verdicts", "m009_titles"),
)
"""The steps that led previews to the schema of the first version, which is made at once."""
STEPS = {**dict.fromkeys(OF_PREVIEWS, lambda db: None), SCHEMA: m010_targets.apply}

migrations = Migrations("evokernel")
for _name, _step in STEPS.items():
    migrations(name=_name)(_step)


def unknown(database: Database) -> set[str]:
    """The steps that a database has and this version has not."""
    return _recorded(database) - STEPS.keys()


def is_of_preview(database: Database) -> bool:
    """Whether a preview of before the schema wrote a database."""
    recorded = _recorded(database)
    return bool(recorded) and SCHEMA not in recorded


def _recorded(database: Database) -> set[str]:
    return {row["name"] for row in database.table(Migrations.migrations_table).rows_where(select="name")}
