"""Functions of the API as template arguments, by their published signatures, and the lines of plain calls."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import numpy as np
import pytest

PRELUDE = """
template <typename T> using Two = void(const LocalTensor<T> &, const LocalTensor<T> &, const LocalTensor<T> &, const int32_t &);
template <typename T> using Repeats = void(const LocalTensor<T> &, const LocalTensor<T> &, const LocalTensor<T> &, uint64_t, const uint8_t, const BinaryRepeatParams &);
template <typename T> using One = void(const LocalTensor<T> &, const LocalTensor<T> &, const int32_t &);
template <typename T> using Number = void(const LocalTensor<T> &, const LocalTensor<T> &, const T &, const int32_t &);
template <typename T> using Advanced = void(const LocalTensor<T> &, const LocalTensor<T> &, const uint32_t);
template <typename T, Two<T> *two, Repeats<T> *repeats, One<T> *one, Number<T> *number, Advanced<T> *advanced>
void Chain(LocalTensor<T> a, LocalTensor<T> b)
{
    two(a, a, b, 128); PipeBarrier<PIPE_V>();
    repeats(a, a, b, 64, 2, {1, 1, 1, 8, 8, 8}); PipeBarrier<PIPE_V>();
    number(a, a, T(2), 128); PipeBarrier<PIPE_V>();
    one(a, a, 128); PipeBarrier<PIPE_V>();
    advanced(b, a, 128); PipeBarrier<PIPE_V>();
}
"""
BODY = """
    TPipe pipe; TBuf<TPosition::VECCALC> bufA, bufB; pipe.InitBuffer(bufA, 512); pipe.InitBuffer(bufB, 512);
    GlobalTensor<float> x, y, z;
    x.SetGlobalBuffer((__gm__ float *)t[0]); y.SetGlobalBuffer((__gm__ float *)t[1]); z.SetGlobalBuffer((__gm__ float *)t[2]);
    LocalTensor<float> a = bufA.Get<float>(), b = bufB.Get<float>();
    DataCopy(a, x, 128); DataCopy(b, y, 128); PipeBarrier<PIPE_ALL>();
    FORM;
    PipeBarrier<PIPE_ALL>(); DataCopy(z, b, 128);
"""
VALUES = np.linspace(0.1, 2.0, 128, dtype=np.float32)


@pytest.mark.parametrize("form", ["Chain<float, Add<float>, Mul<float>, Sqrt<float>, Adds<float>, Sin<float>>(a, b)",
                                  "Chain<float, Add, Mul, Sqrt, Adds, Sin>(a, b)"])  # fmt: skip
def test_addresses_have_the_published_types(compile_kernel, form: str) -> None:
    kernel = compile_kernel(BODY.replace("FORM", form), prelude=PRELUDE)
    ran = kernel.run([VALUES, VALUES[::-1]], [(128, np.float32)])
    assert not ran.codes(), ran.result.hazards
    expected = np.sin(np.sqrt((VALUES + VALUES[::-1]) * VALUES[::-1] + 2))
    np.testing.assert_allclose(ran.outputs[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        "Add(a, a, b, count)", "Add<float>(a, a, b, wide)", "Add(a, a, b, unsigned(256))", "Add(a, a, b, 64, repeat, {1, 1, 1, 8, 8, 8})",
        "Add(a, a, b, uint64_t(64), repeat, {1, 1, 1, 8, 8, 8})", "Add<float, true>(a, a, b, 64, 4, {1, 1, 1, 8, 8, 8})",
        "Exp(a, a, count)", "Exp<float>(a, a, 256)", "Muls(a, a, 2.0f, count)", "Muls<float, true>(a, a, 2, wide)",
        "Sin(a, a, unsigned(256))", "Sin<float, false>(a, a, count)",
    ],
)  # fmt: skip
def test_plain_calls_keep_their_lines(compile_kernel, call: str) -> None:
    """Each reaches past its tensors; the second form of a function would name the line of the copies."""
    form = f"const int32_t count = 256; const int64_t wide = 256; const uint8_t repeat = 4; (void)count; (void)wide; (void)repeat;\n    {call}"
    body = BODY.replace("FORM", form)
    ran = compile_kernel(body).run([VALUES, VALUES], [(128, np.float32)])
    line = body[: body.index(call)].count("\n")
    copies = body[: body.index("DataCopy(a")].count("\n")
    lines = {item.line for item in ran.result.hazards if item.code == "out-of-bounds"}
    assert len(lines) == 1, ran.result.hazards
    assert lines.pop() - _first_line(compile_kernel) == line != copies


def _first_line(compile_kernel) -> int:
    """The line of a file at which a body begins."""
    ran = compile_kernel("Trap();").run([VALUES], [(128, np.float32)])
    (trap,) = (item for item in ran.result.hazards if item.code == "assert")
    return int(trap.line)
