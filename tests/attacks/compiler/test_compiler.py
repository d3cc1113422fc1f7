"""Texts that steer the compiler and the linker, built without the audit before them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin import build, kernel_cache
from evokernel_core.twin.build import CandidateError, build_kernel, prepare, run_tool
from evokernel_core.twin.toolchain import Confinement, ToolLimits
from evokernel_core.verifier.sandbox import Level, probe
from tests.attacks import not_full
from tests.verifier.conftest import make_task, read_source

SECRET = "TOPSECRETPRIVATEKEY"


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    if probe(prepare().launcher).level is not Level.FULL:
        pytest.skip(not_full(prepare()))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A private file beside everything that the compiler may read."""
    place = tmp_path / "private" / "id_rsa"
    place.parent.mkdir()
    place.write_text(f"{SECRET}\n#define FOUND {SECRET}\n")
    return place


def with_text(text: str) -> KernelSource:
    source = read_source("add")
    return source.with_files({KERNEL: f"{source.files[KERNEL]}\n{text}\n"})


# (what the attacker writes to have a file of others; {} is its path)
READERS = [
    ("an include", '#include "{}"'),
    ("an include of the system's kind", "#include <{}>"),
    ("an include by a macro", '#define H "{}"\n#include H'),
    ("an include from outside of the folder", '#include "../../../../../../../../../..{}"'),
    ("the assembler's incbin", 'asm(".incbin \\"{}\\"");'),
    ("the assembler's include", 'asm(".include \\"{}\\"");'),
    ("incbin in a section that is loaded", 'asm(".data\\n.globl loot\\nloot: .incbin \\"{}\\"\\n.text");'),
    ("an imported header", '#import "{}"'),
    ("embed", 'const char loot[] = {{\n#embed "{}"\n}};'),
    ("a dependency", '#pragma GCC dependency "{}"\n#error stop'),
    ("a precompiled header", '#pragma GCC pch_preprocess "{}"'),
]


@pytest.mark.parametrize("text", [reader[1] for reader in READERS], ids=[reader[0] for reader in READERS])
def test_a_file_of_others_is_neither_read_nor_told(text: str, secret: Path, tmp_path: Path) -> None:
    """It wants a private key in the library or in the verdict's words."""
    try:
        built = build_kernel(with_text(text.format(secret)))
    except CandidateError as error:
        assert SECRET not in error.feedback
    else:
        assert SECRET.encode() not in built.library.read_bytes()
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in kept)


def test_the_disk_is_not_searched(secret: Path) -> None:
    """It wants to try a path and read from the words whether it exists: the audit answers both alike, and
    the compiler's words for a path that it may not open name no path."""
    words = []
    for path in (secret, secret.with_name("id_missing")):
        source = with_text(f'#if __has_include("{path}")\n#error it is there\n#endif\n')
        words.append(audit(make_task("add"), source).feedback)
        with pytest.raises(CandidateError) as error:
            build_kernel(with_text(f'#include "{path}"'))
        words.append(error.value.feedback)
    assert words[:2] == words[2:]
    assert not any("id_" in word for word in words)


@pytest.mark.parametrize("place", ["/etc/passwd", "/proc/self/environ", "/proc/self/status", "/proc/version"])
def test_the_system_is_not_told(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wants names of users, the environment, or what machine this is."""
    monkeypatch.setenv("EVOKERNEL_SECRET_OF_THE_TEST", SECRET)
    own = Path(place).read_text(errors="replace").split()
    for text in (f'#include "{place}"', f'asm(".data\\n.incbin \\"{place}\\"");'):
        try:
            built = build_kernel(with_text(text))
        except CandidateError as error:
            assert SECRET not in error.feedback
            assert not any(word in error.feedback for word in own if len(word) > 12)
        else:
            assert b"root:x:" not in built.library.read_bytes()
            assert SECRET.encode() not in built.library.read_bytes()


def shell(command: str, work: Path, limits: ToolLimits | None = None) -> tuple[int, str]:
    """A compiler that was taken over: a shell in its place."""
    twin = prepare()
    confinement = Confinement(work, (twin.folder,), limits or ToolLimits())
    return run_tool(twin, ["/bin/sh", "-c", command], work, 60, confinement)


TAKEN_OVER = [
    ("the environment", "env >&2; exit 0", 0),
    ("a home", "cat ~/.bashrc $HOME/.bashrc >&2", 1),
    ("a file of others", "cat {secret} >&2", 1),
    ("a file beside its folder", "echo x > {beside}", 2),
    ("the cache of kernels", "echo x > {home}/cache/forged", 2),
    ("the twin itself", "echo x >> {twin}/libevokernel_twin.so", 2),
    ("another process", "kill -9 {victim}", 1),
    ("the network", "exec 3<>/dev/tcp/127.0.0.1/22", 2),
    ("a device", "echo x > /dev/shm/evokernel-attack", 2),
]


@pytest.mark.parametrize(
    ("command", "status"), [attack[1:] for attack in TAKEN_OVER], ids=[attack[0] for attack in TAKEN_OVER]
)
def test_a_compiler_that_was_taken_over(
    command: str, status: int, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOKERNEL_SECRET_OF_THE_TEST", SECRET)
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "home" / "cache").mkdir(parents=True)
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        words = {
            "beside": tmp_path / "beside",
            "secret": secret,
            "home": tmp_path / "home",
            "twin": prepare().folder,
            "victim": victim.pid,
        }
        ended, said = shell(command.format(**words), work)
        assert (ended, victim.poll()) == (status, None), said
        assert SECRET not in said
        assert not (tmp_path / "beside").exists()
    finally:
        victim.kill()
        victim.wait()


def test_a_taken_over_compiler_may_not_fill_the_disk(tmp_path: Path) -> None:
    """It wants inodes and bytes; it ends soon after its quota."""
    limits = ToolLimits(quota=4 * 1024**2, files=50)
    ended, said = shell("i=0; while :; do : > f$i; i=$((i+1)); done", tmp_path, limits)
    assert (ended, "quota" in said) == (-9, True)
    assert sum(1 for _ in tmp_path.iterdir()) < 50_000
    other = tmp_path / "bytes"
    other.mkdir()
    ended, said = shell("while :; do cat /usr/bin/ld* >> big; done", other, limits)
    assert ended != 0
    assert sum(path.stat().st_size for path in other.iterdir()) < 1024**3


# (what grows, the text)
GROWING = [
    ("an array with values", "char big[400 << 20] = {1};"),
    ("the assembler's fill", 'asm(".data\\n.fill 400000000");'),
    ("the assembler's repetition", 'asm(".data\\n.rept 2000000000\\n.quad 1\\n.endr");'),
    (
        "macros that double",
        "#define A0 1,1\n"
        + "\n".join(f"#define A{i} A{i - 1}, A{i - 1}" for i in range(1, 40))
        + "\nint a[] = {A39};",
    ),
    ("a file that includes itself", '#undef X\n#include "op_kernel.cpp"'),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("text", [growing[1] for growing in GROWING], ids=[growing[0] for growing in GROWING])
def test_a_text_that_wants_disk_memory_or_time(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "TOOL_LIMITS", ToolLimits(address_space=1024**3, cpu_s=15))
    started = time.monotonic()
    with pytest.raises(CandidateError):
        build_kernel(with_text(text))
    assert time.monotonic() - started < 120
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) < 2 * 1024**2


def test_the_cache_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It wants the disk by way of many kernels that are large each."""
    monkeypatch.setattr(kernel_cache, "MAX_BYTES", 4 * 1024**2)
    monkeypatch.setenv("EVOKERNEL_KERNELS_DIR", str(tmp_path / "kernels"))
    for number in range(6):
        built = build_kernel(with_text(f"unsigned char big[1 << 20] = {{{number + 1}}};"))
    assert built.library.exists()
    kept = sum(path.stat().st_size for path in built.library.parent.parent.rglob("*.so"))
    assert kept <= 4 * 1024**2
