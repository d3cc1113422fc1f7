"""What a confined process can and cannot do on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.build import Twin, prepare
from evokernel_core.verifier.sandbox import Level, Sandbox, insist, probe, sandbox_prefix

pytestmark = pytest.mark.usefixtures("kernel_home")

PROGRAM = r"""
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (!strcmp(argv[1], "read")) return open(argv[2], O_RDONLY) >= 0 ? 0 : 3;
    if (!strcmp(argv[1], "write")) return open(argv[2], O_WRONLY | O_CREAT, 0600) >= 0 ? 0 : 3;
    if (!strcmp(argv[1], "socket")) return socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 0 : 3;
    if (!strcmp(argv[1], "fork")) return fork() >= 0 ? 0 : 3;
    if (!strcmp(argv[1], "kill")) return kill(atoi(argv[2]), 0) == 0 ? 0 : 3;
    if (!strcmp(argv[1], "abort")) abort();
    if (!strcmp(argv[1], "descriptor")) return fcntl(atoi(argv[2]), F_GETFD) >= 0 ? 0 : 3;
    if (!strcmp(argv[1], "memory")) return malloc(3ul << 30) ? 0 : 3;
    if (!strcmp(argv[1], "setsid")) return setsid() >= 0 ? 0 : 3;
    return 4;
}
"""


@pytest.fixture(scope="module")
def twin() -> Twin:
    return prepare()


@pytest.fixture(scope="module")
def probe_program(tmp_path_factory: pytest.TempPathFactory, twin: Twin) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "probe.c").write_text(PROGRAM)
    command = [*twin.compiler.c_argv, str(folder / "probe.c"), "-o", str(folder / "probe")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "probe"


def confined(twin: Twin, program: Path, read: list[Path], write: list[Path], *words: str) -> int:
    prefix = sandbox_prefix(twin, [program.parent, *read], write)
    return subprocess.run([*prefix, str(program), *words], check=False, timeout=20).returncode


def test_this_machine_confines_fully_or_says_how_far(twin: Twin) -> None:
    found = probe(twin.launcher)
    assert found.level in Level
    assert (found.level is Level.FULL) == (found.landlock_abi > 0 and found.seccomp)


@pytest.mark.parametrize(
    ("landlock", "seccomp", "level"),
    [(7, True, Level.FULL), (1, False, Level.FILES), (0, True, Level.PROCESSES), (0, False, Level.LIMITS)],
)
def test_each_level_has_its_name(landlock: int, seccomp: bool, level: Level) -> None:
    assert Sandbox(landlock, seccomp).level is level


def test_files(twin: Twin, probe_program: Path, tmp_path: Path) -> None:
    """Where the kernel of Linux confines files, only the named folders can be read and written."""
    hidden = 3 if probe(twin.launcher).landlock_abi else 0
    mine, theirs, scratch = tmp_path / "mine", tmp_path / "theirs", tmp_path / "scratch"
    for folder in (mine, theirs, scratch):
        folder.mkdir()
        (folder / "data").write_text("x")
    run = [twin, probe_program, [mine], [scratch]]
    assert confined(*run, "read", str(mine / "data")) == 0
    assert confined(*run, "write", str(scratch / "new")) == 0
    assert confined(*run, "read", str(theirs / "data")) == hidden
    assert confined(*run, "read", str(mine / ".." / "theirs" / "data")) == hidden
    assert confined(*run, "write", str(mine / "data")) == hidden
    assert confined(*run, "write", str(theirs / "new")) == hidden
    (mine / "link").symlink_to(theirs / "data")
    assert confined(*run, "read", str(mine / "link")) == hidden
    assert confined(*run, "read", "/etc/passwd") == hidden


def test_network_and_processes(twin: Twin, probe_program: Path) -> None:
    import os

    denied = 3 if probe(twin.launcher).seccomp else 0
    run = [twin, probe_program, [], []]
    assert confined(*run, "socket") == denied
    assert confined(*run, "fork") == denied
    assert confined(*run, "kill", str(os.getpid())) == denied
    assert confined(*run, "setsid") == denied
    assert confined(*run, "abort") == -6


def test_no_descriptor_is_passed_on(twin: Twin, probe_program: Path, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        prefix = sandbox_prefix(twin, [probe_program.parent], [])
        command = [*prefix, str(probe_program), "descriptor", str(file.fileno())]
        assert subprocess.run(command, pass_fds=[file.fileno()], check=False).returncode == 3


def test_limits(twin: Twin, probe_program: Path) -> None:
    command = [str(twin.launcher), "--address-space", str(1 << 30), "--", str(probe_program), "memory"]
    assert subprocess.run(command, check=False).returncode == 3
    assert subprocess.run([str(probe_program), "memory"], check=False).returncode == 0


@pytest.mark.parametrize(
    "words", [["--nonsense", "1", "--", "/bin/true"], ["--sandbox"], ["--", "/no/such/program"]]
)
def test_the_launcher_refuses_what_it_does_not_understand(words: list[str], twin: Twin) -> None:
    done = subprocess.run([str(twin.launcher), *words], check=False, capture_output=True, text=True)
    assert done.returncode == 120
    assert done.stderr.startswith("evokernel-launcher: ")


@pytest.mark.parametrize(
    ("found", "accepted", "starts"),
    [
        (Level.FULL, "full", True),
        (Level.FILES, "full", False),
        (Level.PROCESSES, "full", False),
        (Level.LIMITS, "full", False),
        (Level.LIMITS, "files", False),
        (Level.FILES, "files", True),
        (Level.FILES, "processes", False),
        (Level.PROCESSES, "limits", True),
        (Level.LIMITS, "limits", True),
    ],
)
def test_less_than_full_confinement_is_accepted_in_words(found: Level, accepted: str, starts: bool) -> None:
    if starts:
        insist(found, accepted)
    else:
        with pytest.raises(UsageError, match="--confinement"):
            insist(found, accepted)
