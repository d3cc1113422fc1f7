"""What the process that compiles is confined to: a candidate's Python is read there, and runs.

It reads the interpreter's folders and the system's libraries, writes one folder of its own, starts programs
of those folders alone (Triton starts ptxas), and has no network, no home, no environment of the person's.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from evokernel_core import temporary
from evokernel_core.domain.errors import BuildError, InterpreterUnavailable
from evokernel_core.twin.launcher import prepare_launcher
from evokernel_core.twin.run import clean_environment, run_process
from evokernel_core.twin.toolchain import ToolLimits
from evokernel_core.verifier.confined import SYSTEM_FILES, interpreter_folders
from evokernel_core.verifier.sandbox import Level, compiler_prefix, probe

CHILD = Path(__file__).parent / "child"
LIMITS = ToolLimits(address_space=16 << 30, cpu_s=600, quota=1 << 30, files=8192)
"""Triton leaves some ten files a launch."""
_PROBE_SECONDS = 60.0
_NOTHING = "import triton\n\n\n@triton.jit\ndef nothing():\n    pass\n"


def compile_command(python: str, request: Path, verb: str = "compile") -> tuple[str, ...]:
    """The process that answers a request in its folder, confined as ``compile_level`` says. ``verb``: the
    module of the child that answers."""
    program = _program(python, request, verb)
    if compile_level(python) is Level.LIMITS:
        return program
    return (*_prefix(python, request.parent), *program)


@cache
def compile_level(python: str) -> Level:
    """How far the process is confined. Where this machine has no compiler to build the launcher with, or
    Triton does not compile in its sandbox, that is limits alone."""
    try:
        level = probe(prepare_launcher().launcher).level
        return level if _compiles(python) else Level.LIMITS
    except (BuildError, InterpreterUnavailable, OSError):
        return Level.LIMITS


def compile_environment(folder: Path) -> dict[str, str]:
    """All that the process sees of an environment; no CUDA device is reached."""
    return {**clean_environment(), "HOME": str(folder), "TMPDIR": str(folder), "CUDA_VISIBLE_DEVICES": "-1"}


def limits() -> dict[str, int]:
    """Those that the process sets itself, before it reads the candidate, wherever it runs."""
    return {"address_space": LIMITS.address_space, "cpu_s": LIMITS.cpu_s, "file_size": LIMITS.file_size}


def _program(python: str, request: Path, verb: str = "compile") -> tuple[str, ...]:
    return (python, "-I", "-B", str(CHILD), verb, str(request))


def _prefix(python: str, folder: Path) -> tuple[str, ...]:
    reads = (*interpreter_folders(python), CHILD, *SYSTEM_FILES)
    writes = (folder, Path("/dev/null"))
    return compiler_prefix(prepare_launcher(), reads, writes, quota=LIMITS.quota, files=LIMITS.files)


def _compiles(python: str) -> bool:
    """Whether Triton compiles a function of nothing in the sandbox, or says there why it never would."""
    with temporary.folder("probe") as name:
        folder = Path(name)
        (folder / "kernel.py").write_text(_NOTHING)
        launch = {"kernel": "nothing", "arguments": [], "constants": {}, "warps": 1, "stages": 1}
        asked = {
            "file": str(folder / "kernel.py"),
            "architecture": 90,
            "threads_per_warp": 32,
            "folder": name,
            "launches": [launch],
            "limits": limits(),
        }
        request = folder / "request.json"
        request.write_text(json.dumps(asked))
        command = (*_prefix(python, folder), *_program(python, request))
        done = run_process(command, folder, _PROBE_SECONDS, compile_environment(folder))
        result = folder / "result.json"
        return done.exit_code == 0 and result.exists() and "error" not in json.loads(result.read_text())
