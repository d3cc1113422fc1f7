"""A scalar comes with those behind it: each is read as if it came alone."""

from __future__ import annotations

import numpy as np
import pytest

START = """
    TPipe pipe;
    GlobalTensor<float> x, y, z;
    x.SetGlobalBuffer((__gm__ float *)t[0]);
    y.SetGlobalBuffer((__gm__ float *)t[1]);
    z.SetGlobalBuffer((__gm__ float *)t[2]);
    TBuf<TPosition::VECCALC> bufA, bufB;
    pipe.InitBuffer(bufA, 1024);
    pipe.InitBuffer(bufB, 1024);
    LocalTensor<float> a = bufA.Get<float>(), b = bufB.Get<float>();
    DataCopy(a, x, 256);
    DataCopy(b, y, 256);
    PipeBarrier<PIPE_ALL>();
    float sum = a.GetValue(0);
"""
END = """
    a.SetValue(0, sum);
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, a, 256);
"""
WRITES = {
    "SetValue": ("a.SetValue(9, 77.0f);", 77.0),
    "an instruction": ("Adds(a, a, 1.0f, 256); PipeBarrier<PIPE_ALL>();", 10.0),
    "a copy": ("DataCopy(a, y, 256); PipeBarrier<PIPE_ALL>();", -9.0),
    "a copy into its middle": ("DataCopy(a[8], y[8], 16); PipeBarrier<PIPE_ALL>();", -9.0),
    "a copy that begins before it": ("DataCopy(a, y, 16); PipeBarrier<PIPE_ALL>();", -9.0),
    "a padded copy": (
        "DataCopyPad(a, y, {1, 40, 0, 0, 0}, {false, 0, 0, 0}); PipeBarrier<PIPE_ALL>();",
        -9.0,
    ),
    "a copy beyond its tensor's size": (
        "LocalTensor<float> few = a; few.SetSize(8); DataCopy(few, y, 256); PipeBarrier<PIPE_ALL>();",
        -9.0,
    ),
    "a copy between": ("DataCopy(a, b, 256); PipeBarrier<PIPE_ALL>();", -9.0),
    "a copy of something else": ("DataCopy(b, x, 256); PipeBarrier<PIPE_ALL>();", 9.0),
    "a copy out": ("DataCopy(z, b, 256); PipeBarrier<PIPE_ALL>();", 9.0),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_value_behind_a_write_is_the_new_one(compile_kernel, what: str) -> None:
    write, value = WRITES[what]
    ran = compile_kernel(f"{START}{write} sum += a.GetValue(9);{END}").run(
        [np.arange(256, dtype=np.float32), -np.arange(256, dtype=np.float32)], [(256, np.float32)]
    )
    assert not ran.codes() and ran.outputs[0][0] == value


def test_an_element_that_was_never_written_is_reported_behind_one_that_was(compile_kernel) -> None:
    body = START.replace("DataCopy(a, x, 256);", "DataCopy(a, x, 8); Duplicate(a[16], 0.0f, 240);")
    ran = compile_kernel(f"{body} sum += a.GetValue(9);{END}").run(
        [np.ones(256, np.float32), np.ones(256, np.float32)], [(256, np.float32)]
    )
    assert "uninitialised-read" in ran.codes()


STEPS = (
    "Duplicate(a, 3.5f, 256);",
    "Adds(a, a, 1.0f, 256);",
    "Exp(a, a, 8); Muls(a[8], b[8], 2.0f, 8);",
    "DataCopy(a, y, 256);",
    "DataCopy(a[8], x[64], 16);",
    "DataCopyPad(a, y[3], {1, 44, 0, 0, 0}, {false, 0, 0, 0});",
    "DataCopy(a, b, 256);",
    "Copy(a, b[64], 64, 1, {1, 1, 8, 8});",
    "a.SetValue(9, 77.0f);",
    "a.ReinterpretCast<int32_t>().SetValue(9, 1065353216);",
    "a.ReinterpretCast<uint8_t>().SetValue(39, 0x42);",
    "a[8](1) = 6.0f;",
    "Cast(a.ReinterpretCast<int32_t>(), b, RoundMode::CAST_RINT, 64);",
    "CreateVecIndex(a, 5.0f, 64);",
    "Brcb(a, b, 2, {1, 8});",
    "Select(a, mask, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);",
    "Gather(a, b, places, 0, 64);",
    "WholeReduceSum(a[8], b, 32, 2, 1, 1, 8);",
    "ReduceMax(a[8], b, c, 64, true); a.SetValue(9, a.GetValue(8));",
    "Transpose(a.ReinterpretCast<half>(), b.ReinterpretCast<half>());",
    "LocalTensor<float> next = queue.AllocTensor<float>(); DataCopy(next, x, 256); queue.EnQue(next); "
    "next = queue.DeQue<float>(); Adds(a, next, 0.5f, 256); queue.FreeTensor(next);",
)
"""Each writes the tenth element, or bytes beside it."""
ALL = f"""{START}
    TBuf<TPosition::VECCALC> bufC, bufMask, bufPlaces, bufSeen;
    TQue<TPosition::VECIN, 1> queue;
    pipe.InitBuffer(bufC, 1024);
    pipe.InitBuffer(bufMask, 32);
    pipe.InitBuffer(bufPlaces, 256);
    pipe.InitBuffer(bufSeen, 1024);
    pipe.InitBuffer(queue, 1, 1024);
    LocalTensor<float> c = bufC.Get<float>(), seen = bufSeen.Get<float>();
    LocalTensor<uint8_t> mask = bufMask.Get<uint8_t>();
    LocalTensor<uint32_t> places = bufPlaces.Get<uint32_t>();
    Duplicate(seen, 0.0f, 256);
    Duplicate(c, 0.0f, 256);
    Duplicate(mask.ReinterpretCast<uint32_t>(), 5u, 8);
    Duplicate(places, 80u, 64);
    PipeBarrier<PIPE_ALL>();
"""


def test_what_any_instruction_writes_is_read(compile_kernel) -> None:
    """Each step is read behind, and what was read before it lies in the same place."""
    body = ALL
    for number, step in enumerate(STEPS):
        body += f"{{ {step} }} PipeBarrier<PIPE_ALL>(); seen.SetValue({number}, a.GetValue(9));\n"
    ran = compile_kernel(f"{body} PipeBarrier<PIPE_ALL>(); DataCopy(z, seen, 256);").run(
        [np.arange(256, dtype=np.float32), -np.arange(256, dtype=np.float32)], [(256, np.float32)]
    )
    seen = ran.outputs[0][: len(STEPS)]
    assert not ran.codes() and all(seen[1:] != seen[:-1]), (ran.codes(), seen)


@pytest.mark.parametrize("access", ["a[200].SetValue(~0u, 1.0f)", "sum += a[200].GetValue(~0u)"])
def test_an_index_beyond_what_an_address_counts_is_out_of_bounds(compile_kernel, access: str) -> None:
    """It does not come out before the tensor, beside what was read there."""
    inputs = [np.ones(256, np.float32), np.ones(256, np.float32)]
    ran = compile_kernel(f"{START}{access};{END}").run(inputs, [(256, np.float32)])
    assert ran.codes() == {"out-of-bounds"}


def test_elements_of_inputs_are_read_in_any_order(compile_kernel) -> None:
    """In steps, back and forth, from two tensors by turns."""
    body = f"""{START}
    for (uint32_t i = 0; i < 256; ++i) {{
        const uint32_t place = (i * 37 + (i & 1 ? 5 : 0)) % 256;
        a.SetValue(i, x.GetValue(place) * 1000.0f + y.GetValue(255 - place));
    }}
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, a, 256);"""
    x, y = np.arange(256, dtype=np.float32), np.arange(256, dtype=np.float32)[::-1] * 2
    ran = compile_kernel(body).run([x, y], [(256, np.float32)])
    steps = np.arange(256)
    places = (steps * 37 + (steps & 1) * 5) % 256
    assert not ran.codes()
    np.testing.assert_array_equal(ran.outputs[0], x[places] * 1000 + y[255 - places])
