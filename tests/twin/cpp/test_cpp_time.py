"""The time model against published measurements of the instructions, and against itself."""

from __future__ import annotations

import numpy as np
import pytest

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.run import Mode

ADDS = """
    LocalTensor<float> d(TPosition::VECCALC, tiling.size[0], 4096);
    LocalTensor<float> a(TPosition::VECCALC, tiling.size[1], 4096);
    LocalTensor<float> b(TPosition::VECCALC, tiling.size[2], 4096);
    for (int i = 0; i < 1000; ++i) Add(d, a, b, 64, 64, {1, 1, 1, 8, 8, 8});
"""
STREAM = """
    using T = float;
    const uint32_t tile = tiling.size[0], tiles = tiling.size[1];
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in;
    TQue<TPosition::VECOUT, 1> out;
    pipe.InitBuffer(in, (uint8_t)tiling.size[2], tile * sizeof(T));
    pipe.InitBuffer(out, (uint8_t)tiling.size[2], tile * sizeof(T));
    GlobalTensor<T> x, z;
    const uint64_t start = (uint64_t)GetBlockIdx() * tile * tiles;
    x.SetGlobalBuffer((__gm__ T *)t[0] + start, (uint64_t)tile * tiles);
    z.SetGlobalBuffer((__gm__ T *)t[1] + start, (uint64_t)tile * tiles);
    for (uint32_t i = 0; i < tiles; ++i) {
        LocalTensor<T> a = in.AllocTensor<T>();
        DataCopy(a, x[(uint64_t)i * tile], tile);
        in.EnQue(a);
        a = in.DeQue<T>();
        LocalTensor<T> c = out.AllocTensor<T>();
        Muls(c, a, T(2), tile);
        out.EnQue(c);
        in.FreeTensor(a);
        c = out.DeQue<T>();
        DataCopy(z[(uint64_t)i * tile], c, tile);
        out.FreeTensor(c);
    }
"""


@pytest.fixture(scope="module")
def adds(compile_kernel):
    return compile_kernel(ADDS, sizes=3)


@pytest.fixture(scope="module")
def stream(compile_kernel):
    return compile_kernel(STREAM, sizes=3, blocks=48)


@pytest.mark.parametrize(
    ("addresses", "measured_cycles"),
    [((0x20000, 0x0, 0x8100), 86.0), ((0x20000, 0x0, 0x8000), 150.0), ((0x0020, 0x0, 0x18100), 135.0)],
    ids=["no conflict", "both sources in one bank group", "source and destination shifted in one bank"],
)
def test_cycles_of_an_add_with_and_without_bank_conflicts(adds, addresses, measured_cycles) -> None:
    """64 repeats of float: the published figures of the bank_conflict_ub sample, within 2 %."""
    ran = adds.run([], [(8, np.float32)], addresses, mode=Mode.TIME)
    busy = dict(ran.result.launches[0].pipes)["V"]
    assert busy * load_chip().mhz / 1000 == pytest.approx(measured_cycles, rel=0.02)


def _latency(stream, mode, tile, tiles, buffers) -> float:
    count = 48 * tile * tiles
    inputs = [np.ones(count, np.float32)]
    ran = stream.run(inputs, [(count, np.float32)], [tile, tiles, buffers], mode=mode)
    assert not ran.codes(), ran.result.hazards
    return ran.result.latency_us


def test_checking_and_timing_agree(stream) -> None:
    for tile, tiles, buffers in [(1024, 7, 2), (4096, 3, 1)]:
        checked, timed = (_latency(stream, mode, tile, tiles, buffers) for mode in (Mode.CHECK, Mode.TIME))
        assert timed == pytest.approx(checked, rel=1e-6)


def test_double_buffers_and_larger_tiles_are_faster(stream) -> None:
    one, two = (_latency(stream, Mode.TIME, 2048, 16, buffers) for buffers in (1, 2))
    assert two < one
    small, large = (_latency(stream, Mode.TIME, tile, 65536 // tile, 2) for tile in (256, 8192))
    assert large < small


def test_no_kernel_beats_the_memory(stream) -> None:
    """Inputs come from device memory at its peak rate at best."""
    tile, tiles = 4096, 64
    bound = 48 * tile * tiles * 4 / (load_chip().hbm_gbps * 1e3)
    assert _latency(stream, Mode.TIME, tile, tiles, 2) > bound


def test_bottleneck_is_named(stream) -> None:
    count = 48 * 256 * 64
    ran = stream.run([np.ones(count, np.float32)], [(count, np.float32)], [256, 64, 1], mode=Mode.TIME)
    sentence = ran.result.launches[0].bottleneck
    assert sentence.startswith("MTE2-bound")
    assert "1.0 KB, below the efficient 16 KB" in sentence


def test_timing_mode_runs_every_instruction(stream) -> None:
    count = 48 * 64 * 1000
    inputs = [np.ones(count, np.float32)]
    ran = stream.run(inputs, [(count, np.float32)], [64, 1000, 2], mode=Mode.TIME)
    assert ran.result.instructions >= 48 * 3000
