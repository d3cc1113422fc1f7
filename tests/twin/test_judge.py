"""A run in two processes is a run in one: the table of entry points is whole, and random kernels agree.

The twin's own kernels (``cpp``) are run both ways too, see ``both.py``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.build import INCLUDE, BuiltKernel, build_files, prepare
from evokernel_core.twin.judge import GONE_OFFSET, SHARED_BYTES
from evokernel_core.twin.run import Mode, RunRequest, TensorFile
from tests.homes import own_home
from tests.twin.both import run_both

DECLARED = re.compile(r"^(?:const )?[\w:]+(?:<[^>]*>)? [*&]*([A-Z]\w*)\([^;{}]*\)(?: const)?;", re.MULTILINE)
METHOD = re.compile(
    r"^    (?:const )?[\w:]+(?:<[^>]*>)? [*&]*([A-Z]\w*)\([^;{}]*\)(?: const)?;", re.MULTILINE
)
CLASSES = ("Queue", "PoolRegion", "matmul::Object")
WITHIN = ("evokernel::twin::Quantise(QuantMode_t",)
"""Functions that only the library calls, of the name of one that kernels call."""

TILING = """#pragma once
#include <cstdint>
struct OpTiling { uint32_t blockDim; uint64_t workspaceBytes; int64_t steps[40]; };
inline bool ComputeTiling(const int64_t *sizes, const float *, uint32_t, uint64_t, OpTiling &tiling)
{
    tiling.blockDim = static_cast<uint32_t>(sizes[0]);
    tiling.workspaceBytes = 4096;
    for (int i = 0; i < 40; ++i) { tiling.steps[i] = sizes[1 + i]; }
    return true;
}
"""
KERNEL = """#include "kernel_operator.h"
#include "tiling.h"
using namespace AscendC;
constexpr uint32_t kTile = 512;
extern "C" __global__ __vector__ void steps(GM_ADDR x, GM_ADDR y, GM_ADDR work, OpTiling tiling)
{
    TPipe pipe;
    TQue<TPosition::VECIN, 2> in;
    TQue<TPosition::VECOUT, 2> out;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(in, 2, kTile * sizeof(float));
    pipe.InitBuffer(out, 2, kTile * sizeof(float));
    pipe.InitBuffer(buffer, 3 * kTile * sizeof(float));
    GlobalTensor<float> from, to, shared;
    from.SetGlobalBuffer((__gm__ float *)x, kTile * GetBlockNum());
    to.SetGlobalBuffer((__gm__ float *)y + GetBlockIdx() * kTile, kTile);
    shared.SetGlobalBuffer((__gm__ float *)work, 1024);
    LocalTensor<float> a = buffer.Get<float>();
    LocalTensor<float> b = a[kTile], c = a[2 * kTile];
    Duplicate(a, 1.0f, kTile);
    Duplicate(b, 2.0f, kTile);
    float carried = 0.5f;
    for (int64_t step : tiling.steps) {
        const uint32_t place = static_cast<uint32_t>(step >> 8 & 0x1FF);
        const int32_t count = static_cast<int32_t>(1 + (step >> 20 & 0x3FF));
        switch (step & 0x1F) {
            case 0: Add(c, a, b, count); break;
            case 1: Mul(b, a, b, count & 0x1F8); break;
            case 2: carried += a.GetValue(place); break;
            case 3: a.SetValue(place, carried); break;
            case 4: carried = from.GetValue(place); break;
            case 5: to.SetValue(place, carried); break;
            case 6: {
                auto t = in.AllocTensor<float>();
                DataCopy(t, from[place / 8 * 8 % 256], 256);
                in.EnQue(t);
                break;
            }
            case 7: { auto t = in.DeQue<float>(); Adds(a, t, carried, 256); in.FreeTensor(t); break; }
            case 8: { auto t = out.AllocTensor<float>(); Muls(t, a, 0.5f, kTile); out.EnQue(t); break; }
            case 9: { auto t = out.DeQue<float>(); DataCopy(to, t, kTile); out.FreeTensor(t); break; }
            case 10: SetFlag<HardEvent::V_MTE3>(place % 10); break;
            case 11: WaitFlag<HardEvent::V_MTE3>(place % 10); break;
            case 12: PipeBarrier<PIPE_ALL>(); break;
            case 13: ReduceSum(c, a, b, count & 0x1F8); break;
            case 14: carried = c.GetValue(0); break;
            case 15: SyncAll(); break;
            case 16: Cast(b.ReinterpretCast<int32_t>(), a, RoundMode::CAST_RINT, count & 0x1FF); break;
            case 17: Compare(c.ReinterpretCast<uint8_t>(), a, b, CMPMODE::GT, 256); break;
            case 18: { uint64_t mask[2] = {uint64_t(step), 0}; Exp(b, a, mask, 4, {1, 1, 8, 8}); break; }
            case 19: SetAtomicAdd<float>(); break;
            case 20: SetAtomicNone(); break;
            case 21: DataCopyPad(shared[place % 64 * 8], a, {1, uint32_t(count % 256 * 4), 0, 0, 0}); break;
            case 22: AscendC::printf("step %d\\n", int(place)); break;
            case 23: GatherMask(c, a, 1, false, 0, {1, 2, 8, 8}, carried_count); break;
            case 24: Gather(c, a, b.ReinterpretCast<uint32_t>(), 0u, uint32_t(count & 63)); break;
            case 25: carried = float(GetSystemCycle() % 7); break;
            default: Abs(a[place / 8 * 8], a[place / 8 * 8], count & 0xF8); break;
        }
    }
    DataCopy(to, a, kTile);
}
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
{
    steps<<<tiling.blockDim, nullptr, stream>>>(tensors[0], tensors[1], workspace, tiling);
}
""".replace("float carried = 0.5f;", "float carried = 0.5f;\n    uint64_t carried_count = 0;")


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_home(tmp_path_factory.mktemp("home")):
        yield


@pytest.fixture(scope="module")
def built(_home: None) -> BuiltKernel:
    return build_files(prepare(), {"op_kernel.cpp": KERNEL, "tiling.h": TILING})


def request(folder: Path, seed: int, mode: Mode) -> RunRequest:
    """Forty random steps on up to four cores; half of the programs keep to steps without mistakes."""
    values = np.random.default_rng(seed)
    steps = values.integers(0, 1 << 31, 40)
    if seed % 2:
        harmless = np.array([0, 2, 3, 4, 5, 12, 14, 22, 25])
        steps = steps & ~0x1F | harmless[values.integers(0, harmless.size, 40)]
    blocks = int(values.integers(1, 5))
    values.standard_normal(512 * blocks).astype(np.float32).tofile(folder / "x.bin")
    timing = mode is Mode.TIME
    return RunRequest(
        mode=mode,
        chip=load_chip(),
        sizes=(blocks, *map(int, steps)),
        inputs=(TensorFile(None if timing else folder / "x.bin", 2048 * blocks),),
        outputs=(TensorFile(None if timing else folder / "y.bin", 2048 * blocks),),
        repeat=1 + seed % 2,
        trace=folder / "trace.json",
    )


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("seed", range(24))
def test_random_steps_agree_to_the_last_digit(
    built: BuiltKernel, seed: int, mode: Mode, tmp_path: Path
) -> None:
    result = run_both(built, request(tmp_path, seed, mode))
    assert result.launches or result.message


def symbols(library: Path) -> set[str]:
    """The functions that a library defines for others, as the compiler names them."""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[2] for line in listing.splitlines()}


def test_a_candidate_can_call_all_that_headers_declare() -> None:
    twin = prepare()
    texts = [path.read_text() for path in (INCLUDE / "evokernel" / "twin").rglob("*.h")]
    names = {name for text in texts for name in DECLARED.findall(text)}
    methods = {name for text in texts for name in METHOD.findall(text)}
    wanted = {f"evokernel::twin::{name}" for name in names}
    wanted |= {f"evokernel::twin::{kind}::{name}" for kind in CLASSES for name in methods}
    missing = sorted(symbols(twin.library) - symbols(twin.client))
    plain = subprocess.run(["c++filt", *missing], capture_output=True, text=True, check=True).stdout
    assert len(wanted) > 200
    lines = (line for line in plain.splitlines() if not line.startswith(WITHIN))
    assert not {line for line in lines if line.split("(")[0] in wanted}


def test_no_name_of_the_judge_is_there() -> None:
    names = " ".join(symbols(prepare().client))
    for hidden in (
        "ClearHazards",
        "WriteResult",
        "TheSession",
        "current_core",
        "GlobalMemory",
        "LaunchReport",
    ):
        assert hidden not in names


def test_the_shared_memory_has_the_size_that_both_sides_expect() -> None:
    text = (INCLUDE.parent / "src" / "judge" / "wire.h").read_text()
    sizes = dict(re.findall(r"constexpr uint32_t (k\w+Bytes) = (\d+) \* 1024;", text))
    parts = ("kRequestBytes", "kNamesBytes", "kReplyBytes")
    assert 4096 + 1024 * sum(int(sizes[part]) for part in parts) == SHARED_BYTES
    assert re.search(rf"kGoneOffset = {GONE_OFFSET};", text)
