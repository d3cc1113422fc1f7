"""Cores that are started cost their start, and the cores of a block share one way to device memory."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import pytest

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.run import Mode, TensorFile
from tests.twin.cpp.conftest import Compile

VECTOR_WORK = """
    if ASCEND_IS_AIV {
    TPipe pipe; TQue<QuePosition::VECIN, 2> in; TQue<QuePosition::VECOUT, 2> out;
    pipe.InitBuffer(in, 2, 8192); pipe.InitBuffer(out, 2, 8192);
    GlobalTensor<float> x, z;
    x.SetGlobalBuffer((__gm__ float *)t[0] + GetBlockIdx() * 8192);
    z.SetGlobalBuffer((__gm__ float *)t[1] + GetBlockIdx() * 8192);
    for (int i = 0; i < 4; ++i) {
        LocalTensor<float> a = in.AllocTensor<float>();
        DataCopy(a, x[i * 2048], 2048); in.EnQue(a); a = in.DeQue<float>();
        LocalTensor<float> b = out.AllocTensor<float>();
        Exp(b, a, 2048); out.EnQue(b); in.FreeTensor(a); b = out.DeQue<float>();
        DataCopy(z[i * 2048], b, 2048); out.FreeTensor(b);
    }
    }
"""


def test_a_mixed_launch_of_vector_work_gains_nothing(compile_kernel: Compile) -> None:
    """The same 48 vector cores, alone and beside 24 cube cores that do nothing."""
    files = [TensorFile(None, 4 * 48 * 8192)] * 2
    alone = compile_kernel(VECTOR_WORK, blocks=48).run_files(files[:1], files[1:])
    mixed = compile_kernel(VECTOR_WORK, blocks=24, kind=(1, 2, "true")).run_files(files[:1], files[1:])
    started = load_chip().launch.per_block_us
    assert mixed.result.latency_us - alone.result.latency_us == pytest.approx(24 * started, abs=0.3)


STREAMS = """
    constexpr int64_t kTile = 16384;
    const int64_t tiles = tiling.size[0];
    if ASCEND_IS_AIC {
        if (tiling.size[1] == 1) { return; }
        LocalTensor<half> a(TPosition::A1, 0, kTile);
        GlobalTensor<half> x; x.SetGlobalBuffer((__gm__ half *)t[0] + GetBlockIdx() * tiles * kTile);
        for (int64_t i = 0; i < tiles; ++i) { DataCopy(a, x[i * kTile], kTile); PipeBarrier<PIPE_MTE2>(); }
    }
    if ASCEND_IS_AIV {
        if (tiling.size[1] == 2) { return; }
        LocalTensor<half> a(TPosition::VECIN, 0, kTile / 2);
        GlobalTensor<half> y; y.SetGlobalBuffer((__gm__ half *)t[1] + GetBlockIdx() * tiles * kTile / 2);
        for (int64_t i = 0; i < tiles; ++i) { DataCopy(a, y[i * kTile / 2], kTile / 2); PipeBarrier<PIPE_MTE2>(); }
    }
"""


def test_cube_and_vector_cores_share_device_memory_while_they_overlap(compile_kernel: Compile) -> None:
    """Each kind of core streams as many bytes; alone it has the whole rate, and both take the time of the sum."""
    kernel = compile_kernel(STREAMS, sizes=2, blocks=24, kind=(1, 2, "true"))
    tiles, chip = 100, load_chip()
    nbytes = 24 * tiles * 32768
    files = [TensorFile(None, nbytes)] * 2
    both, vector, cube = (
        kernel.run_files(files, [], sizes=[tiles, way], mode=Mode.TIME).result.latency_us for way in (0, 1, 2)
    )
    stream = nbytes / chip.gm.memory_bytes_us
    assert vector == pytest.approx(cube, rel=0.15) and stream < vector < 1.4 * stream + 15
    assert both >= 0.97 * 2 * stream
    assert both <= vector + cube
