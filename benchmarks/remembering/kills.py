"""Two processes write to one memory and are killed again and again: is all there that they were told is?"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from evokernel_core.memory.store import Memory

WRITERS = 2
LONGEST_S = 3.0
"""Of a writer's life behind its start."""
WRITER = """
import itertools, sys
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.kernel import Strategy
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.store import Memory
from evokernel_core.targets.ascendc.source import ascendc_source

path, name = sys.argv[1:]
with Memory(path) as memory:
    print("ready", flush=True)
    for n in itertools.count(1):
        text = f"kernel {name} {n}\\n" + "".join(f"line {line} of a kernel;\\n" for line in range(400))
        source = ascendc_source("tiling", text, Strategy("pointwise", {"tile": n}))
        with memory.transaction():
            memory.record_candidate(source)
            memory.record_attempt(Attempt(name, n, "task", source.source_id, "", Stage.DRAFT, "p", "v", "c",
                                          feasible=True), ["shared", name])
            memory.add_experience(make_experience(ExperienceKind.TRACE, f"{name} {n}", "relu rows tile"))
            memory.pay(Reward(Stage.REFINE, "softmax", ("shared", name), 0.5 if n % 3 else -1.0, "scale"))
        print(n, flush=True)  # only what was committed is told
"""


def measure(folder: Path, seconds: float) -> dict[str, Any]:
    """Kills for so long; then all that was told is there and whole, and the log's fold is what is kept."""
    rng, path = random.Random(0), folder / "kills.db"
    until, told, lives = time.monotonic() + seconds, {}, 0
    running: dict[str, tuple[subprocess.Popen[str], float]] = {}
    Memory(path).close()
    while time.monotonic() < until:
        while len(running) < WRITERS:
            lives += 1
            writer = _start(path, f"w{lives}")
            running[f"w{lives}"] = writer, time.monotonic() + rng.uniform(0.0, LONGEST_S)
        time.sleep(0.02)
        for name, (writer, end) in list(running.items()):
            if time.monotonic() > end:
                told[name] = _killed(writer)
                del running[name]
    told |= {name: _killed(writer) for name, (writer, _) in running.items()}
    return {"seconds": round(seconds), "kills": len(told), **_compared(path, told)}


def _start(path: Path, name: str) -> subprocess.Popen[str]:
    """A writer that has opened the memory."""
    command = [sys.executable, "-c", WRITER, str(path), name]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    return writer


def _killed(writer: subprocess.Popen[str]) -> int:
    """Kills a writer; the last number that it told, 0 for none. A writer that ended by itself failed."""
    if writer.poll() is not None:
        raise RuntimeError(f"A writer ended: {writer.communicate()[1]}")
    writer.kill()
    lines = [line for line in writer.communicate()[0].splitlines() if line.isdecimal()]
    return int(lines[-1]) if lines else 0


def _compared(path: Path, told: dict[str, int]) -> dict[str, Any]:
    with Memory(path) as memory:
        kept = {
            row["job_id"]: row["n"]
            for row in memory.query("SELECT job_id, count(*) AS n FROM attempts GROUP BY 1")
        }
        events, kernels, items = (memory.count(table) for table in ("rewards", "sources", "experiences"))
        before = memory.values(), memory.statistics("scale")
        readable = sum(memory.source(item.source_id) is not None for item in memory.attempts())
        moved = memory.rebuild().moved
        after = memory.values(), memory.statistics("scale")
        return {
            "transactions": sum(kept.values()),
            "lost": sum(max(0, told[name] - kept.get(name, 0)) for name in told),
            "torn": sum(kept.values()) * 4 - events - kernels - items - readable,
            "log_and_fold_equal": after == before and moved == 0,
            "sound": memory.query("PRAGMA integrity_check") == [{"integrity_check": "ok"}],
        }


def is_sound(found: dict[str, Any] | None) -> bool:
    """Whether nothing went wrong, also where nobody was killed."""
    return not found or (
        not (found["lost"] or found["torn"]) and found["log_and_fold_equal"] and found["sound"]
    )
