"""Language servers and their workers forked from a process that has imported them: each is there sooner.

A forked server is a process of its own, with the pipes, the environment and the end that the command has.
Whether the command itself starts one is for ``test_process.py``.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
from collections.abc import Mapping

from attrs import define, field

from tests import warm

_MODULES = (
    "evokernel_server.serve",
    "evokernel_core.cli.lsp",
    "evokernel_core.memory.migrations.apply",
    "evokernel_core.memory.store",
    "evokernel_core.package.backup",
    "evokernel_core.package.integrity",
    "tests.server.prepared",
)
_SCRIPTED = "from tests.server.scripted_worker import main; main()"


@define
class Forked:
    """What ``asyncio.subprocess.Process`` is, for a process that another one started."""

    pid: int
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    _connection: socket.socket
    returncode: int | None = None
    _ended: asyncio.Task[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._ended = asyncio.create_task(self._hear())

    async def _hear(self) -> int:
        with self._connection:
            self.returncode = int(await asyncio.get_running_loop().sock_recv(self._connection, 32))
        return self.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)


def scripted_worker() -> str:
    """The command line of the scripted worker."""
    return shlex.join([warm.interpreter(*_MODULES, paths=warm.SOURCES), "-c", _SCRIPTED])


def worker() -> str:
    """The command line of the worker, which is there a second sooner."""
    python = warm.interpreter(*warm.COMMANDS, paths=warm.SOURCES)
    return shlex.join([python, "-c", "from evokernel_core.synthesis.worker import main; main()"])


async def fork_server(*command: str, env: Mapping[str, str], **_pipes: int) -> Forked:
    """Takes ``asyncio.create_subprocess_exec``'s place, for ``evokernel`` with arguments."""
    place = warm.server(*_MODULES, paths=warm.SOURCES)
    reads, stdin = os.pipe()
    (stdout, writes), (stderr, complains) = os.pipe(), os.pipe()
    theirs = (reads, writes, complains)
    pid, connection = warm.fork(place, ["-c", warm.MAIN, *command[1:]], env, theirs)
    for file in theirs:
        os.close(file)
    connection.setblocking(False)
    return Forked(pid, await _writer(stdin), await _reader(stdout), await _reader(stderr), connection)


async def _reader(file: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(file, "rb", 0)
    )
    return reader


async def _writer(file: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(file, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)
