"""Correct kernels stay silent; each of them without one flag, barrier or queue call is found out.

A statement marked ``@n`` is left out when the kernel runs with ``skip == n``; ``@{expression}`` computes
its number. Statements of one number are one synchronisation: the set and the wait of a flag.
"""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import re

import numpy as np
import pytest
from attrs import frozen

PRELUDE = """
struct Gm {
    GlobalTensor<float> x, y, z, w;
    GlobalTensor<int32_t> rows;
    Gm(GM_ADDR *t, GM_ADDR workspace) {
        x.SetGlobalBuffer((__gm__ float *)t[0]);
        y.SetGlobalBuffer((__gm__ float *)t[1]);
        rows.SetGlobalBuffer((__gm__ int32_t *)t[2]);
        z.SetGlobalBuffer((__gm__ float *)t[3]);
        w.SetGlobalBuffer((__gm__ float *)workspace);
    }
};
using E = HardEvent;
template <int count> struct Buffers {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffers[count];
    LocalTensor<float> at[count];
    explicit Buffers(uint32_t elements) {
        for (int i = 0; i < count; ++i) { pipe.InitBuffer(buffers[i], elements * 4); at[i] = buffers[i].template Get<float>(); }
    }
};
"""

QUEUES = """
    TPipe pipe;
    TQue<TPosition::VECIN, 1> qx, qy;
    TQue<TPosition::VECOUT, 1> qz;
    pipe.InitBuffer(qx, 2, 2048); pipe.InitBuffer(qy, 2, 2048); pipe.InitBuffer(qz, 2, 2048);
    for (int i = 0; i < 8; ++i) {
        LocalTensor<float> a = qx.AllocTensor<float>(), b = qy.AllocTensor<float>();
        DataCopy(a, g.x[i * 512], 512);
        DataCopy(b, g.y[i * 512], 512);
        @1 qx.EnQue(a);
        @2 qy.EnQue(b);
        @3 a = qx.DeQue<float>();
        @4 b = qy.DeQue<float>();
        LocalTensor<float> c = qz.AllocTensor<float>();
        Add(c, a, b, 512);
        @5 qz.EnQue(c);
        @6 qx.FreeTensor(a);
        @7 qy.FreeTensor(b);
        @8 c = qz.DeQue<float>();
        DataCopy(g.z[i * 512], c, 512);
        @9 qz.FreeTensor(c);
    }
"""

FLAGS = """
    Buffers<2> ub(1024);
    for (int i = 0; i < 4; ++i) {
        if (i > 0) { @1 WaitFlag<E::V_MTE2>(0); }
        DataCopy(ub.at[0], g.x[i * 1024], 1024);
        @2 SetFlag<E::MTE2_V>(0);
        @2 WaitFlag<E::MTE2_V>(0);
        if (i > 0) { @3 WaitFlag<E::MTE3_V>(0); }
        Adds(ub.at[1], ub.at[0], 1.0f, 1024);
        if (i < 3) { @1 SetFlag<E::V_MTE2>(0); }
        @4 SetFlag<E::V_MTE3>(0);
        @4 WaitFlag<E::V_MTE3>(0);
        DataCopy(g.z[i * 1024], ub.at[1], 1024);
        if (i < 3) { @3 SetFlag<E::MTE3_V>(0); }
    }
"""

PING_PONG = """
    LocalMemAllocator<Hardware::UB> ub;
    LocalTensor<float> a[2] = {ub.Alloc<float, 512>(), ub.Alloc<float, 512>()};
    LocalTensor<float> c[2] = {ub.Alloc<float, 512>(), ub.Alloc<float, 512>()};
    for (int p = 0; p < 2; ++p) {
        @{1 + p} SetFlag<E::V_MTE2>(p);
        @{3 + p} SetFlag<E::MTE3_V>(p);
    }
    for (int i = 0; i < 8; ++i) {
        int p = i % 2;
        @{1 + p} WaitFlag<E::V_MTE2>(p);
        DataCopy(a[p], g.x[i * 512], 512);
        @{5 + p} SetFlag<E::MTE2_V>(p);
        @{5 + p} WaitFlag<E::MTE2_V>(p);
        @{3 + p} WaitFlag<E::MTE3_V>(p);
        Muls(c[p], a[p], 3.0f, 512);
        @{1 + p} SetFlag<E::V_MTE2>(p);
        @{7 + p} SetFlag<E::V_MTE3>(p);
        @{7 + p} WaitFlag<E::V_MTE3>(p);
        DataCopy(g.z[i * 512], c[p], 512);
        @{3 + p} SetFlag<E::MTE3_V>(p);
    }
    for (int p = 0; p < 2; ++p) {
        @{1 + p} WaitFlag<E::V_MTE2>(p);
        @{3 + p} WaitFlag<E::MTE3_V>(p);
    }
"""

ACCUMULATE = """
    Buffers<2> ub(1024);
    Duplicate(ub.at[1], 0.0f, 1024);
    for (int i = 0; i < 4; ++i) {
        if (i > 0) { @1 WaitFlag<E::V_MTE2>(0); }
        DataCopy(ub.at[0], g.x[i * 1024], 1024);
        @2 SetFlag<E::MTE2_V>(0);
        @2 WaitFlag<E::MTE2_V>(0);
        Add(ub.at[1], ub.at[1], ub.at[0], 1024);
        if (i < 3) { @1 SetFlag<E::V_MTE2>(0); }
    }
    @3 SetFlag<E::V_MTE3>(1);
    @3 WaitFlag<E::V_MTE3>(1);
    for (int i = 0; i < 4; ++i) { DataCopy(g.z[i * 1024], ub.at[1], 1024); }
"""

SOFTMAX = """
    Buffers<3> ub(1024);
    LocalTensor<float> a = ub.at[0], best = ub.at[1], tmp = ub.at[2];
    for (int r = 0; r < 4; ++r) {
        if (r > 0) { @1 WaitFlag<E::MTE3_MTE2>(0); }
        DataCopy(a, g.x[r * 1024], 1024);
        @2 SetFlag<E::MTE2_V>(0);
        @2 WaitFlag<E::MTE2_V>(0);
        ReduceMax(best, a, tmp, 1024);
        float most = best.GetValue(0);
        Adds(a, a, -most, 1024);
        Exp(a, a, 1024);
        ReduceSum(best, a, tmp, 1024);
        float sum = best.GetValue(0);
        Muls(a, a, 1.0f / sum, 1024);
        @3 SetFlag<E::V_MTE3>(0);
        @3 WaitFlag<E::V_MTE3>(0);
        DataCopy(g.z[r * 1024], a, 1024);
        if (r < 3) { @1 SetFlag<E::MTE3_MTE2>(0); }
    }
"""

GATHER = """
    Buffers<1> ub(4096);
    for (int i = 0; i < 64; ++i) { DataCopy(ub.at[0][i * 64], g.x[g.rows.GetValue(i) * 64], 64); }
    @1 SetFlag<E::MTE2_V>(0);
    @1 WaitFlag<E::MTE2_V>(0);
    Muls(ub.at[0], ub.at[0], 2.0f, 4096);
    @2 SetFlag<E::V_MTE3>(0);
    @2 WaitFlag<E::V_MTE3>(0);
    DataCopy(g.z, ub.at[0], 4096);
"""

ROUND_TRIP = """
    Buffers<2> ub(4096);
    DataCopy(ub.at[0], g.x, 4096);
    @1 SetFlag<E::MTE2_V>(0);
    @1 WaitFlag<E::MTE2_V>(0);
    Adds(ub.at[0], ub.at[0], 1.0f, 4096);
    @2 SetFlag<E::V_MTE3>(0);
    @2 WaitFlag<E::V_MTE3>(0);
    DataCopy(g.w, ub.at[0], 4096);
    @3 SetFlag<E::MTE3_MTE2>(0);
    @3 WaitFlag<E::MTE3_MTE2>(0);
    DataCopy(ub.at[1], g.w, {16, 8, 24, 0});
    DataCopy(ub.at[1][1024], g.w[1024], 3072);
    @4 SetFlag<E::MTE2_V>(1);
    @4 WaitFlag<E::MTE2_V>(1);
    Muls(ub.at[1], ub.at[1], 2.0f, 4096);
    @5 SetFlag<E::V_MTE3>(1);
    @5 WaitFlag<E::V_MTE3>(1);
    DataCopy(g.z, ub.at[1], 4096);
"""

OVERLAP = """
    Buffers<2> ub(4096);
    DataCopy(ub.at[0], g.x, 4096);
    @1 PipeBarrier<PIPE_MTE2>();
    DataCopy(ub.at[0][1000], g.y, 512);
    @2 SetFlag<E::MTE2_MTE3>(0);
    @2 WaitFlag<E::MTE2_MTE3>(0);
    DataCopy(g.z, ub.at[0], 4096);
    @3 PipeBarrier<PIPE_MTE3>();
    DataCopy(g.z[2000], ub.at[0][8], 80);
    Duplicate(ub.at[1], 1.0f, 8);
    @4 PipeBarrier<PIPE_ALL>();
    DataCopy(g.z[2000], ub.at[1], 8);
"""

TWO_PHASES = """
    Buffers<3> ub(1024);
    LocalTensor<float> a = ub.at[0], sum = ub.at[1], tmp = ub.at[2];
    int b = GetBlockIdx();
    DataCopy(a, g.x[b * 1024], 1024);
    @1 SetFlag<E::MTE2_V>(0);
    @1 WaitFlag<E::MTE2_V>(0);
    ReduceSum(sum, a, tmp, 1024);
    Duplicate(sum, sum.GetValue(0), 8);
    @2 SetFlag<E::V_MTE3>(0);
    @2 WaitFlag<E::V_MTE3>(0);
    DataCopy(g.w[b * 8], sum, 8);
    @3 SyncAll();
    DataCopy(a, g.w, 32);
    @4 SetFlag<E::MTE2_V>(1);
    @4 WaitFlag<E::MTE2_V>(1);
    ReduceSum(sum, a, tmp, 32);
    Duplicate(tmp, sum.GetValue(0), 1024);
    @5 SetFlag<E::V_MTE3>(1);
    @5 WaitFlag<E::V_MTE3>(1);
    DataCopy(g.z[b * 1024], tmp, 1024);
"""

ROUNDS = """
    Buffers<1> ub(1024);
    int b = GetBlockIdx();
    LocalTensor<float> a = ub.at[0];
    DataCopy(a, g.x[b * 1024], 1024);
    for (int round = 0; round < 3; ++round) {
        @1 SetFlag<E::MTE2_MTE3>(0);
        @1 WaitFlag<E::MTE2_MTE3>(0);
        DataCopy(g.w[b * 1024], a, 1024);
        @2 CrossCoreSetFlag<0, PIPE_MTE3>(3);
        @2 CrossCoreWaitFlag(3);
        DataCopy(a, g.w[(b + 1) % 4 * 1024], 1024);
        @3 CrossCoreSetFlag<0, PIPE_MTE2>(4);
        @3 CrossCoreWaitFlag(4);
    }
    DataCopy(g.z[b * 1024], a, 1024);
"""

ATOMICS = """
    Buffers<2> ub(4096);
    if (GetBlockIdx() == 0) {
        Duplicate(ub.at[1], 0.0f, 4096);
        @1 SetFlag<E::V_MTE3>(0);
        @1 WaitFlag<E::V_MTE3>(0);
        DataCopy(g.z, ub.at[1], 4096);
    }
    DataCopy(ub.at[0], g.x, 4096);
    @2 SyncAll();
    SetAtomicAdd<float>();
    DataCopy(g.z, ub.at[0], 4096);
    SetAtomicNone();
"""

MATMUL = """
    GlobalTensor<half> left, right;
    left.SetGlobalBuffer((__gm__ half *)t[0]);
    right.SetGlobalBuffer((__gm__ half *)t[1]);
    LocalTensor<half> a1(TPosition::A1, 0, 2048), b1(TPosition::B1, 65536, 2048);
    LocalTensor<half> a2(TPosition::A2, 0, 2048), b2(TPosition::B2, 0, 2048);
    LocalTensor<float> c(TPosition::CO1, 0, 1024);
    for (int i = 0; i < 2; ++i) {
        if (i > 0) { @1 WaitFlag<E::MTE1_MTE2>(0); }
        DataCopy(a1, left[i * 2048], Nd2NzParams(1, 32, 64, 0, 64, 32, 1, 0));
        DataCopy(b1, right[i * 2048], Nd2NzParams(1, 64, 32, 0, 32, 64, 1, 0));
        @2 SetFlag<E::MTE2_MTE1>(0);
        @2 WaitFlag<E::MTE2_MTE1>(0);
        if (i > 0) { @3 WaitFlag<E::M_MTE1>(0); }
        LoadData2DParams pa;
        pa.repeatTimes = 8;
        LoadData(a2, a1, pa);
        LoadData2DParams pb;
        pb.repeatTimes = 8;
        pb.ifTranspose = true;
        LoadData(b2, b1, pb);
        if (i < 1) { @1 SetFlag<E::MTE1_MTE2>(0); }
        @4 SetFlag<E::MTE1_M>(0);
        @4 WaitFlag<E::MTE1_M>(0);
        if (i > 0) { @5 WaitFlag<E::FIX_M>(0); }
        MmadParams p;
        p.m = 32; p.n = 32; p.k = 32;
        Mmad(c, a2, b2, p);
        p.cmatrixInitVal = false;
        @6 PipeBarrier<PIPE_M>();
        Mmad(c, a2[1024], b2[1024], p);
        if (i < 1) { @3 SetFlag<E::M_MTE1>(0); }
        @7 SetFlag<E::M_FIX>(0);
        @7 WaitFlag<E::M_FIX>(0);
        FixpipeParamsV220 f;
        f.nSize = 32; f.mSize = 32; f.srcStride = 32; f.dstStride = 32;
        Fixpipe(g.z[i * 1024], c, f);
        if (i < 1) { @5 SetFlag<E::FIX_M>(0); }
    }
    for (int i = 2; i < 4; ++i) {
        FixpipeParamsV220 f;
        f.nSize = 32; f.mSize = 32; f.srcStride = 32; f.dstStride = 32;
        Fixpipe(g.z[i * 1024], c, f);
    }
"""

MIX = """
    if ASCEND_IS_AIC {
        LocalTensor<half> a1(TPosition::A1, 0, 256), a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256);
        LocalTensor<float> c(TPosition::CO1, 0, 256);
        GlobalTensor<half> left;
        left.SetGlobalBuffer((__gm__ half *)t[0]);
        DataCopy(a1, left, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
        @1 SetFlag<E::MTE2_MTE1>(0);
        @1 WaitFlag<E::MTE2_MTE1>(0);
        LoadData2DParams pa;
        pa.repeatTimes = 1;
        LoadData(a2, a1, pa);
        LoadData(b2, a1, pa);
        @2 SetFlag<E::MTE1_M>(0);
        @2 WaitFlag<E::MTE1_M>(0);
        MmadParams p;
        p.m = 16; p.n = 16; p.k = 16;
        Mmad(c, a2, b2, p);
        @3 SetFlag<E::M_FIX>(0);
        @3 WaitFlag<E::M_FIX>(0);
        FixpipeParamsV220 f;
        f.nSize = 16; f.mSize = 16; f.srcStride = 16; f.dstStride = 16;
        Fixpipe(g.w, c, f);
        @4 CrossCoreSetFlag<2, PIPE_FIX>(3);
    }
    if ASCEND_IS_AIV {
        Buffers<1> ub(256);
        @4 CrossCoreWaitFlag(3);
        DataCopy(ub.at[0], g.w, 256);
        @5 SetFlag<E::MTE2_V>(0);
        @5 WaitFlag<E::MTE2_V>(0);
        Muls(ub.at[0], ub.at[0], 2.0f, 256);
        @6 SetFlag<E::V_MTE3>(0);
        @6 WaitFlag<E::V_MTE3>(0);
        for (int i = 0; i < 16; ++i) { DataCopy(g.z[i * 256], ub.at[0], 256); }
    }
"""


@frozen
class Launch:
    """Kernels that start alike: cores of a block, blocks, and their bodies by name."""

    kind: tuple[int, int, str] | None
    blocks: int
    bodies: dict[str, str]


LAUNCHES = {
    "one": Launch(
        None,
        1,
        {
            "queues": QUEUES,
            "flags": FLAGS,
            "ping-pong": PING_PONG,
            "accumulate": ACCUMULATE,
            "softmax": SOFTMAX,
            "gather": GATHER,
            "round trip": ROUND_TRIP,
            "overlapping copies": OVERLAP,
        },
    ),
    "many": Launch((0, 1, "true"), 4, {"two phases": TWO_PHASES, "rounds": ROUNDS, "atomics": ATOMICS}),
    "cube": Launch((1, 0, "false"), 1, {"matmul": MATMUL}),
    "mix": Launch((1, 1, "true"), 1, {"mix": MIX}),
}

MARK = re.compile(r"@(?:(\d+)|\{([^}]*)\}) ([^;]*;)")
FOUND = {"missing-sync", "cross-core-race", "queue-misuse", "event-misuse", "deadlock"}


def selectable(body: str) -> str:
    """The body with each marked statement under its condition, on the same line."""
    return MARK.sub(lambda m: f"if (skip != {m[1] or m[2]}) {{ {m[3]} }}", body)


def mutations(body: str) -> list[int]:
    """The numbers of a body's marks; ``@{n + p}`` stands for n and n + 1."""
    fixed = {int(m[1]) for m in MARK.finditer(body) if m[1]}
    paired = {int(m[2].split()[0]) + p for m in MARK.finditer(body) if m[2] for p in (0, 1)}
    return sorted(fixed | paired)


MUTANTS = [
    (launch, name, skip)
    for launch, group in LAUNCHES.items()
    for name, body in group.bodies.items()
    for skip in mutations(body)
]
CORRECT = [(launch, name) for launch, group in LAUNCHES.items() for name in group.bodies]


@pytest.fixture(scope="module")
def run(compile_kernel):
    """Runs the named kernel of a launch without the marks of one number (0: with all)."""
    kernels = {}

    def build(launch: str):
        group = LAUNCHES[launch]
        bodies = [selectable(body) for body in group.bodies.values()]
        functions = "".join(
            f"__aicore__ inline void Body{i}(GM_ADDR *t, Gm &g, int skip)\n{{{body}}}\n"
            for i, body in enumerate(bodies)
        )
        calls = "".join(
            f"if (tiling.size[0] == {i}) Body{i}(t, g, tiling.size[1]);\n" for i in range(len(bodies))
        )
        return compile_kernel(
            "Gm g(t, workspace);\n" + calls,
            sizes=2,
            blocks=group.blocks,
            workspace=65536,
            prelude=PRELUDE + functions,
            kind=group.kind,
        )

    rng = np.random.default_rng(7)
    x = rng.normal(size=4096).astype(np.float32)
    narrow = rng.normal(size=8192).astype(np.float16).view(np.float32)
    rows = rng.permutation(64).astype(np.int32)

    def go(launch: str, name: str, skip: int = 0):
        if launch not in kernels:
            kernels[launch] = build(launch)
        number = list(LAUNCHES[launch].bodies).index(name)
        first, second = (narrow, narrow) if launch in ("cube", "mix") else (x, x + 1)
        return kernels[launch].run([first, second, rows], [(4096, np.float32)], [number, skip])

    return go


@pytest.mark.parametrize(("launch", "name"), CORRECT)
def test_correct_kernel_stays_silent(run, launch: str, name: str) -> None:
    assert [h.message for h in run(launch, name).result.hazards] == []


@pytest.mark.parametrize(("launch", "name", "skip"), MUTANTS)
def test_every_missing_synchronisation_is_found(run, launch: str, name: str, skip: int) -> None:
    result = run(launch, name, skip)
    assert result.codes() & FOUND, [h.message for h in result.result.hazards]
