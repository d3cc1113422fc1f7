"""Pools, allocators and queues over every local memory, and what a kernel prints."""

from __future__ import annotations

import numpy as np
import pytest

PRELUDE = """
class OwnPool {
public:
    template <class T> bool InitBuffer(T &que, uint8_t num, uint32_t len)
    {
        que.InitStartBufHandle(GetBufHandle(GetCurBufSize()), num, len);
        for (uint32_t i = 0; i < num; ++i) {
            que.InitBufHandle(this, i, GetBufHandle(GetCurBufSize()), GetCurAddr() + i * len, len);
        }
        SetCurAddr(GetCurAddr() + num * len);
        SetCurBufSize(GetCurBufSize() + num);
        return true;
    }
    template <TPosition p> bool InitBuffer(TBuf<p> &buf, uint32_t len)
    {
        buf.InitStartBufHandle(GetBufHandle(GetCurBufSize()), 1, len);
        buf.InitBufHandle(this, 0, GetBufHandle(GetCurBufSize()), GetCurAddr(), len);
        SetCurAddr(GetCurAddr() + len);
        SetCurBufSize(GetCurBufSize() + 1);
        return true;
    }
    EXTERN_IMPL_BUFPOOL(OwnPool, TPosition::VECCALC, 16);
};
using In = TQue<TPosition::VECIN, 1>;
using Out = TQue<TPosition::VECOUT, 1>;
__aicore__ void Double(In &in, Out &out, GM_ADDR from, GM_ADDR to)
{
    GlobalTensor<float> x, z; x.SetGlobalBuffer((__gm__ float *)from); z.SetGlobalBuffer((__gm__ float *)to);
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, x, 1024); in.EnQue(a); a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    Add(b, a, a, 1024); out.EnQue(b); in.FreeTensor(a); b = out.DeQue<float>();
    DataCopy(z, b, 1024); out.FreeTensor(b);
}
"""
START = "TPipe pipe; In in, in2; Out out, out2; TBuf<TPosition::VECCALC> buf;"
RUN = "Double(in, out, t[0], t[1]);"
CASES = {
    "pools that take turns": START
    + """
        TBufPool<TPosition::VECCALC> one, two;
        pipe.InitBufPool(one, 8192); pipe.InitBufPool(two, 8192, one);
        one.InitBuffer(in, 1, 4096); one.InitBuffer(out, 1, 4096); Double(in, out, t[0], t[1]); one.Reset();
        two.InitBuffer(in2, 1, 4096); two.InitBuffer(out2, 1, 4096);
        LocalTensor<float> a = in.AllocTensor<float>(), b = in2.AllocTensor<float>();
        ascendc_assert(a.GetPhyAddr() == b.GetPhyAddr());
        in.FreeTensor(a); in2.FreeTensor(b);
        Double(in2, out2, t[0], t[1]); two.Reset();
    """,
    "a pool within a pool": START
    + """
        TBufPool<TPosition::VECCALC, 8> whole; TBufPool<TPosition::VECCALC> part;
        pipe.InitBufPool(whole, 16384); whole.InitBufPool(part, 8192);
        whole.InitBuffer(in, 2, 4096); part.InitBuffer(out, 1, 4096); part.InitBuffer(buf, 4096);
    """
    + RUN,
    "a pool that the kernel writes": START
    + "OwnPool pool; pipe.InitBufPool(pool, 16384); pool.InitBuffer(in, 2, 4096); pool.InitBuffer(buf, 4096);"
    "pool.InitBuffer(out, 1, 4096);" + RUN + "pool.Reset(); pipe.Reset();",
    "a pipe used twice": START
    + "pipe.InitBuffer(in, 1, 4096); pipe.InitBuffer(out, 1, 4096);"
    + RUN
    + "pipe.Destroy(); pipe.Init(); pipe.InitBuffer(in2, 2, 4096); pipe.InitBuffer(out2, 1, 4096);"
    "Double(in2, out2, t[0], t[1]); pipe.DestroyWithoutPipeAll();",
    "the whole memory again after Reset": START
    + "pipe.InitBuffer(in, 1, 184 * 1024); pipe.InitBuffer(out, 1, 4096);"
    + RUN
    + "pipe.Reset(); pipe.InitBuffer(in2, 1, 4096); pipe.InitBuffer(out2, 1, 184 * 1024);"
    "Double(in2, out2, t[0], t[1]);",
    "events given back": START
    + "In six[2]; pipe.InitBuffer(six[0], 6, 64); six[0].FreeAllEvent(); pipe.InitBuffer(six[1], 6, 64);"
    "pipe.InitBuffer(in, 1, 4096); pipe.InitBuffer(out, 1, 4096);" + RUN,
}
FAULTS = {
    "a pool that is full": (
        "TBufPool<TPosition::VECCALC> pool; pipe.InitBufPool(pool, 4096); pool.InitBuffer(buf, 4097);",
        "TBufPool<TPosition::VECCALC> pool; pipe.InitBufPool(pool, 4096); pool.InitBuffer(buf, 4096);",
        "ub-capacity",
    ),
    "a pool larger than the one it shares": (
        "TBufPool<TPosition::VECCALC> a, b; pipe.InitBufPool(a, 4096); pipe.InitBufPool(b, 8192, a);",
        "TBufPool<TPosition::VECCALC> a, b; pipe.InitBufPool(a, 8192); pipe.InitBufPool(b, 4096, a);",
        "queue-misuse",
    ),
    "more buffers than the pool was made for": (
        "TBufPool<TPosition::VECCALC> pool; pipe.InitBufPool(pool, 4096); pipe.InitBuffer(buf, 32);"
        "pool.InitBuffer(in2, 5, 32);",
        "TBufPool<TPosition::VECCALC, 5> pool; pipe.InitBufPool(pool, 4096); pool.InitBuffer(in2, 5, 32);",
        "too-many-buffers",
    ),
    "L1 that is full": (
        "TQue<TPosition::A1, 1> q; pipe.InitBuffer(q, 2, 256 * 1024 + 32);",
        "TQue<TPosition::A1, 1> q; pipe.InitBuffer(q, 2, 256 * 1024);",
        "l1-capacity",
    ),
    "L0A that is full": (
        "TQue<TPosition::A2, 1> q; pipe.InitBuffer(q, 2, 32 * 1024 + 32);",
        "TQue<TPosition::A2, 1> q; pipe.InitBuffer(q, 2, 32 * 1024);",
        "l0a-capacity",
    ),
    "L0B that is full": (
        "TQue<TPosition::B2, 1> q; pipe.InitBuffer(q, 1, 64 * 1024 + 32);",
        "TQue<TPosition::B2, 1> q; pipe.InitBuffer(q, 1, 64 * 1024);",
        "l0b-capacity",
    ),
    "L0C that is full": (
        "TQue<TPosition::CO1, 1> q; pipe.InitBuffer(q, 1, 128 * 1024 + 32);",
        "TQue<TPosition::CO1, 1> q; pipe.InitBuffer(q, 1, 128 * 1024);",
        "l0c-capacity",
    ),
    "a bias table that is full": (
        "TQue<TPosition::C2, 1> q; pipe.InitBuffer(q, 1, 1056);",
        "TQue<TPosition::C2, 1> q; pipe.InitBuffer(q, 1, 1024);",
        "bt-capacity",
    ),
    "a tensor behind the end of L1": (
        "LocalMemAllocator<Hardware::L1> memory; memory.Alloc<TPosition::A1, half>(256 * 1024);"
        "memory.Alloc<TPosition::B1, half>(16);",
        "LocalMemAllocator<Hardware::L1> memory; memory.Alloc<TPosition::A1, half>(256 * 1024 - 16);"
        "memory.Alloc<TPosition::B1, half>(16);",
        "l1-capacity",
    ),
    "a tensor behind the end of L0C": (
        "LocalMemAllocator<Hardware::L0C> memory; memory.Alloc<float, 32 * 1024 + 8>();",
        "LocalMemAllocator<Hardware::L0C> memory; memory.Alloc<float, 32 * 1024>();",
        "l0c-capacity",
    ),
    "output of more than 30 KB": (
        "DumpTensor(buf2.Get<float>(), 1, 8192);",
        "DumpTensor(buf2.Get<float>(), 1, 16);",
        "param-limit",
    ),
}
PRINTS = """
    pipe.InitBuffer(in, 1, 4096); pipe.InitBuffer(out, 1, 4096);
    LocalTensor<half> h = buf2.Get<half>(); LocalTensor<int32_t> n = buf2.Get<int32_t>();
    Duplicate(h, half(1.5), 64); PipeBarrier<PIPE_ALL>();
    DumpTensor(h, 7, 3);
    Duplicate(n, 5, 32); PipeBarrier<PIPE_ALL>();
    uint32_t sizes[] = {2, 4}; ShapeInfo shape(2, sizes);
    DumpTensor(n, 8, 6, shape);
    DumpAccChkPoint(n, 9, 8, 2);
    GlobalTensor<float> x; x.SetGlobalBuffer((__gm__ float *)t[0]);
    DumpTensor(x, 10, 2);
    printf("plain %d %s %f\\n", 3, "words", half(0.25));
    AscendC::printf("%ld of %u\\n", GetBlockIdx(), 8u);
    PRINTF("as a macro\\n");
"""
LINES = (
    "[AIV Block 0/1] DumpTensor: desc=7, addr=",
    "data_type=float16, position=UB, dump_size=3, line=",
    "[1.500000, 1.500000, 1.500000]",
    "[[5, 5, 5, 5],\n[5, 5, -, -]]",
    "desc=9",
    "[5, 5]",
    "position=GM, dump_size=2",
    "[0.000000, 1.000000]",
    "[AIV Block 0/1] plain 3 words 0.250000",
    "[AIV Block 0/1] 0 of 8",
    "[AIV Block 0/1] as a macro",
)


@pytest.fixture(scope="module")
def run(compile_kernel):
    """Runs body ``number`` of CASES, FAULTS and PRINTS."""
    more = START + "TBuf<TPosition::VECCALC> buf2; pipe.InitBuffer(buf2, 32768);"
    end = "pipe.InitBuffer(in, 1, 4096); pipe.InitBuffer(out, 1, 4096);" + RUN
    full = "Duplicate(buf2.Get<float>(), 0.0f, 8192); PipeBarrier<PIPE_ALL>();"
    bodies = [
        *CASES.values(),
        *(more + full + line + end for case in FAULTS.values() for line in case[:2]),
        more + PRINTS.replace("\\\\", "\\") + RUN,
    ]
    functions = "".join(f"__aicore__ void Body{i}(GM_ADDR *t)\n{{{body}}}\n" for i, body in enumerate(bodies))
    calls = "".join(f"if (tiling.size[0] == {i}) Body{i}(t);\n" for i in range(len(bodies)))
    kernel = compile_kernel(calls, sizes=1, prelude=PRELUDE + functions)
    x = np.arange(1024, dtype=np.float32)

    def once(number):
        ran = kernel.run([x], [(1024, np.float32)], [number])
        np.testing.assert_array_equal(ran.outputs[0], 2 * x)
        return ran

    return once


@pytest.mark.parametrize("name", CASES)
def test_buffers_hold_what_was_copied(run, name) -> None:
    assert not run(list(CASES).index(name)).result.hazards


@pytest.mark.parametrize("name", FAULTS)
def test_fault_and_its_neighbour(run, name) -> None:
    number = len(CASES) + 2 * list(FAULTS).index(name)
    faulty = run(number)
    assert FAULTS[name][-1] in faulty.codes() | faulty.codes("warning"), faulty.result
    correct = run(number + 1)
    assert not correct.result.hazards


def test_output_of_a_kernel(run) -> None:
    ran = run(len(CASES) + 2 * len(FAULTS))
    assert not ran.result.hazards
    for line in LINES:
        assert line in ran.result.output
