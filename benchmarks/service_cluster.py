"""Several hosts on one machine: a Ray cluster of real nodes, each a tree of processes that can be killed."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import psutil
from attrs import define, field

ROOT = Path(__file__).parent.parent
RAY = str(Path(sys.executable).parent / "ray")
STORE_BYTES = 100 * 2**20
START_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@define
class Cluster:
    """``ray start`` as many times as there are nodes, each with one ``twin``; the first is the head."""

    paths: ClassVar[list[str]] = []
    """Folders, beside the checkout, whose modules the nodes can import."""

    count: int
    environment: dict[str, str] = field(init=False)
    address: str = field(init=False, default="")
    nodes: list[subprocess.Popen[bytes]] = field(init=False, factory=list)
    _folder: tempfile.TemporaryDirectory[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ekr", ignore_cleanup_errors=True)
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), *self.paths]),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
        }

    def __enter__(self) -> Cluster:
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        try:
            for _ in range(self.count):
                self.add()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in reversed(self.nodes):
            kill_tree(node)
        self._folder.cleanup()

    def add(self) -> None:
        """One more node; returns once it takes part."""
        role = ["--head", f"--port={self.address.partition(':')[2]}", f"--temp-dir={self._folder.name}"]
        options = [
            *(role if not self.nodes else [f"--address={self.address}"]),
            "--block",
            "--node-ip-address=127.0.0.1",
            "--num-cpus=1",
            f"--resources={json.dumps({'twin': 1})}",
            f"--object-store-memory={STORE_BYTES}",
            "--min-worker-port=0",
            "--max-worker-port=0",
            f"--dashboard-agent-listen-port={free_port()}",
            "--disable-usage-stats",
            *(["--include-dashboard=false"] if not self.nodes else []),
        ]
        log = (Path(self._folder.name) / f"node{len(self.nodes)}.txt").open("wb")
        node = subprocess.Popen(
            [RAY, "start", *options], env=self.environment, stdout=log, stderr=subprocess.STDOUT
        )
        self.nodes.append(node)
        deadline = time.monotonic() + START_S
        while b"Ray runtime started" not in Path(log.name).read_bytes():
            if node.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"A node did not start: {Path(log.name).read_text()[-2000:]}")
            time.sleep(0.1)

    def kill(self, index: int) -> None:
        """What the loss of a host looks like: every process of it is gone at once."""
        kill_tree(self.nodes[index])


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and all its descendants with SIGKILL."""
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
    process.wait()


class CpuMeter:
    """CPU seconds of processes and their descendants, those that ended meanwhile included.

    It looks twice a second, so a process that is killed may have used up to that much more.
    """

    def __init__(self) -> None:
        self._roots: dict[str, list[int]] = {}
        self._seen: dict[tuple[str, int, float], float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> CpuMeter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def watch(self, group: str, pid: int) -> None:
        """From now on the process counts for the group; what it has used already does not."""
        self._roots.setdefault(group, []).append(pid)
        self._look()

    def seconds(self, group: str) -> float:
        """What the group has used since it was watched."""
        self._look()
        return sum(used for (owner, *_), used in list(self._seen.items()) if owner == group)

    def _run(self) -> None:
        while not self._ended.wait(0.5):
            self._look()

    def _look(self) -> None:
        for group, pids in list(self._roots.items()):
            for pid in list(pids):
                with suppress(psutil.NoSuchProcess):
                    root = psutil.Process(pid)
                    for process in (root, *root.children(recursive=True)):
                        self._note(group, process)

    def _note(self, group: str, process: psutil.Process) -> None:
        with suppress(psutil.NoSuchProcess):
            used = process.cpu_times()
            self._seen[group, process.pid, process.create_time()] = used.user + used.system
