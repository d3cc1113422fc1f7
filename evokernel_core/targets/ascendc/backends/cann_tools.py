"""Finds CANN on this machine: its compiler, its version, and the environment that its programs need.

Where things lie follows the public documentation: set_env.sh sets ASCEND_HOME_PATH and the PATH, the
toolkit's default folders are ``/usr/local/Ascend/cann`` (``ascend-toolkit/latest`` up to CANN 8.3) and the
same below a person's home, bisheng is in ``compiler/ccec_compiler/bin``, and versions are in
``ARCH-linux/ascend_toolkit_install.info``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from evokernel_core.capture import agent
from evokernel_core.domain.errors import VerifierUnavailable
from evokernel_core.programs import program_on_path

SWITCH = "EVOKERNEL_BISHENG"
"""The environment variable that names another bisheng, or says ``off``."""
ARCHITECTURE = "dav-2201"
"""The NPU architecture of Atlas A2 (910B)."""
_DEFAULT_ROOTS = ("Ascend/cann", "Ascend/ascend-toolkit/latest")
_SYSTEM = Path("/usr/local")
_COMPILER_FOLDERS = ("bin", "compiler/ccec_compiler/bin", "tools/ccec_compiler/bin")
_WATCHER = Path(agent.__file__).with_name("watcher.py")


@frozen
class Toolkit:
    """``root`` is what ASCEND_HOME_PATH names, None where only the PATH led to bisheng; ``version`` is CANN's
    own word, "" where no file tells it."""

    bisheng: Path
    root: Path | None
    version: str

    def environment(self, before: Mapping[str, str]) -> dict[str, str]:
        """What set_env.sh would have set, where it was not called; what it did set stays."""
        result = dict(before)
        if self.root is None or before.get("ASCEND_HOME_PATH"):
            return result
        result["ASCEND_HOME_PATH"] = str(self.root)
        result["PATH"] = os.pathsep.join([str(self.bisheng.parent), before.get("PATH", os.defpath)])
        libraries = [str(self.root / "lib64"), before.get("LD_LIBRARY_PATH", "")]
        result["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, libraries))
        return result


@frozen
class CannTools:
    """The programs of a host with CANN: its toolkit, and a Python that has torch_npu."""

    toolkit: Toolkit
    python: str


def places(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders in which a toolkit is looked for, the surest first."""
    named = [
        Path(value)
        for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
        if Path(value := environment.get(name, "")).is_absolute()
    ]
    home = Path(environment.get("HOME") or Path.home())
    roots = [base / root for base in (_SYSTEM, home) for root in _DEFAULT_ROOTS]
    return tuple(dict.fromkeys([*named, *roots]))


def looked_in(environment: Mapping[str, str]) -> list[str]:
    """In words, where ``find_toolkit`` looks."""
    if wanted := environment.get(SWITCH):
        return [f"{SWITCH}={wanted}"]
    return ["the PATH", *map(str, places(environment))]


def find_toolkit(environment: Mapping[str, str] | None = None) -> Toolkit | None:
    """The toolkit of this machine, None where there is no bisheng or EVOKERNEL_BISHENG is ``off``."""
    around = os.environ if environment is None else environment
    wanted = around.get(SWITCH, "")
    if wanted.lower() == "off":
        return None
    compiler = next(_compilers(wanted, around), None)
    if compiler is None:
        return None
    root = _root_of(compiler, around)
    return Toolkit(compiler, root, _version(root))


def _compilers(wanted: str, environment: Mapping[str, str]) -> Iterator[Path]:
    if wanted:
        candidates = [Path(wanted)]
    else:
        on_path = program_on_path("bisheng", environment.get("PATH", os.defpath))
        below = [root / folder / "bisheng" for root in places(environment) for folder in _COMPILER_FOLDERS]
        candidates = [*([Path(on_path)] if on_path else []), *below]
    yield from (path for path in candidates if path.is_file() and os.access(path, os.X_OK))


def _root_of(compiler: Path, environment: Mapping[str, str]) -> Path | None:
    """The toolkit that the compiler is part of, else the one that the environment names."""
    for path in (compiler, compiler.resolve()):
        for folder in path.parents:
            if _info_files(folder):
                return folder
    named = environment.get("ASCEND_HOME_PATH")
    return Path(named) if named else None


def _info_files(root: Path) -> list[Path]:
    return sorted(root.glob("*-linux/ascend_toolkit_install.info")) or sorted(
        root.glob("*-linux/ascend_*_install.info")
    )


def _version(root: Path | None) -> str:
    for path in _info_files(root) if root else ():
        if match := re.search(r"^\s*version\s*=\s*(\S+)", path.read_text(errors="replace"), re.MULTILINE):
            return match[1]
    return ""


def find_tools(python: str = "") -> CannTools:
    """The tools of this host; ``python`` has torch_npu, this one by default. Raises VerifierUnavailable where
    something is missing."""
    python = python or sys.executable
    toolkit = find_toolkit()
    if toolkit is None:
        raise VerifierUnavailable(
            "bisheng was not found; install CANN and source its set_env.sh, or use the twin."
        )
    environment = toolkit.environment(os.environ)
    if program_on_path("msprof", environment.get("PATH")) is None:
        raise VerifierUnavailable(
            "msprof is not on the PATH; install CANN and source its set_env.sh, or use the twin."
        )
    command = [python, "-c", "import torch_npu"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    if done.returncode:
        raise VerifierUnavailable(
            "{python} cannot import torch_npu; install it there, or use the twin.", python=python
        )
    return CannTools(toolkit, python)


def compile_command(toolkit: Toolkit, sources: Sequence[str], target: str, *, link: bool = True) -> list[str]:
    """bisheng's command line for a 910B: a shared library, or without ``link`` an object of one source."""
    flags = ["-xasc", "-std=c++17", "-O3", f"--npu-arch={ARCHITECTURE}", "-fPIC", "-I."]
    return [str(toolkit.bisheng), *flags, "-shared" if link else "-c", *sources, "-o", target]


def watched(command: Sequence[str]) -> list[str]:
    """A command that ends with its lifeline, on standard input, without the twin's launcher."""
    return [sys.executable, "-I", "-S", str(_WATCHER), *command]
