"""Which lines of a kernel take the time of a pipe, and how evenly the cores of a launch are busy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evokernel_core.domain.kernel import Strategy
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.twin.build import BuiltKernel, build_kernel
from evokernel_core.twin.judge import judge_kernel
from evokernel_core.twin.run import ExitStatus, Mode, RunRequest, RunResult, TensorFile, run_kernel

pytestmark = pytest.mark.usefixtures("kernel_home")

CHIP = load_chip()
TILING = """\
#pragma once
#include <cstdint>
struct OpTiling { uint32_t blockDim; uint64_t workspaceBytes; };
inline bool ComputeTiling(const int64_t *sizes, const float *, uint32_t, uint64_t, OpTiling &tiling)
{
    tiling = {static_cast<uint32_t>(sizes[0]), 0};
    return true;
}
"""
KERNEL = """\
#include "kernel_operator.h"
#include "tiling.h"
using namespace AscendC;
constexpr uint32_t COUNT = 1024;
extern "C" __global__ __vector__ void lines(GM_ADDR y, OpTiling tiling)
{
    GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float *)y + GetBlockIdx() * COUNT, COUNT);
    TPipe pipe;
    TQue<QuePosition::VECOUT, 1> queue;
    pipe.InitBuffer(queue, 1, COUNT * sizeof(float));
    LocalTensor<float> ones = queue.AllocTensor<float>();
    Duplicate(ones, 1.0f, COUNT);
    for (uint32_t turn = 0; turn < 8; ++turn) {
        Exp(ones, ones, COUNT);
        Muls(ones, ones, 0.5f, COUNT);
    }
    queue.EnQue(ones);
    ones = queue.DeQue<float>();
    DataCopy(gm, ones, COUNT);
    queue.FreeTensor(ones);
}
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    lines<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tiling);
}
"""
LINES = KERNEL.splitlines()


@pytest.fixture(scope="module")
def built(kernel_home: object) -> BuiltKernel:
    return build_kernel(ascendc_source(TILING, KERNEL, Strategy("hand")))


def timed(built: BuiltKernel, blocks: int, run: Callable[..., RunResult] = run_kernel) -> RunResult:
    outputs = (TensorFile(None, blocks * 4096),)
    result = run(built, RunRequest(Mode.TIME, CHIP, sizes=(blocks,), outputs=outputs))
    assert result.status is ExitStatus.OK, result.message
    return result


@pytest.mark.parametrize("run", [run_kernel, judge_kernel])
def test_lines_have_their_calls_and_share_the_time_of_their_pipe(
    built: BuiltKernel, run: Callable[..., RunResult]
) -> None:
    (launch,) = timed(built, 1, run).launches
    busy = dict(launch.pipes)
    found = {pipe: [line for line in launch.lines if line.pipe == pipe] for pipe in ("V", "MTE3")}
    words = [(LINES[line.line - 1].strip().partition("(")[0], line.calls) for line in found["V"]]
    assert words == [("Exp", 8), ("Muls", 8), ("Duplicate", 1)], "the longest first"
    assert [(LINES[line.line - 1].strip(), line.calls) for line in found["MTE3"]] == [
        ("DataCopy(gm, ones, COUNT);", 1)
    ]
    for pipe, lines in found.items():
        assert sum(line.us for line in lines) == pytest.approx(busy[pipe], rel=1e-4)
    assert {line.file for line in launch.lines} == {"op_kernel.cpp"}


def test_cores_without_work_count_in_the_balance(built: BuiltKernel) -> None:
    assert timed(built, 1).launches[0].balance == pytest.approx(1 / CHIP.aiv, rel=1e-3)
    assert timed(built, CHIP.aiv).launches[0].balance > 0.9
    uneven = timed(built, CHIP.aiv + 1).launches[0].balance
    assert uneven == pytest.approx((CHIP.aiv + 1) / CHIP.aiv / 2, rel=0.1)
