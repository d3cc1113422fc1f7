"""The compiler's preprocessor and libclang, both in the sandbox, as the audit's eyes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from attrs import frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import BuildError
from evokernel_core.lifeline import lifeline
from evokernel_core.targets.ascendc.audit.interface import Interface, interface_of
from evokernel_core.targets.ascendc.audit.reader import Unreadable, read
from evokernel_core.targets.ascendc.audit.unit import Unit
from evokernel_core.twin.build import Twin, header_flags, kernel_flags, run_tool
from evokernel_core.twin.compiler import Compiler
from evokernel_core.twin.toolchain import Confinement, ToolLimits, include_folders
from evokernel_core.verifier.sandbox import sandbox_prefix

PARSER_SOURCE = Path(__file__).with_name("parser.c")
HEADER = "everything.h"
_HEADER_TEXT = "".join(
    f"#include <{name}>\n" for name in ("kernel_operator.h", "cstdint", "cstddef", "cmath", "algorithm")
)
PREPROCESSOR_LIMITS = ToolLimits(file_size=8 * 1024**2, cpu_s=10)
PARSE_SECONDS = 60
MAX_OUTPUT = 64 * 1024**2
MAX_OWN_TEXT = 8 * 1024**2
"""Bytes of a candidate after its macros are expanded."""


@frozen
class FrontEnd:
    """A twin's parser with its precompiled header, and the interface that the header declares."""

    twin: Twin
    folder: Path
    interface: Interface

    def parse(self, text: str) -> Unit:
        """The tree of a candidate's own text. Raises Unreadable where the parser gives up on it."""
        with temporary.folder("audit") as name:
            work = Path(name)
            (work / "unit.cpp").write_text(text)
            options = (*_options(self.twin), "-include-pch", str(self.folder / "header.pch"))
            prefix = str(self.twin.include.resolve()) + os.sep
            command = ("unit", prefix, "unit.cpp", "-x", "c++", *options)
            status = _run_parser(self.twin, self.folder, command, work)
            if status:
                raise Unreadable
            with (work / "output").open(encoding="utf-8", errors="replace", newline="\n") as lines:
                return read(lines, text.encode())


def front_end_of(twin: Twin) -> FrontEnd:
    """The front end of a twin; builds it (about two seconds) the first time. Raises BuildError."""
    return _front_end(twin, _library())


@cache
def _front_end(twin: Twin, library: Path) -> FrontEnd:
    parts = (PARSER_SOURCE, Path(__file__), Path(__file__).with_name("interface.py"))
    own = hashlib.sha256(b"".join(path.read_bytes() for path in parts))
    own.update(f"{library} {metadata.version('libclang')} {twin.folder}".encode())
    folder = twin.folder / f"front-end-{own.hexdigest()[:16]}"
    if not (folder / "interface.json").exists():
        with (twin.folder / "front-end.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "interface.json").exists():
                _build(twin, folder)
    return FrontEnd(twin, folder, Interface.from_json(json.loads((folder / "interface.json").read_text())))


def _build(twin: Twin, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / HEADER).write_text(_HEADER_TEXT)
    compiler = (*twin.compiler.c_argv, "-O1", str(PARSER_SOURCE), "-o", str(folder / "parser"), "-ldl")
    done = subprocess.run(compiler, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError("The audit's parser does not build; report this: {said}", said=done.stderr[-500:])
    with temporary.folder_in(twin.folder, "building") as work:
        header = str(folder / HEADER)
        language = ("-x", "c++-header", *_options(twin))
        if _run_parser(twin, folder, ("header", "header.pch", header, *language), work):
            said = (work / "output").read_text()[-500:]
            raise BuildError("libclang does not read the twin's headers; report this: {said}", said=said)
        shutil.move(work / "header.pch", folder / "header.pch")
        prefix = str(twin.include.resolve()) + os.sep
        if _run_parser(twin, folder, ("names", prefix, header, *language), work):
            raise BuildError("libclang does not list the twin's headers; report this.")
        with (work / "output").open() as lines:
            result = interface_of(read(lines, b""), twin.include)
    (folder / "interface.json").write_text(json.dumps(result.to_json()))


def _run_parser(twin: Twin, folder: Path, command: tuple[str, ...], work: Path) -> int:
    """Runs the parser in the sandbox with ``work`` for its files; its records go to ``output`` there."""
    library = _library()
    reads = [folder, library.parent, *map(Path, include_folders(twin.compiler))]
    confined = sandbox_prefix(twin, reads, [work], quota=2 * MAX_OUTPUT, files=16)
    limits = (
        "--until-eof",
        "--address-space",
        str(2 * 1024**3),
        "--file-size",
        str(MAX_OUTPUT),
        "--cpu",
        str(PARSE_SECONDS),
    )
    argv = [str(twin.launcher), *limits, "--", *confined, str(folder / "parser"), str(library), *command]
    with (work / "output").open("w") as output, lifeline() as line:
        process = subprocess.Popen(
            argv,
            cwd=work,
            env={"LC_ALL": "C", "LIBCLANG_NOTHREADS": "1", "LIBCLANG_DISABLE_CRASH_RECOVERY": "1"},
            stdin=line,
            stdout=output,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            process.communicate(timeout=PARSE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return process.returncode


def _options(twin: Twin) -> tuple[str, ...]:
    """The compiler's own headers in its own order, so that both read the same ones."""
    system = (word for path in include_folders(twin.compiler) for word in ("-isystem", path))
    quiet = ("-Wno-everything", "-fno-spell-checking", "-ferror-limit=20")
    return ("-std=c++17", "-nostdinc", "-nostdinc++", *system, f"-I{twin.include}", *quiet)


@cache
def _library() -> Path:
    spec = find_spec("clang")
    folder = Path(next(iter(spec.submodule_search_locations or ()))) / "native" if spec else Path()
    paths = [path for path in folder.glob("libclang.*") if re.search(r"\.(so|dylib|dll)$", path.name)]
    if not paths:
        raise BuildError("The audit needs libclang; run `pip install libclang`.")
    return paths[0].resolve()


def preprocess(twin: Twin, work: Path, file: str, image: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """A file of ``work`` as the compiler's preprocessor leaves it: status, text, messages.

    ``image`` are the options of one of two images, which do without the precompiled header.
    """
    flags = (*_header_flags(twin.compiler, twin, image), "-I.", *image, "-E", file, "-o", f"{file}.ii")
    confinement = Confinement(work, (twin.folder,), PREPROCESSOR_LIMITS)
    argv = [*twin.compiler.argv, *kernel_flags(twin.compiler), *flags]
    status, messages = run_tool(twin, argv, work, confinement=confinement)
    output = work / f"{file}.ii"
    text = output.read_text(errors="replace") if not status and output.exists() else ""
    return status, text, messages


def _header_flags(compiler: Compiler, twin: Twin, image: tuple[str, ...]) -> tuple[str, ...]:
    if image:
        return (f"-I{twin.include}",)
    return (*header_flags(twin), *(("-fpch-preprocess",) if compiler.kind == "g++" else ()))
