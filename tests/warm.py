"""Pythons that have imported what takes seconds: each program runs in a child of one, that much sooner."""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import define

_ROOT = Path(__file__).parents[1]
SOURCES = (_ROOT, _ROOT / "server")
TORCH = ("torch.distributed.tensor", "torch.export._trace")
"""What the first capture imports, and the first ``torch.testing.assert_close``."""
COMMANDS = tuple(
    f"evokernel_core.{name}"
    for name in ("cli.observe", "cli.synth", "synthesis.worker", "memory.migrations.apply")
)
"""What most commands import, and the worker of editors."""
MAIN = "from evokernel_core.cli.main import main; main()"
_INTERPRETER = """\
#!{base} -IS
import json, os, signal, socket, sys

arguments = sys.argv[1:]
known = arguments[:1] == ["-c"] or (arguments[:1] == ["-I"] and os.path.isdir(arguments[1]))
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    if not known:
        raise OSError
    server.connect({socket!r})
except OSError:
    os.execv({real!r}, [{real!r}, *arguments])
files = []
for number in map(int, os.listdir("/dev/fd")):
    try:
        if number != server.fileno() and os.get_inheritable(number):
            files.append(number)
    except OSError:
        pass
given = dict(arguments=arguments, folder=os.getcwd(), environment=dict(os.environ), files=files)
socket.send_fds(server, [json.dumps(given).encode()], files)
child = int(server.recv(32))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(child, number))
status = int(server.recv(32))
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@cache
def server(*modules: str, paths: tuple[Path, ...] = ()) -> Path:
    """The socket of a ``warm_server.py`` with these modules, which may lie in ``paths``."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    script, place = Path(__file__).with_name("warm_server.py"), folder / "socket"
    started = subprocess.Popen(  # it ends with this process, which holds its standard input
        [sys.executable, "-P", str(script), str(place), *modules],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    _started.append(started)
    return place


_started: list[subprocess.Popen[bytes]] = []


def fork(
    place: Path, arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[int]
) -> tuple[int, socket.socket]:
    """The number of a new process of the server at ``place``, with ``files`` as its standard input, output
    and error, and the connection on which its exit status is told; whoever closes it kills the process."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(place))
    given = {"arguments": arguments, "folder": str(Path.cwd()), "environment": dict(environment)}
    message = json.dumps(given | {"files": [0, 1, 2]}).encode()
    socket.send_fds(connection, [message], files)
    return int(connection.recv(32)), connection


@define
class Process:
    """What ``subprocess.Popen`` is, for a forked process without pipes."""

    pid: int
    _connection: socket.socket
    returncode: int | None = None

    def poll(self) -> int | None:
        return self._hear(0)

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if self._hear(timeout) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _hear(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], timeout)[0]:
            with self._connection:
                self.returncode = int(self._connection.recv(32))
        return self.returncode


@cache
def interpreter(*modules: str, paths: tuple[Path, ...] = ()) -> str:
    """The path of a program that is this Python with modules imported, torch if none are named. It knows
    ``-c CODE`` and ``-I FOLDER``; for all else, and where a sandbox lets it ask nobody, it becomes this
    Python itself.

    Its child, which runs the program in a session of its own, ends a moment after it.
    """
    place = server(*modules or TORCH, paths=paths)
    path = place.parent / "bin" / "python"
    path.parent.mkdir()
    base = os.path.realpath(sys.executable)
    path.write_text(_INTERPRETER.format(base=base, socket=str(place), real=sys.executable))
    path.chmod(0o755)
    return str(path)


def evokernel(*arguments: object) -> list[str]:
    """The command line of ``evokernel``, for tests that start it many times."""
    return [interpreter(*COMMANDS, paths=SOURCES), "-c", MAIN, *map(str, arguments)]


def run(
    code: str, cwd: Path, environment: Mapping[str, str], seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """What ``python -c code`` gives in a folder, where nothing but torch was imported before.

    Raises subprocess.TimeoutExpired where it does not end.
    """
    return subprocess.run(
        [interpreter(), "-c", code], cwd=cwd, env=dict(environment), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip


def pytest_of(place: Path) -> str:
    """A script that runs the tests of a file or folder, without the plugins of this environment."""
    options = ["-q", "-p", "no:cacheprovider", str(place)]
    return (
        "import os, pytest; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'; "
        f"raise SystemExit(pytest.main({options!r}))"
    )
