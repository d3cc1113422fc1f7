"""Properties of the time model, and published series with kernels of our own."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.run import Mode

SIDE = 8192
BYTES = SIDE * SIDE * 2
MOVES = """
    // sizes: scenario, tile (elements), tiles a block, stride between bursts, offset, blocks of bursts
    using T = half;
    const uint32_t tile = tiling.size[1], tiles = tiling.size[2], bursts = tiling.size[5];
    const uint64_t stride = tiling.size[3];
    GlobalTensor<T> x, z;
    x.SetGlobalBuffer((__gm__ T *)t[0]);
    z.SetGlobalBuffer((__gm__ T *)t[1]);
    LocalTensor<T> a(TPosition::VECCALC, 0, 49152);
    LocalTensor<T> b(TPosition::VECCALC, 98304, 49152);
    const uint64_t share = tiling.size[0] == 2 ? 0 : (uint64_t)tile * tiles;
    const uint64_t start = GetBlockIdx() * share + tiling.size[4];
    if (tiling.size[0] == 3) { x.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE); }
    for (uint32_t pass = 0; pass < (tiling.size[0] == 1 ? 2 : 1); ++pass) {
        for (uint32_t i = 0; i < tiles; ++i) {
            const uint32_t row = tile / bursts;
            if (tiling.size[0] == 4) {
                DataCopy(z[start + (uint64_t)i * tile], a, tile);
            } else {
                DataCopyExtParams p{(uint16_t)bursts, row * 2, (uint32_t)(stride - row * 2), 0, 0};
                DataCopyPad(a, x[start + (uint64_t)i * tile], p, DataCopyPadExtParams<T>{false, 0, 0, T(0)});
            }
        }
    }
"""
ADD = """
    // The published add: 8192 x 8192 halves on every core. sizes: tile, buffers, bypass L2, apart in banks
    using T = half;
    const uint32_t tile = tiling.size[0], buffers = tiling.size[1];
    const uint64_t share = 8192ull * 8192 / GetBlockNum();
    GlobalTensor<T> x, y, z;
    x.SetGlobalBuffer((__gm__ T *)t[0] + GetBlockIdx() * share, share);
    y.SetGlobalBuffer((__gm__ T *)t[1] + GetBlockIdx() * share, share);
    z.SetGlobalBuffer((__gm__ T *)t[2] + GetBlockIdx() * share, share);
    if (tiling.size[2]) {
        x.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
        y.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
    }
    const uint32_t apart = tiling.size[3] ? 256 : 0, bytes = tile * 2 + apart;
    for (uint32_t i = 0; i < buffers; ++i) { SetFlag<HardEvent::V_MTE2>(i); SetFlag<HardEvent::MTE3_V>(i); }
    for (uint64_t done = 0, i = 0; done < share; done += tile, ++i) {
        const uint32_t slot = i % buffers, base = slot * 3 * bytes;
        const uint32_t now = share - done < tile ? share - done : tile;
        LocalTensor<T> a(TPosition::VECCALC, base, tile), b(TPosition::VECCALC, base + bytes, tile);
        LocalTensor<T> c(TPosition::VECCALC, base + 2 * bytes, tile);
        WaitFlag<HardEvent::V_MTE2>(slot);
        DataCopy(a, x[done], now);
        DataCopy(b, y[done], now);
        SetFlag<HardEvent::MTE2_V>(slot);
        WaitFlag<HardEvent::MTE2_V>(slot);
        WaitFlag<HardEvent::MTE3_V>(slot);
        Add(c, a, b, now);
        SetFlag<HardEvent::V_MTE2>(slot);
        SetFlag<HardEvent::V_MTE3>(slot);
        WaitFlag<HardEvent::V_MTE3>(slot);
        DataCopy(z[done], c, now);
        SetFlag<HardEvent::MTE3_V>(slot);
    }
    for (uint32_t i = 0; i < buffers; ++i) { WaitFlag<HardEvent::V_MTE2>(i); WaitFlag<HardEvent::MTE3_V>(i); }
"""
BESIDE_WRITES = """
    // sizes: writes that leave a full L2, whether a tile that L2 holds is loaded and computed beside them
    using T = half;
    const uint32_t tile = 32768, filling = 80;
    GlobalTensor<T> x, z;
    x.SetGlobalBuffer((__gm__ T *)t[0]);
    z.SetGlobalBuffer((__gm__ T *)t[1]);
    LocalTensor<T> a(TPosition::VECCALC, 0, tile);
    LocalTensor<T> b(TPosition::VECCALC, 65536, tile);
    const uint64_t start = GetBlockIdx() * (uint64_t)tile * 128;
    for (uint32_t i = 0; i < filling; ++i) { DataCopy(z[start + (uint64_t)i * tile], a, tile); }
    PipeBarrier<PIPE_ALL>();
    DataCopy(b, x, tile);
    PipeBarrier<PIPE_ALL>();
    const uint64_t next = start + (uint64_t)filling * tile;
    for (uint32_t i = 0; i < tiling.size[0]; ++i) { DataCopy(z[next + (uint64_t)i * tile], a, tile); }
    if (tiling.size[1]) {
        DataCopy(b, x, tile);
        SetFlag<HardEvent::MTE2_V>(0);
        WaitFlag<HardEvent::MTE2_V>(0);
        for (uint32_t i = 0; i < 20; ++i) { Exp(b, b, tile); }
    }
"""
READ, TWICE, SHARED, BYPASSING, WRITE = range(5)


@pytest.fixture(scope="module")
def moves(compile_kernel):
    return compile_kernel(MOVES, sizes=6, blocks=48)


@pytest.fixture(scope="module")
def adds(compile_kernel):
    return compile_kernel(ADD, sizes=4, blocks=48)


@pytest.fixture
def copy_us(moves, zeros_of):
    """Modelled microseconds of 48 cores that copy; see the kernel's sizes."""

    def run(scenario, tile=8192, tiles=32, stride=0, offset=0, bursts=1) -> float:
        sizes = [scenario, tile, tiles, stride or tile // bursts * 2, offset, bursts]
        big = zeros_of(48 * 49152 * 64 * 2)
        ran = moves.run_files([big], [big], sizes, Mode.TIME)
        assert not ran.codes(), ran.result.hazards
        return ran.result.latency_us

    return run


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    scenario=st.sampled_from([READ, TWICE, SHARED, BYPASSING, WRITE]),
    tile=st.integers(1, 48).map(lambda kilo: kilo * 512),
    tiles=st.integers(1, 40),
)
def test_more_bytes_are_never_faster(copy_us, scenario, tile, tiles) -> None:
    assert copy_us(scenario, tile, tiles) <= copy_us(scenario, tile, tiles + 1)
    # Cores that read one address wait for each other: how they meet shifts with the length of a copy.
    slack = 1.05 if scenario == SHARED else 1.0
    assert copy_us(scenario, tile, tiles) <= slack * copy_us(scenario, tile + 512, tiles)


def test_what_makes_copies_slower(copy_us) -> None:
    assert copy_us(READ, 64, 512) > 1.1 * copy_us(READ, 8192, 4)  # the same bytes in smaller copies
    rows = {"tile": 16384, "bursts": 16, "stride": 4096}
    assert copy_us(READ, **rows, offset=1) > 1.1 * copy_us(READ, **rows)  # starts between requests
    assert copy_us(READ, 16384, 16, bursts=256, stride=1024) > copy_us(READ, 16384, 16)  # bursts of 128 bytes


def test_what_l2_saves(copy_us) -> None:
    once, twice = copy_us(READ, tiles=40), copy_us(TWICE, tiles=40)
    assert twice < 1.6 * once  # the second round of 31 MB hits
    assert copy_us(TWICE, 49152, 60) > 1.9 * copy_us(READ, 49152, 60)  # a round of 283 MB does not fit
    assert copy_us(SHARED, tiles=40) < 0.9 * copy_us(READ, tiles=40)  # all cores read the same 0.7 MB


def test_writes_that_l2_can_hold_do_not_reach_memory_in_time(copy_us) -> None:
    small, large = 48 * 8192 * 2 * 40, 48 * 49152 * 2 * 60
    assert small < load_chip().l2_bytes < large
    rate = load_chip().gm.memory_bytes_us
    assert copy_us(WRITE, tiles=40) < small / rate
    assert copy_us(WRITE, 49152, 60) > (large - load_chip().l2_bytes) / rate


def test_a_load_that_hits_l2_does_not_wait_for_writes_to_device_memory(compile_kernel, zeros_of) -> None:
    kernel = compile_kernel(BESIDE_WRITES, sizes=2, blocks=48)
    big = zeros_of(48 * 32768 * 128 * 2)

    def run(writes: int, beside: int) -> float:
        ran = kernel.run_files([big], [big], [writes, beside], Mode.TIME)
        assert not ran.codes(), ran.result.hazards
        return ran.result.latency_us

    neither, writes, beside = run(0, 0), run(8, 0), run(0, 1)
    assert min(writes, beside) > neither + 10
    assert run(8, 1) < max(writes, beside) + 0.1 * (min(writes, beside) - neither)


@pytest.mark.parametrize(
    ("case", "published_us"),
    [
        ((4096, 1, 0, 0), 306.58),
        ((16384, 1, 0, 0), 268.5),
        ((16384, 2, 0, 0), 264.02),
        ((16384, 2, 1, 0), 187.68),
        ((16256, 2, 1, 1), 184.52),
    ],
    ids=["tiles of 8 KB", "of 32 KB", "double buffer", "past L2", "banks apart"],
)
def test_the_published_steps_of_an_add(adds, zeros_of, case, published_us) -> None:
    """add_high_performance, cases 2 to 6: 48 cores of a 910B1. Within 10 %."""
    one = zeros_of(BYTES)
    ran = adds.run_files([one, one], [one], case, Mode.TIME)
    assert not ran.codes(), ran.result.hazards
    assert ran.result.latency_us == pytest.approx(published_us, rel=0.1)
