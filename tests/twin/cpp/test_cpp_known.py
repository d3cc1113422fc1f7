"""What timing mode computes: of indices alone, so that control flow by them takes the time that it takes."""

from __future__ import annotations

import numpy as np
import pytest

from evokernel_core.twin.run import Mode, TensorFile

COUNT = 512
SELECTED = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 32768);
    LocalTensor<int64_t> given = buffer.Get<int64_t>();
    LocalTensor<float> keys = buffer.Get<float>()[2048], kept = keys[1024];
    LocalTensor<float> pairs = keys[2048], spent = keys[4096];
    LocalTensor<int32_t> numbers = keys[512].ReinterpretCast<int32_t>();
    LocalTensor<uint32_t> mask = keys[3072].ReinterpretCast<uint32_t>();
    GlobalTensor<int64_t> indices;
    indices.SetGlobalBuffer((__gm__ int64_t *)t[0], 512);
    DataCopy(given, indices, 512);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    Duplicate(spent, 0.0f, 512);
    CreateVecIndex(numbers, 0, 512);
    Cast(keys, given, RoundMode::CAST_RINT, 512);
    Muls(keys, keys, -1.0f, 512);
    CompareScalar(mask.ReinterpretCast<uint8_t>(), keys, -100.0f, CMPMODE::GT, 512);
    Select(keys, mask, keys, -1000.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 512);
    uint64_t count = 0;
    GatherMask(kept, keys, mask, true, 512, {1, 1, 0, 0}, count);
    Sort32(pairs, keys, numbers.ReinterpretCast<uint32_t>(), 512 / 32);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    const uint32_t first = pairs.ReinterpretCast<uint32_t>().GetValue(1); // of the least of 32
    for (uint64_t i = 0; i < count + first; ++i) Adds(spent, spent, 1.0f, 512);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    GlobalTensor<float> z;
    z.SetGlobalBuffer((__gm__ float *)t[1], 512);
    DataCopy(z, spent, 512);
"""
FORGOTTEN = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 4096);
    LocalTensor<int32_t> local = buffer.Get<int32_t>();
    GlobalTensor<int32_t> indices, data;
    indices.SetGlobalBuffer((__gm__ int32_t *)t[0], 64);
    data.SetGlobalBuffer((__gm__ int32_t *)t[1], 64);
    DataCopy(local, indices, 64);
    PipeBarrier<PIPE_ALL>();
    DataCopy(local[tiling.size[0]], data, 64);
    PipeBarrier<PIPE_ALL>();
    Adds(local[128], local, 1, 64);
    PipeBarrier<PIPE_ALL>();
    const int32_t times = local.GetValue(128);
    for (int32_t i = 0; i < times; ++i) Adds(local[256], local[192], 1, 64);
"""


@pytest.mark.parametrize("high", [50, 150, 400])
def test_control_flow_by_indices_is_timed_as_it_runs(compile_kernel, high: int) -> None:
    kernel = compile_kernel(SELECTED)
    indices = np.random.default_rng(high).integers(3, high, COUNT)
    checked, timed = (
        kernel.run([indices], [(COUNT, np.float32)], mode=mode) for mode in (Mode.CHECK, Mode.TIME)
    )
    assert not checked.codes()
    assert checked.outputs[0][0] == (indices < 100).sum() + np.argmin(indices[:32])
    assert timed.result.latency_us == pytest.approx(checked.result.latency_us, rel=1e-6)


def test_what_data_overwrites_is_not_known_any_more(compile_kernel, tmp_path) -> None:
    kernel = compile_kernel(FORGOTTEN, sizes=1)
    known = tmp_path / "indices.bin"
    np.full(64, 40, np.int32).tofile(known)
    tensors = [TensorFile(known, 256), TensorFile(None, 256)]
    beside, over = (kernel.run_files(tensors, [], [place]) for place in (64, 0))
    assert beside.result.instructions - over.result.instructions == 41
