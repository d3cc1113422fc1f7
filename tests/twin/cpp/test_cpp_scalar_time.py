"""Scalar code of a kernel's own has a time: the same however it is written, and the same with and without data."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.build import CandidateError, build_files, prepare
from evokernel_core.twin.run import ExitStatus, Mode, RunRequest, RunResult
from tests.twin.both import run_both
from tests.twin.cpp.conftest import KERNEL, TILING, Compile, CompiledBody

ROUNDS = 20_000

PRELUDE = """
__aicore__ inline int64_t Twice(int64_t x) { return x + x; }
__aicore__ inline constexpr int64_t Constant(int64_t n) { int64_t sum = 0; for (int64_t i = 0; i < n; ++i) { sum += i; } return sum; }
template <int N> __aicore__ inline int64_t Deep(int64_t x) { if constexpr (N > 0) { return Deep<N - 1>(x) + Deep<N - 1>(x + 1); } return x; }
__aicore__ int64_t Recursive(int64_t n) { return n <= 0 ? 0 : 1 + Recursive(n - 1); }
#define EACH(i, n, what) for (int64_t i = 0; i < (n); ++i) { what; }
static_assert(Constant(4) == 6);
"""
# Each makes at least `n` blocks that no call pays for.
WAYS: Mapping[str, str] = {
    "a for loop": "for (int64_t i = 0; i < n; ++i) { sum += i; }",
    "without braces": "for (int64_t i = 0; i < n; ++i) sum += i;",
    "without a body": "for (int64_t i = 0; i < n; sum += i, ++i) ;",
    "a while loop": "int64_t i = n; while (i > 0) { --i; sum += i; }",
    "a while loop without braces": "int64_t i = n; while (i > 0) sum += i--;",
    "a do loop": "int64_t i = n; do { --i; sum += i; } while (i > 0);",
    "a do loop without braces": "int64_t i = n; do sum += i--; while (i > 0);",
    "calls": "for (int64_t i = 0; i < n; ++i) { sum = Twice(sum); }",
    "a constexpr function": "sum = Constant(n);",
    "recursion of templates": "if (n > 0) { sum = Deep<15>(n); }",
    "recursion": "for (int64_t i = 0; i < n; i += 100) { sum += Recursive(100); }",
    "a macro": "EACH(i, n, sum += i)",
    "branches": "for (int64_t i = 0; i < n; ++i) if (i % 2 == 0) sum += i; else sum -= i;",
}
BODY = f"""
    const int64_t n = tiling.size[1];
    volatile int64_t kept = 0;
    int64_t sum = 0;
    switch (tiling.size[0]) {{
    {" ".join(f"case {number}: {{ {text} break; }}" for number, text in enumerate(WAYS.values()))}
    }}
    kept = sum;
    GlobalTensor<int32_t> z; z.SetGlobalBuffer((__gm__ int32_t *)t[0], 8);
    z.SetValue(0, static_cast<int32_t>(kept));
"""


@pytest.fixture(scope="module")
def loops(compile_kernel: Compile) -> CompiledBody:
    return compile_kernel(BODY, sizes=2, prelude=PRELUDE)


def _us(kernel: CompiledBody, way: int, rounds: int, mode: Mode) -> float:
    return kernel.run([], [(8, np.int32)], sizes=[way, rounds], mode=mode).result.latency_us


@pytest.mark.parametrize("way", WAYS)
def test_each_block_takes_what_an_instruction_takes_to_issue(way: str, loops: CompiledBody) -> None:
    chip, number = load_chip(), list(WAYS).index(way)
    taken = _us(loops, number, ROUNDS, Mode.TIME) - _us(loops, number, 0, Mode.TIME)
    assert taken >= 0.95 * ROUNDS * chip.scalar.issue_cycles / chip.mhz
    assert _us(loops, number, ROUNDS, Mode.CHECK) == _us(loops, number, ROUNDS, Mode.TIME)


TEN = "{0} {0} {0} {0} {0} {0} {0} {0} {0} {0}"
ADD = "Adds(a, a, 1.0f, 64);"


def test_the_loop_around_a_call_is_in_what_the_call_costs(compile_kernel: Compile) -> None:
    straight = TEN.format(TEN.format(ADD))
    kernel = compile_kernel(
        f"""
    TPipe pipe; TBuf<QuePosition::VECCALC> buf; pipe.InitBuffer(buf, 2048);
    LocalTensor<float> a = buf.Get<float>();
    Duplicate(a, 0.0f, 64);
    if (tiling.size[0] == 0) {{ {straight} }} else {{ for (int i = 0; i < 100; ++i) {{ {ADD} }} }}
    """,
        sizes=1,
    )
    written_out, looped = (kernel.run([], [], sizes=[way]).result.latency_us for way in (0, 1))
    assert looped == pytest.approx(written_out, rel=1e-3)


def _tiled(tmp_path: Path, statements: str) -> RunResult:
    """A launch after ComputeTiling with more statements."""
    tiling = TILING.format(blocks=1, workspace=0, sizes=1, scalars=0).replace(
        "return true;", f"{statements} return true;"
    )
    kernel = KERNEL.format(
        prelude="",
        body="",
        launch="tested<<<1, nullptr, stream>>>(const_cast<GM_ADDR *>(tensors), workspace, tiling)",
    )
    built = build_files(prepare(), {"op_kernel.cpp": kernel, "tiling.h": tiling})
    return run_both(built, RunRequest(mode=Mode.CHECK, chip=load_chip(), sizes=(1,)))


SEARCH = "for (int64_t i = 0; i < {0}; ++i) {{ if (i == sizes[0] + {0}) {{ return false; }} }}"


def test_the_host_may_not_search_before_each_launch(tmp_path: Path) -> None:
    slow, quick = _tiled(tmp_path, SEARCH.format(100_001)), _tiled(tmp_path, SEARCH.format(99_000))
    assert (slow.status, [hazard.code for hazard in slow.hazards]) == (ExitStatus.ERROR, ["host-time"])
    assert (quick.status, quick.hazards) == (ExitStatus.OK, ())


def test_a_macro_that_is_half_a_loop_is_refused(compile_kernel: Compile) -> None:
    with pytest.raises(CandidateError, match="part of a loop"):
        compile_kernel("ROUNDS(4) { }", prelude="#define ROUNDS(n) for (int i = 0; i < (n); ++i)\n")
