"""A candidate that got past the audit, and what it may not ask of the system."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from evokernel_core.twin.build import Twin, prepare
from evokernel_core.verifier.sandbox import Level, probe, sandbox_prefix
from tests.attacks import not_full

PROGRAM = Path(__file__).with_name("hostile.c")

# (the call, what the candidate wants)
DENIED = [
    ("prlimit", "to end another process by its limits"),
    ("own-limit", "to raise or lower its own limits"),
    ("chown", "to give its files away"),
    ("chmod", "to change the mode of a file"),
    ("utimens", "to forge the time of a file"),
    ("setxattr", "to hide data beside a file"),
    ("mkdir", "to make folders"),
    ("symlink", "to leave a trap for who reads its folder"),
    ("link", "to keep a file of others alive"),
    ("unlink", "to remove its inputs"),
    ("thread", "processors of others"),
    ("fork", "to outlive its time"),
    ("old-fork", "to outlive its time"),
    ("clone-namespace", "a namespace in which it is root"),
    ("unshare", "a namespace in which it is root"),
    ("setns", "the namespace of another process"),
    ("mount", "other files at known places"),
    ("chroot", "another root"),
    ("ptrace", "the memory of another process"),
    ("vm-read", "the memory of another process"),
    ("vm-write", "the memory of another process"),
    ("kill", "to signal another process"),
    ("tgkill", "to signal a thread of another process"),
    ("sigqueue", "to signal another process"),
    ("pidfd", "a hold on another process"),
    ("setowner", "signals sent in its name by the kernel"),
    ("priority", "to slow another process down"),
    ("affinity", "to move another process to one core"),
    ("setsid", "to leave the group that is killed with it"),
    ("death-signal", "to survive its watcher"),
    ("keyctl", "the keys of the person"),
    ("add-key", "to leave keys behind"),
    ("request-key", "the keys of the person"),
    ("shmget", "memory shared by name"),
    ("semget", "semaphores shared by name"),
    ("msgget", "a queue shared by name"),
    ("mq", "a queue shared by name"),
    ("memfd", "a file that no folder limits"),
    ("io-uring", "calls that no filter sees"),
    ("bpf", "code in the kernel"),
    ("userfaultfd", "races in the kernel"),
    ("perf", "counters of other processes"),
    ("personality", "an older, weaker mode of the kernel"),
    ("inotify", "to watch files of others"),
    ("fanotify", "to watch files of others"),
    ("socket", "the network"),
    ("unix-socket", "the services of this machine"),
    ("terminal", "to type into the person's terminal"),
    ("swap-terminal", "the terminal's queue"),
    ("mlock", "memory that is never swapped"),
    ("kcmp", "to learn about other processes"),
    ("module", "code in the kernel"),
    ("x32", "a call by its other number"),
    ("clone3", "a process by flags that lie in memory"),
    ("seccomp-listener", "to answer calls itself"),
    ("vsock", "the host of this virtual machine"),
    ("netlink", "the tables of the network"),
    ("crypto-socket", "the kernel's ciphers, which had holes"),
    ("lock", "to keep others waiting for a file"),
    ("flock", "to keep others waiting for a file"),
    ("lease", "signals when others open a file"),
    ("pipe-size", "the kernel's memory for pipes"),
    ("seal", "to freeze what it shares with the judge"),
    ("dumpable", "its memory on the disk"),
    ("rename-itself", "to look like another program"),
    ("new-stack", "another layout of its memory"),
    ("truncate", "files shortened by their name"),
    ("fallocate", "blocks of the disk that no size shows"),
    ("sync", "the disk of others to stall"),
    ("splice", "pages of files in pipes, which had holes"),
    ("vmsplice", "pages of files in pipes, which had holes"),
    ("tee", "pages of files in pipes, which had holes"),
    ("sendfile", "to copy past what is counted"),
    ("copy-file-range", "to copy past what is counted"),
    ("mknod", "a device of its own"),
    ("handle", "files by their number, past all folders"),
    ("name-to-handle", "the numbers of files"),
    ("socketpair", "to hand descriptors on"),
    ("timer", "signals without end"),
    ("timerfd", "a clock that wakes it"),
    ("signalfd", "signals of others"),
    ("itimer", "signals without end"),
    ("remap", "pages in another order"),
    ("mbind", "memory of one node"),
    ("move-pages", "memory of others moved"),
    ("migrate-pages", "memory of others moved"),
    ("mlockall", "memory that is never swapped"),
    ("mincore", "to learn what others read"),
    ("membarrier", "interrupts on all processors"),
    ("setuid", "another user"),
    ("setgroups", "other groups"),
    ("capabilities", "other rights"),
    ("scheduler", "to go before all others"),
    ("syslog", "the kernel's log"),
    ("clock", "another time"),
    ("hostname", "another name of the machine"),
    ("reboot", "the machine to stop"),
    ("acct", "a log of all programs"),
    ("swap", "memory to run out"),
    ("quota", "the disk's limits"),
    ("pivot", "another root"),
    ("unmount", "disks to go away"),
    ("kexec", "another kernel"),
    ("unload", "parts of the kernel to go"),
    ("exec-descriptor", "a program from memory"),
    ("open-tree", "other files at known places"),
    ("move-mount", "other files at known places"),
    ("fsopen", "a file system of its own"),
    ("openat2", "files by another call"),
    ("pidfd-getfd", "the descriptors of another process"),
    ("process-madvise", "memory of others dropped"),
    ("mount-setattr", "disks that cannot be written"),
    ("landlock", "rules of its own"),
    ("secret-memory", "memory that nobody counts"),
    ("process-release", "memory of others dropped"),
    ("listmount", "what is mounted where"),
]
EXECUTED = [("/bin/true", "another program"), ("/bin/sh", "a shell")]


OPENED = [
    ("open", "/proc/self/mem", "its memory as a file"),
    ("open-to-write", "/proc/self/mem", "its code changed, past its protection"),
    ("open", "/proc/self/environ", "the environment of who started it"),
    ("open", "/proc/1/cmdline", "what others run"),
    ("open", "/proc/kallsyms", "the kernel's layout"),
    ("open", "/proc/kmsg", "the kernel's log"),
    ("open", "/dev/kmsg", "the kernel's log"),
    ("open", "/dev/shm", "memory shared by name"),
    ("open", "/dev/tty", "the person's terminal"),
    ("open", "/dev/ptmx", "a terminal of its own"),
    ("open", "/etc/passwd", "the machine's users"),
    ("open", "/sys/kernel", "the kernel's settings"),
    ("open", "/root", "a home"),
    ("open", "/tmp", "what others work on"),
    ("open", "..", "the folder around its own"),
    ("open-to-write", "/usr/lib/os-release", "to change what all programs read"),
]


@pytest.fixture(scope="module")
def twin() -> Twin:
    return prepare()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, twin: Twin) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    subprocess.run(
        [*twin.compiler.c_argv, "-w", str(PROGRAM), "-o", str(folder / "hostile")],
        check=True,
        capture_output=True,
    )
    return folder / "hostile"


@pytest.fixture(autouse=True)
def _full(twin: Twin) -> None:
    if probe(twin.launcher).level is not Level.FULL:
        pytest.skip(not_full(twin))


def confined(twin: Twin, program: Path, scratch: Path, *words: str, **options: object) -> int:
    prefix = sandbox_prefix(twin, [program.parent], [scratch], **options)  # type: ignore[arg-type]
    return subprocess.run([*prefix, str(program), *words], check=False, timeout=30, cwd=scratch).returncode


@pytest.mark.parametrize(("call", "wants"), DENIED, ids=[call for call, _ in DENIED])
def test_what_no_candidate_may_call(call: str, wants: str, twin: Twin, hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    try:
        assert confined(twin, hostile, tmp_path, call, str(victim.pid)) == 3, f"it got {wants}"
        assert victim.poll() is None
        assert (tmp_path / "file").read_text() == "x"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
    finally:
        victim.kill()
        victim.wait()


@pytest.mark.parametrize(
    ("call", "path", "wants"), OPENED, ids=[f"{call} {path}" for call, path, _ in OPENED]
)
def test_no_other_file_is_opened(
    call: str, path: str, wants: str, twin: Twin, hostile: Path, tmp_path: Path
) -> None:
    if path.startswith("/") and not Path(path).exists():
        pytest.skip(f"there is no {path} here")
    assert confined(twin, hostile, tmp_path, call, path) == 3, f"it got {wants}"


@pytest.mark.parametrize(("program", "wants"), EXECUTED)
def test_no_other_program_is_started(
    program: str, wants: str, twin: Twin, hostile: Path, tmp_path: Path
) -> None:
    assert confined(twin, hostile, tmp_path, "exec", program) == 3, f"it got {wants}"


def test_a_file_is_not_moved_out(twin: Twin, hostile: Path, tmp_path: Path) -> None:
    """It wants to put a file where others look for theirs; the runner renames inside of its own folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "file").write_text("x")
    assert confined(twin, hostile, scratch, "move-out") != 0
    assert not (tmp_path / "moved").exists()


@pytest.mark.parametrize("call", ["rename", "renameat2"])
def test_nothing_is_renamed_by_who_writes_nothing(
    call: str, twin: Twin, hostile: Path, tmp_path: Path
) -> None:
    """It wants the user's files under other names, where Landlock is missing; the call itself is refused."""
    (tmp_path / "file").write_text("x")
    prefix = sandbox_prefix(twin, [hostile.parent], [])
    done = subprocess.run([*prefix, str(hostile), call], check=False, timeout=30, cwd=tmp_path)
    assert done.returncode == 3
    assert (tmp_path / "file").exists()


def test_a_flood_of_files_ends_the_candidate(twin: Twin, hostile: Path, tmp_path: Path) -> None:
    """It wants every inode; it is killed when there are a few more than its quota."""
    started = time.monotonic()
    assert confined(twin, hostile, tmp_path, "files", "2000000", files=100) == -9
    assert time.monotonic() - started < 10
    assert sum(1 for _ in tmp_path.iterdir()) < 200_000


def test_a_flood_of_bytes_ends_the_candidate(twin: Twin, hostile: Path, tmp_path: Path) -> None:
    """It wants the disk; it is killed soon after its quota."""
    assert confined(twin, hostile, tmp_path, "bytes", "4000", quota=1 << 20) == -9
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3_000 << 20


def test_a_descriptor_that_was_named_is_kept_and_no_other(twin: Twin, hostile: Path, tmp_path: Path) -> None:
    """It wants the descriptors of the program that starts it; it gets the one that is meant for it."""
    with (tmp_path / "a").open("w") as first, (tmp_path / "b").open("w") as second:
        prefix = sandbox_prefix(twin, [hostile.parent], [tmp_path], keep=[second.fileno()])
        for file, expected in ((first, 5), (second, 0)):  # 5: no such descriptor
            command = [*prefix, str(hostile), "descriptor", str(file.fileno())]
            done = subprocess.run(command, pass_fds=[first.fileno(), second.fileno()], check=False)
            assert done.returncode == expected, file.name


def test_threads_only_where_they_are_asked_for(twin: Twin, hostile: Path, tmp_path: Path) -> None:
    """A reference may compute with threads; a candidate has one."""
    assert confined(twin, hostile, tmp_path, "thread", "0", threads=True) == 0
    assert confined(twin, hostile, tmp_path, "fork", "0", threads=True) == 3
    assert confined(twin, hostile, tmp_path, "clone-namespace", "0", threads=True) == 3


def test_descriptors_are_limited(twin: Twin, hostile: Path, tmp_path: Path) -> None:
    """It wants the system's table of open files; it gets a few hundred."""
    assert confined(twin, hostile, tmp_path, "descriptors", "0") == 3
