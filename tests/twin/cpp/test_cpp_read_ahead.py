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
    DataCopy(b, x, 256);
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
    "a copy between": ("DataCopy(a, b, 256); PipeBarrier<PIPE_ALL>();", 9.0),
    "a copy of something else": ("DataCopy(b, y, 256); PipeBarrier<PIPE_ALL>();", 9.0),
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
