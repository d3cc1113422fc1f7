"""Confines a candidate's process: its own files, no network, no other process.

The work is done by ``evokernel-launcher``, a small C program of the twin, because starting
it costs a millisecond and it needs no privilege. What this kernel of Linux lacks is left out, and
``level`` says so: docs/security.md lists the levels.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import BuildError, UsageError
from evokernel_core.twin.build import Twin
from evokernel_core.twin.launcher import BuiltLauncher, prepare_launcher

SYSTEM_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
"""Where the loader finds the C and C++ libraries."""

QUOTA = 4 * 1024**3
FILES = 256
OPEN_FILES = 256


class Level(StrEnum):
    """How far a candidate is confined, beyond limits of time, memory and file size."""

    FULL = "files, network and processes"
    FILES = "files only"
    PROCESSES = "network and processes only"
    LIMITS = "limits only"


@frozen
class Sandbox:
    """What this machine offers: ``landlock_abi`` 0 means that files cannot be confined."""

    landlock_abi: int
    seccomp: bool

    @property
    def level(self) -> Level:
        if self.landlock_abi:
            return Level.FULL if self.seccomp else Level.FILES
        return Level.PROCESSES if self.seccomp else Level.LIMITS


WORDS = {
    "full": Level.FULL,
    "files": Level.FILES,
    "processes": Level.PROCESSES,
    "limits": Level.LIMITS,
}
"""The levels as ``--confinement`` names them."""


def confinement_here() -> Level:
    """What this machine confines candidates of the twin to. Raises BuildError."""
    return probe(prepare_launcher().launcher).level


def insist(offered: Level, accepted: str = "full") -> None:
    """Raises UsageError where candidates would be confined less than fully, or than was ``accepted``."""
    if offered in (
        Level.FULL,
        WORDS[accepted],
        *((Level.FILES, Level.PROCESSES) if accepted == "limits" else ()),
    ):
        return
    word = next(word for word, level in WORDS.items() if level is offered)
    raise UsageError(
        "Kernels of others would run here with {found}; use a Linux kernel with Landlock and "
        "seccomp, or accept it with --confinement {word} (docs/security.md).",
        found=offered,
        word=word,
    )


@cache
def probe(launcher: Path) -> Sandbox:
    """What the launcher can confine here. Raises BuildError where it does not answer."""
    done = subprocess.run([str(launcher), "--probe"], capture_output=True, text=True, timeout=10, check=False)
    match = re.fullmatch(r"landlock (\d+) seccomp ([01])\n", done.stdout)
    if match is None:
        raise BuildError(
            "{launcher} does not answer; run `evokernel doctor --prepare` to build it again.",
            launcher=launcher,
        )
    return Sandbox(int(match[1]), match[2] == "1")


def sandbox_prefix(
    built: Twin | BuiltLauncher,
    read: Sequence[Path],
    write: Sequence[Path],
    *,
    quota: int = QUOTA,
    files: int = FILES,
    keep: Sequence[int] = (),
    threads: bool = False,
) -> tuple[str, ...]:
    """The command prefix under which a program reads and writes these folders and no other.

    What was ``built`` is read too, and its launcher starts the program.
    The ``write`` folders may grow by ``quota`` bytes and ``files`` files before the program is killed.
    ``keep`` are descriptors beyond the standard ones that the program inherits; without ``threads`` it has
    one.
    """
    folders = [*SYSTEM_FOLDERS, str(built.folder), *(str(path) for path in read)]
    reads = [word for folder in dict.fromkeys(folders) for word in ("--read", folder)]
    writes = [word for path in write for word in ("--write", str(path))]
    counted = ("--quota", str(quota), "--files", str(files)) if write else ()
    kept = [word for descriptor in keep for word in ("--keep-fd", str(descriptor))]
    more = ("--threads",) if threads else ()
    open_files = ("--open-files", str(OPEN_FILES))
    return (
        *(str(built.launcher), "--sandbox", *more, *open_files),
        *(*counted, *kept, *reads, *writes, "--"),
    )


def compiler_prefix(
    built: Twin | BuiltLauncher, read: Sequence[Path], write: Sequence[Path], *, quota: int, files: int
) -> tuple[str, ...]:
    """As ``sandbox_prefix``, for a program that has threads and starts programs of the folders it reads."""
    prefix = sandbox_prefix(built, read, write, quota=quota, files=files)
    place = prefix.index("--sandbox")
    return (*prefix[:place], "--compiler-sandbox", *prefix[place + 1 :])
