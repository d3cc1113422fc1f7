"""The references of tasks that were not captured on this machine: PyTorch inside of the launcher's sandbox.

A package of a colleague, a job over HTTP: the graph passes the allow-list of ``domain.admission``, and what
it then asks of PyTorch runs in a process that reads the interpreter's own folders and nothing else, writes
one folder of its own, and has no network, no home, no environment of the person's and no other process.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from evokernel_core import temporary
from evokernel_core.capture import agent
from evokernel_core.capture.client import AgentClient
from evokernel_core.closing import Closing
from evokernel_core.domain import operations
from evokernel_core.domain.errors import InterpreterUnavailable, VerifierError
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.launcher import prepare_launcher
from evokernel_core.verifier.references import moved_to
from evokernel_core.verifier.sandbox import Level, probe, sandbox_prefix

if TYPE_CHECKING:
    from evokernel_core.capture.reference import ReferenceCase

ADDRESS_SPACE = 48 * 1024**3
"""Bytes; PyTorch reserves much more than it touches."""
FILE_SIZE = 1024**3
"""Bytes of any one file; no case has tensors of more than half of that."""
PROCESSOR_S = 1800
"""Seconds of work of one process, which serves the cases of one verifier until it is closed."""
SYSTEM_FILES = tuple(
    map(Path, ("/dev/urandom", "/dev/null", "/proc/cpuinfo", "/sys/devices/system/cpu", "/proc/meminfo"))
)
"""Opened by PyTorch when it is loaded, or first computes; they say nothing about a person."""
_FOLDERS = """
import json, os, site, sys, sysconfig
user = site.getusersitepackages()
folders = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable)), user]
folders += [sysconfig.get_config_var("LIBDIR") or "", *sysconfig.get_paths().values(), *sys.path]
print(json.dumps(folders))
"""


class ConfinedReferences(Closing):
    """A ReferenceRunner in a sandbox of its own. ``partly``: also where this machine cannot confine fully.

    Not for use by several threads at once.
    """

    def __init__(self, interpreter: str, *, partly: bool = False) -> None:
        self._interpreter = interpreter
        self._partly = partly
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._client: AgentClient | None = None
        self._cases = 0

    def reference(
        self,
        task: KernelTask,
        sizes: Mapping[str, int],
        seed: int,
        distribution: str,
        folder: Path,
        *,
        rounded: bool = False,
    ) -> ReferenceCase:
        """As AgentClient's own. Raises CaptureError, TaskRefused, and VerifierError where this machine
        cannot confine a process."""
        client, scratch = self._open()
        self._cases += 1
        inside = scratch / str(self._cases)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            case = client.reference(task, sizes, seed, distribution, inside, rounded=rounded)
            # what a confined process answers is text like any other: only its own files are taken
            if not all(_is_plain(path, inside) for path in _files(case)):
                raise VerifierError("The confined reference names files that are not its own.")
            return moved_to(case, folder)
        finally:
            shutil.rmtree(inside, ignore_errors=True)

    def close(self) -> None:
        """Ends the process and removes its folder."""
        if self._client is not None:
            self._client.close()
        if self._scratch is not None:
            self._scratch.cleanup()
        self._client = self._scratch = None

    def _open(self) -> tuple[AgentClient, Path]:
        if self._client is None or self._scratch is None:
            self._scratch = temporary.folder("reference")
            folder = Path(self._scratch.name)
            self._client = AgentClient(
                self._interpreter,
                prefix=self._prefix(folder),
                environment=_environment(folder),
            )
        return self._client, Path(self._scratch.name)

    def _prefix(self, scratch: Path) -> tuple[str, ...]:
        built = prepare_launcher()
        level = probe(built.launcher).level
        if level is not Level.FULL and not self._partly:
            raise VerifierError(
                "This machine confines a process to {level} only, so the reference of a task from "
                "elsewhere does not run. Verify on a machine with Landlock and seccomp, or trust the "
                "task (`--trust`).",
                level=level,
            )
        limits = ("--address-space", str(ADDRESS_SPACE), "--file-size", str(FILE_SIZE))
        launcher, *sandbox = sandbox_prefix(
            built, (*_readable(self._interpreter), *SYSTEM_FILES), [scratch], threads=True
        )
        return (launcher, *limits, "--cpu", str(PROCESSOR_S), *sandbox)


def _environment(scratch: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch),
    }


def _readable(interpreter: str) -> tuple[Path, ...]:
    """The folders of an interpreter and of the agent."""
    own = (Path(agent.__file__).parent, operations.TABLE.parent)
    return _outermost((*interpreter_folders(interpreter), *own))


@cache
def interpreter_folders(interpreter: str) -> tuple[Path, ...]:
    """The folders of an interpreter and of what is installed for it; never a home or what lies above one.
    Raises InterpreterUnavailable."""
    done = subprocess.run(
        [interpreter, "-I", "-c", _FOLDERS], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        raise InterpreterUnavailable(
            "The interpreter {interpreter} does not run: set another one.", interpreter=interpreter
        )
    return _outermost(Path(name) for name in json.loads(done.stdout) if name)


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    folders = {path.resolve() for path in paths if path.is_dir()}
    home = Path("~").expanduser().resolve()
    kept = {path for path in folders if path != home and path not in home.parents}
    return tuple(sorted(path for path in kept if kept.isdisjoint(path.parents)))


def _files(case: ReferenceCase) -> tuple[Path, ...]:
    beside = (path for side in case.beside for path in side)
    return (*case.inputs, *case.outputs, *case.precise, *case.rounded, *beside)


def _is_plain(path: Path, folder: Path) -> bool:
    return path.parent == folder and path.is_file() and not path.is_symlink()
