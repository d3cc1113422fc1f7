"""The verifier service under SIGKILL, and what it adds to a judgement.

    python benchmarks/service.py [--jobs N] [--kills K] [--json OUT]

``lost``: jobs that never got a verdict; ``duplicated``: jobs that showed two different verdicts,
although the service was killed and restarted ``--kills`` times in the middle of them.
``overhead_p95_ms``: 95th percentile of the time that a client waits for the verdict of a verifier
that answers at once, on loopback: HTTP, queue, worker and back.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from attrs import define, frozen

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from evokernel_core.domain.errors import VerifierError  # noqa: E402
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef  # noqa: E402
from evokernel_core.domain.kernel import KernelSource, Strategy  # noqa: E402
from evokernel_core.domain.task import TOLERANCES, KernelTask  # noqa: E402
from evokernel_core.domain.tensor import TensorSpec  # noqa: E402
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Verdict  # noqa: E402
from evokernel_core.verifier.base import Cancelled, never  # noqa: E402
from evokernel_core.verifier.client import RemoteVerifier  # noqa: E402

TOKEN = secrets.token_urlsafe(16)
SEED = 7


@frozen
class TimedVerifier:
    """Judges without looking, after as many seconds as the kernel's text says."""

    name: str = "timed"

    def verify(self, task: KernelTask, source: KernelSource, *, cancelled: Cancelled = never) -> Verdict:
        time.sleep(float(source.op_kernel_cpp.split()[0]))
        once = secrets.token_hex(8)  # a second judgement of the same kernel would show
        gate = GateResult(GateName.AUDIT, GateStatus.FAILED, feedback=once)
        return Verdict(task.task_id, source.source_id, self.name, (gate,))


def timed_verifier() -> TimedVerifier:
    return TimedVerifier()


def kernel(number: int, seconds: float) -> tuple[KernelTask, KernelSource]:
    spec = TensorSpec((32, 1024), "float16")
    node = Node("y", "aten.relu.default", (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    task = KernelTask("relu", graph, (), TOLERANCES["float16"], "activation")
    return task, KernelSource("#pragma once\n", f"{seconds} {number}\n", Strategy("pointwise"))


@define
class Server:
    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, folder: Path) -> Server:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = cls(folder, port, cls._spawn(folder, port))
        server.remote(patience=20.0).status()
        return server

    @staticmethod
    def _spawn(folder: Path, port: int) -> subprocess.Popen[bytes]:
        code = (
            "import sys; from pathlib import Path; from evokernel_core.verifier.service import *;"
            "serve(ServiceConfig(Path(sys.argv[1]), sys.argv[3], name='timed', workers=2,"
            " factory='benchmarks.service:timed_verifier'), host='127.0.0.1', port=int(sys.argv[2]))"
        )
        command = [sys.executable, "-c", code, str(folder), str(port), TOKEN]
        return subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL
        )

    def restart(self) -> None:
        self.kill()
        self.process = self._spawn(self.folder, self.port)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def remote(self, patience: float) -> RemoteVerifier:
        return RemoteVerifier(f"http://127.0.0.1:{self.port}", TOKEN, patience=patience)


def overhead_ms(server: Server, jobs: int) -> list[float]:
    """Milliseconds of each of ``jobs`` judgements that take no time, after a warm-up."""
    remote = server.remote(patience=10.0)
    for number in range(4):
        remote.verify(*kernel(-1 - number, 0.0))
    times = []
    for number in range(jobs):
        asked = kernel(number, 0.0)
        started = time.perf_counter()
        remote.verify(*asked)
        times.append(1000 * (time.perf_counter() - started))
    return times


def survive(server: Server, jobs: int, kills: int) -> tuple[int, int]:
    """Jobs lost and jobs duplicated while the service is killed in the middle of them."""
    seen: dict[int, set[str]] = {number: set() for number in range(jobs)}
    pending = list(seen)

    def ask() -> None:
        remote = server.remote(patience=60.0)
        while pending:
            try:
                number = pending.pop()
            except IndexError:
                return
            for _ in range(2):  # the second time, the stored verdict must come back
                try:
                    seen[number].add(remote.verify(*kernel(1000 + number, 0.1)).gates[0].feedback)
                except VerifierError as error:
                    print(f"job {number}: {error}", file=sys.stderr)

    clients = [threading.Thread(target=ask) for _ in range(6)]
    for client in clients:
        client.start()
    rng = random.Random(SEED)
    for _ in range(kills):
        time.sleep(rng.uniform(0.2, 1.2))
        server.restart()
    for client in clients:
        client.join()
    lost = sum(not verdicts for verdicts in seen.values())
    return lost, sum(len(verdicts) > 1 for verdicts in seen.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server.start(Path(folder))
        try:
            times = overhead_ms(server, options.jobs)
            lost, duplicated = survive(server, options.jobs, options.kills)
        finally:
            server.kill()
    summary = {
        "lost": lost,
        "duplicated": duplicated,
        "overhead_p95_ms": round(statistics.quantiles(times, n=20)[-1], 2),
        "overhead_median_ms": round(statistics.median(times), 2),
        "jobs": options.jobs,
        "kills": options.kills,
    }
    for name, value in summary.items():
        print(f"{name:20} {value}")
    if options.json:
        options.json.write_text(json.dumps({"summary": summary, "overhead_ms": times}, indent=1) + "\n")
    sys.exit(1 if lost or duplicated else 0)


if __name__ == "__main__":
    main()
