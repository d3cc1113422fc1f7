"""Building once per content, the compiler's words, and processes that end badly."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from evokernel_core.domain.errors import BuildError
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.twin import build, compiler
from evokernel_core.twin.build import CandidateError, build_kernel, is_prepared, prepare
from evokernel_core.twin.compiler import Compiler, Diagnostic, clean, detect_compiler, diagnostics, feedback
from evokernel_core.twin.run import (
    KERNEL_LIMITS,
    ExitStatus,
    Finished,
    Mode,
    RunRequest,
    TensorFile,
    clean_environment,
    read_result,
    request_text,
    run_kernel,
    run_process,
)

pytestmark = pytest.mark.usefixtures("kernel_home")

TILING = """\
#pragma once
#include <cstdint>
struct OpTiling { uint32_t blockDim; uint64_t workspaceBytes; uint32_t count; };
inline bool ComputeTiling(const int64_t *sizes, const float *, uint32_t, uint64_t, OpTiling &tiling)
{
    tiling.blockDim = 1;
    tiling.workspaceBytes = 0;
    tiling.count = static_cast<uint32_t>(sizes[0]);
    return true;
}
"""

KERNEL = """\
#include "kernel_operator.h"
#include "tiling.h"
using namespace AscendC;
extern "C" __global__ __vector__ void one(GM_ADDR y, OpTiling tiling)
{
    GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float *)y, tiling.count);
    TPipe pipe;
    TQue<QuePosition::VECOUT, 1> queue;
    pipe.InitBuffer(queue, 1, tiling.count * sizeof(float));
    LocalTensor<float> ones = queue.AllocTensor<float>();
    Duplicate(ones, 1.0f, tiling.count);
    queue.EnQue(ones);
    ones = queue.DeQue<float>();
    DataCopy(gm, ones, tiling.count);
    queue.FreeTensor(ones);
}
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    one<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tiling);
}
"""


def source(kernel: str = KERNEL, tiling: str = TILING) -> KernelSource:
    return ascendc_source(tiling, kernel, Strategy("hand"))


def test_the_twin_is_built_once() -> None:
    first = prepare()
    assert is_prepared()
    built = first.library.stat().st_mtime_ns
    assert prepare() == first
    assert first.library.stat().st_mtime_ns == built
    for path in (first.library, first.runner, first.launcher, first.include / "kernel_operator.h"):
        assert path.exists()


@pytest.mark.skipif(detect_compiler().kind != "g++", reason="the headers have these names in libstdc++")
def test_the_interface_leaves_out_what_each_kernel_would_instantiate() -> None:
    """Strings and special functions each took as long as a kernel's own text."""
    argv = [*detect_compiler().argv, "-std=c++17", f"-I{prepare().include}", "-M", "-x", "c++", "-"]
    asked = '#include "kernel_operator.h"\n'
    found = subprocess.run(argv, input=asked, capture_output=True, text=True, check=True).stdout
    read = [name for name in ("cmath", "bits/specfun.h", "bits/basic_string.h") if f"/{name}" in found]
    assert read == ["cmath"]


@pytest.mark.parametrize("name", ['"x"', "Named()"])
def test_a_tensor_is_written_to_a_file_of_either_kind_of_name(name: str) -> None:
    text = (
        '#include "kernel_operator.h"\nstruct Named { const char *c_str() const { return nullptr; } };\n'
        f"int f(AscendC::LocalTensor<half> t) {{ return t.ToFile({name}); }}"
    )
    argv = [
        *detect_compiler().argv,
        "-std=c++17",
        f"-I{prepare().include}",
        "-fsyntax-only",
        "-x",
        "c++",
        "-",
    ]
    assert subprocess.run(argv, input=text, text=True, check=False).returncode == 0


def test_a_kernel_is_compiled_once() -> None:
    first = build_kernel(source())
    again = build_kernel(source())
    assert again.library == first.library
    assert again.compile_s == 0.0
    other = build_kernel(source(KERNEL.replace("1.0f", "2.0f")))
    assert other.library != first.library


def test_two_builders_of_one_kernel_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_KERNELS_DIR", str(tmp_path))
    text = KERNEL.replace("1.0f", "3.0f")
    found: list[Path] = []

    def work() -> None:
        found.append(build_kernel(source(text)).library)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    leftovers = [path for path in found[0].parent.parent.iterdir() if path.name.startswith("building-")]
    assert leftovers == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Duplicate(ones, 1.0f,", "Duplicat(ones, 1.0f,", "op_kernel.cpp:12: 'Duplicat' was not"),
        ("TPipe pipe;", "TPipe pipe", "op_kernel.cpp:"),
        (
            "<<<tiling.blockDim, nullptr, stream>>>",
            "<<<tiling.blockDim>>>",
            "has 1 parameters between <<< and >>>",
        ),
        ("tensors[0], tiling);", "tensors[0]);", "too few arguments"),
    ],
)
def test_compile_errors_are_the_authors(old: str, new: str, words: str) -> None:
    assert old in KERNEL
    with pytest.raises(CandidateError) as error:
        build_kernel(source(KERNEL.replace(old, new)))
    assert error.value.code == "compile"
    assert words in error.value.feedback
    assert "evokernel::" not in error.value.feedback
    assert len(error.value.feedback.splitlines()) <= compiler.MAX_ERRORS


def test_an_error_in_the_tiling() -> None:
    with pytest.raises(CandidateError, match=r"tiling\.h:8: "):
        build_kernel(source(tiling=TILING.replace("sizes[0]", "size[0]")))


def test_a_tiling_too_large_for_a_launch() -> None:
    big = TILING.replace("uint32_t count;", "uint32_t count; uint8_t table[70000];")
    with pytest.raises(CandidateError, match="65536 bytes"):
        build_kernel(source(tiling=big))


def test_a_compiler_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CandidateError) as error:
        build.run_tool(
            build.prepare(), [sys.executable, "-c", "import time; time.sleep(30)"], Path("/tmp"), 0.2
        )
    assert error.value.code == "compile-timeout"


def test_no_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_choices", lambda: iter(()))
    detect_compiler.cache_clear()
    try:
        with pytest.raises(BuildError, match=r"install g\+\+ 11"):
            detect_compiler()
        old = Compiler("g++", ("g++",), "g++ 9.4.0")
        monkeypatch.setattr(compiler, "_choices", lambda: iter([("g++",)]))
        monkeypatch.setattr(compiler, "probe", lambda argv: old)
        with pytest.raises(BuildError, match=r"9\.4\.0 is too old"):
            detect_compiler()
    finally:
        monkeypatch.undo()
        detect_compiler.cache_clear()


GCC = """\
In file included from op_kernel.cpp:1:
/c/include/vector.h: In instantiation of 'void evokernel::twin::detail::Add(T) [with T = int]':
op_kernel.cpp:12:5:   required from here
/c/include/vector.h:40:3: error: static assertion failed: AscendC::Add takes half, float [-fpermissive]
op_kernel.cpp:20:1: error: 'x' was not declared in this scope
op_kernel.cpp:20:1: error: 'x' was not declared in this scope
tiling.h:3:2: fatal error: nothing.h: No such file or directory
"""

CLANG = """\
/c/include/vector.h:40:3: error: static assertion failed: Add takes half, float
op_kernel.cpp:12:5: note: in instantiation of function template specialization 'Add<int>' requested here
"""


def test_errors_in_headers_are_reported_where_they_were_asked_for() -> None:
    files = ("op_kernel.cpp", "tiling.h")
    assert diagnostics(GCC, files) == (
        Diagnostic("op_kernel.cpp", 12, "static assertion failed: Add takes half, float"),
        Diagnostic("op_kernel.cpp", 20, "'x' was not declared in this scope"),
        Diagnostic("tiling.h", 3, "nothing.h: No such file or directory"),
    )
    assert diagnostics(CLANG, files) == (
        Diagnostic("op_kernel.cpp", 12, "static assertion failed: Add takes half, float"),
    )


def test_our_names_are_left_out_of_messages() -> None:
    message = "no match for ‘evokernel::twin::LocalRef’ and ‘AscendC::LocalTensor<float>’ [with T = float]"
    assert clean(message) == "no match for 'LocalRef' and 'LocalTensor<float>'"


def test_output_that_nobody_understands_is_passed_on() -> None:
    assert "internal error" in feedback((), "g++: internal error\n")
    assert "said nothing" in feedback((), "")


# --- running ---


def request(tmp_path: Path, size: int, nbytes: int | None = None) -> RunRequest:
    output = TensorFile(tmp_path / "y.bin", 4 * size if nbytes is None else nbytes)
    return RunRequest(Mode.CHECK, load_chip(), sizes=(size,), outputs=(output,), repeat=2)


def test_a_kernel_runs(tmp_path: Path) -> None:
    result = run_kernel(build_kernel(source()), request(tmp_path, 64))
    assert (result.status, result.hazards, result.outputs_written) == (ExitStatus.OK, (), (True,))
    assert (tmp_path / "y.bin").read_bytes() == b"\x00\x00\x80\x3f" * 64
    assert result.latency_us > 0
    assert result.launches[0].block_dim == 1


def test_hazards_come_with_their_line(tmp_path: Path) -> None:
    result = run_kernel(build_kernel(source()), request(tmp_path, 64, nbytes=128))
    hazard = next(hazard for hazard in result.hazards if hazard.code == "out-of-bounds")
    assert (hazard.file, hazard.line) == ("op_kernel.cpp", 15)


def test_the_request_is_what_the_protocol_says(tmp_path: Path) -> None:
    text = request_text(Path("/k.so"), request(tmp_path, 7), Path("/f"))
    assert text.splitlines() == [
        "library /k.so",
        "result /f/result.json",
        "mode check",
        "chip /f/chip.txt",
        "sizes 7",
        "scalars",
        f"tensor out {tmp_path}/y.bin 28",
        "repeat 2",
    ]


@pytest.mark.parametrize(
    ("exit_code", "stderr", "timed_out", "status", "words"),
    [
        (-9, "", True, ExitStatus.TIMEOUT, "within 120 s."),
        (-signal.SIGXCPU, "", False, ExitStatus.TIMEOUT, "within 30 s of work"),
        (-signal.SIGSEGV, "", False, ExitStatus.CRASH, "SIGSEGV"),
        (-signal.SIGABRT, "x\nassertion failed", False, ExitStatus.CRASH, "assertion failed"),
        (-signal.SIGABRT, "terminate: std::bad_alloc", False, ExitStatus.MEMORY, "4 GiB"),
        (0, "", False, ExitStatus.CRASH, "exit status 0"),
        (3, "", False, ExitStatus.CRASH, "exit status 3"),
    ],
)
def test_a_process_without_a_result_is_explained(
    exit_code: int, stderr: str, timed_out: bool, status: ExitStatus, words: str, tmp_path: Path
) -> None:
    finished = Finished(exit_code, "", stderr, 1.0, timed_out)
    result = read_result(tmp_path / "none.json", finished, KERNEL_LIMITS, load_chip())
    assert result.status is status
    assert words in result.message


def test_a_forged_result_does_not_hide_a_crash(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"ok": true, "error": "", "hazards": [], "launches": []}')
    finished = Finished(-signal.SIGSEGV, "", "", 1.0, False)
    assert (
        read_result(tmp_path / "result.json", finished, KERNEL_LIMITS, load_chip()).status is ExitStatus.CRASH
    )


def test_the_whole_group_is_killed(tmp_path: Path) -> None:
    """A child that outlives its parent goes when the parent's time or life is over."""
    script = "import subprocess, sys; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True)"
    finished = run_process([sys.executable, "-c", script], tmp_path, 10, clean_environment())
    assert not finished.timed_out
    child = int(finished.stdout)
    deadline = time.monotonic() + 5
    while psutil.pid_exists(child) and time.monotonic() < deadline:
        if psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.01)
    assert not psutil.pid_exists(child)


def test_time_is_up(tmp_path: Path) -> None:
    started = time.monotonic()
    finished = run_process(["/bin/sleep", "30"], tmp_path, 0.2, clean_environment())
    assert finished.timed_out
    assert time.monotonic() - started < 5


def test_the_environment_holds_nothing_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_API_KEY", "secret")
    assert "secret" not in str(clean_environment())


def test_a_library_is_published_by_one_at_a_time(tmp_path: Path) -> None:
    """Who waits for another sees what that one has published, and leaves its own."""
    folder, result = tmp_path / "kernel", tmp_path / "result"
    result.mkdir()
    with ThreadPoolExecutor(1) as pool:
        with build.locked(folder.with_suffix(".lock")):
            waiting = pool.submit(build.publish, result, folder)
            with pytest.raises(TimeoutError):
                waiting.result(0.2)
            folder.mkdir()
        waiting.result(10)
    assert folder.is_dir()
    assert result.is_dir()
