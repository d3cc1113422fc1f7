"""The C++ compiler of this machine, and its errors in the words of a kernel's author."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    def major(self) -> int:
        """The number before the first dot of the version, 0 where there is none."""
        match = re.search(r"(\d+)\.\d+", self.version)
        return int(match[1]) if match else 0

    @property
    def c_argv(self) -> tuple[str, ...]:
        """The same compiler for one file of C."""
        return (*self.argv, "-x", "c")


@cache
def detect_compiler() -> Compiler:
    """The first that is new enough: $CXX, g++, clang++, Zig's package. Raises CompilerMissing for none."""
    choices = [compiler for argv in _choices() if (compiler := probe(argv)) is not None]
    for compiler in choices:
        if compiler.major >= LEAST_VERSION[compiler.kind]:
            return compiler
    install = shlex.join([sys.executable, "-m", "pip", "install", "ziglang"])
    if choices:
        raise CompilerMissing(
            "The C++ compiler {version} is too old; install g++ 11 or clang++ 14 or newer, "
            "or run `{install}`.",
            version=choices[0].version,
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
_INCLUSION = re.compile(r"^(?:In file included from|\s+from) (?P<file>[^:\n]+):(?P<line>\d+)[:,]")
_ABSENT = re.compile(
    r"No such file|file not found|not declared|undeclared|does not name a type|unknown type name"
    r"|is not a member"
)
"""What a name or a header that is not there makes of the line that uses it; whatever else is said of that
line follows from it."""
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
    result = dict.fromkeys(diagnostic for diagnostic, _ in _errors(output, _named(files), inclusions=False))
    return tuple(result)[:MAX_ERRORS]


def project_diagnostics(output: str, files: Iterable[str], toolkit: Path) -> tuple[Diagnostic, ...]:
    """As ``diagnostics`` of a project on this machine: every file of it may be told of, each fault once.
    Files below ``toolkit`` are not the project's, whatever their names.

    An error in a header of the toolkit's is told at the line that includes it, where no other line asked for
    it. What is absent comes before what else the compiler says of the same line.
    """
    own = _named(files)
    ours = f"{toolkit}{os.sep}"
    errors = list(_errors(output, lambda file: own(file) and not file.startswith(ours), inclusions=True))
    first = {place: index for index, (_, place) in reversed(list(enumerate(errors)))}
    errors.sort(key=lambda error: (first[error[1]], _ABSENT.search(error[0].message) is None))
    messages = {diagnostic.message: diagnostic for diagnostic, _ in reversed(errors)}
    return tuple(
        diagnostic for diagnostic, _ in errors if messages.pop(diagnostic.message, None) is not None
    )[:MAX_ERRORS]


_Place = tuple[str, int]
_Own = Callable[[str], bool]
"""Whether a file, as the compiler spells it, is the author's."""


def _named(files: Iterable[str]) -> _Own:
    names = frozenset(Path(file).name for file in files)
    return lambda file: Path(file).name in names


def _errors(output: str, own: _Own, *, inclusions: bool) -> Iterator[tuple[Diagnostic, _Place]]:
    """Each error at its author's line, with the place where the compiler stood."""
    lines = output.splitlines()
    for index, line in enumerate(lines):
        if match := _ERROR.match(line):
            file, number = _author_position(lines, index, match, own, inclusions)
            place = (match["file"], int(match["line"]))
            yield Diagnostic(file, number, clean(match["message"])), place


def _author_position(
    lines: Sequence[str], index: int, match: re.Match[str], own: _Own, inclusions: bool
) -> _Place:
    """An error inside a header is reported where the author's code asked for it."""
    if own(match["file"]):
        return Path(match["file"]).name, int(match["line"])
    following = lines[index + 1 : index + 12]
    preceding = list(reversed(lines[max(0, index - 12) : index]))
    for line in (*preceding, *following):
        if _ERROR.match(line):
            continue
        context = _CONTEXT.match(line)
        if context and context["file"] and own(context["file"]):
            return Path(context["file"]).name, int(context["line"])
    including = _including(preceding, own) if inclusions else None
    return including or (Path(match["file"]).name, 0)


def _including(preceding: Sequence[str], own: _Own) -> _Place | None:
    """The author's line nearest to the header, of the includes that the lines before an error tell."""
    result = None
    for line in preceding:  # from the error upwards: the outermost file comes first
        if _ERROR.match(line):
            break
        inclusion = _INCLUSION.match(line)
        if inclusion and own(inclusion["file"]):
            result = Path(inclusion["file"]).name, int(inclusion["line"])
    return result


def feedback(diagnostics: Sequence[Diagnostic], output: str) -> Sentence:
    """The errors as a proposer reads them, one a line; the output's last line where none was recognised."""
    if not diagnostics:
        tail = [line for line in output.strip().splitlines() if line.strip()][-3:]
        said = " ".join(tail) or Sentence("the compiler said nothing.")
        return Sentence("The kernel does not compile: {said}", said=said)
    return Sentence("\n".join(f"{_place(diagnostic)}: {diagnostic.message}" for diagnostic in diagnostics))


def _place(diagnostic: Diagnostic) -> str:
    """Where an error is; of a file that is not the author's the name alone."""
    return f"{diagnostic.file}:{diagnostic.line}" if diagnostic.line else diagnostic.file


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
    errors = [
        diagnostic
        for diagnostic in diagnostics(output, files)
        if diagnostic.line and diagnostic.file in files
    ]
    told = [
        Sentence("{where}: {what}", where=f"{error.file}:{error.line}", what=_without_paths(error.message))
        for error in errors
    ]
    if told:
        return joined(told, "\n")
    if _TOO_MUCH.search(output):
        return Sentence(
            "The kernel needs more time, memory or disk to compile than a kernel may; make it smaller."
        )
    return Sentence("The kernel does not compile, and no line of it is named; remove what is no plain C++.")
