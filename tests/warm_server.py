"""A Python that has imported some modules, and forks a child for each program that is to run with them.

    python -P warm_server.py SOCKET MODULE...

A request is one message on a connection to the socket, with the files that the program is to have: what
``become`` reads. The answers are the child's process number and, when it has ended, its exit status. A child
whose connection is closed is killed with its process group, which it leads.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import types
from typing import Any

_MOST_FILES = 64
_APART = 256
"""Descriptors from here on are in no program's way, whose own may have higher numbers."""


def serve(path: str) -> tuple[bytes, list[int]]:
    """Forks until standard input ends; returns in each child alone, with its request."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    dead, wake = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[socket.socket, int] = {}
    while True:
        ready, _, _ = select.select([0, dead, listener, *children], [], [])
        if 0 in ready:
            raise SystemExit
        for asked in children.keys() & ready:  # nothing is ever said on it: it was closed
            with contextlib.suppress(ProcessLookupError):
                os.killpg(children[asked], signal.SIGKILL)
        if dead in ready:
            os.read(dead, 4096)
        bury(children)
        if listener in ready:
            asked, _ = listener.accept()
            request, files, _, _ = socket.recv_fds(asked, 1 << 20, _MOST_FILES)
            if not (child := os.fork()):
                return request, files
            children[asked] = child
            _tests[child] = json.loads(request)["environment"].get("PYTEST_CURRENT_TEST", "")
            with contextlib.suppress(ConnectionError):
                asked.send(b"%d" % child)
            for file in files:
                os.close(file)


def bury(children: dict[socket.socket, int]) -> None:
    """Tells the exit status of each child that has ended."""
    for asked, child in list(children.items()):
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            del children[asked]
            note(_tests.pop(child, ""), usage.ru_utime + usage.ru_stime)
            with asked, contextlib.suppress(ConnectionError):
                asked.send(b"%d" % os.waitstatus_to_exitcode(status))


_tests: dict[int, str] = {}
"""The test that each child runs for."""


def note(test: str, seconds: float) -> None:
    """Adds processor seconds that were spent for a test to the file of ``parts.py``, where there is one."""
    if path := os.environ.get("EVOKERNEL_PARTS"):
        with open(f"{path}.forked", "a", encoding="utf-8") as file:  # noqa: PTH123 - nothing more is imported
            file.write(json.dumps([test.rpartition(" ")[0], seconds]) + "\n")


def become(request: bytes, files: list[int]) -> list[str]:
    """Makes this process what Python started with ``arguments`` in a ``folder`` and an ``environment`` would
    be, where ``files`` are the numbers of its files. Gives the arguments."""
    given: dict[str, Any] = json.loads(request)
    with contextlib.suppress(PermissionError):  # the parent was sooner
        os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    apart = max(_APART, *(number + 1 for number in given["files"]))
    for place, file in enumerate(files):
        os.dup2(file, apart + place)
    os.closerange(0, apart)
    for place, number in enumerate(given["files"]):
        os.dup2(apart + place, number)
    os.closerange(apart, apart + _MOST_FILES)
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    gc.enable()
    return list(given["arguments"])


def run(option: str, program: str, *arguments: str) -> None:
    """``-c CODE``, or ``-I FOLDER`` with a ``__main__.py``."""
    if option == "-I":
        sys.argv = [program, *arguments]
        runpy.run_path(program, run_name="__main__")
        return
    sys.argv = [option, *arguments]
    sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(program, "<string>", "exec"), vars(sys.modules["__main__"]))


if __name__ == "__main__":
    gc.disable()  # nothing of what is imported becomes garbage
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    run(*become(*serve(sys.argv[1])))
