"""Programs that never end, want too much, crash or do what device code cannot: a reason, nothing left."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evokernel_core.cli.twin import run

pytestmark = pytest.mark.usefixtures("kernel_home")

PROGRAM = """\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>
#include <unistd.h>
#include "acl/acl.h"
#include "kernel_operator.h"

struct Numbers { const char *null; int zero; int unknown; };

__global__ __vector__ __aicore__ void bad(GM_ADDR z, int what, Numbers numbers)
{
    AscendC::GlobalTensor<int32_t> to;
    to.SetGlobalBuffer((__gm__ int32_t *)z, 64);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    if (what == 0) {
        to.SetValue(0, 1);
    } else if (what == 1) {
        while (numbers.zero == 0) {
            asm volatile("");
        }
    } else if (what == 2) {
        pipe.InitBuffer(buffer, 4000000000U);
    } else if (what == 3) {
        to.SetValue(0, *numbers.null);
    } else if (what == 4) {
        to.SetValue(0, 7 / numbers.zero);
    } else if (what == 5) {
        to.SetValue(0, static_cast<int32_t>(std::time(nullptr)));
    } else if (what == 6) {
        std::ifstream file("/etc/hostname");
        to.SetValue(0, file.good());
    } else if (what == 7) {
        to.SetValue(0, std::chrono::steady_clock::now().time_since_epoch().count() > 0);
    } else if (what == 8) {
        to.SetValue(0, std::rand());
    } else if (what == 9) {
        volatile int deep[1 << 10];
        deep[numbers.unknown] = 1;
        numbers.unknown += 1;
        bad(z, what, numbers);
        to.SetValue(0, deep[numbers.unknown - 1]);
    }
}

int main(int argc, char **argv)
{
    const std::string where = argc > 1 ? argv[1] : "";
    if (where == "child") {
        if (fork() == 0) {
            std::ofstream(argv[2]) << getpid() << std::flush;
            for (;;) {
                pause();
            }
        }
        while (!std::ifstream(argv[2]).good()) {
            usleep(1000);
        }
    }
    if (where == "host memory") {
        std::vector<char> big(100ULL << 30);
        std::printf("%zu", big.size());
    }
    if (where == "exit") {
        std::exit(3);
    }
    if (where == "abort") {
        std::abort();
    }
    uint8_t *z = nullptr;
    aclrtSetDevice(0);
    aclrtMalloc((void **)&z, 256, ACL_MEM_MALLOC_HUGE_FIRST);
    bad<<<1, nullptr, nullptr>>>(z, where == "kernel" ? std::atoi(argv[2]) : 0, Numbers{nullptr, 0, argc});
    return 0;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "bad.asc"
    path.write_text(PROGRAM)
    return str(path)


def report(program: str, *arguments: str, limit: str = "60") -> dict[str, Any]:
    command = ["--json", "--limit", limit, program, "--", *arguments]
    result = CliRunner().invoke(run, command, catch_exceptions=False)
    data: dict[str, Any] = json.loads(result.stdout)
    return data


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["kernel", "1"], "did not finish within 1 s"),
        (["kernel", "3"], "SIGSEGV"),
        (["kernel", "4"], "SIGFPE"),
        (["host memory"], "more than 16 GiB of host memory"),
        (["exit"], "ended with exit status 3"),
        (["abort"], "SIGABRT"),
    ],
)
def test_a_run_that_cannot_end_well_says_why(program: str, arguments: list[str], words: str) -> None:
    data = report(program, *arguments, limit="1" if arguments[-1] == "1" else "60")
    assert not data["ok"]
    assert words in data["error"] + " ".join(hazard["message"] for hazard in data["hazards"])


def test_a_kernel_that_recurses_for_ever_ends_with_a_reason(program: str) -> None:
    data = report(program, "kernel", "9")
    assert not data["ok"]
    assert data["error"] or data["hazards"]


@pytest.mark.parametrize(
    ("what", "code", "word"),
    [
        ("2", "ub-capacity", "bytes"),
        ("5", "host-call", "time"),
        ("6", "host-call", "fopen"),
        ("7", "host-call", "clock_gettime"),
        ("8", "host-call", "rand"),
    ],
)
def test_a_kernel_that_wants_what_the_device_lacks(program: str, what: str, code: str, word: str) -> None:
    data = report(program, "kernel", what)
    assert not data["ok"]
    (hazard,) = [hazard for hazard in data["hazards"] if hazard["code"] == code]
    assert word in hazard["message"]


def test_the_same_calls_on_the_host_are_nobodys_business(program: str, tmp_path: Path) -> None:
    data = report(program, "nothing")
    assert data["ok"], data
    assert data["hazards"] == []


def test_nothing_is_left_running(program: str, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    data = report(program, "child", str(note))
    assert data["ok"], data
    pid = int(note.read_text())
    # A killed child ends when the system comes to it, and is a zombie until its new parent looks.
    patience = time.monotonic() + 30
    while not gone(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert gone(pid)
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)


def gone(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("Numbers{nullptr, 0, argc});", "7);", 78, "could not convert"),
        ("<<<1, nullptr, nullptr>>>", "<<<1>>>", 78, "1 parameters between <<< and >>>"),
        ("std::atoi(argv[2]) : 0, ", "argv : argv, ", 78, "invalid conversion"),
    ],
)
def test_a_wrong_launch_is_told_at_its_line(program: str, old: str, new: str, line: int, words: str) -> None:
    assert old in PROGRAM
    Path(program).write_text(PROGRAM.replace(old, new))
    error = report(program)["error"]
    assert words in error
    assert f"{line}" in error
    assert "evokernel" not in error
