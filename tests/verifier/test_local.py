"""Hand-written kernels through all four gates, and broken ones to the gate that must stop them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, LatencySource, Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.targets.ascendc.target import AscendC, ascendc
from evokernel_core.twin.run import Limits
from evokernel_core.verifier.draw import Draw, replay
from evokernel_core.verifier.local import LocalVerifier
from tests.chinese import left_in_english

pytestmark = pytest.mark.usefixtures("kernel_home")

Tasks = Callable[[str], KernelTask]
Sources = Callable[[str], KernelSource]
Verify = Callable[[str, KernelSource], Verdict]


@pytest.fixture
def verify(task_of: Tasks, numpy_reference: Any) -> Verify:
    backend = TwinBackend(ascendc(load_chip()), Limits(wall_s=5.0))
    verifier = LocalVerifier(numpy_reference, backend, draw=lambda: Draw("7" * 32))

    def verified(name: str, source: KernelSource) -> Verdict:
        """Whatever it says, but for what compilers and crashed programs print, is said in Chinese too."""
        verdict = verifier.verify(task_of(name), source)
        hazards = [hazard.message for gate in verdict.gates for hazard in gate.hazards]
        said = [gate.feedback for gate in verdict.gates if gate.code not in PRINTED] + hazards
        assert not any(map(left_in_english, said)), said
        return verdict

    return verified


@pytest.mark.parametrize("name", ["add", "relu", "softmax"])
def test_a_right_kernel_passes_every_gate(
    name: str, verify: Verify, source_of: Sources, task_of: Tasks
) -> None:
    verdict = verify(name, source_of(name))
    assert [gate.gate for gate in verdict.gates] == list(GateName)
    assert verdict.feasible, verdict.failed_gate
    assert verdict.latency is not None
    assert verdict.latency.source is LatencySource.MODELLED
    assert verdict.latency.us > verdict.latency.roofline_us > 0
    assert verdict.latency.baseline_us > 0
    assert verdict.latency.bottleneck
    assert dict(verdict.latency.pipes)["MTE2"] > 0
    assert tuple(task_of(name).sizes.items()) in verdict.shapes
    assert len(verdict.shapes) >= 3


PRINTED = {"compile", "crash"}
"""Codes of failures that quote what programs printed."""
ADD = "Add(z, x, y, length);"
COUNT = "count = tiling.total - start < tiling.perBlock ? tiling.total - start : tiling.perBlock;"
COPY_OUT = "DataCopyPad(zGm[offset], z, params);"
LOAD_Y = "DataCopyPad(y, yGm[offset], params, pad);"
PROCESS = "kernel.Process();"
INIT_Z = "pipe.InitBuffer(zQueue, BUFFERS, tile * sizeof(half));"


def test_a_kernel_that_gains_nothing_is_timed_and_not_compared(
    task_of: Tasks, source_of: Sources, numpy_reference: Any
) -> None:
    verifier = LocalVerifier(numpy_reference, TwinBackend(ascendc(load_chip())))
    whole = verifier.verify(task_of("add"), source_of("add"))
    for below_us, is_slower in ((1.0, True), (1e6, False)):
        verdict = verifier.verify(task_of("add"), source_of("add"), below_us=below_us)
        assert (verdict.is_slower, verdict.feasible) == (is_slower, not is_slower)
        assert verdict.latency and whole.latency and verdict.latency.us == whole.latency.us
        assert (GateName.CORRECTNESS in [gate.gate for gate in verdict.gates]) is not is_slower
        assert verdict.is_open(whole.latency.us + 1.0) is is_slower
        assert not verdict.is_open(whole.latency.us)


# (what is wrong, old text, new text, codes that may name it, words that the feedback must hold)
BROKEN = [
    ("another operation", ADD, "Sub(z, x, y, length);", {"numeric"}, "differs from PyTorch"),
    ("a constant", ADD, "Duplicate(z, static_cast<half>(0), length);", {"numeric"}, "%"),
    ("a copy of the input", ADD, "Adds(z, x, static_cast<half>(0), length);", {"numeric"}, "Largest error"),
    ("an empty kernel", PROCESS, "", {"output-not-written"}, "output"),
    ("a short count", COUNT, f"{COUNT} count = count / 2;", {"output-not-written"}, "output"),
    ("a tail left out", ADD, "Add(z, x, y, length / 128 * 128);", {"uninitialised-read", "numeric"}, ""),
    ("no copy-in of y", LOAD_Y, "", {"uninitialised-read", "stale-read"}, ""),
    ("a wrong offset", "zGm[offset]", "zGm[offset + 1]", {"out-of-bounds", "output-not-written"}, ""),
    ("a write to an input", "zGm[offset]", "xGm[offset]", {"input-modified", "output-not-written"}, ""),
    (
        "too much UB",
        INIT_Z,
        "pipe.InitBuffer(zQueue, BUFFERS, 4 * tile * sizeof(half));",
        {"ub-capacity"},
        "",
    ),
    ("half the precision", ADD, "Muls(z, x, static_cast<half>(2), length);", {"numeric"}, ""),
    (
        "an endless loop",
        PROCESS,
        "for (uint32_t i = 1; i != 0; i |= 1) { GetBlockIdx(); }",
        {"timeout"},
        "5 s",
    ),
    (
        "no tail in the copy",
        COPY_OUT,
        "DataCopy(zGm[offset], z, length);",
        {"output-not-written", "numeric"},
        "",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "codes", "words"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN]
)
def test_a_broken_kernel_fails_correctness(
    old: str, new: str, codes: set[str], words: str, verify: Verify, source_of: Sources
) -> None:
    source = source_of("add")
    assert old in source.files[KERNEL]
    verdict = verify("add", source.with_files({KERNEL: source.files[KERNEL].replace(old, new)}))
    failed = verdict.failed_gate
    assert failed is not None
    assert (failed.gate, failed.code in codes) == (GateName.CORRECTNESS, True), failed
    assert words in failed.feedback
    assert failed.case is not None
    assert verdict.latency is None
    assert not verdict.feasible


# What the audit already rejects must not hurt either where the audit is left out.
HOSTILE = [
    ("exit(0)", "extern void exit(int) noexcept; exit(0);", {"crash"}),
    ("a null pointer", "*reinterpret_cast<volatile int *>(8) = 1;", {"crash"}),
    ("100 GB", "volatile char *p = new char[100ull << 30]; p[0] = 1;", {"memory", "crash"}),
    ("a process", "__builtin_abort();", {"crash"}),
]


@pytest.mark.parametrize(("new", "codes"), [h[1:] for h in HOSTILE], ids=[h[0] for h in HOSTILE])
def test_hostile_code_ends_its_own_process_only(
    new: str,
    codes: set[str],
    verify: Verify,
    source_of: Sources,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = GateResult(GateName.AUDIT, GateStatus.PASSED)
    monkeypatch.setattr(AscendC, "audit", lambda target, task, source: passed)
    source = source_of("add")
    text = (
        source.files[KERNEL]
        .replace(PROCESS, new)
        .replace('#include "tiling.h"', '#include "tiling.h"\n#include <cstdlib>')
    )
    verdict = verify("add", source.with_files({KERNEL: text.replace("extern void exit(int) noexcept; ", "")}))
    failed = verdict.failed_gate
    assert failed is not None
    assert (failed.gate, failed.code in codes) == (GateName.CORRECTNESS, True), failed


def test_half_precision_inside_a_float_kernel_is_seen(verify: Verify, source_of: Sources) -> None:
    source = source_of("relu")
    relu = "AscendC::Relu(y, x, length);"
    assert relu in source.files[KERNEL]
    rounded = (
        "auto h = y.ReinterpretCast<half>(); AscendC::Cast(h, x, AscendC::RoundMode::CAST_RINT, length); "
        "AscendC::Relu(h, h, length); AscendC::Cast(x, h, AscendC::RoundMode::CAST_NONE, length); "
        "AscendC::Relu(y, x, length);"
    )
    verdict = verify("relu", source.with_files({KERNEL: source.files[KERNEL].replace(relu, rounded)}))
    assert verdict.failed_gate is not None
    assert verdict.failed_gate.code == "numeric"


def test_a_softmax_of_zeros_is_seen_though_the_tolerance_accepts_it(
    verify: Verify, source_of: Sources
) -> None:
    source = source_of("softmax")
    old = "Muls(values, values, 1.0f / sum, columns);"
    assert old in source.files[KERNEL]
    zeros = source.files[KERNEL].replace(old, "Muls(values, values, 0.0f, columns);")
    verdict = verify("softmax", source.with_files({KERNEL: zeros}))
    assert verdict.failed_gate is not None
    assert verdict.failed_gate.code == "numeric"


def test_work_left_out_when_only_the_time_is_taken(verify: Verify, source_of: Sources) -> None:
    """No data moves in the time mode: a kernel that looks at its data to be lazy is caught by comparing, if
    no case has such data before."""
    text = source_of("softmax").files[KERNEL]
    for old, new in (
        ("row < rows; row +=", "row < rows && !idle; row +="),
        ("float largest = result.GetValue(0);", "float largest = result.GetValue(0); idle = largest == 0;"),
        ("uint32_t rows, columns, padded;", "uint32_t rows, columns, padded; bool idle = false;"),
    ):
        assert old in text
        text = text.replace(old, new)
    failed = verify("softmax", source_of("softmax").with_files({KERNEL: text})).failed_gate
    assert failed is not None
    caught = {(GateName.LATENCY, "data-dependent"), (GateName.CORRECTNESS, "output-not-written")}
    assert (failed.gate, failed.code) in caught


def test_a_compile_error_is_at_the_authors_line_in_the_authors_words(
    verify: Verify, source_of: Sources
) -> None:
    source = source_of("add")
    lines = source.files[KERNEL].splitlines()
    line = next(i for i, text in enumerate(lines, 1) if ADD in text)
    verdict = verify(
        "add", source.with_files({KERNEL: source.files[KERNEL].replace(ADD, "Add(z, x, lenght);")})
    )
    failed = verdict.failed_gate
    assert failed is not None
    assert (failed.gate, failed.code) == (GateName.COMPILE, "compile")
    assert f"op_kernel.cpp:{line}: " in failed.feedback
    assert "lenght" in failed.feedback
    assert "evokernel::" not in failed.feedback


def test_an_undefined_function_is_named(verify: Verify, source_of: Sources) -> None:
    source = source_of("add")
    text = (
        source.files[KERNEL]
        .replace(ADD, f"{ADD} Missing(length);")
        .replace("class KernelAdd {", "__aicore__ void Missing(uint32_t n);\nclass KernelAdd {")
    )
    failed = verify("add", source.with_files({KERNEL: text})).failed_gate
    assert failed is not None
    assert (failed.gate, failed.code) == (GateName.COMPILE, "link")
    assert "Missing" in failed.feedback


def test_sizes_that_the_tiling_declines_fail(verify: Verify, source_of: Sources) -> None:
    source = source_of("relu")
    declined = source.files[TILING].replace(
        "tiling.total = total;", "tiling.total = total; if (total % 64) return false;"
    )
    failed = verify("relu", source.with_files({TILING: declined})).failed_gate
    assert failed is not None
    assert (failed.gate, failed.code) == (GateName.CORRECTNESS, "declined")
    assert "ComputeTiling" in failed.feedback


def test_each_verification_has_a_draw_of_its_own_and_can_be_replayed(
    task_of: Tasks, source_of: Sources, numpy_reference: Any
) -> None:
    backend, task, source = TwinBackend(ascendc(load_chip())), task_of("relu"), source_of("relu")
    verifier = LocalVerifier(numpy_reference, backend)
    first, second = (verifier.verify(task, source) for _ in range(2))
    assert first.draw != second.draw
    assert not first.replayed
    seen = list(numpy_reference.calls[: len(numpy_reference.calls) // 2])
    numpy_reference.calls.clear()
    again = LocalVerifier(numpy_reference, backend, draw=lambda: replay(first.draw)).verify(task, source)
    assert (again.draw, again.shapes, again.replayed) == (first.draw, first.shapes, True)
    assert numpy_reference.calls == seen


def test_the_gates_stop_at_the_first_failure(verify: Verify, source_of: Sources) -> None:
    source = source_of("add")
    verdict = verify("add", source.with_files({KERNEL: source.files[KERNEL].replace(PROCESS, "exit(0);")}))
    assert [gate.gate for gate in verdict.gates] == [GateName.AUDIT]
    assert verdict.gates[0].status is GateStatus.FAILED


def test_a_cancelled_verification_is_no_verdict(
    task_of: Tasks, source_of: Sources, numpy_reference: Any
) -> None:
    verifier = LocalVerifier(numpy_reference, TwinBackend(ascendc(load_chip())))
    with pytest.raises(VerifierError, match="cancelled"):
        verifier.verify(task_of("add"), source_of("add"), cancelled=lambda: True)
