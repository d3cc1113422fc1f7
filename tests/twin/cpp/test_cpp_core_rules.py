"""What a core does not have, and what a kernel may not leave behind: each rule with its clean neighbour."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from evokernel_core.twin.run import Mode
from tests.twin.cpp.conftest import Compile, CompiledBody, Ran

ELEMENTS = 64

# Barriers and flags by name: statements, each run by itself.
_BARRIERS = ("V", "M", "MTE1", "MTE2", "MTE3", "FIX")
_FLAGS = ("MTE2_V", "V_MTE3", "S_V", "M_MTE1", "MTE1_M", "FIX_M", "M_FIX", "MTE2_MTE1", "MTE1_MTE2", "S_MTE3")
STATEMENTS: Mapping[str, str] = {
    **{f"barrier {pipe}": f"PipeBarrier<PIPE_{pipe}>();" for pipe in _BARRIERS},
    **{
        f"flag {event}": f"SetFlag<HardEvent::{event}>(EVENT_ID3); WaitFlag<HardEvent::{event}>(EVENT_ID3);"
        for event in _FLAGS
    },
    "atomics left on": "SetAtomicAdd<float>();",
    "atomics put back": "SetAtomicAdd<float>(); SetAtomicNone();",
    "counter mode left on": "SetMaskCount();",
    "counter mode put back": "SetMaskCount(); SetMaskNorm();",
}
_OF_CUBE, _OF_VECTOR = {"M", "MTE1", "FIX"}, {"V"}

BODY = f"""
    switch (tiling.size[0]) {{
    {" ".join(f"case {number}: {{ {text} break; }}" for number, text in enumerate(STATEMENTS.values()))}
    }}
"""


@pytest.fixture(scope="module")
def on_vector(compile_kernel: Compile) -> CompiledBody:
    return compile_kernel(BODY, sizes=1)


@pytest.fixture(scope="module")
def on_cube(compile_kernel: Compile) -> CompiledBody:
    return compile_kernel(BODY, sizes=1, kind=(1, 0, "false"))


def _ran(kernel: CompiledBody, name: str) -> Ran:
    return kernel.run([], [], sizes=[list(STATEMENTS).index(name)])


def _pipes(name: str) -> set[str]:
    return set(name.partition(" ")[2].split("_"))


@pytest.mark.parametrize("name", [name for name in STATEMENTS if name.startswith(("barrier", "flag"))])
def test_a_pipe_that_the_core_does_not_have_is_named(
    name: str, on_vector: CompiledBody, on_cube: CompiledBody
) -> None:
    for kernel, missing in ((on_vector, _OF_CUBE), (on_cube, _OF_VECTOR)):
        ran = _ran(kernel, name)
        absent = _pipes(name) & missing
        assert ran.codes() == ({"wrong-core"} if absent else set())
        assert not absent or any(pipe in ran.result.hazards[0].message for pipe in absent)


@pytest.mark.parametrize("what", ["atomics", "counter mode"])
def test_a_mode_that_leaks_into_the_next_kernel(what: str, on_vector: CompiledBody) -> None:
    assert _ran(on_vector, f"{what} left on").codes() == {"event-misuse"}
    assert not _ran(on_vector, f"{what} put back").result.hazards


READS = """
    TPipe pipe; TBuf<QuePosition::VECCALC> buf; pipe.InitBuffer(buf, 2048);
    GlobalTensor<float> x, z;
    x.SetGlobalBuffer((__gm__ float *)t[0], 64); z.SetGlobalBuffer((__gm__ float *)t[1], 64);
    LocalTensor<float> a = buf.Get<float>();
    LocalTensor<float> b = a[64];
    DataCopy(a, x, 64);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0); WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Muls(b, a, 2.0f, 64);
    if (tiling.size[0] != 0) { PipeBarrier<PIPE_V>(); }
    if (tiling.size[0] == 2) { SetFlag<HardEvent::V_S>(EVENT_ID0); WaitFlag<HardEvent::V_S>(EVENT_ID0); }
    if (tiling.size[0] == 3) { PipeBarrier<PIPE_ALL>(); }
    const float first = b.GetValue(0);
    SetFlag<HardEvent::S_V>(EVENT_ID1); WaitFlag<HardEvent::S_V>(EVENT_ID1);
    Adds(b, b, first, 64);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0); WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(z, b, 64);
"""


def test_a_vector_result_that_the_scalar_unit_reads_behind_a_vector_barrier(compile_kernel: Compile) -> None:
    """Without any barrier the compiler's own is what everybody counts on; PIPE_V looks as if it helped."""
    kernel = compile_kernel(READS, sizes=1)
    x = np.arange(ELEMENTS, dtype=np.float32)
    for way, said in ((0, set()), (1, {"missing-sync"}), (2, set()), (3, set())):
        ran = kernel.run([x], [(ELEMENTS, np.float32)], sizes=[way])
        assert (ran.codes("warning"), ran.codes()) == (said, set())
        assert not said or "--cce-auto-sync" in ran.result.hazards[0].message
        np.testing.assert_array_equal(ran.outputs[0], 2 * x)


COUNTED = """
    GlobalTensor<int32_t> counts; counts.SetGlobalBuffer((__gm__ int32_t *)t[0], 8);
    GlobalTensor<int32_t> kept; kept.SetGlobalBuffer((__gm__ int32_t *)t[1], 8);
    TPipe pipe; TBuf<QuePosition::VECCALC> buf; pipe.InitBuffer(buf, 2048);
    LocalTensor<float> a = buf.Get<float>();
    if (tiling.size[0] == 1) { kept.SetValue(0, 3); }
    const int32_t rows = tiling.size[0] == 1 ? kept.GetValue(0) : counts.GetValue(2);
    Duplicate(a, 0.0f, 64);
    for (int32_t row = 0; row < rows; ++row) { Adds(a, a, 1.0f, 64); }
"""


def test_timing_reads_the_data_that_it_was_given(compile_kernel: Compile) -> None:
    kernel = compile_kernel(COUNTED, sizes=1)
    counts = np.full(8, 500, np.int32)
    runs = [kernel.run([counts], [(8, np.int32)], sizes=[0], mode=mode) for mode in (Mode.CHECK, Mode.TIME)]
    assert runs[0].result.latency_us == runs[1].result.latency_us > 9
