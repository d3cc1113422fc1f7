"""Four processes write at once: nothing is lost and nobody meets a lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evokernel_core.domain.experience import Stage
from evokernel_core.memory.store import Memory

WRITES = 40
PROCESSES = 4

WRITER = """
import sys
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.store import Memory

path, name, writes = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Memory(path) as memory:
    for n in range(writes):
        with memory.transaction():
            memory.add_experience(make_experience(ExperienceKind.TRACE, f"{name} {n}", "body"))
            memory.add_experience(make_experience(ExperienceKind.RULE, f"shared {n}", "body"))
            memory.pay(Reward(Stage.REFINE, "softmax", ("shared",), 1.0))
            memory.pay(Reward(Stage.REFINE, "", (), 0.5, "refine"))
"""


def test_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, f"w{n}", str(WRITES)], stderr=subprocess.PIPE, text=True)
        for n in range(PROCESSES)
    ]
    errors = [writer.communicate(timeout=120)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * PROCESSES, errors
    with Memory(path) as memory:
        counts = memory.counts()
        assert counts["experiences.trace"] == PROCESSES * WRITES
        assert counts["experiences.rule"] == WRITES
        assert {value.n for value in memory.values()} == {PROCESSES * WRITES}
        assert memory.q(Stage.REFINE, "softmax", "shared") == pytest.approx(1.0)
        before = memory.values()
        assert memory.rebuild().events == 2 * PROCESSES * WRITES
        assert memory.values() == before, "the log is whole, and in the order of what was paid"
        statistics = memory.statistics("refine")
        assert (statistics.count, statistics.mean) == (PROCESSES * WRITES, pytest.approx(0.5))
