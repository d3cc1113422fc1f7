"""The interpreter as a backend: right kernels are verified, wrong ones are rejected in the right words."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from attrs import evolve

from evokernel_core.capture.client import AgentClient
from evokernel_core.domain.errors import CompilerMissing, VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.targets import author_for
from evokernel_core.targets.triton.backends import interpreter_child
from evokernel_core.targets.triton.backends.interpreted.memory import POISONS
from evokernel_core.targets.triton.backends.interpreter import InterpreterBackend
from evokernel_core.targets.triton.backends.interpreter_rules import RULES
from evokernel_core.targets.triton.launch import Launch, LaunchRecord, read_launches
from evokernel_core.targets.triton.source import KERNEL, LAUNCH
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Case, Execution, RunStatus, TimingRequest
from evokernel_core.verifier.gates.cases import tensor_bytes
from evokernel_core.verifier.local import LocalVerifier
from evokernel_core.verifier.sandbox import Level
from tests import warm
from tests.targets.triton.written import (
    PRODUCT,
    SOFTMAX,
    SOFTMAX_LAUNCH,
    TOTAL,
    library_source,
    library_task,
    product_source,
    product_task,
    softmax_source,
    softmax_task,
    source,
    total_source,
    total_task,
)


@pytest.fixture(scope="module")
def backend() -> InterpreterBackend:
    return InterpreterBackend(author_for("nvidia_h200", "triton"), wall_s=20.0)


@pytest.fixture(scope="module")
def verifier(backend: InterpreterBackend) -> Iterator[LocalVerifier]:
    with AgentClient(warm.interpreter()) as agent:
        yield LocalVerifier(agent, backend)


def _case(task: KernelTask, sizes: dict[str, int], folder: Path, *, repeat: int = 2) -> Case:
    """Inputs of ordinary numbers."""
    folder.mkdir(exist_ok=True)
    numbers = np.random.default_rng(len(sizes))
    inputs, outputs = tensor_bytes(task, sizes)
    paths = []
    for place, (operand, nbytes) in enumerate(zip(task.graph.inputs, inputs, strict=True)):
        dtype = np.dtype(operand.spec.dtype)
        paths.append(folder / f"in{place}.bin")
        paths[-1].write_bytes(numbers.standard_normal(nbytes // dtype.itemsize).astype(dtype).tobytes())
    results = tuple(folder / f"out{place}.bin" for place in range(len(outputs)))
    return Case(tuple(sizes.values()), (), tuple(paths), results, outputs, repeat)


def _ran(
    backend: InterpreterBackend, task: KernelTask, kernel: KernelSource, folder: Path, **sizes: int
) -> Execution:
    """What came of a kernel at the task's sizes, or others."""
    return backend.execute(backend.build(task, kernel), _case(task, {**task.sizes, **sizes}, folder))


def _failure(verdict: Verdict) -> tuple[str, str]:
    failed = verdict.failed_gate
    return ("", "") if failed is None else (failed.code, str(failed.feedback))


@pytest.mark.parametrize(
    ("task", "kernel"),
    [
        (softmax_task(rows=24, columns=70), softmax_source()),
        (total_task(rows=12, columns=90), total_source()),
        (product_task("bfloat16", 40, 34, 50), product_source()),
        (library_task(), library_source()),
    ],
)
def test_a_right_kernel_is_verified(verifier: LocalVerifier, task: KernelTask, kernel: KernelSource) -> None:
    verdict = verifier.verify(task, kernel)
    assert verdict.feasible, _failure(verdict)
    assert verdict.verifier.startswith("triton interpreter 3.") and verdict.latency is not None
    assert verdict.latency.us >= verdict.latency.roofline_us


def test_a_wrong_number_is_seen(verifier: LocalVerifier) -> None:
    text = SOFTMAX.replace("tl.max(values, 0)", "tl.max(tl.where(column < 64, values, -1e30), 0)")
    text = text.replace("powers / tl.sum", "powers * 1.001 / tl.sum")
    code, words = _failure(verifier.verify(softmax_task(rows=24, columns=70), softmax_source(text)))
    assert code == "numeric" and "Output 0" in words


def test_tf32_is_not_float32(verifier: LocalVerifier) -> None:
    """A product of float32 without its precision named has that of TF32 on a GPU."""
    text = PRODUCT.replace(', input_precision="ieee"', "")
    assert _failure(verifier.verify(product_task(m=40, n=34, k=120), product_source(text)))[0] == "numeric"


ADDED = """
@triton.jit
def shifted(x, output, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    values = tl.load(x + place, mask=inside, other=0.0)
    tl.store(output + place, values + 1.0, mask=inside)
"""
SHIFTED = Launch("shifted", ("cdiv(s0 * s1, 64)",), ("x", "output", "s0 * s1"), {"BLOCK": "64"})
ROWS = LaunchRecord(("x",), ("output",), (SHIFTED,), ("s0", "s1"))


def _shifted(*changes: tuple[str, str], grid: str = "") -> KernelSource:
    text = ADDED
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    launch = evolve(ROWS.launches[0], grid=(grid or ROWS.launches[0].grid[0],))
    return source(text, evolve(ROWS, launches=(launch,)))


LOAD = "tl.load(x + place, mask=inside, other=0.0)"
STORE = "tl.store(output + place, values + 1.0, mask=inside)"
NEXT = "tl.load(output + (place + 64) % count, mask=inside, other=0.0)"
"""What the next program stores."""
STRAY = "tl.load((place + x.to(tl.int64) * 0 + 8).to(x.dtype))"
UNMASKED = "tl.sum(tl.load(x + place, mask=place < 8), 0)"
WRONG = {
    "loads without a mask": (_shifted((LOAD, "tl.load(x + place)")), "out-of-bounds"),
    "stores without a mask": (_shifted((", mask=inside)\n", ")\n")), "out-of-bounds"),
    "a mask that is one too wide": (_shifted(("place < count", "place <= count")), "out-of-bounds"),
    "before the tensor": (_shifted(("x + place", "x + place - 1")), "out-of-bounds"),
    "from one tensor into another": (_shifted(("output + place", "x + place + 40960")), "out-of-bounds"),
    "an address that is none": (_shifted((LOAD, STRAY)), "out-of-bounds"),
    "into an input": (_shifted(("output + place", "x + place")), "input-modified"),
    "two programs, one element": (_shifted(("output + place", "output + place % 64")), "overlapping-stores"),
    "every program, all elements": (
        _shifted(("tl.program_id(0) * BLOCK + ", ""), grid="3"),
        "overlapping-stores",
    ),
    "two lanes, one element": (_shifted(("output + place", "output + place // 2 * 2")), "overlapping-stores"),
    "a neighbour's result": (_shifted((STORE, f"{STORE}\n    {STORE.replace('values', NEXT)}")), "race"),
    "a neighbour's result, loaded first": (_shifted((LOAD, NEXT)), "race"),
    "part of its output": (_shifted(("place < count", "place < count - 1")), "output-not-written"),
    "memory that nobody wrote": (_shifted(("x + place", "output + place")), "nondeterministic"),
    "lanes that a mask left out": (_shifted(("values + 1.0", f"values + {UNMASKED}")), ""),
    "names that are none": (_shifted(("values + 1.0", "missing")), "error"),
    "blocks of other sizes": (_shifted(("values + 1.0", "values + tl.arange(0, 32)")), "error"),
    "a block that is no power of two": (_shifted(("tl.arange(0, BLOCK)", "tl.arange(0, 48)")), "error"),
    "a condition on a block": (_shifted((STORE, "if inside:\n        " + STORE)), "error"),
}


@pytest.mark.parametrize(("kernel", "code"), WRONG.values(), ids=WRONG)
def test_a_kernel_that_breaks_a_rule_is_told_so(
    backend: InterpreterBackend, kernel: KernelSource, code: str, tmp_path: Path
) -> None:
    execution = _ran(backend, total_like(), kernel, tmp_path)
    codes = {hazard.code for hazard in execution.hazards}
    if not code:  # numbers that are none, which a comparison sees
        assert execution.status is RunStatus.OK
        assert np.isnan(np.fromfile(tmp_path / "out0.bin", np.float32)).any()
        return
    if code == "error":
        assert execution.status is RunStatus.ERROR and "kernel.py:" in execution.message
        return
    assert code in codes, execution
    placed = [hazard for hazard in execution.hazards if hazard.line]
    for hazard in placed:
        line = kernel.files[KERNEL].splitlines()[hazard.line - 1]
        assert hazard.file == KERNEL and ("tl.load" in line or "tl.store" in line)
    assert placed or code in ("output-not-written", "nondeterministic")


def total_like() -> KernelTask:
    """A task of one matrix in and one out, with sizes of several programs."""
    return softmax_task(rows=5, columns=39)


def test_atomic_operations_of_several_programs_are_no_race(
    backend: InterpreterBackend, tmp_path: Path
) -> None:
    text = """
@triton.jit
def cleared(output):
    tl.store(output, 0.0)


@triton.jit
def added(x, output, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + place, mask=place < count, other=0.0)
    tl.atomic_add(output, tl.sum(values, 0))
"""
    launches = (
        Launch("cleared", ("1",), ("output",)),
        Launch("added", ("cdiv(s0 * s1, 64)",), ("x", "output", "s0 * s1"), {"BLOCK": "64"}),
    )
    record = LaunchRecord(("x",), ("output",), launches, ("s0", "s1"))
    execution = _ran(backend, total_task(), source(text, record), tmp_path)
    assert execution.status is RunStatus.OK and not execution.hazards, execution
    right = np.fromfile(tmp_path / "in0.bin", np.float32).sum(dtype=np.float64)
    assert np.fromfile(tmp_path / "out0.bin", np.float32)[0] == pytest.approx(right, rel=1e-5)
    plain = source(text.replace("tl.atomic_add(output, ", "tl.store(output, tl.load(output) + "), record)
    codes = {hazard.code for hazard in _ran(backend, total_task(), plain, tmp_path).hazards}
    assert {"race", "overlapping-stores"} <= codes


def test_scratch_that_a_later_launch_reads_must_be_written(
    backend: InterpreterBackend, tmp_path: Path
) -> None:
    text = TOTAL.replace(
        "tl.store(partial + tl.program_id(0)",
        "if tl.program_id(0) != 1:\n        tl.store(partial + tl.program_id(0)",
    )
    execution = _ran(backend, total_task(), total_source(text), tmp_path)
    assert [hazard.code for hazard in execution.hazards] == ["nondeterministic"]
    zeroed = read_launches(total_source().files[LAUNCH])
    zeroed = evolve(zeroed, scratch=(evolve(zeroed.scratch[0], zeroed=True),))
    execution = _ran(backend, total_task(), source(text, zeroed), tmp_path)
    assert execution.status is RunStatus.OK and not execution.hazards


def test_programs_that_go_different_ways(backend: InterpreterBackend, tmp_path: Path) -> None:
    """Loops whose length depends on the program, conditions on it, and loops that end when values say so."""
    text = """
@triton.jit
def staircase(x, output, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    acc = tl.zeros([BLOCK], tl.float32)
    for other in range(0, row + 1):
        acc += tl.load(x + other * columns + column, mask=inside, other=0.0)
    turns = row
    while turns > 2:
        acc += 1.0
        turns -= 2
    if row % 3 == 1 and row > 1:
        acc = acc * 2.0
    elif not row > 0:
        acc = -acc
    tl.store(output + row * columns + column, acc, mask=inside)
"""
    task = softmax_task(rows=9, columns=20)
    launch = evolve(SOFTMAX_LAUNCH, kernel="staircase")
    execution = _ran(backend, task, softmax_source(text, launch), tmp_path)
    assert execution.status is RunStatus.OK and not execution.hazards, execution
    x = np.fromfile(tmp_path / "in0.bin", np.float32).reshape(9, 20)
    right = np.cumsum(x, 0)
    for row in range(9):
        right[row] += max(0, -(-(row - 2) // 2))
        right[row] *= 2 if row % 3 == 1 and row > 1 else -1 if row == 0 else 1
    assert np.allclose(np.fromfile(tmp_path / "out0.bin", np.float32).reshape(9, 20), right, atol=1e-5)


def test_a_hang_ends_and_the_next_candidate_runs(tmp_path: Path) -> None:
    backend = InterpreterBackend(author_for("nvidia_h200", "triton"), wall_s=1.0)
    hanging = _shifted((STORE, "turn = 0\n    while turn < 1:\n        turn = turn * 1\n    " + STORE))
    execution = _ran(backend, total_like(), hanging, tmp_path)
    assert execution.status is RunStatus.TIMEOUT and "did not end" in execution.message
    assert _ran(backend, total_like(), _shifted(), tmp_path).status is RunStatus.OK


def test_a_kernel_that_takes_too_much_memory_is_told_so(tmp_path: Path) -> None:
    backend = InterpreterBackend(author_for("nvidia_h200", "triton"), address_space=1 << 30)
    wide = "wide = tl.zeros([1024, 1024], tl.float64)\n"
    grown = "".join(f"    w{number} = wide + {number}.0\n" for number in range(250))
    execution = _ran(backend, total_like(), _shifted((STORE, f"{wide}{grown}    {STORE}")), tmp_path)
    assert execution.status is RunStatus.MEMORY and "memory" in execution.message


def test_a_process_that_is_killed_is_no_verdict_on_the_next_case(
    backend: InterpreterBackend, tmp_path: Path
) -> None:
    built = backend.build(total_like(), _shifted())
    case = _case(total_like(), total_like().sizes, tmp_path)
    assert backend.execute(built, case).status is RunStatus.OK
    (child,) = _children()
    os.kill(child, signal.SIGKILL)
    assert backend.execute(built, case).status is RunStatus.CRASH
    assert backend.execute(built, case).status is RunStatus.OK


def test_the_process_ends_with_its_backend(tmp_path: Path) -> None:
    backend = InterpreterBackend(author_for("nvidia_h200", "triton"))
    before = _children()
    assert _ran(backend, total_like(), _shifted(), tmp_path).status is RunStatus.OK
    assert len(_children() - before) == 1
    del backend
    gc.collect()
    assert _children() <= before


def _children() -> set[int]:
    """The interpreting processes that this one started and that run."""
    return {
        child.pid
        for child in psutil.Process().children()
        if "backends/interpreted" in " ".join(child.cmdline()) and child.status() != psutil.STATUS_ZOMBIE
    }


def test_a_machine_without_a_compiler_limits_the_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_compiler() -> None:
        raise CompilerMissing("There is none.")

    monkeypatch.setattr(interpreter_child, "prepare_launcher", no_compiler)
    backend = InterpreterBackend(author_for("nvidia_h200", "triton"))
    assert backend.confinement == Level.LIMITS
    assert _ran(backend, total_like(), _shifted(), tmp_path).status is RunStatus.OK


def test_sizes_are_declined(backend: InterpreterBackend, tmp_path: Path) -> None:
    kernel = source(ADDED, evolve(ROWS, requires=("s1 < 40",)))
    assert _ran(backend, total_like(), kernel, tmp_path, s1=40).status is RunStatus.DECLINED
    assert _ran(backend, total_like(), kernel, tmp_path, s1=39).status is RunStatus.OK


def test_a_record_without_numbers_at_some_sizes_is_an_error(
    backend: InterpreterBackend, tmp_path: Path
) -> None:
    kernel = _shifted(grid="cdiv(s0 * s1, 64) + 1 // (s1 - 40)")
    execution = _ran(backend, total_like(), kernel, tmp_path, s1=40)
    assert execution.status is RunStatus.ERROR and execution.message.startswith(LAUNCH)


def test_cases_in_turn_end_with_the_first_that_fails(backend: InterpreterBackend, tmp_path: Path) -> None:
    task = total_like()
    kernel = _shifted(("place < count", "place < tl.where(count == 200, 201, count)"))
    cases = [_case(task, {"s0": 5, "s1": columns}, tmp_path / str(columns)) for columns in (39, 40, 41)]
    executions = backend.execute_in_turn(backend.build(task, kernel), cases)
    assert [bool(execution.hazards) for execution in executions] == [False, True]


@pytest.mark.parametrize(
    ("text", "code"),
    [("def f(:", "syntax"), ("return 1", "syntax"), ("def f(a, a): pass", "syntax"), ("x = 1\0", "syntax")],
)
def test_what_python_does_not_compile_is_refused(backend: InterpreterBackend, text: str, code: str) -> None:
    with pytest.raises(CandidateError) as raised:
        backend.build(total_like(), source(text, ROWS))
    assert raised.value.code == code and KERNEL in raised.value.feedback


def test_an_interpreter_without_triton_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(VerifierUnavailable, match="does not run"):
        InterpreterBackend(author_for("nvidia_h200", "triton"), str(tmp_path / "python"))
    bare = tmp_path / "bare"
    bare.write_text('#!/bin/sh\necho \'{"missing": ["triton"], "version": ""}\'\n')
    bare.chmod(0o755)
    with pytest.raises(VerifierUnavailable, match="pip install triton"):
        InterpreterBackend(author_for("nvidia_h200", "triton"), str(bare))


def test_an_estimate_grows_with_the_work(backend: InterpreterBackend) -> None:
    """Of a model's text: by what was counted of some programs at full size, without data."""
    task = softmax_task(rows=4096, columns=8192)
    inputs, outputs = tensor_bytes(task, task.sizes)
    request = TimingRequest(tuple(task.sizes.values()), (), inputs, outputs)
    once = backend.measure(backend.build(task, softmax_source()), request)
    assert once.block_dim == 4096 and once.us >= (sum(inputs) + sum(outputs)) / 4_800_000
    again = "".join(
        f"    values += tl.load(x + (row * columns + column + {n} - {n}), mask=inside)\n" for n in "123456789"
    )
    wider = SOFTMAX.replace("    powers = ", f"{again}    powers = ")
    twice = backend.measure(backend.build(task, softmax_source(wider)), request)
    pipes = dict(once.pipes), dict(twice.pipes)
    assert pipes[1]["memory"] > pipes[0]["memory"] and twice.us > once.us


def test_our_own_kernels_have_their_authors_estimate(backend: InterpreterBackend) -> None:
    task = softmax_task(rows=512, columns=1024)
    planned = backend.author.plan(task)
    inputs, outputs = tensor_bytes(task, task.sizes)
    request = TimingRequest(tuple(task.sizes.values()), (), inputs, outputs)
    kernel = planned.write()
    timing = backend.measure(backend.build(task, kernel), request)
    assert timing.us == pytest.approx(planned.estimate_us())
    changed = kernel.with_files({KERNEL: kernel.files[KERNEL] + "\n# changed\n"})
    assert backend.measure(backend.build(task, changed), request).us != timing.us


def test_every_rule_of_the_process_has_a_sentence() -> None:
    folder = Path(__file__).parents[3] / "evokernel_core/targets/triton/backends/interpreted"
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    named = {name for name in RULES if f'"{name}"' in text}
    assert named == RULES.keys()
    assert len(set(POISONS)) == len(POISONS)
