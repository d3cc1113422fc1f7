"""A Python that has imported torch: each script runs in a child of its own, two seconds sooner."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_SERVER = """
import gc, json, os, sys, types
gc.disable()  # nothing of what is imported becomes garbage
import torch
import torch.distributed.tensor  # which the first torch.testing.assert_close imports
gc.freeze()
gc.enable()

answers = os.fdopen(os.dup(1), "w")
while line := sys.stdin.readline():
    given = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)
else:
    raise SystemExit
answers.close()
os.chdir(given["cwd"])
os.environ.clear()
os.environ.update(given["environment"])
for number, name in enumerate((os.devnull, given["out"], given["error"])):
    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
sys.stdin = open(0)
sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
sys.modules["__main__"] = types.ModuleType("__main__")
exec(compile(given["code"], "<string>", "exec"), vars(sys.modules["__main__"]))
"""


def run(
    code: str, cwd: Path, environment: Mapping[str, str], seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """What ``python -c code`` gives in a folder, where nothing but torch was imported before.

    Raises TimeoutError where it does not end.
    """
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as name:
        out, error = Path(name) / "out", Path(name) / "error"
        given = {"code": code, "cwd": str(cwd), "environment": dict(environment)}
        request = json.dumps(given | {"out": str(out), "error": str(error)})
        server.stdin.write(f"{request}\n".encode())
        server.stdin.flush()
        if not select.select([server.stdout], [], [], seconds)[0]:
            raise TimeoutError(f"A script did not end within {seconds:.0f} s: {code}")
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(code, status, out.read_text(), error.read_text())


def pytest_of(place: Path) -> str:
    """A script that runs the tests of a file or folder, without the plugins of this environment."""
    options = ["-q", "-p", "no:cacheprovider", str(place)]
    return (
        "import os, pytest; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'; "
        f"raise SystemExit(pytest.main({options!r}))"
    )


@cache
def _server() -> subprocess.Popen[bytes]:
    """It ends with this process, which holds its standard input."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    command = [sys.executable, "-c", _SERVER]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment
    )
