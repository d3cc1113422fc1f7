"""The steps in their order; sqlite-utils records each in the transaction that makes it."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

from evokernel_core.memory.migrations import (
    m001_initial,
    m002_identity,
    m003_rewards,
    m004_spending,
    m005_compressed,
    m006_estimates,
    m007_placements,
    m008_verdicts,
    m009_titles,
    m010_targets,
)

STEPS = {
    "m001_initial": m001_initial.apply,
    "m002_identity": m002_identity.apply,
    "m003_rewards": m003_rewards.apply,
    "m004_spending": m004_spending.apply,
    "m005_compressed": m005_compressed.apply,
    "m006_estimates": m006_estimates.apply,
    "m007_placements": m007_placements.apply,
    "m008_verdicts": m008_verdicts.apply,
    "m009_titles": m009_titles.apply,
    "m010_targets": m010_targets.apply,
}
migrations = Migrations("evokernel")
for _name, _step in STEPS.items():
    migrations(name=_name)(_step)


def unknown(database: Database) -> set[str]:
    """The steps that a database has and this version has not."""
    recorded = database.table(Migrations.migrations_table)
    return {row["name"] for row in recorded.rows_where(select="name")} - STEPS.keys()
