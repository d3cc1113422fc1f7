"""Builds the twin once per content, and kernels against it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import BuildError, EvoKernelError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.hardware.ascend.abi import KERNEL
from evokernel_core.hardware.ascend.api.header import HEADER, api_header
from evokernel_core.lifeline import lifeline
from evokernel_core.paths import cache_dir
from evokernel_core.twin import kernel_cache
from evokernel_core.twin.blocks import MARKS, HiddenLoopError, with_marks
from evokernel_core.twin.compiler import (
    MAX_ERRORS,
    Compiler,
    candidate_feedback,
    detect_compiler,
    diagnostics,
    feedback,
    project_diagnostics,
)
from evokernel_core.twin.conditions import BUILT_IN, active_tokens
from evokernel_core.twin.device_calls import host_calls
from evokernel_core.twin.images import image_flags, needs_cube_image
from evokernel_core.twin.kernels import DeclaredKernel, find_kernels
from evokernel_core.twin.lexer import Token
from evokernel_core.twin.preprocess import LaunchSyntaxError, rewrite_launches
from evokernel_core.twin.toolchain import Confinement, ToolLimits, environment

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
SOURCES = HERE / "src"
_PARTS = tomllib.loads((HERE / "part_headers.toml").read_text(encoding="utf-8"))
PART_HEADERS = tuple(f"{folder}{name}.h" for folder, names in _PARTS.items() for name in names)
"""Headers of the interface's parts, each of which brings all of it."""
RUNNER_SOURCE = "runner_main.cpp"
GLUE_SOURCE = "glue.cpp"
STANDARD_HEADERS = "standard.h"
OPERATOR_SOURCE = "host/operator_host.cpp"
"""The main program of an operator's host code."""
LAUNCHER_SOURCES = SOURCES / "launcher"
CANDIDATE_SOURCE = "client/candidate_main.cpp"
"""The main program of a candidate's process."""
_NOT_IN_LIBRARY = (RUNNER_SOURCE, GLUE_SOURCE, OPERATOR_SOURCE, CANDIDATE_SOURCE)

_CLIENT = "client"
"""The folder of what stands for the library in a candidate's process."""
_IN_CLIENT = (
    *("judge/codec.cpp", "judge/wire.cpp", "fiber.cpp", "chip.cpp", "images.cpp", "matmul/tiling.cpp"),
    *("matmul/tiling_api.cpp", "host/host_calls.cpp", "host/keep_shape.cpp", "host/platform.cpp"),
    *("host/tiling_key.cpp", "failed_assert.cpp", "cube/fixpipe_call.cpp", "blocks.cpp"),
)
"""Sources of the library that are there too: they reach no tensor, no core and no result."""

_ROUNDING = "-ffp-contract=off"  # a fused multiply-add would skip the rounding that the chip does
LIBRARY_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-w", _ROUNDING)
KERNEL_FLAGS = ("-std=c++17", "-Og", "-fPIC", "-Werror=narrowing", "-fmax-errors=20", _ROUNDING)
"""Narrowing inside braces is an error, as it is for the device compiler. ``-Og`` compiles in less time than
``-O1``, and loops of a kernel's own run as fast within a few percent: its work is done in the library."""
INTERFACE, BLOCKS = "kernel_operator.h", "evokernel/twin/blocks.h"
"""Headers that come before a candidate's own text: all of the interface, which is precompiled, and as much of
it as marks need (twin/blocks.py)."""
UNDEFINED = ("-ftrivial-auto-var-init=pattern", "-fno-tree-fre")
"""What nobody initialised is not 0, as it would often be, but an odd number; where g++ numbers values, it
would take it for whatever it is on another way."""
TRAPS = ("-fsanitize=bounds,shift", "-fsanitize-undefined-trap-on-error")
"""An index outside of a local array and a shift by more bits than there are end the process, for a chip does
with them something else than this machine."""
HOST_TRAPS = ("-fsanitize=float-cast-overflow",)
"""The same of a fraction beyond an integer's range, in host code: AArch64 makes another number of it."""
JUDGED_FLAGS = ("-Werror=uninitialized",)
"""A verdict is asked for no kernel that reads a local variable before it is set, which may well be 0 here."""
OPERATOR_FLAGS = ("-std=c++17", "-O0", "-w", "-fPIC", "-DEVOKERNEL_OPERATOR_HOST")
COMPILE_SECONDS = 120
LAUNCHER_FAILED = 120
"""The launcher's own exit status."""
TOOL_LIMITS = ToolLimits()


class CandidateError(EvoKernelError):
    """The candidate itself is at fault; ``code`` classifies it, ``feedback`` is for its author."""

    def __init__(self, code: str, template: str, /, **values: object) -> None:
        super().__init__(template, **values)
        self.code = code

    @property
    def feedback(self) -> Sentence:
        return self.sentence


@frozen
class Twin:
    """A built twin: its folder holds ``include``, the library, the runner and the launcher."""

    folder: Path
    compiler: Compiler
    judged: bool = False
    """Kernels may name only what a judge does for a process of theirs; they run in one process, too."""

    @property
    def include(self) -> Path:
        return self.folder / "include"

    @property
    def library(self) -> Path:
        return self.folder / "libevokernel_twin.so"

    @property
    def runner(self) -> Path:
        return self.folder / "evokernel-twin-runner"

    @property
    def client(self) -> Path:
        """What a candidate that is judged is linked with: it takes the library's place under its name."""
        return self.folder / "client" / self.library.name

    @property
    def linked(self) -> Path:
        """What kernels are linked with."""
        return self.client if self.judged else self.library

    @property
    def candidate(self) -> Path:
        """The program of a candidate's process."""
        return self.folder / "evokernel-candidate"

    @property
    def operator_host(self) -> Path:
        """The object of an operator's host program that is the same for each operator."""
        return self.folder / "operator_host.o"

    @property
    def launcher(self) -> Path:
        return self.folder / "evokernel-launcher"


@frozen
class BuiltKernel:
    """A compiled candidate: its shared library, alone in its folder, and how long compiling took."""

    library: Path
    twin: Twin
    compile_s: float = 0.0


Told = Callable[[int, int], None]
"""Hears how many of how many files are compiled."""


def is_prepared() -> bool:
    """Whether the twin of these sources and this compiler is already built."""
    return (_twin_folder(detect_compiler()) / "done").exists()


def is_header(spelled: str) -> bool:
    """Whether the twin has a header of that path."""
    return spelled in PART_HEADERS or (INCLUDE / spelled).is_file()


def prepare(told: Told = lambda done, of: None) -> Twin:
    """The built twin; builds it (about half a minute) the first time. Raises BuildError."""
    compiler = detect_compiler()
    twin = Twin(_twin_folder(compiler), compiler)
    if not (twin.folder / "done").exists():
        with locked(twin.folder.with_suffix(".lock")):
            if not (twin.folder / "done").exists():
                _build_twin(twin, told)
    return twin


def _twin_folder(compiler: Compiler) -> Path:
    return twins_folder() / _content_hash(compiler)


def twins_folder() -> Path:
    """The cache's own folder, or one that several homes share where EVOKERNEL_TWIN_DIR names it. Without
    links in its path, for the audit knows the interface by the headers' one true place."""
    shared = os.environ.get("EVOKERNEL_TWIN_DIR")
    return (Path(shared) if shared else cache_dir() / "twin").resolve()


@cache
def _content_hash(compiler: Compiler) -> str:
    """Of everything that the twin is built from; it does not change while a process runs."""
    digest = hashlib.sha256(repr((compiler, LIBRARY_FLAGS, kernel_flags(compiler), OPERATOR_FLAGS)).encode())
    rewriting = [HERE / "preprocess.py", HERE / "lexer.py"]  # they make part of what is compiled
    for path in sorted([*INCLUDE.rglob("*"), *SOURCES.rglob("*"), *rewriting]):
        if path.is_file():
            digest.update(f"\n{path.relative_to(HERE)}\n".encode())
            digest.update(path.read_bytes())
    digest.update(api_header().encode() + repr(PART_HEADERS).encode())
    return digest.hexdigest()[:20]


@cache
def preparation_hash() -> str:
    """Of the code that makes of a program's or an operator's files what is compiled, and compiles it."""
    texts = [path.read_bytes() for path in sorted(HERE.rglob("*.py"))]
    return hashlib.sha256(repr(texts).encode()).hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a file as a lock among processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_twin(twin: Twin, told: Told) -> None:
    shutil.rmtree(twin.folder, ignore_errors=True)
    shutil.copytree(INCLUDE, twin.include)
    (twin.include / HEADER).write_text(api_header())
    for name in PART_HEADERS:
        (twin.include / name).parent.mkdir(parents=True, exist_ok=True)
        (twin.include / name).write_text(f'#pragma once\n#include "{INTERFACE}"\n')
    objects = twin.folder / "objects"
    objects.mkdir()
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        standard = pool.submit(_precompile_standard_headers, twin)
        work = [standard, pool.submit(_precompile_header, twin), pool.submit(_compile_operator_host, twin)]
        work += [pool.submit(_compile_object, twin, path, standard) for path in _library_sources()]
        for done, _ in enumerate(as_completed(work), 1):
            told(done, len(work))
        built = [future.result() for future in work]
    compiled = {path.name: str(path) for path in built if path.suffix == ".o"}
    in_client = {_object_name(SOURCES / name) for name in _IN_CLIENT}
    client = {name for name in compiled if name.startswith(f"{_CLIENT}-")} | in_client
    _link_library(
        twin, twin.library, [path for name, path in compiled.items() if name not in client - in_client]
    )
    twin.client.parent.mkdir()
    _link_library(twin, twin.client, [compiled[name] for name in sorted(client)])
    _link_program(twin, twin.runner, RUNNER_SOURCE, twin.library, "$ORIGIN")
    _link_program(twin, twin.candidate, CANDIDATE_SOURCE, twin.client, "$ORIGIN/client")
    link_launcher(twin.compiler, twin.launcher)
    shutil.rmtree(objects)
    (twin.folder / "done").touch()


def link_launcher(compiler: Compiler, place: Path) -> None:
    """Builds the launcher, which needs nothing of the twin. Raises BuildError."""
    parts = (("-x", "c", str(path)) for path in sorted(LAUNCHER_SOURCES.glob("*.c")))
    _run([*compiler.argv, "-O1", "-o", str(place), *(word for part in parts for word in part)])


def _link_library(twin: Twin, target: Path, objects: Sequence[str]) -> None:
    own = (*twin.compiler.argv, *LIBRARY_FLAGS)
    name = f"-Wl,-soname,{twin.library.name}"
    _run([*own, "-shared", name, "-Wl,--no-undefined", "-o", str(target), *objects, "-lpthread", "-ldl"])


def _link_program(twin: Twin, target: Path, source: str, library: Path, place: str) -> None:
    own = (*twin.compiler.argv, *LIBRARY_FLAGS, f"-I{twin.include}", f"-I{SOURCES}", "-rdynamic")
    _run(
        [
            *own,
            "-o",
            str(target),
            str(SOURCES / source),
            str(library),
            f"-Wl,-rpath,{place}",
            "-lpthread",
            "-ldl",
        ]
    )


def _library_sources() -> list[Path]:
    sources = sorted(SOURCES.rglob("*.cpp"))
    return [path for path in sources if str(path.relative_to(SOURCES)) not in _NOT_IN_LIBRARY]


def _object_name(source: Path) -> str:
    return "-".join(source.relative_to(SOURCES).with_suffix(".o").parts)


def _compile_object(twin: Twin, source: Path, standard: Future[Path]) -> Path:
    target = twin.folder / "objects" / _object_name(source)
    include = [f"-I{twin.include}", f"-I{SOURCES}", *_precompiled(twin.compiler, standard.result())]
    _run([*twin.compiler.argv, *LIBRARY_FLAGS, *include, "-c", str(source), "-o", str(target)])
    return target


def _precompiled(compiler: Compiler, header: Path) -> tuple[str, ...]:
    """What puts a precompiled header in front of a source: g++ looks for it beside the header's text."""
    return (
        ("-include", str(header.with_suffix(""))) if compiler.kind == "g++" else ("-include-pch", str(header))
    )


def _compile_operator_host(twin: Twin) -> Path:
    include = [f"-I{twin.include}", f"-I{SOURCES}"]
    source, target = str(SOURCES / OPERATOR_SOURCE), twin.operator_host
    _run([*twin.compiler.argv, *OPERATOR_FLAGS, *include, "-c", source, "-o", str(target)])
    return target


def _precompile_header(twin: Twin) -> Path:
    header = twin.include / "kernel_operator.h"
    return _precompile(twin.compiler, header, *kernel_flags(twin.compiler), f"-I{twin.include}")


def _precompile_standard_headers(twin: Twin) -> Path:
    """Parsing them is half of what the library's sources take to compile."""
    header = twin.folder / "objects" / STANDARD_HEADERS
    shutil.copyfile(SOURCES / STANDARD_HEADERS, header)
    return _precompile(twin.compiler, header, *LIBRARY_FLAGS)


def _precompile(compiler: Compiler, header: Path, *flags: str) -> Path:
    target = header.with_name(header.name + (".gch" if compiler.kind == "g++" else ".pch"))
    _run([*compiler.argv, *flags, "-x", "c++-header", str(header), "-o", str(target)])
    return target


def kernel_flags(compiler: Compiler) -> tuple[str, ...]:
    """The flags of a candidate's compilation; the precompiled header needs the same ones."""
    if compiler.kind == "g++":
        return (*KERNEL_FLAGS, *TRAPS, *(UNDEFINED if compiler.major >= 12 else ()))
    plain = (*KERNEL_FLAGS, UNDEFINED[0])
    flags = tuple("-ferror-limit=20" if flag.startswith("-fmax-errors") else flag for flag in plain)
    # on unless told otherwise
    return (*flags, *(("-fno-sanitize=undefined",) if compiler.kind == "zig" else ()), *TRAPS)


def header_flags(twin: Twin) -> tuple[str, ...]:
    """What makes a candidate see the AscendC interface, precompiled."""
    include = f"-I{twin.include}"
    if twin.compiler.kind == "g++":
        return (include,)
    return (include, "-include-pch", str(twin.include / "kernel_operator.h.pch"))


def _run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = feedback(diagnostics(done.stderr, ()), done.stderr)
        raise BuildError(
            "The twin does not build with {compiler}; report this: {errors}", compiler=argv[0], errors=errors
        )


def build_kernel(source: KernelSource) -> BuiltKernel:
    """The candidate as a shared library, from the cache where the same text was built before.

    Raises CandidateError with code ``compile`` where the candidate does not compile and BuildError where
    the tools fail.
    """
    twin = prepare()
    _check_source(source.files)
    return build_files(evolve(twin, judged=True), source.files)


@lru_cache(maxsize=256)
def _check_source(files: Mapping[str, str]) -> None:
    """``check_callees`` once for each text: a kernel is built again for each of its cases."""
    macros = dict(BUILT_IN)
    check_callees({name: tuple(active_tokens(text, macros)) for name, text in files.items()})


def candidate_files(files: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """A kernel's files and its glue as they are compiled, and whether there is an image for the cube cores.

    Raises CandidateError for a launch that cannot be read.
    """
    everything = {**files, GLUE_SOURCE: (SOURCES / GLUE_SOURCE).read_text()}
    try:
        known = find_kernels(tuple(active_tokens(text, dict(BUILT_IN))) for text in files.values())
        written = {name: _as_unit(name, text, KERNEL, known) for name, text in everything.items()}
        return written, needs_cube_image(files.values(), known)
    except ValueError as error:  # a bracket that nothing closes
        raise CandidateError("compile", error.args[0]) from error


@frozen
class Around:
    """What of the author's lies beside the files of a kernel: folders that the compiler may read, and the
    names of the files there, whose lines its errors may name."""

    folders: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()


NOTHING_AROUND = Around()


def build_files(
    twin: Twin,
    files: Mapping[str, str],
    glue: str | None = None,
    options: Sequence[str] = (),
    label: str = KERNEL,
    kernels: Mapping[str, DeclaredKernel] | None = None,
    around: Around = NOTHING_AROUND,
) -> BuiltKernel:
    """Compiles ``op_kernel.cpp`` among ``files`` with the glue into a library of their content's name.

    ``label`` is the file that errors in op_kernel.cpp are reported in. ``kernels`` says on which cores
    kernels run where that is not to be read from the files.
    """
    glue_text = (SOURCES / GLUE_SOURCE).read_text() if glue is None else glue
    everything = {**files, "glue.cpp": glue_text}
    about = (
        list(options),
        label,
        sorted((kernels or {}).items()),
        twin.judged,
        MARKS,
        HOST_TRAPS,
        JUDGED_FLAGS,
    )
    content = (sorted(everything.items()), *about)
    folder = kernel_cache.folder_of(twin.folder, *content)
    if kernel_cache.has(folder, "kernel.so"):
        return BuiltKernel(folder / "kernel.so", twin)
    started = time.monotonic()
    folder.parent.mkdir(parents=True, exist_ok=True)
    known = kernels or find_kernels(tuple(active_tokens(text, dict(BUILT_IN))) for text in files.values())
    with temporary.folder_in(folder.parent, "building") as work:
        for name, text in everything.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(_marked(name, _as_unit(name, text, label, known), files.values()))
        strict = JUDGED_FLAGS if twin.judged else ()
        flags = (*kernel_flags(twin.compiler), *strict, *header_flags(twin), "-I.", *options)
        confinement = Confinement(work, (twin.folder, *around.folders), TOOL_LIMITS)
        unit = _Unit(twin, confinement, flags, (label, *files, *around.names))
        _build_in(unit, folder, needs_cube_image(files.values(), known))
        publish(work / "result", folder)
    kernel_cache.added(folder)
    return BuiltKernel(folder / "kernel.so", twin, time.monotonic() - started)


def check_callees(files: Mapping[str, Sequence[Token]], *, constexpr_on_device: bool = False) -> None:
    """Raises CandidateError for device code that calls functions of the host: g++ knows no difference."""
    result = host_calls(files, constexpr_on_device=constexpr_on_device)
    if result:
        raise CandidateError("compile", joined((call.message for call in result[:MAX_ERRORS]), "\n"))


@frozen
class _Unit:
    """A candidate on its way through the compiler: where, with what, and its files' names."""

    twin: Twin
    confinement: Confinement
    flags: tuple[str, ...]
    names: tuple[str, ...]

    def compile(self, name: str, output: str, image: Sequence[str], header: str) -> None:
        """Compiles a file behind ``header``, which declares what its marks call; an image of its own does
        without the precompiled header."""
        flags = tuple(flag for flag in self.flags if not image or ("-pch" not in flag and ".pch" not in flag))
        before = () if "-include-pch" in flags else ("-include", header)
        argv = [*self.twin.compiler.argv, *flags, *image, *before, "-c", name, "-o", output]
        status, text = self._run(argv)
        if status:
            raise CandidateError("compile", self._told(text))

    def _told(self, output: str) -> Sentence:
        """A judged candidate learns of its own files alone, whoever runs a project of theirs of all."""
        names = (*self.names, GLUE_SOURCE)
        if self.twin.judged:
            return candidate_feedback(output, names)
        return feedback(project_diagnostics(output, names, self.twin.include), output)

    def link(self, output: str, *inputs: str) -> None:
        """Links a shared library in which nothing is left undefined."""
        (self.confinement.work / "result").mkdir(exist_ok=True)
        argv = [*self.twin.compiler.argv, "-shared", "-o", f"result/{output}", *inputs]
        argv += [str(self.twin.linked), "-Wl,--no-undefined"]
        status, text = self._run(argv)
        if status:
            raise CandidateError("link", _undefined(text) or self._told(text))

    def _run(self, argv: Sequence[str]) -> tuple[int, str]:
        return run_tool(self.twin, argv, self.confinement.work, confinement=self.confinement)


def _build_in(unit: _Unit, folder: Path, two_images: bool) -> None:
    """Compiles the candidate, for each image, and its glue side by side, and links them."""
    image = image_flags(False) if two_images else ()
    with ThreadPoolExecutor(max_workers=2) as pool:
        work = [
            pool.submit(unit.compile, KERNEL, "op_kernel.o", image, INTERFACE),
            pool.submit(unit.compile, "glue.cpp", "glue.o", HOST_TRAPS, BLOCKS),
        ]
        if two_images:
            work.append(pool.submit(unit.compile, KERNEL, "cube.o", image_flags(True), INTERFACE))
        for future in work:
            future.result()
    more: tuple[str, ...] = ()
    if two_images:
        unit.link("kernel.cube.so", "cube.o", "-Wl,-Bsymbolic", "-Wl,-soname,kernel.cube.so")
        more = ("-Wl,--no-as-needed", "result/kernel.cube.so", f"-Wl,-rpath,{folder}")
    unit.link("kernel.so", "op_kernel.o", "glue.o", *more)


def publish(result: Path, folder: Path) -> None:
    """Renames the finished folder: whoever sees the library sees all of it."""
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            result.rename(folder)


def _as_unit(name: str, text: str, label: str, kernels: Mapping[str, DeclaredKernel]) -> str:
    """A file as it is compiled: launches rewritten, and errors at the author's lines."""
    if not name.endswith(".cpp"):
        return text
    shown = label if name == KERNEL else name
    try:
        return f'#line 1 "{shown}"\n{rewrite_launches(text, kernels, name)}\n'
    except LaunchSyntaxError as error:
        raise CandidateError("compile", "{file}: {error}", file=shown, error=error) from error


def _marked(name: str, unit: str, files: Iterable[str]) -> str:
    """A file with marks at its basic blocks, beside all ``files``. Raises CandidateError for loops that
    cannot be marked."""
    if name == "glue.cpp":
        return unit
    try:
        return with_marks(unit, files)
    except HiddenLoopError as error:
        raise CandidateError("compile", "{file}: {error}", file=name, error=error) from error


def _undefined(output: str) -> Sentence | None:
    """What a linker misses, None where it ends for another reason."""
    names = sorted(set(re.findall(r"undefined reference to [`'‘]([^'’]+)['’]", output)))
    if not names:
        return None
    return Sentence(
        "Nothing defines {names}; define it in op_kernel.cpp or call another function.",
        names=", ".join(names[:5]),
    )


def run_tool(
    twin: Twin,
    argv: Sequence[str],
    cwd: Path,
    seconds: float = COMPILE_SECONDS,
    confinement: Confinement | None = None,
) -> tuple[int, str]:
    """Runs a compiler on a text; its status and messages. Raises CandidateError on time-out.

    The compiler and all that it starts end with this process. Without ``confinement`` it sees what the
    person who started this program sees: for programs of that person's own.
    """
    words = {**os.environ, "LC_ALL": "C", "TMPDIR": str(cwd)}
    options: tuple[str, ...] = ()
    if confinement is not None:
        words, options = environment(twin.compiler, cwd), confinement.options(twin.compiler)
    with lifeline() as line:
        process = subprocess.Popen(
            [str(twin.launcher), "--until-eof", *options, "--", *argv],
            cwd=cwd,
            env=words,
            stdin=line,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            _, output = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise CandidateError(
                "compile-timeout",
                "The kernel takes more than {seconds} s to compile; use fewer nested templates.",
                seconds=f"{seconds:.0f}",
            ) from error
        if process.returncode == LAUNCHER_FAILED and "evokernel-launcher: " in output:
            raise BuildError(
                "The compiler could not be confined: {said}", said=output.strip().splitlines()[-1]
            )
        return process.returncode, output
