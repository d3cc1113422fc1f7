"""A service that runs in a process of its own and can be killed, and kernels to send to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest
from attrs import define, field

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.source import ascendc_source
from tests import warm

HERE = Path(__file__).parent
TOKEN = "right-token"


@define
class Server:
    """One service on one folder and port; ``kill`` is SIGKILL, ``start`` goes on where it was.

    ``errors`` is the file that its standard error goes to, ours if absent.
    """

    folder: Path
    port: int
    workers: int = 1
    factory: str = "fake_verifier:scripted"
    options: dict[str, object] = field(factory=dict)
    limits: dict[str, float] = field(factory=dict)
    environment: dict[str, str] = field(factory=dict)
    errors: Path | None = None
    process: warm.Process | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"{'https' if 'tls' in self.options else 'http'}://127.0.0.1:{self.port}"

    @property
    def journal(self) -> list[list[str]]:
        path = self.folder / "journal"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def start(self) -> Server:
        arguments = [str(self.folder), str(self.port), str(self.workers), self.factory]
        arguments += [json.dumps(self.options), json.dumps(self.limits)]
        paths = os.pathsep.join([str(HERE), str(HERE.parents[2])])
        environment = os.environ | {"PYTHONPATH": paths, "EVOKERNEL_VERIFIER_TOKEN": TOKEN}
        environment |= self.environment
        place = warm.server("evokernel_core.verifier.service", "uvicorn", paths=warm.SOURCES)
        with (
            Path(os.devnull).open() as nothing,
            self.errors.open("ab") if self.errors else nullcontext() as errors,
        ):
            files = (nothing.fileno(), 1, errors.fileno() if errors else 2)
            code = (HERE / "serve_scripted.py").read_text()
            self.process = warm.Process(*warm.fork(place, ["-c", code, *arguments], environment, files))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if self.client().get("/v1/status").is_success:
                    return self
            except httpx2.HTTPError:
                time.sleep(0.05)
        raise TimeoutError("the service did not start")

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process
        self.process.terminate()
        return self.process.wait(10)

    def client(self, token: str = TOKEN) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False, verify=False)


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise TimeoutError("it did not come about")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def make(**options: object) -> Server:
        folder = tmp_path / f"service{len(servers)}"
        folder.mkdir()
        servers.append(Server(folder, free_port(), **options).start())  # type: ignore[arg-type]
        return servers[-1]

    yield make
    for server in servers:
        if server.process and server.process.poll() is None:
            server.kill()


@pytest.fixture
def server(make_server: Callable[..., Server]) -> Server:
    return make_server()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One service for the tests that leave nothing behind in it."""
    server = Server(tmp_path_factory.mktemp("service"), free_port()).start()
    yield server
    server.kill()


@pytest.fixture
def make_kernel() -> Callable[..., tuple[KernelTask, KernelSource]]:
    """A task called ``name`` and a kernel whose text is the script that the verifier follows."""

    def make(name: str = "scale", script: str = "") -> tuple[KernelTask, KernelSource]:
        spec = TensorSpec(("s0", 4), "float16")
        node = Node("y", "aten.mul.Tensor", (ValueRef("x"), 2.0), (), (spec,))
        graph = Graph((GraphInput("x", spec, expression="x"),), (node,), (ValueRef("y"),))
        task = KernelTask(name, graph, (Symbol("s0", 8),), TOLERANCES["float16"], "elementwise")
        return task, ascendc_source("#pragma once\n", f"{script}\n// {name}\n", Strategy("pointwise"))

    return make


@pytest.fixture(scope="session")
def make_certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and its key, made by the openssl command."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return certificate, key
