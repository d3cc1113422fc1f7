"""What the twin says about wrong matrix code: each fault alone is named, and right code says nothing."""

from __future__ import annotations

import numpy as np
import pytest

CUBE = (1, 0, "false")
PRELUDE = """
struct Parts {
    GlobalTensor<half> a, b;
    GlobalTensor<float> c;
    LocalTensor<half> a1{TPosition::A1, 0, 8192}, b1{TPosition::B1, 65536, 8192};
    LocalTensor<half> a2{TPosition::A2, 0, 8192}, b2{TPosition::B2, 0, 8192};
    LocalTensor<float> l0c{TPosition::CO1, 0, 8192};
    Nd2NzParams nd2nz{1, 32, 32, 0, 32, 32, 1, 0};
    LoadData2DParams left{0, 2, 2, 0, 0, false, 0};
    LoadData2DParams right{0, 2, 2, 0, 0, true, 0};
    MmadParams mmad{32, 32, 32, 0, false, true};
    FixpipeParamsV220 out{32, 32, 32, 32, false};
};
"""
START = """
    Parts p;
    p.a.SetGlobalBuffer((__gm__ half *)t[0]);
    p.b.SetGlobalBuffer((__gm__ half *)t[1]);
    p.c.SetGlobalBuffer((__gm__ float *)t[2]);
    const int fault = tiling.size[0];
    auto is = [&](int wanted) { return fault == wanted; };
    DataCopy(p.a1, p.a, 1024);
    DataCopy(p.b1, p.b, 1024);
    PipeBarrier<PIPE_ALL>();
"""
COPY = "DataCopy(p.a1, p.a, p.nd2nz); DataCopy(p.b1, p.b, p.nd2nz); PipeBarrier<PIPE_ALL>();"
LOAD = """
    for (int i = 0; i < 2; ++i) {
        LoadData(p.a2[i * 512], p.a1[i * 256], p.left);
        LoadData(p.b2[i * 512], p.b1[i * 256], p.right);
    }
    PipeBarrier<PIPE_ALL>();
"""
MMAD = "Mmad(p.l0c, p.a2, p.b2, p.mmad); PipeBarrier<PIPE_ALL>();"
OUT = "Fixpipe(p.c, p.l0c, p.out);"
FAULTS = [  # code of the hazard, before which step, what is done
    ("", "", ""),
    ("param-limit", "copy", "p.nd2nz.srcDValue = 70000;"),
    ("param-limit", "copy", "p.nd2nz.dstNzC0Stride = 0;"),
    ("alignment", "copy", "p.a1 = LocalTensor<half>(TPosition::A1, 16, 8192);"),
    ("out-of-bounds", "copy", "p.nd2nz.dstNzC0Stride = 16384;"),
    ("out-of-bounds", "copy", "p.nd2nz.nValue = 600;"),
    ("param-limit", "load", "p.left.repeatTimes = 256;"),
    ("alignment", "load", "p.a2 = LocalTensor<half>(TPosition::A2, 64, 8192);"),
    ("dtype-unsupported", "load", "p.a2 = LocalTensor<half>(TPosition::CO1, 0, 8192);"),
    ("out-of-bounds", "load", "p.left.startIndex = 1024;"),
    ("uninitialised-read", "load", "p.left.startIndex = 40;"),
    ("param-limit", "mmad", "p.mmad.k = 4096;"),
    ("param-limit", "mmad", "p.mmad.unitFlag = 1;"),
    ("alignment", "mmad", "p.l0c = LocalTensor<float>(TPosition::CO1, 512, 8192);"),
    ("out-of-bounds", "mmad", "p.mmad.m = 2048;"),
    ("uninitialised-read", "mmad", "p.mmad.k = 48;"),
    ("uninitialised-read", "mmad", "p.mmad.cmatrixInitVal = false;"),
    ("uninitialised-read", "mmad", "p.mmad.cmatrixInitVal = false; p.mmad.cmatrixSource = true;"),
    ("l0c-unit-flag", "mmad", "p.mmad.unitFlag = 3;"),
    ("l0c-unit-flag", "out", "p.out.unitFlag = 3;"),
    ("", "mmad", "p.mmad.unitFlag = 3; p.out.unitFlag = 3;"),
    ("uninitialised-read", "out", "p.out.nSize = 48; p.out.dstStride = 48; p.out.mSize = 16;"),
    ("param-limit", "out", "p.out.mSize = 9000;"),
    ("param-limit", "out", "p.out.dstStride = 0;"),
    ("dtype-unsupported", "out", "p.out.quantPre = QuantMode_t::F322F16;"),
    ("param-limit", "out", "p.out.isChannelSplit = true;"),
    ("out-of-bounds", "out", "p.out.srcStride = 4000;"),
]
OTHERS = [  # code, severity, statement
    ("dtype-unsupported", "error", "DataCopy(p.c, p.a1.ReinterpretCast<float>(), DataCopyCO12DstParams());"
     "Mmad(p.l0c, p.a2, p.b2.ReinterpretCast<bfloat16_t>(), p.mmad);"),
    ("dtype-unsupported", "error",
     "Fill(p.a1.ReinterpretCast<int8_t>(), InitConstValueParams<int8_t>(1, 4, 0, 1));"),
    ("wrong-core", "error", "LocalTensor<half> ub(TPosition::VECIN, 0, 1024); DataCopy(ub, p.a, 1024);"),
    ("param-limit", "error", "SetLoadDataBoundary(512);"),
    ("dtype-unsupported", "error",
     "LocalTensor<int8_t> x(TPosition::A2, 0, 4096); LoadData3DParamsV2<int8_t> q; q.l1H = 1; q.l1W = 32;"
     "q.channelSize = q.kExtension = 32; q.mExtension = 32; q.enTranspose = true;"
     "LoadData(x, p.a1.ReinterpretCast<int8_t>(), q);"),
    ("declared-size", "warning",
     "LocalTensor<half> small(TPosition::A2, 4096, 256); LoadData(small, p.a1, p.left);"),
    ("", "error", "LocalTensor<half> right(TPosition::A2, 4096, 512); LoadData(right, p.a1, p.left);"),
    ("param-limit", "error", "DataCopyCO12DstParams q; q.nSize = 16;"
     "q.mSize = 16; q.srcStride = 16; q.dstStride = 16; q.nz2ndEn = true; DataCopy(p.c, p.l0c, q);"),
]  # fmt: skip


@pytest.fixture(scope="module")
def faulty(compile_kernel):
    def at(step: str) -> str:
        lines = [f"if (is({i})) {{ {text} }}" for i, (_, place, text) in enumerate(FAULTS) if place == step]
        return "\n".join(lines)

    others = "".join(f"if (is({100 + i})) {{ {text} }}\n" for i, (_, _, text) in enumerate(OTHERS))
    body = START + at("copy") + COPY + at("load") + LOAD + at("mmad") + MMAD
    twice = "if (is(18)) { Mmad(p.l0c, p.a2, p.b2, p.mmad); }"
    return compile_kernel(body + twice + at("out") + OUT + others, sizes=1, prelude=PRELUDE, kind=CUBE)


def _run(faulty, fault: int):
    x = np.ones(16384, np.float16)
    return faulty.run([x, x], [(1024, np.float32)], (fault,))


@pytest.mark.parametrize("fault", range(len(FAULTS)))
def test_each_fault_is_named_and_nothing_else(faulty, fault) -> None:
    code = FAULTS[fault][0]
    codes = _run(faulty, fault).codes() - {"output-not-written"}
    if not code:
        assert not codes
    else:
        assert code in codes


@pytest.mark.parametrize("index", range(len(OTHERS)))
def test_other_instructions(faulty, index) -> None:
    code, severity, _ = OTHERS[index]
    ran = _run(faulty, 100 + index)
    assert ran.codes(severity) == ({code} if code else set()), ran.result.hazards


OVERWRITES = {  # two instructions that write one place, and the barrier that puts them in order
    "LoadData": ("MTE1", "LoadData(p.a2, p.a1, p.left);", "LoadData(p.a2, p.b1, p.left);"),
    "LoadDataWithTranspose": (
        "MTE1", "LoadDataWithTranspose(p.b2, p.a1, turned);", "LoadDataWithTranspose(p.b2, p.b1, turned);"
    ),
    "LoadData of an image": ("MTE1", "LoadData(p.a2, p.a1, image);", "LoadData(p.a2, p.b1, image);"),
    "LoadData of an image, transposed": (
        "MTE1", "LoadData(p.b2, p.a1, image);", "LoadData(p.b2, p.b1, image);"
    ),
    "LoadData from memory": ("MTE2", "LoadData(p.a1, p.a, p.left);", "LoadData(p.a1, p.b, p.left);"),
    "Fill": ("MTE1", "Fill(p.a2, {1, 2, 0, half(1)});", "Fill(p.a2, {1, 2, 0, half(2)});"),
    "DataCopy": ("MTE2", "DataCopy(p.a1, p.a, p.nd2nz);", "DataCopy(p.a1, p.b, p.nd2nz);"),
    "DataCopy to the bias table": (
        "MTE1", "DataCopy(bias, p.a1[0].ReinterpretCast<float>(), {1, 2, 0, 0});",
        "DataCopy(bias, p.b1[0].ReinterpretCast<float>(), {1, 2, 0, 0});",
    ),
    "Fixpipe": (
        "FIX", "Fixpipe(p.a1, p.l0c, narrow);", "Fixpipe(p.a1, p.l0c[256], narrow);"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def overwriting(compile_kernel):
    """All pairs, chosen by a size; a second one says whether the barrier is there."""
    lines = [
        f"if (is({place})) {{\n{first}\nif (tiling.size[1]) {{ PipeBarrier<PIPE_{pipe}>(); }}\n{second}\n}}"
        for place, (pipe, first, second) in enumerate(OVERWRITES.values())
    ]
    others = """
    LoadData2dTransposeParams turned; turned.repeatTimes = 2; turned.srcStride = 1;
    LoadData3DParamsV2<half> image; image.l1H = 1; image.l1W = 16; image.channelSize = 16;
    image.kExtension = 16; image.mExtension = 16;
    LocalTensor<float> bias(TPosition::C2, 0, 256);
    FixpipeParamsV220 narrow{16, 16, 16, 16, false}; narrow.quantPre = QuantMode_t::F322F16;
    p.mmad.m = 16; p.mmad.n = 32; p.mmad.k = 16;
    """
    filled = "LoadData(p.a2, p.a1, p.left); LoadData(p.b2, p.b1, p.left); PipeBarrier<PIPE_ALL>();"
    body = START + others + filled + MMAD + "\n".join(lines)
    return compile_kernel(body, sizes=2, prelude=PRELUDE, kind=CUBE)


@pytest.mark.parametrize("name", OVERWRITES)
def test_a_write_that_changes_what_another_left_needs_a_barrier(overwriting, name: str) -> None:
    """A warning is for writes that leave the bytes as they are."""
    draw = np.random.default_rng(2)
    x, y = (draw.integers(1, 9, 16384).astype(np.float16) for _ in range(2))
    place = list(OVERWRITES).index(name)
    missing, there = (
        overwriting.run([x, y], [(1024, np.float32)], (place, ordered)).codes() for ordered in (0, 1)
    )
    assert missing - {"output-not-written"} == {"missing-sync"}
    assert not there - {"output-not-written"}
