"""The verifier service over several hosts, which are killed, and what it adds to a judgement.

    python benchmarks/service.py [--jobs N] [--clients C] [--kills K] [--nodes M] [--twin T] [--json OUT]

C clients, each a user with a token and quota of its own, every fourth in the background, ask for N
verdicts. A Ray cluster of M nodes on this machine judges (``--nodes 0``: two workers of the service).
Meanwhile the service is killed K times and one node once, and not started again. The judge of these
jobs only waits a millisecond, so that what is counted is the service. T further jobs are real: the twin
compiles, runs and times a kernel, on the same cluster and with a kill of the service.

``lost``: jobs without a verdict. ``duplicated``: jobs that showed two different verdicts, asked twice.
``cpu_ms_a_verdict``: CPU milliseconds of the service, Ray and the hosts, of every process from its start,
through all kills and restarts, for each job; ``idle_cpu_ms_a_s`` is what they use while nothing is asked.
``overhead_p95_ms``: 95th percentile of the time that one client waits for the verdict of a judge that
answers at once, from the service's own worker on loopback.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import stamina
from attrs import define, field, frozen

from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.service_cluster import Cluster, CpuMeter, free_port, kill_tree  # noqa: E402
from evokernel_core.domain.errors import VerifierError  # noqa: E402
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef  # noqa: E402
from evokernel_core.domain.kernel import KernelSource, Strategy  # noqa: E402
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol  # noqa: E402
from evokernel_core.domain.tensor import TensorSpec  # noqa: E402
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Verdict  # noqa: E402
from evokernel_core.verifier.base import Cancelled, never  # noqa: E402
from evokernel_core.verifier.client import RemoteVerifier  # noqa: E402
from evokernel_core.verifier.serving.tokens import TokenStore  # noqa: E402
from evokernel_core.verifier.serving.users import Quota, Scope  # noqa: E402

OWNER = secrets.token_urlsafe(32)
SEED = 7
WORK_S = 0.001
IDLE_S = 5.0
REAL = ROOT / "tests" / "verifier" / "data" / "relu"

Question = tuple[KernelTask, KernelSource]
Kernels = Callable[[int], Question]


@frozen
class TimedVerifier:
    """Judges without looking, after as many seconds as the kernel's text says."""

    name: str = "timed"
    workers: int = 1

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        time.sleep(float(source.files[KERNEL].split()[0]))
        once = secrets.token_hex(8)  # a second judgement of the same kernel would show
        gate = GateResult(GateName.AUDIT, GateStatus.FAILED, feedback=once)
        return Verdict(task.task_id, source.source_id, self.name, (gate,))


def timed_verifier() -> TimedVerifier:
    return TimedVerifier()


def kernel(number: int, seconds: float) -> Question:
    """A question for the timed verifier."""
    spec = TensorSpec((32, 1024), "float16")
    node = Node("y", "aten.relu.default", (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    task = KernelTask("relu", graph, (), TOLERANCES["float16"], "activation")
    return task, ascendc_source("#pragma once\n", f"{seconds} {number}\n", Strategy("pointwise"))


def real_kernel(number: int) -> Question:
    """A hand-written kernel that passes, with a comment that makes it one of its own."""
    spec = TensorSpec(("s0",), "float32")
    node = Node("z", "aten.relu.default", (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("z"),))
    task = KernelTask("relu", graph, (Symbol("s0", 100_000),), TOLERANCES["float32"], "elementwise")
    text = (REAL / "op_kernel.cpp").read_text()
    return task, ascendc_source((REAL / "tiling.h").read_text(), f"{text}// {number}\n", Strategy("hand"))


@define
class Server:
    """One service in a process of its own, on one folder and port."""

    options: dict[str, Any]
    environment: dict[str, str]
    meter: CpuMeter
    folder: Path = field(init=False)
    port: int = field(init=False, factory=free_port)
    starts: int = field(init=False, default=0)
    process: subprocess.Popen[bytes] = field(init=False)
    _scratch: tempfile.TemporaryDirectory[str] = field(init=False, factory=tempfile.TemporaryDirectory)

    def __enter__(self) -> Server:
        self.folder = Path(self._scratch.name)
        self._spawn()
        self.remote(OWNER, patience=30.0).status()
        return self

    def __exit__(self, *_: object) -> None:
        kill_tree(self.process)
        self._scratch.cleanup()

    def _spawn(self) -> None:
        code = (
            "import json, sys; from pathlib import Path; from evokernel_core.verifier.service import *;"
            "serve(ServiceConfig(Path(sys.argv[1]), sys.argv[3], **json.loads(sys.argv[4])),"
            " host='127.0.0.1', port=int(sys.argv[2]))"
        )
        arguments = [str(self.folder), str(self.port), OWNER, json.dumps(self.options)]
        with (self.folder / "stderr.txt").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *arguments], env=self.environment, stderr=log
            )
        self.starts += 1
        self.meter.watch("service", self.process.pid)

    def restart(self) -> None:
        """SIGKILL to the service alone: what it started must see for itself that it is gone."""
        self.process.kill()
        self.process.wait()
        self._spawn()

    def log(self) -> str:
        return (self.folder / "stderr.txt").read_text()[-2000:]

    def seats(self) -> int:
        return self.remote(OWNER, patience=30.0).status().workers

    def remote(self, token: str, patience: float, *, background: bool = False) -> RemoteVerifier:
        url = f"http://127.0.0.1:{self.port}"
        return RemoteVerifier(url, token, wait=20.0, patience=patience, background=background)

    def tokens(self, count: int, jobs: int) -> list[str]:
        """A user, a token and a quota for each client."""
        store = TokenStore(self.folder)
        quota = Quota(jobs_a_day=2 * jobs, queued=jobs, cpu_s_a_day=86_400)
        made = [store.add(f"user{n}", frozenset({Scope.SUBMIT}), days=1, quota=quota) for n in range(count)]
        store.close()
        return made


def wait_for_seats(server: Server, count: int) -> None:
    deadline = time.monotonic() + 90
    while server.seats() < count:
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"Only {server.seats()} of {count} hosts came; see {server.folder}/stderr.txt."
            )
        time.sleep(0.5)


def overhead_ms(server: Server, jobs: int, first: int = 0) -> list[float]:
    """Milliseconds of each of ``jobs`` judgements that take no time."""
    remote = server.remote(OWNER, patience=10.0)
    times = []
    for number in range(first, first + jobs):
        asked = kernel(number, 0.0)
        started = time.perf_counter()
        remote.verify(*asked)
        times.append(1000 * (time.perf_counter() - started))
    return times


@define
class Load:
    """Clients that ask for every kernel twice, and what they were told."""

    server: Server
    kernels: Kernels
    jobs: int
    fingerprint: Callable[[Verdict], str]
    seen: dict[int, set[str]] = field(init=False)
    _pending: list[int] = field(init=False)
    _threads: list[threading.Thread] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self.seen = {number: set() for number in range(self.jobs)}
        self._pending = list(self.seen)

    def start(self, clients: int) -> None:
        for number, token in enumerate(self.server.tokens(clients, self.jobs)):
            remote = self.server.remote(token, patience=120.0, background=number % 4 == 3)
            self._threads.append(threading.Thread(target=self._ask, args=(remote,)))
        for thread in self._threads:
            thread.start()

    @property
    def answered(self) -> int:
        return sum(bool(verdicts) for verdicts in self.seen.values())

    @property
    def running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def result(self) -> tuple[int, int]:
        """Jobs lost and jobs duplicated, once all clients are done."""
        for thread in self._threads:
            thread.join()
        lost = sum(not verdicts for verdicts in self.seen.values())
        return lost, sum(len(verdicts) > 1 for verdicts in self.seen.values())

    def _ask(self, remote: RemoteVerifier) -> None:
        while self._pending:
            try:
                number = self._pending.pop()
            except IndexError:
                return
            for _ in range(2):  # the second time, the stored verdict must come back
                try:
                    self.seen[number].add(self.fingerprint(remote.verify(*self.kernels(number))))
                except VerifierError as error:
                    print(f"job {number}: {error}", file=sys.stderr)


def interrupt(load: Load, kills: int, node: Callable[[], None] | None) -> None:
    """Kills the service ``kills`` times and a node once, spread over the jobs' course."""
    rng = random.Random(SEED)
    steps: list[Callable[[], None]] = [load.server.restart] * kills
    if node:
        steps.insert(kills // 3, node)
    for number, step in enumerate(steps):
        share = (number + rng.uniform(0.3, 1.0)) / (len(steps) + 1)
        while load.running and load.answered < share * load.jobs:
            time.sleep(0.02)
        if load.running:
            step()


def survive(stack: ExitStack, options: argparse.Namespace) -> dict[str, float]:
    """The cluster under load and kills; the summary's lines about it."""
    meter = stack.enter_context(CpuMeter())
    cluster = stack.enter_context(Cluster(options.nodes)) if options.nodes else None
    environment = cluster.environment if cluster else os.environ | {"PYTHONPATH": str(ROOT)}
    where = {"ray": cluster.address} if cluster else {"workers": 2}
    timed = {"name": "timed", "factory": "benchmarks.service:timed_verifier", **where}
    server = stack.enter_context(Server(timed, environment, meter))
    for process in cluster.nodes if cluster else []:
        meter.watch("ray", process.pid)
    wait_for_seats(server, options.nodes or 2)
    idle = _used(meter)
    time.sleep(IDLE_S)
    idle = 1000 * (_used(meter) - idle) / IDLE_S
    load = Load(server, lambda number: kernel(1000 + number, WORK_S), options.jobs, _once)
    before, started = _used(meter), time.monotonic()
    load.start(options.clients)
    interrupt(load, options.kills, (lambda: cluster.kill(1)) if cluster and options.nodes > 1 else None)
    lost, duplicated = load.result()
    seconds, used = time.monotonic() - started, _used(meter) - before
    summary = {
        "lost": lost,
        "duplicated": duplicated,
        "jobs": options.jobs,
        "clients": options.clients,
        "kills": server.starts - 1,
        "nodes": options.nodes,
        "nodes_killed": int(bool(cluster) and options.nodes > 1),
        "seconds": round(seconds, 1),
        "verdicts_a_s": round(options.jobs / seconds, 1),
        "cpu_ms_a_verdict": round(1000 * used / options.jobs, 2),
        "idle_cpu_ms_a_s": round(idle, 1),
    }
    server.__exit__()
    return summary | (real(stack, environment, where, meter, options) if options.twin else {})


def real(
    stack: ExitStack, environment: dict[str, str], where: dict[str, Any], meter: CpuMeter, options: Any
) -> dict[str, float]:
    """Verdicts of the twin, with the service killed in the middle of them."""
    arguments = {"backend": "twin", "chip": "ascend910b1", "interpreter": sys.executable}
    server = stack.enter_context(Server({"arguments": arguments, **where}, environment, meter))
    load = Load(server, real_kernel, options.twin, lambda verdict: f"{verdict.feasible} {verdict.gates}")
    load.start(min(4, options.clients))
    interrupt(load, min(1, options.kills), None)
    lost, duplicated = load.result()
    right = sum(one.startswith("True") for verdicts in load.seen.values() for one in verdicts)
    return {"twin_jobs": options.twin, "twin_passed": right, "twin_lost": lost, "twin_duplicated": duplicated}


def _once(verdict: Verdict) -> str:
    return verdict.gates[0].feedback


def _used(meter: CpuMeter) -> float:
    return meter.seconds("service") + meter.seconds("ray")


def alone(samples: int) -> tuple[list[float], float]:
    """Without Ray: one client's waits, and CPU milliseconds a verdict of the service and its worker."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    options = {"name": "timed", "factory": "benchmarks.service:timed_verifier"}
    with CpuMeter() as meter, Server(options, environment, meter) as server:
        overhead_ms(server, 4, first=-4)  # the worker starts
        before = meter.seconds("service")
        times = overhead_ms(server, samples)
        return times, 1000 * (meter.seconds("service") - before) / samples


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--twin", type=int, default=12)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    stamina.instrumentation.set_on_retry_hooks(())  # a client that waits for a service that is killed says so
    times, cpu_ms = alone(options.samples)
    with ExitStack() as stack:
        summary = survive(stack, options)
    summary |= {
        "overhead_p95_ms": round(statistics.quantiles(times, n=20)[-1], 2),
        "overhead_median_ms": round(statistics.median(times), 2),
        "cpu_ms_a_verdict_without_ray": round(cpu_ms, 2),
    }
    for name, value in summary.items():
        print(f"{name:30} {value}")
    if options.json:
        options.json.write_text(json.dumps({"summary": summary, "overhead_ms": times}, indent=1) + "\n")
    wrong = [name for name in summary if name.endswith(("lost", "duplicated")) and summary[name]]
    sys.exit(1 if wrong or summary.get("twin_passed", options.twin) != options.twin else 0)


if __name__ == "__main__":
    main()
