"""A Verifier for the service's tests: what it does stands in the kernel's text, one word a line.

``sleep SECONDS`` takes time, ``die`` ends the process, ``raise`` fails with a stated reason, ``refuse`` with
one that has values,
``bug`` fails without one, ``print`` writes to stdout, ``child`` starts a process that never ends,
``burn`` one that has used half a second of CPU time before it sleeps for ever, ``overrun`` one that was
killed with its watcher after as much.
Each start and each end of a judgement is a line ``NAME PID`` in ``journal``.
"""

from __future__ import annotations

import math
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import PlanError, VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Verdict
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.verifier.base import Cancelled, never


@frozen
class Scripted:
    journal: str
    name: str = "scripted 1"
    workers: int = 1

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        self._note("start", task)
        for line in source.files[KERNEL].splitlines():
            self._act(line.split())
        self._note("end", task)
        once = secrets.token_hex(8)  # a second judgement would show
        gate = GateResult(GateName.AUDIT, GateStatus.FAILED, code="scripted", feedback=once)
        return Verdict(task.task_id, source.source_id, self.name, (gate,))

    def _act(self, words: list[str]) -> None:
        match words:
            case ["sleep", seconds]:
                time.sleep(float(seconds))
            case ["die"]:
                os._exit(7)
            case ["raise"]:
                raise VerifierError("The reference cannot run here; install torch.")
            case ["refuse"]:
                raise PlanError("{op} of {dtype} is not covered.", op="aten.x", dtype="int8")
            case ["bug"]:
                raise ZeroDivisionError("a defect")
            case ["print"]:
                print("noise on stdout", flush=True)
            case ["child"]:
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                Path(self.journal + ".child").write_text(str(child.pid))
            case ["burn"]:
                code = (
                    "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ntime.sleep(600)"
                )
                burner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
                assert burner.stdout and burner.stdout.readline()
            case ["overrun"]:
                self._overrun()
            case ["environment", variable]:
                raise VerifierError(f"value={os.environ.get(variable, '')}.")

    def _overrun(self) -> None:
        """As a kernel without end: it and its watcher are killed together when its time is over."""
        code = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ntime.sleep(600)"
        watcher = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
        burner = subprocess.Popen(
            [sys.executable, "-c", watcher, code], stdout=subprocess.PIPE, start_new_session=True
        )
        assert burner.stdout and burner.stdout.readline()
        os.killpg(burner.pid, signal.SIGKILL)
        burner.wait()

    def _note(self, event: str, task: KernelTask) -> None:
        with Path(self.journal).open("a") as file:
            file.write(f"{event} {task.name} {os.getpid()}\n")


def scripted(journal: str) -> Scripted:
    return Scripted(journal)


def broken() -> Scripted:
    raise VerifierError("No C++ compiler was found; install g++ 11 or newer.")
