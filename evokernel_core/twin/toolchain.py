"""Where a compiler may read and write while it works on a candidate's text, and what it sees of this machine.

A candidate's text steers the compiler: ``#include``, ``.incbin``, a macro that never ends. So it runs in
the sandbox of ``evokernel-launcher``: it reads the candidate's own folder, the twin and the folders that
the compiler itself names as its own, writes one scratch folder, and has an environment of three words.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

from evokernel_core.twin.compiler import Compiler

SYSTEM_FOLDERS = (
    *("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/include"),
    *("/bin", "/lib", "/lib64", "/etc/ld.so.cache"),
)
"""Where a distribution keeps its compiler, libraries and headers."""


@frozen
class ToolLimits:
    """Bytes of address space and of one file, processor seconds, and what a work folder may grow by."""

    address_space: int = 4 * 1024**3
    file_size: int = 64 * 1024**2
    cpu_s: int = 120
    quota: int = 256 * 1024**2
    files: int = 256

    def options(self) -> tuple[str, ...]:
        """The launcher's options."""
        return (
            *("--address-space", str(self.address_space), "--file-size", str(self.file_size)),
            *("--cpu", str(self.cpu_s), "--quota", str(self.quota), "--files", str(self.files)),
        )


ZIG_LIMITS = ToolLimits(quota=2 * 1024**3, files=20_000)
"""Zig compiles its C and C++ libraries beside the first kernels."""


@frozen
class Confinement:
    """``work`` is read and written; ``reads`` are folders beside it and the compiler's own."""

    work: Path
    reads: tuple[Path, ...]
    limits: ToolLimits = ToolLimits()

    def options(self, compiler: Compiler) -> tuple[str, ...]:
        """The launcher's options under which this compiler runs."""
        reads = dict.fromkeys((*compiler_folders(compiler), *map(str, self.reads)))
        writes = (str(self.work), "/dev/null", *_cache_folders(compiler))
        return (
            *(ZIG_LIMITS if compiler.kind == "zig" else self.limits).options(),
            "--compiler-sandbox",
            *(word for path in reads for word in ("--read", path)),
            *(word for path in writes for word in ("--write", path)),
        )


def environment(compiler: Compiler, work: Path) -> dict[str, str]:
    """All that a confined compiler sees of the environment."""
    own = str(Path(compiler.argv[0]).parent)
    words = {"PATH": f"{own}:/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(work)}
    for folder in _cache_folders(compiler):
        words |= {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": str(work)}
    return words


@cache
def compiler_folders(compiler: Compiler) -> tuple[str, ...]:
    """The system's folders, and those outside of them that the compiler names as its own."""
    if compiler.kind == "zig":
        return (*SYSTEM_FOLDERS, *dict.fromkeys((sys.prefix, sys.base_prefix)))
    own = dict.fromkeys(
        os.path.realpath(path) for path in _named_by(compiler) if path.startswith("/") and Path(path).exists()
    )
    return (*SYSTEM_FOLDERS, *(path for path in own if not _is_covered(path) and not _is_too_wide(path)))


@cache
def include_folders(compiler: Compiler) -> tuple[str, ...]:
    """Where the compiler looks for ``#include <...>``, in its order."""
    said = _answer(compiler, "-E", "-v", "-x", "c++", os.devnull)
    listed = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search", said, re.DOTALL)
    folders = (line.strip() for line in (listed[1] if listed else "").splitlines())
    return tuple(folder for folder in folders if folder.startswith("/"))


def _named_by(compiler: Compiler) -> Iterator[str]:
    yield str(Path(os.path.realpath(compiler.argv[0])).parent)
    for line in _answer(compiler, "-print-search-dirs").splitlines():
        yield from line.partition(": ")[2].lstrip("=").split(":")
    yield from include_folders(compiler)


def _answer(compiler: Compiler, *options: str) -> str:
    done = subprocess.run(
        [*compiler.argv, *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout + done.stderr


def _is_covered(path: str) -> bool:
    return any(Path(path).is_relative_to(os.path.realpath(folder)) for folder in SYSTEM_FOLDERS)


def _is_too_wide(path: str) -> bool:
    """A folder that holds more than a compiler: the root, /usr, a home or one above it."""
    return Path(path) in (Path("/usr"), Path("/usr/local")) or Path.home().resolve().is_relative_to(path)


def _cache_folders(compiler: Compiler) -> Sequence[str]:
    """Zig keeps the C and C++ libraries that it compiles; nothing of a candidate's belongs there."""
    if compiler.kind != "zig":
        return ()
    from evokernel_core.paths import cache_dir

    folder = cache_dir() / "zig"
    folder.mkdir(parents=True, exist_ok=True)
    return (str(folder),)
