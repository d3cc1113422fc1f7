"""Triton's compiler in its process: what it makes of launches, what it says, and what a text there can do."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.domain.errors import CompilerMissing, VerifierUnavailable
from evokernel_core.hardware.gpu.gpu import load_gpu
from evokernel_core.targets.triton.backends import compile_sandbox, compiler
from evokernel_core.targets.triton.backends.compile_sandbox import LIMITS, compile_command, compile_level
from evokernel_core.targets.triton.backends.compiled import call_of, operands_of, require_fits
from evokernel_core.targets.triton.backends.compiler import BuiltTriton, TritonCompiler
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.run import Finished
from evokernel_core.verifier.sandbox import Level
from tests.targets.triton.written import SOFTMAX, softmax_source, softmax_task

OURS = TritonCompiler(load_gpu())


@pytest.fixture(scope="module")
def built() -> BuiltTriton:
    return OURS.build(softmax_task(), softmax_source())


def test_a_kernel_becomes_a_cubin_with_what_it_takes(built: BuiltTriton) -> None:
    (call,) = built.known.values()
    (launch,) = call.launches
    assert launch.cubin.read_bytes()[:4] == b"\x7fELF" and launch.function == "softmax_rows"
    assert launch.registers > 0 and launch.local_bytes == 0 and launch.warps == 4
    assert launch.types == ("*fp32", "*fp32", "i32", "i32") and launch.kept == (0, 1, 2, 3)


def test_the_judge_is_told_of_grids_and_values(built: BuiltTriton) -> None:
    operands = operands_of(built.task, built.record, (96, 200), ())
    (call,) = built.known.values()
    (launch,) = call_of(built.record, call, operands)["launches"]
    assert tuple(launch["grid"]) == (96, 1, 1)
    assert launch["values"] == [("*fp32", "x"), ("*fp32", "output"), ("i32", 96), ("i32", 200)]


def test_what_is_known_is_not_compiled_again(built: BuiltTriton, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "run_process", lambda *_: pytest.fail("it was compiled again"))
    operands = operands_of(built.task, built.record, (96, 200), ())
    assert OURS.compiled(built, [operands, operands]) == 2 * list(built.known.values())


@pytest.mark.thorough
def test_an_argument_of_one_becomes_a_constant(built: BuiltTriton) -> None:
    operands = [
        operands_of(built.task, built.record, sizes, ()) for sizes in ((1, 200), (3, 1024), (3, 1023))
    ]
    kept = [call.launches[0].kept for call in OURS.compiled(built, operands)]
    assert kept == [(0, 1, 3), (0, 1, 2, 3), (0, 1, 2, 3)]
    cubins = [call.launches[0].cubin.read_bytes() for call in OURS.compiled(built, operands)]
    assert cubins[1] != cubins[2]  # 16 divides 1024


def test_more_shared_memory_than_there_is_fails(built: BuiltTriton) -> None:
    call = next(iter(built.known.values()))
    require_fits(built.record, call, load_gpu())
    with pytest.raises(CandidateError, match=r"wants 16 bytes of shared memory.*has 8") as error:
        require_fits(built.record, call, evolve(load_gpu(), shared_bytes=8))
    assert error.value.code == "shared-memory"


LEFT: dict[str, tuple[dict[str, Any] | None, type[Exception], str]] = {
    "nothing": (None, CandidateError, "Triton's compiler ended: last words"),
    "no triton": ({"missing": "No module named 'triton'"}, VerifierUnavailable, "pip install triton"),
    "other triton": ({"unavailable": "2.1.0"}, VerifierUnavailable, "Triton 2.1.0 is not one"),
    "error": (
        {"error": "CompilationError: no", "kernel": "f"},
        CandidateError,
        "does not compile f:\nCompil",
    ),
    "too few": ({"triton": "3.6.0", "launches": []}, CandidateError, "ended Triton's compiler"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_the_process_leaves_is_said(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left, kind, words = LEFT[case]

    def run(command: Any, folder: Path, wall_s: float, environment: Any) -> Finished:
        if left is not None:
            (folder / "result.json").write_text(json.dumps(left))
        return Finished(1, "", "much\nlast words\n", 0.1, False)

    monkeypatch.setattr(compiler, "run_process", run)
    with pytest.raises(kind, match=words):
        OURS.build(softmax_task(), softmax_source())


def test_a_compiler_that_does_not_end_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "run_process", lambda *_: Finished(-9, "", "", 120.0, True))
    with pytest.raises(CandidateError, match="more than 120 s") as error:
        OURS.build(softmax_task(), softmax_source())
    assert error.value.code == "compile-timeout"


TRIES = """
import os, resource, socket, subprocess
done = []
def tried(name, attempt):
    try:
        if attempt() is not False:
            done.append(name)
    except BaseException:
        pass
tried("secret", lambda: open({secret!r}).read())
tried("write", lambda: open({beside!r}, "w").write("x"))
tried("home", lambda: os.listdir(os.path.expanduser("~root")))
tried("passwords", lambda: open("/etc/passwd").read())
tried("network", lambda: socket.create_connection(("127.0.0.1", {port}), 1))
tried("program", lambda: subprocess.run(["/bin/ls", "/"], check=True))
tried("signal", lambda: os.kill(os.getppid(), 0))
tried("environment", lambda: os.environ["EVOKERNEL_TEST_SECRET"])
tried("files", lambda: resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY)
tried("memory", lambda: bytearray(17 << 30))
raise RuntimeError("done: " + ",".join(done) + ".")
"""


def tried(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a text that does all that it should not do says of what it could."""
    secret, beside = folder / "secret", folder / "beside"
    secret.write_text("x")
    monkeypatch.setenv("EVOKERNEL_TEST_SECRET", "x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = TRIES.format(secret=str(secret), beside=str(beside), port=server.getsockname()[1])
        with pytest.raises(CandidateError) as error:
            OURS.build(softmax_task(), softmax_source(text + SOFTMAX))
    said = str(error.value.feedback)
    assert "done: " in said, said
    return said.partition("done: ")[2].partition(".")[0]


def test_a_text_reaches_nothing_from_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if OURS.confinement != str(Level.FULL):
        pytest.skip(f"this machine confines {OURS.confinement}")
    assert tried(tmp_path, monkeypatch) == ""


def test_without_a_launcher_limits_are_left_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise CompilerMissing("There is no C++ compiler.")

    monkeypatch.setattr(compile_sandbox, "prepare_launcher", none)
    monkeypatch.setattr(compile_sandbox, "compile_level", compile_level.__wrapped__)
    assert compile_sandbox.compile_level(sys.executable) is Level.LIMITS
    assert compile_command(sys.executable, tmp_path / "request.json")[0] == sys.executable
    could = tried(tmp_path, monkeypatch).split(",")
    assert "secret" in could and not {"environment", "files", "memory"} & set(could)


def test_a_sandbox_in_which_triton_does_not_compile_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_sandbox, "run_process", lambda *_: Finished(1, "", "", 0.1, False))
    assert compile_level.__wrapped__(sys.executable) is Level.LIMITS


def test_limits_are_those_of_a_compiler() -> None:
    assert compile_sandbox.limits()["address_space"] == LIMITS.address_space == 16 << 30
