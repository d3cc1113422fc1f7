"""The C++ compiler of this machine, and its errors in the words of a kernel's author."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import CompilerMissing
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.programs import program_on_path

LEAST_VERSION = {"g++": 11, "clang++": 14, "zig": 0}
MAX_ERRORS = 5


@frozen
class Compiler:
    """``kind`` is g++, clang++ or zig; ``argv`` starts it as a C++ compiler; ``version`` is its own word."""

    kind: str
    argv: tuple[str, ...]
    version: str

    @property
    def c_argv(self) -> tuple[str, ...]:
        """The same compiler for one file of C."""
        return (*self.argv, "-x", "c")


@cache
def detect_compiler() -> Compiler:
    """The first that is new enough: $CXX, g++, clang++, Zig's package. Raises CompilerMissing for none."""
    found = [compiler for argv in _choices() if (compiler := probe(argv)) is not None]
    for compiler in found:
        if _major(compiler.version) >= LEAST_VERSION[compiler.kind]:
            return compiler
    install = shlex.join([sys.executable, "-m", "pip", "install", "ziglang"])
    if found:
        raise CompilerMissing(
            "The C++ compiler {version} is too old; install g++ 11 or clang++ 14 or newer, "
            "or run `{install}`.",
            version=found[0].version,
            install=install,
        )
    raise CompilerMissing(
        "There is no C++17 compiler; install g++ 11 or clang++ 14 or newer, or run `{install}`.",
        install=install,
    )


def _choices() -> Iterator[tuple[str, ...]]:
    commands = [shlex.split(os.environ.get("CXX", "")), ["g++"], ["clang++"]]
    yield from ((path, *rest) for first, *rest in filter(None, commands) if (path := program_on_path(first)))
    if importlib.util.find_spec("ziglang") is not None:
        yield (sys.executable, "-P", "-m", "ziglang", "c++")


def probe(argv: tuple[str, ...]) -> Compiler | None:
    """The compiler behind a command, None where it does not answer like one that we know."""
    try:
        done = subprocess.run([*argv, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    first = done.stdout.partition("\n")[0].strip()
    if done.returncode or not first:
        return None
    if "ziglang" in argv:
        return Compiler("zig", argv, first)
    kind = "clang++" if "clang" in first else "g++" if "Free Software Foundation" in done.stdout else ""
    return Compiler(kind, argv, first) if kind else None


def _major(version: str) -> int:
    match = re.search(r"(\d+)\.\d+", version)
    return int(match[1]) if match else 0


@frozen
class Diagnostic:
    """One error of the compiler: file as the author knows it, 1-based line, what is wrong."""

    file: str
    line: int
    message: str


_ERROR = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?P<level>fatal error|error): (?P<message>.*)$", re.MULTILINE
)
_CONTEXT = re.compile(
    r"^(?:In file included from |\s+from |(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)?\s+"
    r"(?:required from|recursively required|note: in instantiation))"
)
_NOISE = (
    (re.compile(r"‘|’|'"), "'"),
    (re.compile(r"\bstd::__cxx11::"), "std::"),
    (re.compile(r"(?:::)?\bevokernel::twin::(?:detail::)?"), ""),
    (re.compile(r"\b(?:evokernel::)?AscendC::"), ""),
    (re.compile(r"\s*\[with .*\]"), ""),
    (re.compile(r"\s*\[-[WfF][\w=-]+\]"), ""),
)


def clean(message: str) -> str:
    """A compiler's sentence without our namespaces and its own template bindings."""
    for pattern, replacement in _NOISE:
        message = pattern.sub(replacement, message)
    return message.strip()


def diagnostics(output: str, files: Sequence[str]) -> tuple[Diagnostic, ...]:
    """The first errors, each at the line of the author's ``files`` that led to it where there is one."""
    lines = output.splitlines()
    found: list[Diagnostic] = []
    for index, line in enumerate(lines):
        match = _ERROR.match(line)
        if not match:
            continue
        message = clean(match["message"])
        file, number = _author_position(lines, index, match, files)
        item = Diagnostic(file, number, message)
        if item not in found:
            found.append(item)
    return tuple(found[:MAX_ERRORS])


def _author_position(
    lines: Sequence[str], index: int, match: re.Match[str], files: Sequence[str]
) -> tuple[str, int]:
    """An error inside a header is reported where the author's code asked for it."""
    if Path(match["file"]).name in files:
        return Path(match["file"]).name, int(match["line"])
    following = lines[index + 1 : index + 12]
    preceding = list(reversed(lines[max(0, index - 12) : index]))
    for line in (*preceding, *following):
        if _ERROR.match(line):
            continue
        context = _CONTEXT.match(line)
        if context and context["file"] and Path(context["file"]).name in files:
            return Path(context["file"]).name, int(context["line"])
    return Path(match["file"]).name, 0


def feedback(found: Sequence[Diagnostic], output: str) -> Sentence:
    """The errors as a proposer reads them, one a line; the output's last line where none was recognised."""
    if not found:
        tail = [line for line in output.strip().splitlines() if line.strip()][-3:]
        said = " ".join(tail) or Sentence("the compiler said nothing.")
        return Sentence("The kernel does not compile: {said}", said=said)
    return Sentence("\n".join(f"{item.file}:{item.line}: {item.message}" for item in found))


_UNREADABLE = re.compile(r"No such file or directory|Permission denied|file not found", re.IGNORECASE)
_TOO_MUCH = re.compile(
    r"out of memory|memory exhausted|cannot allocate|file too large|no space|killed|internal compiler error"
    r"|evokernel-launcher: quota|file size limit|resource temporarily",
    re.IGNORECASE,
)


def _without_paths(message: str) -> str:
    return Sentence("this file cannot be included.") if _UNREADABLE.search(message) else message


def candidate_feedback(output: str, files: Sequence[str]) -> Sentence:
    """The errors of a confined compiler, without a word of any file that is not the candidate's own.

    Only messages at a line of ``files``, or of a header that such a line asks for, are passed on; of
    everything else the kind of failure is said.
    """
    found = [item for item in diagnostics(output, files) if item.line and item.file in files]
    told = [
        Sentence("{where}: {what}", where=f"{item.file}:{item.line}", what=_without_paths(item.message))
        for item in found
    ]
    if told:
        return joined(told, "\n")
    if _TOO_MUCH.search(output):
        return Sentence(
            "The kernel needs more time, memory or disk to compile than a kernel may; make it smaller."
        )
    return Sentence("The kernel does not compile, and no line of it is named; remove what is no plain C++.")
