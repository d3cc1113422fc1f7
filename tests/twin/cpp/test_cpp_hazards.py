"""Each hazard: a kernel that has it, and its near neighbour that has not."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import numpy as np
import pytest

START = """
    TPipe pipe;
    GlobalTensor<float> x, z;
    x.SetGlobalBuffer((__gm__ float *)t[0]);
    z.SetGlobalBuffer((__gm__ float *)t[1]);
"""
BUFFERS = (
    START
    + """
    TBuf<TPosition::VECCALC> bufA, bufB;
    pipe.InitBuffer(bufA, 4096);
    pipe.InitBuffer(bufB, 4096);
    LocalTensor<float> a = bufA.Get<float>(), b = bufB.Get<float>();
    DataCopy(a, x, 1024);
    PipeBarrier<PIPE_ALL>();
"""
)
END = """
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, b, 1024);
"""
QUEUE = (
    START
    + """
    TQue<TPosition::VECIN, 1> in;
    TQue<TPosition::VECOUT, 1> out;
    pipe.InitBuffer(in, 2, 4096);
    pipe.InitBuffer(out, 2, 4096);
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, x, 1024);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> c = out.AllocTensor<float>();
"""
)
QUEUE_END = """
    out.EnQue(c);
    c = out.DeQue<float>();
    DataCopy(z, c, 1024);
    out.FreeTensor(c);
"""

# Of a comparison's 64 lanes the last 24 are of what was never written.
COMPARED = """
    TBuf<TPosition::VECCALC> bufC, bufM;
    pipe.InitBuffer(bufC, 4096);
    pipe.InitBuffer(bufM, 64);
    LocalTensor<float> c = bufC.Get<float>();
    LocalTensor<uint8_t> m = bufM.Get<uint8_t>();
    Duplicate(c, 0.5f, 40);
    Compare(m, a, c, CMPMODE::GT, 64);
    Duplicate(c, 0.5f, 64);
"""
MASKS_JOINED = """
    LocalTensor<uint8_t> joined = m[32];
    Compare(joined, a, c, CMPMODE::LT, 64);
    Or(joined.ReinterpretCast<uint16_t>(), joined.ReinterpretCast<uint16_t>(), m.ReinterpretCast<uint16_t>(), 4);
"""

GOOD_QUEUE = "Adds(c, a, 1.0f, 1024); in.FreeTensor(a);"

# name: (start, faulty line, correct line, end, code)
CASES = {
    "buffers beyond the unified buffer": (
        START,
        "TBuf<TPosition::VECCALC> big; pipe.InitBuffer(big, 196608 - 4096);",
        "TBuf<TPosition::VECCALC> big; pipe.InitBuffer(big, 196608 - 8192);",
        BUFFERS.replace(START, "") + "Adds(b, a, 1.0f, 1024);" + END,
        "ub-capacity",
    ),
    "operand that is not on 32 bytes": (
        BUFFERS,
        "Adds(b, a, 1.0f, 1024); Adds(b[4], a[4], 1.0f, 8);",
        "Adds(b, a, 1.0f, 1024); Adds(b[8], a[8], 1.0f, 8);",
        END,
        "alignment",
    ),
    "vector instruction beyond its buffer": (
        BUFFERS,
        "Adds(b, a, 1.0f, 1024); Adds(b[512], a[512], 1.0f, 520);",
        "Adds(b, a, 1.0f, 1024); Adds(b[512], a[512], 1.0f, 512);",
        END,
        "out-of-bounds",
    ),
    "copy beyond its tensor": (
        BUFFERS,
        "DataCopy(a, x[16], 1024); PipeBarrier<PIPE_ALL>(); Adds(b, a, 1.0f, 1024);",
        "DataCopy(a, x[8], 1016); PipeBarrier<PIPE_ALL>(); Adds(b, a, 1.0f, 1024);",
        END,
        "out-of-bounds",
    ),
    "storing what was never written": (
        BUFFERS,
        "Adds(b, a, 1.0f, 1023);",
        "Adds(b, a, 1.0f, 1024);",
        END,
        "uninitialised-read",
    ),
    "storing what was computed from nothing": (
        BUFFERS
        + "TBuf<TPosition::VECCALC> bufC; pipe.InitBuffer(bufC, 4096); LocalTensor<float> c = bufC.Get<float>();",
        "Add(b, a, c, 1024);",
        "Duplicate(c, 1.0f, 1024); Add(b, a, c, 1024);",
        END,
        "uninitialised-read",
    ),
    "reduction over padding that holds nothing": (
        BUFFERS
        + "TBuf<TPosition::VECCALC> bufC; pipe.InitBuffer(bufC, 64); LocalTensor<float> c = bufC.Get<float>();"
        "Duplicate(c, 0.0f, 8);",
        "ReduceSum(b, c, a, 16); Adds(b, a, 0.0f, 1024);",
        "ReduceSum(b, c, a, 8); Adds(b, a, 0.0f, 1024);",
        END,
        "uninitialised-read",
    ),
    "choosing by a comparison of what holds nothing": (
        BUFFERS + "Adds(b, a, 0.0f, 1024);" + COMPARED,
        "Select(b, m, a, c, SELMODE::VSEL_TENSOR_TENSOR_MODE, 41);",
        "Select(b, m, a, c, SELMODE::VSEL_TENSOR_TENSOR_MODE, 40);",
        END,
        "uninitialised-read",
    ),
    "choosing by masks of which one holds nothing": (
        BUFFERS + "Adds(b, a, 0.0f, 1024);" + COMPARED + MASKS_JOINED,
        "Select(b, joined, a, c, SELMODE::VSEL_TENSOR_TENSOR_MODE, 41);",
        "Select(b, joined, a, c, SELMODE::VSEL_TENSOR_TENSOR_MODE, 40);",
        END,
        "uninitialised-read",
    ),
    "reading an element that was never written": (
        BUFFERS,
        "Duplicate(b, 0.0f, 8); float v = b.GetValue(8); Adds(b, a, v, 1024);",
        "Duplicate(b, 0.0f, 8); float v = b.GetValue(7); Adds(b, a, v, 1024);",
        END,
        "uninitialised-read",
    ),
    "using a tensor whose buffer has another owner": (
        QUEUE,
        "in.FreeTensor(a); auto e = in.AllocTensor<float>(); auto f = in.AllocTensor<float>(); "
        "Adds(c, a, 1.0f, 1024); in.FreeTensor(e); in.FreeTensor(f);",
        GOOD_QUEUE + "auto e = in.AllocTensor<float>(); auto f = in.AllocTensor<float>(); "
        "in.FreeTensor(e); in.FreeTensor(f);",
        QUEUE_END,
        "stale-read",
    ),
    "a late use that the next owner of the buffer does not wait for": (
        QUEUE,
        "in.FreeTensor(a); Adds(c, a, 1.0f, 1024); auto e = in.AllocTensor<float>(); "
        "auto f = in.AllocTensor<float>(); DataCopy(f, x[8], 1016); in.FreeTensor(e); in.FreeTensor(f);",
        GOOD_QUEUE + "auto e = in.AllocTensor<float>(); auto f = in.AllocTensor<float>(); "
        "DataCopy(f, x[8], 1016); in.FreeTensor(e); in.FreeTensor(f);",
        QUEUE_END,
        "missing-sync",
    ),
    "using a tensor whose buffer had another owner": (
        QUEUE,
        "in.FreeTensor(a); auto e = in.AllocTensor<float>(); auto f = in.AllocTensor<float>(); "
        "in.FreeTensor(e); in.FreeTensor(f); Adds(c, a, 1.0f, 1024);",
        GOOD_QUEUE + "auto e = in.AllocTensor<float>(); auto f = in.AllocTensor<float>(); "
        "in.FreeTensor(e); in.FreeTensor(f);",
        QUEUE_END,
        "stale-read",
    ),
    "DeQue on an empty queue": (
        QUEUE,
        GOOD_QUEUE + "a = in.DeQue<float>();",
        GOOD_QUEUE + "a = in.AllocTensor<float>(); in.EnQue(a); a = in.DeQue<float>(); in.FreeTensor(a);",
        QUEUE_END,
        "queue-misuse",
    ),
    "EnQue beyond the depth": (
        QUEUE,
        GOOD_QUEUE + "for (int i = 0; i < 2; ++i) { auto e = in.AllocTensor<float>(); in.EnQue(e); }"
        "a = in.DeQue<float>(); in.FreeTensor(a);",
        GOOD_QUEUE + "for (int i = 0; i < 2; ++i) { auto e = in.AllocTensor<float>(); in.EnQue(e);"
        "a = in.DeQue<float>(); in.FreeTensor(a); }",
        QUEUE_END,
        "queue-misuse",
    ),
    "AllocTensor without a free buffer": (
        QUEUE,
        "auto e = in.AllocTensor<float>(); auto f = in.AllocTensor<float>(); in.FreeTensor(e);" + GOOD_QUEUE,
        "auto e = in.AllocTensor<float>(); in.FreeTensor(e);" + GOOD_QUEUE,
        QUEUE_END,
        "queue-misuse",
    ),
    "FreeTensor twice": (QUEUE, GOOD_QUEUE + "in.FreeTensor(a);", GOOD_QUEUE, QUEUE_END, "queue-misuse"),
    "FreeTensor while in the queue": (
        QUEUE,
        GOOD_QUEUE + "a = in.AllocTensor<float>(); in.EnQue(a); in.FreeTensor(a);",
        GOOD_QUEUE + "a = in.AllocTensor<float>(); in.EnQue(a); a = in.DeQue<float>(); in.FreeTensor(a);",
        QUEUE_END,
        "queue-misuse",
    ),
    "EnQue in another queue": (
        QUEUE,
        "TQue<TPosition::VECIN, 1> other; pipe.InitBuffer(other, 1, 4096); other.EnQue(a);" + GOOD_QUEUE,
        "TQue<TPosition::VECIN, 1> other; pipe.InitBuffer(other, 1, 4096);" + GOOD_QUEUE,
        QUEUE_END,
        "queue-misuse",
    ),
    "queues with more buffers than events": (
        START + "TQue<TPosition::VECIN, 1> many;",
        "pipe.InitBuffer(many, 7, 32);",
        "pipe.InitBuffer(many, 6, 32);",
        QUEUE.replace(START, "") + GOOD_QUEUE + QUEUE_END,
        "too-many-buffers",
    ),
    "more than 64 buffers": (
        START + "TBuf<TPosition::VECCALC> many[64];",
        "for (int i = 0; i < 63; ++i) pipe.InitBuffer(many[i], 32);",
        "for (int i = 0; i < 62; ++i) pipe.InitBuffer(many[i], 32);",
        BUFFERS.replace(START, "") + "Adds(b, a, 1.0f, 1024);" + END,
        "too-many-buffers",
    ),
    "flag that nobody waits for": (
        BUFFERS,
        "Adds(b, a, 1.0f, 1024); SetFlag<HardEvent::V_MTE3>(EVENT_ID0);",
        "Adds(b, a, 1.0f, 1024); SetFlag<HardEvent::V_MTE3>(EVENT_ID0); WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);",
        END,
        "event-misuse",
    ),
    "wait for a flag that never comes": (
        BUFFERS,
        "Adds(b, a, 1.0f, 1024); SetFlag<HardEvent::V_MTE3>(EVENT_ID1); WaitFlag<HardEvent::V_MTE3>(EVENT_ID1);"
        "WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);",
        "Adds(b, a, 1.0f, 1024); SetFlag<HardEvent::V_MTE3>(EVENT_ID1); WaitFlag<HardEvent::V_MTE3>(EVENT_ID1);",
        END,
        "event-misuse",
    ),
    "event id beyond 7": (
        BUFFERS,
        "Adds(b, a, 1.0f, 1024); SetFlag<HardEvent::V_MTE3>(8); WaitFlag<HardEvent::V_MTE3>(8);",
        "Adds(b, a, 1.0f, 1024); SetFlag<HardEvent::V_MTE3>(7); WaitFlag<HardEvent::V_MTE3>(7);",
        END,
        "event-misuse",
    ),
    "more repeats than an instruction holds": (
        BUFFERS,
        "Adds(b, a, 1.0f, 64, 256, {1, 1, 8, 8});",
        "Adds(b, a, 1.0f, 64, 16, {1, 1, 8, 8});",
        END,
        "repeat-limit",
    ),
    "more blocks than a copy holds": (
        BUFFERS,
        "DataCopyPad(a, x, {4096, 4, 0, 0, 0}, {false, 0, 0, 0.0f}); PipeBarrier<PIPE_ALL>(); Adds(b, a, 1.0f, 1024);",
        "DataCopyPad(a, x, {128, 4, 0, 0, 0}, {false, 0, 0, 0.0f}); PipeBarrier<PIPE_ALL>(); Adds(b, a, 1.0f, 1024);",
        END,
        "stride-limit",
    ),
    "type that the instruction lacks": (
        BUFFERS,
        "auto h = a.ReinterpretCast<bfloat16_t>(); Add(b.ReinterpretCast<bfloat16_t>(), h, h, 64);"
        "Adds(b, a, 1.0f, 1024);",
        "auto h = a.ReinterpretCast<half>(); Add(b.ReinterpretCast<half>(), h, h, 64); Adds(b, a, 1.0f, 1024);",
        END,
        "dtype-unsupported",
    ),
    "partial overlap": (
        BUFFERS + "Adds(b, a, 1.0f, 1024);",
        "Adds(b[8], b, 1.0f, 512);",
        "Adds(b, b, 1.0f, 512);",
        END,
        "overlap",
    ),
    "widening in place": (
        BUFFERS + "Adds(b, a, 1.0f, 1024);",
        "Cast(a, a.ReinterpretCast<half>(), RoundMode::CAST_NONE, 1024);",
        "Cast(a.ReinterpretCast<half>(), a, RoundMode::CAST_RINT, 1024);",
        END,
        "overlap",
    ),
    "comparison of a broken repeat": (
        BUFFERS + "Adds(b, a, 1.0f, 1024); TBuf<TPosition::VECCALC> m; pipe.InitBuffer(m, 256);",
        "Compare(m.Get<uint8_t>(), a, b, CMPMODE::LT, 100);",
        "Compare(m.Get<uint8_t>(), a, b, CMPMODE::LT, 128);",
        END,
        "alignment",
    ),
    "writing to an input": (
        BUFFERS + "Adds(b, a, 1.0f, 1024); PipeBarrier<PIPE_ALL>();",
        "DataCopy(x, b, 1024);",
        "DataCopy(z, b, 1024);",
        END,
        "input-modified",
    ),
    "output that is not complete": (
        BUFFERS + "Adds(b, a, 1.0f, 1024); PipeBarrier<PIPE_ALL>();",
        "DataCopy(z, b, 1016);",
        "DataCopy(z, b, 1024);",
        "",
        "output-not-written",
    ),
    "GM address that is not on an element": (
        BUFFERS,
        "GlobalTensor<float> odd; odd.SetGlobalBuffer((__gm__ float *)(t[0] + 2)); DataCopy(a, odd, 8);"
        "PipeBarrier<PIPE_ALL>(); Adds(b, a, 1.0f, 1024);",
        "GlobalTensor<float> odd; odd.SetGlobalBuffer((__gm__ float *)(t[0] + 4)); DataCopy(a, odd, 8);"
        "PipeBarrier<PIPE_ALL>(); Adds(b, a, 1.0f, 1024);",
        END,
        "gm-misaligned-access",
    ),
}
WARNINGS = {
    "using a tensor after FreeTensor": (
        QUEUE,
        "in.FreeTensor(a); Adds(c, a, 1.0f, 1024);",
        GOOD_QUEUE,
        QUEUE_END,
        "stale-read",
    ),
    "copy beyond what SetGlobalBuffer was told": (
        BUFFERS + "x.SetGlobalBuffer((__gm__ float *)t[0], 512);",
        "DataCopy(a, x, 520); PipeBarrier<PIPE_ALL>(); Adds(b, a, 1.0f, 1024);",
        "DataCopy(a, x, 512); PipeBarrier<PIPE_ALL>(); Adds(b, a, 1.0f, 1024);",
        END,
        "declared-size",
    ),
    "copy that drops its tail": (
        BUFFERS + "Adds(b, a, 1.0f, 1024);",
        "PipeBarrier<PIPE_ALL>(); DataCopy(a, x, 1020);",
        "PipeBarrier<PIPE_ALL>(); DataCopy(a, x, 1016);",
        END,
        "datacopy-truncation",
    ),
    "overflow to infinity": (
        BUFFERS,
        "Muls(b, a, 3e38f, 1024); Muls(b, a, 1.0f, 1024);",
        "Muls(b, a, 3e37f, 1024); Muls(b, a, 1.0f, 1024);",
        END,
        "overflow-inf",
    ),
    "mask beyond the repeat": (
        BUFFERS,
        "Adds(b, a, 1.0f, 100, 16, {1, 1, 8, 8});",
        "Adds(b, a, 1.0f, 64, 16, {1, 1, 8, 8});",
        END,
        "mask-limit",
    ),
    "tensor that is never given back": (
        QUEUE,
        "Adds(c, a, 1.0f, 1024);",
        GOOD_QUEUE,
        QUEUE_END,
        "queue-misuse",
    ),
}


@pytest.fixture(scope="module")
def run(compile_kernel):
    """Runs ``bodies[number]``: all of them are compiled into one kernel."""
    bodies = [
        start + "\n" + line + "\n" + end
        for cases in (CASES, WARNINGS)
        for start, *both, end, _ in cases.values()
        for line in both
    ]
    prelude = "".join(
        f"__aicore__ void Body{number}(GM_ADDR *t)\n{{{body}}}\n" for number, body in enumerate(bodies)
    )
    calls = "".join(f"if (tiling.size[0] == {number}) Body{number}(t);\n" for number in range(len(bodies)))
    kernel = compile_kernel(calls, sizes=1, prelude=prelude)
    x = np.linspace(1, 5, 1024, dtype=np.float32)
    return lambda number: kernel.run([x], [(1024, np.float32)], [number])


@pytest.mark.parametrize("name", CASES)
def test_error_and_its_neighbour(run, name) -> None:
    number = 2 * list(CASES).index(name)
    code = CASES[name][-1]
    faulty = run(number)
    assert code in faulty.codes(), faulty.result
    assert all(h.line > 0 for h in faulty.result.hazards if h.code == code and code != "output-not-written")
    correct = run(number + 1)
    assert not correct.codes(), correct.result.hazards


@pytest.mark.parametrize("name", WARNINGS)
def test_warning_and_its_neighbour(run, name) -> None:
    number = 2 * (len(CASES) + list(WARNINGS).index(name))
    code = WARNINGS[name][-1]
    faulty = run(number)
    assert code in faulty.codes("warning")
    assert not faulty.codes()
    correct = run(number + 1)
    assert not correct.codes("warning"), correct.result.hazards
    assert not correct.codes()


def test_a_hazard_names_the_line_of_the_call(compile_kernel) -> None:
    kernel = compile_kernel(
        BUFFERS + "Adds(b, a, 1.0f, 1024);\n    Adds(b[4],\n         a[4], 1.0f, 8);" + END
    )
    x = np.zeros(1024, np.float32)
    (hazard,) = {h for h in kernel.run([x], [(1024, np.float32)]).result.hazards if "dst" in h.message}
    text = kernel_lines(BUFFERS)
    assert hazard.line in (text + 1, text + 2)


def kernel_lines(start: str) -> int:
    """The 1-based line of the first line after ``start`` in the compiled kernel."""
    return 6 + start.count("\n")


@pytest.mark.parametrize(
    ("elements", "read", "written", "severity", "code"),
    [
        (1001, 1000, 1000, "", ""),
        (1001, 1008, 1008, "warning", "padding-access"),
        (1001, 1016, 1008, "warning", "padding-access"),
        (1001, 1024, 1000, "error", "out-of-bounds"),
        (1008, 1008, 1008, "", ""),
        (1008, 1016, 1008, "warning", "padding-access"),
        (1008, 1024, 1008, "error", "out-of-bounds"),
        (1008, 1008, 1016, "error", "out-of-bounds"),
    ],
)
def test_what_lies_behind_a_tensor(compile_kernel, elements, read, written, severity, code) -> None:
    """Device memory comes in blocks of 32 bytes: a copy that ends in the last one is done, and one that reads
    the block behind it, which aclrtMalloc adds."""
    buffers = BUFFERS.replace("DataCopy(a, x, 1024);", "Duplicate(a, 0.0f, 1024); PipeBarrier<PIPE_ALL>();")
    kernel = compile_kernel(
        buffers + f"DataCopy(a, x, {read}); PipeBarrier<PIPE_ALL>(); "
        f"Adds(b, a, 1.0f, 1024); PipeBarrier<PIPE_ALL>(); DataCopy(z, b, {written});"
    )
    x = np.arange(elements, dtype=np.float32)
    ran = kernel.run([x], [(elements, np.float32)])
    found = {(item.severity, item.code) for item in ran.result.hazards} - {("error", "output-not-written")}
    assert found == ({(severity, code)} if code else set())
    if severity == "warning":
        np.testing.assert_array_equal(ran.outputs[0], x + 1)


@pytest.mark.parametrize("place", [0, 188416, 196608 - 512])
def test_a_pointer_reaches_the_whole_unified_buffer(compile_kernel, place) -> None:
    """Older kernels name their operands by address, also in the last 8 KB, which only some functions need."""
    ahead = f"TBuf<TPosition::VECCALC> ahead; pipe.InitBuffer(ahead, {place});" if place else ""
    kernel = compile_kernel(
        f"""
    TPipe pipe;
    {ahead}
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 512);
    LocalTensor<float> a = buffer.Get<float>(), sum = a[64];
    Duplicate(a, 1.5f, 128);
    PipeBarrier<PIPE_V>();
    AscendCUtils::SetMask<float>(64);
    vcadd((__ubuf__ float *)sum.GetPhyAddr(), (__ubuf__ float *)a.GetPhyAddr(), 1, 1, 1, 8, false);
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<float> z;
    z.SetGlobalBuffer((__gm__ float *)t[0]);
    DataCopy(z, sum, 8);
"""
    )
    ran = kernel.run([], [(8, np.float32)])
    assert not ran.codes(), ran.result.hazards
    assert ran.outputs[0][0] == 96
