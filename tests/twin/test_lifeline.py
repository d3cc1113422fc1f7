"""Kernels and compilers end with the process that started them, however it ends, and not earlier."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from evokernel_core.domain.kernel import Strategy
from evokernel_core.lifeline import lifeline
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.twin.build import Twin, build_kernel, prepare, run_tool
from evokernel_core.twin.run import KERNEL_LIMITS, clean_environment, limited, run_process

pytestmark = pytest.mark.usefixtures("kernel_home")

GONE_S = 5.0
"""What was started must be gone so many seconds after its parent was killed."""

TILING = """\
#pragma once
#include <cstdint>
struct OpTiling { uint32_t blockDim; uint64_t workspaceBytes; };
inline bool ComputeTiling(const int64_t *, const float *, uint32_t, uint64_t, OpTiling &tiling)
{
    tiling.blockDim = 1;
    tiling.workspaceBytes = 0;
    return true;
}
"""
ENDLESS = """\
#include "kernel_operator.h"
#include "tiling.h"
extern "C" __global__ __vector__ void endless(GM_ADDR y, OpTiling tiling)
{
    for (volatile uint32_t turns = 0;; turns = turns + 1) {
    }
}
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    endless<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tiling);
}
"""
KERNEL = ascendc_source(TILING, ENDLESS, Strategy("hand"))

RUN = """
from pathlib import Path
from evokernel_core.twin.build import BuiltKernel, prepare
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.run import Limits, Mode, RunRequest, TensorFile, run_kernel
from evokernel_core.verifier.sandbox import sandbox_prefix
built = BuiltKernel(Path(sys.argv[1]), prepare())
scratch = Path(sys.argv[2])
prefix = sandbox_prefix(built.twin, [built.library.parent], [scratch])
request = RunRequest(Mode.CHECK, load_chip(), outputs=(TensorFile(scratch / "y", 32),))
work = lambda: run_kernel(built, request, Limits(wall_s=600, cpu_s=600), prefix, scratch)
"""
JUDGED = (
    RUN
    + """
from evokernel_core.twin.judge import Sandboxes, judge_kernel
sandboxes = Sandboxes(prefix, sandbox_prefix(built.twin, [built.library.parent], []))
work = lambda: judge_kernel(built, request, Limits(wall_s=600, cpu_s=600), sandboxes, scratch)
"""
)
COMPILE = """
from pathlib import Path
from evokernel_core.twin.build import prepare, run_tool
twin = prepare()
work = lambda: run_tool(twin, ["/bin/sh", "-c", "sleep 600 & sleep 600"], Path(sys.argv[2]))
"""
PARENT = """
import sys, threading, time
{work}
threading.Thread(target=work).start()
time.sleep(600)
"""


@pytest.fixture(scope="module")
def twin() -> Twin:
    return prepare()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for scripts; nothing that works in it outlives the test."""
    yield tmp_path
    for process in working_in(tmp_path):
        process.kill()


def working_in(folder: Path) -> list[psutil.Process]:
    """Every live process whose working directory lies here or below."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(folder):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def names(folder: Path) -> list[str]:
    found = []
    for process in working_in(folder):
        with suppress(psutil.NoSuchProcess):  # it ended since it was listed
            found.append(process.name())
    return found


def eventually(reached: object, seconds: float) -> bool:
    assert callable(reached)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if reached():
            return True
        time.sleep(0.05)
    return bool(reached())


def started(work: str, folder: Path, library: Path | str, waits_for: str) -> subprocess.Popen[bytes]:
    """A parent that works in the folder, in the middle of its work."""
    (folder / "parent.py").write_text(PARENT.format(work=work))
    command = [sys.executable, str(folder / "parent.py"), str(library), str(folder)]
    parent = subprocess.Popen(command, cwd=folder)
    assert eventually(lambda: any(name.startswith(waits_for) for name in names(folder)), 60)
    return parent


def test_a_running_kernel_ends_with_its_killed_parent(folder: Path) -> None:
    built = build_kernel(KERNEL)
    parent = started(RUN, folder, built.library, "evokernel-twin")
    assert len(working_in(folder)) == 4  # the parent, the watchers of its life and of its quota, the runner
    parent.kill()
    parent.wait()
    assert eventually(lambda: not working_in(folder), GONE_S), names(folder)


def test_a_judge_and_its_candidate_end_with_their_killed_parent(folder: Path) -> None:
    own = folder / "kernel"
    own.mkdir()
    library = Path(shutil.copy(build_kernel(KERNEL).library, own))
    parent = started(JUDGED, folder, library, "evokernel-candi")
    assert eventually(lambda: len(working_in(folder)) == 6, 10), names(folder)  # three watch
    parent.kill()
    parent.wait()
    assert eventually(lambda: not working_in(folder), GONE_S), names(folder)


def test_a_compiler_ends_with_its_killed_parent_and_so_does_what_it_started(folder: Path) -> None:
    parent = started(COMPILE, folder, "", "sleep")
    parent.kill()
    parent.wait()
    assert eventually(lambda: not working_in(folder), GONE_S), names(folder)


@pytest.mark.parametrize("which", [0, 1], ids=["of its life", "of its quota"])
def test_a_runner_ends_with_its_killed_launcher(which: int, folder: Path) -> None:
    """The death signal covers the processes between the two ends of the pipe."""
    built = build_kernel(KERNEL)
    parent = started(RUN, folder, built.library, "evokernel-twin")
    launchers = [process for process in working_in(folder) if "launch" in process.name()]
    launchers.sort(key=lambda process: process.pid)
    launchers[which].send_signal(signal.SIGKILL)
    assert eventually(lambda: not any("evokernel" in name for name in names(folder)), GONE_S)
    parent.kill()
    parent.wait()


def test_a_program_outlives_the_thread_that_started_it(twin: Twin, tmp_path: Path) -> None:
    """Programs belong to the process: the death signal of Linux would come with the thread's end."""
    command = [*limited(twin, KERNEL_LIMITS), "/bin/sh", "-c", "sleep 1; exit 7"]
    found: list[subprocess.Popen[bytes]] = []
    with lifeline() as line:
        thread = threading.Thread(
            target=lambda: found.append(subprocess.Popen(command, stdin=line, start_new_session=True))
        )
        thread.start()
        thread.join()
        assert found[0].wait(20) == 7


def test_runs_in_short_lived_threads_are_whole(twin: Twin, tmp_path: Path) -> None:
    command = [*limited(twin, KERNEL_LIMITS), "/bin/echo", "whole"]
    said: list[str] = []

    def run() -> None:
        said.append(run_process(command, tmp_path, 20, clean_environment()).stdout)

    threads = [threading.Thread(target=run) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["whole\n"] * 20


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", 0),
        ("exit 120", 120),
        ("kill -SEGV $$", -signal.SIGSEGV),
        ("kill -KILL $$", -signal.SIGKILL),
    ],
)
def test_the_launcher_ends_as_the_program_ends(script: str, status: int, twin: Twin, tmp_path: Path) -> None:
    command = [*limited(twin, KERNEL_LIMITS), "/bin/sh", "-c", script]
    assert run_process(command, tmp_path, 20, clean_environment()).exit_code == status


def test_a_programs_input_is_empty(twin: Twin, tmp_path: Path) -> None:
    command = [*limited(twin, KERNEL_LIMITS), "/bin/cat"]
    finished = run_process(command, tmp_path, 20, clean_environment())
    assert (finished.exit_code, finished.stdout, finished.timed_out) == (0, "", False)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_pipe_is_left_open(twin: Twin, tmp_path: Path) -> None:
    run_tool(twin, ["/bin/true"], tmp_path)
    before = open_descriptors()
    for _ in range(5):
        run_tool(twin, ["/bin/true"], tmp_path)
        run_process([*limited(twin, KERNEL_LIMITS), "/bin/true"], tmp_path, 20, clean_environment())
    assert open_descriptors() == before
