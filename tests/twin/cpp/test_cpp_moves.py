"""Copies, padding, atomics, fills, gathers and high-level functions against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evokernel_core.twin.run import Mode

N = 1024
START = """
    TPipe pipe;
    TBuf<TPosition::VECCALC> bufA, bufB, bufC;
    pipe.InitBuffer(bufA, 16384);
    pipe.InitBuffer(bufB, 16384);
    pipe.InitBuffer(bufC, 16384);
    LocalTensor<float> a = bufA.Get<float>(), b = bufB.Get<float>();
    GlobalTensor<float> x, z;
    x.SetGlobalBuffer((__gm__ float *)t[0]);
    z.SetGlobalBuffer((__gm__ float *)t[1]);
    DataCopy(a, x, 1024);
    Duplicate(b, -1.0f, 4096);
    PipeBarrier<PIPE_ALL>();
"""
END = """
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, b, 1024);
"""


def _run(compile_kernel, line: str, mode: Mode = Mode.CHECK, x=None):
    kernel = compile_kernel(START + line + END)
    x = np.arange(N, dtype=np.float32) if x is None else x
    ran = kernel.run([x], [(N, np.float32)], mode=mode)
    assert not ran.codes(), ran.result.hazards
    return ran.outputs[0] if ran.outputs else None


@pytest.mark.parametrize(("pad", "left", "right"), [(False, 0, 0), (True, 0, 0), (True, 2, 3)])
def test_padded_copy_in(compile_kernel, pad, left, right) -> None:
    """5 blocks of 13 floats, 4 floats apart; blocks in UB are two data blocks apart. Where no padding is
    asked for, the first element of each block fills its last data block."""
    flags = "true" if pad else "false"
    got = _run(
        compile_kernel,
        f"DataCopyPad(b, x, {{5, 52, 16, 2, 0}}, {{{flags}, {left}, {right}, 9.0f}});",
    )
    wanted = np.full(N, -1, np.float32)
    width = -(-(left + 13 + right) // 8) * 8
    for i in range(5):
        block = np.full(width, 9 if left + right else i * 17, np.float32)
        block[left : left + 13] = np.arange(i * 17, i * 17 + 13)
        start = i * (width + 16)
        wanted[start : start + width] = block
    np.testing.assert_array_equal(got, wanted)


def test_padding_without_a_value_is_undefined(compile_kernel) -> None:
    kernel = compile_kernel(START + "DataCopyPad(b, x, {1, 52, 0, 0, 0}, {false, 2, 1, 9.0f});" + END)
    assert "uninitialised-read" in kernel.run([np.ones(N, np.float32)], [(N, np.float32)]).codes()


def test_padded_copy_out_writes_exact_bytes(compile_kernel) -> None:
    got = _run(
        compile_kernel,
        "DataCopy(z, b, 1024); PipeBarrier<PIPE_ALL>(); DataCopyPad(z[3], a, {4, 20, 1, 12, 0});"
        "PipeBarrier<PIPE_ALL>(); DataCopy(b, z, 1024);",
    )
    wanted = np.full(N, -1, np.float32)
    for i in range(4):
        wanted[3 + 8 * i : 8 + 8 * i] = np.arange(16 * i, 16 * i + 5)
    np.testing.assert_array_equal(got, wanted)


def test_strided_copy_in_blocks(compile_kernel) -> None:
    got = _run(compile_kernel, "DataCopy(b, x, DataCopyParams(3, 2, 1, 3));")
    wanted = np.full(N, -1, np.float32)
    for i in range(3):
        wanted[40 * i : 40 * i + 16] = np.arange(24 * i, 24 * i + 16)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("name", "function"), [("Add", np.add), ("Max", np.maximum), ("Min", np.minimum)])
def test_atomics_accumulate_into_memory(compile_kernel, name, function) -> None:
    x = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    got = _run(
        compile_kernel,
        f"DataCopy(z, b, 1024); PipeBarrier<PIPE_ALL>(); SetAtomic{name}<float>(); DataCopy(z, a, 1024);"
        "SetAtomicNone(); PipeBarrier<PIPE_ALL>(); DataCopy(b, z, 1024);",
        x=x,
    )
    np.testing.assert_array_equal(got, function(np.float32(-1), x))


def test_duplicate_copy_brcb_and_index(compile_kernel) -> None:
    wanted = np.full(N, -1, np.float32)
    wanted[:5] = 3
    wanted[64:69] = 3
    np.testing.assert_array_equal(_run(compile_kernel, "Duplicate(b, 3.0f, 5, 2, 1, 8);"), wanted)
    np.testing.assert_array_equal(
        _run(compile_kernel, "Brcb(b, a, 16, {1, 8});"), np.repeat(np.arange(128, dtype=np.float32), 8)
    )
    indices = _run(compile_kernel, "CreateVecIndex(b, 5.0f, 1024u);")
    np.testing.assert_array_equal(indices, np.arange(5, N + 5, dtype=np.float32))
    wanted = np.full(N, -1, np.float32)
    for i in range(8):
        wanted[16 * i : 16 * i + 8] = np.arange(8 * i, 8 * i + 8)
    np.testing.assert_array_equal(_run(compile_kernel, "Copy(b, a, 64, 1, {2, 1, 8, 8});"), wanted)


def test_gather_by_offsets(compile_kernel) -> None:
    got = _run(
        compile_kernel,
        "LocalTensor<int32_t> o = bufC.Get<int32_t>(); ArithProgression(o, 4092, -4, 1024);"
        "Gather(b, a, o.ReinterpretCast<uint32_t>(), 0u, 1024u);",
    )
    np.testing.assert_array_equal(got, np.arange(N - 1, -1, -1, dtype=np.float32))


@pytest.mark.parametrize(
    ("pattern", "step", "first"), [(1, 2, 0), (2, 2, 1), (3, 4, 0), (6, 4, 3), (7, 1, 0)]
)
def test_gather_mask_with_fixed_patterns(compile_kernel, pattern, step, first) -> None:
    got = _run(
        compile_kernel,
        f"uint64_t kept = 0; GatherMask(b, a, (uint8_t){pattern}, true, 200u, {{1, 4, 32, 0}}, kept);"
        "Duplicate(b[1016], (float)kept, 8);",
    )
    picked = np.concatenate([np.arange(256 * r, 256 * r + 200)[first::step] for r in range(4)])
    np.testing.assert_array_equal(got[: len(picked)], picked.astype(np.float32))
    assert got[-1] == len(picked)


def test_sort_of_32_keeps_the_order_of_equals(compile_kernel) -> None:
    x = np.random.default_rng(5).integers(0, 6, N).astype(np.float32)
    got = _run(
        compile_kernel,
        "LocalTensor<int32_t> i = bufC.Get<int32_t>(); ArithProgression(i, 0, 1, 512);"
        "Sort32(b, a, i.ReinterpretCast<uint32_t>(), 16);",
        x=x,
    )
    for group in range(16):
        part = x[32 * group : 32 * group + 32]
        order = np.argsort(-part, kind="stable")
        pairs = got[64 * group : 64 * group + 64].reshape(32, 2)
        np.testing.assert_array_equal(pairs[:, 0], part[order])
        np.testing.assert_array_equal(pairs[:, 1].copy().view(np.uint32), 32 * group + order)


MATH = {
    "Tanh": math.tanh,
    "Sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "Erf": math.erf,
    "Gelu": lambda v: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
    "Silu": lambda v: v / (1 + math.exp(-v)),
    "Sin": math.sin,
    "Floor": math.floor,
    "Sign": lambda v: float(np.sign(v)),
}


@pytest.mark.parametrize("name", MATH)
def test_high_level_functions(compile_kernel, name) -> None:
    x = np.random.default_rng(1).standard_normal(N).astype(np.float32) * 3
    wanted = np.array([MATH[name](float(v)) for v in x])
    np.testing.assert_allclose(
        _run(compile_kernel, f"{name}(b, a, 1024u);", x=x), wanted, rtol=1e-6, atol=1e-7
    )


def test_row_sums_and_scalar_access(compile_kernel) -> None:
    got = _run(compile_kernel, "SumParams p{4, 16, 13}; Sum(b, a, p); b.SetValue(9, a.GetValue(7) + 0.5f);")
    np.testing.assert_array_equal(got[:4], np.arange(N).reshape(-1, 16)[:4, :13].sum(1))
    assert got[9] == 7.5


@pytest.mark.parametrize(("name", "digits"), [("Rsqrt", 4), ("Reciprocal", 4)])
def test_approximate_instructions_are_as_coarse_as_documented(compile_kernel, name, digits) -> None:
    """Not within 1e-4 for float, which is why Sqrt and Div exist; but near."""
    x = np.random.default_rng(2).uniform(0.5, 8, N).astype(np.float32)
    exact = 1 / np.sqrt(x.astype(float)) if name == "Rsqrt" else 1 / x.astype(float)
    error = np.abs(_run(compile_kernel, f"{name}(b, a, 1024);", x=x) / exact - 1).max()
    assert 10**-digits < error < 1.5 * 10**-digits


def test_mask_register_and_counter_mode(compile_kernel) -> None:
    got = _run(
        compile_kernel,
        "SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(0, 100);"
        "Adds<float, false>(b, a, 1.0f, MASK_PLACEHOLDER, 1, {1, 1, 8, 8}); ResetMask(); SetMaskNorm();"
        "SetVectorMask<float, MaskMode::NORMAL>(0, 5);"
        "Adds<float, false>(b[512], a, 2.0f, MASK_PLACEHOLDER, 2, {1, 1, 8, 8}); ResetMask();",
    )
    wanted = np.full(N, -1, np.float32)
    wanted[:100] = np.arange(100) + 1
    for i in (0, 2, 64, 66):
        wanted[512 + i] = i + 2
    np.testing.assert_array_equal(got, wanted)


def test_timing_mode_reads_zero_and_moves_nothing(compile_kernel) -> None:
    assert _run(compile_kernel, "b.SetValue(0, a.GetValue(0));", mode=Mode.TIME) is None
