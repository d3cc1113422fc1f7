"""Cores of one block side by side: what they are, how they signal, and how a kernel ends early."""

from __future__ import annotations

import numpy as np
import pytest

from evokernel_core.twin.run import ExitStatus, Mode

PRELUDE = """
#include <functional>
#include <stdexcept>
#include <vector>
namespace evokernel::twin {
void PostToCube(std::function<void()> work, At at);
void WaitForCube(At at);
void YieldCore(At at);
}
namespace twin = evokernel::twin;
__aicore__ void Write(GM_ADDR gm, int64_t slot, int32_t value)
{
    WriteGmByPassDCache((__gm__ int32_t *)gm + slot, value);
}
__aicore__ int32_t Read(GM_ADDR gm, int64_t slot)
{
    return ReadGmByPassDCache((__gm__ int32_t *)gm + slot);
}
__aicore__ int64_t Slot() { return (g_coreType == AIC ? 64 : 0) + GetBlockIdx(); }
__attribute__((noinline)) int Deep(int n, volatile char *before)
{
    volatile char here[4096]; here[0] = before[0];
    return n == 0 ? here[0] : Deep(n - 1, here) + here[0];
}
"""
CLEAR = """
for (int i = GetBlockIdx(); g_coreType == AIV && i < 128; i += GetBlockNum() * GetTaskRatio()) {
    Write(t[0], i, 0);
}
SyncAll<false>();
"""
"""Zeros in all of the output before the body begins."""

CASES = {
    "who is who": """
        int32_t cores = GetSubBlockNum() * 100 + GetTaskRatio() * 10;
        Write(t[0], Slot(), GetBlockNum() * 1000 + cores + GetSubBlockIdx());
    """,
    "cube core after vector cores": """
        if ASCEND_IS_AIV { Write(t[0], Slot(), 5 + GetBlockIdx()); CrossCoreSetFlag<2, PIPE_MTE3>(4); }
        if ASCEND_IS_AIC {
            CrossCoreWaitFlag(4);
            Write(t[0], Slot(), Read(t[0], 2 * GetBlockIdx()) + Read(t[0], 2 * GetBlockIdx() + 1));
        }
    """,
    "vector cores after the cube core": """
        if ASCEND_IS_AIC { Write(t[0], Slot(), 7 + GetBlockIdx()); CrossCoreSetFlag<2, PIPE_FIX>(4); }
        else { CrossCoreWaitFlag(4); Write(t[0], Slot(), Read(t[0], 64 + GetBlockIdx() / 2)); }
    """,
    "vector cores of a block": """
        if ASCEND_IS_AIV {
            Write(t[0], Slot(), GetBlockIdx() + 1);
            CrossCoreSetFlag<1, PIPE_MTE3>(2); CrossCoreWaitFlag(2);
            int32_t other = Read(t[0], GetBlockIdx() ^ 1);
            CrossCoreSetFlag<1, PIPE_MTE3>(2); CrossCoreWaitFlag(2);
            Write(t[0], Slot(), other);
        }
    """,
    "all cores": """
        Write(t[0], Slot(), Slot());
        SyncAll<false>();
        int32_t sum = 0;
        for (int i = 0; i < 128; ++i) sum += Read(t[0], i);
        SyncAll<false>();
        Write(t[0], Slot(), sum);
    """,
    "work for the cube core": """
        if ASCEND_IS_AIV {
            const int64_t slot = Slot();
            GM_ADDR out = t[0];
            for (int i = 0; i < 3; ++i) {
                twin::PostToCube([=]() {
                    Write(out, slot, Read(out, slot) * 10 + (g_coreType == AIC ? i + 1 : 0));
                    Write(out, 64 + GetBlockIdx(), Read(out, 64 + GetBlockIdx()) + 1);
                }, twin::At::Here());
            }
            twin::WaitForCube(twin::At::Here());
            Write(t[0], slot, Read(t[0], slot) * 10);
        }
    """,
    "each core a stack of its own": """
        if ASCEND_IS_AIV {
            int32_t mine[4096];
            for (int i = 0; i < 4096; ++i) {
                mine[i] = GetBlockIdx() + i;
                if (i % 512 == 0) twin::YieldCore(twin::At::Here());
            }
            int32_t sum = 0;
            for (int i = 0; i < 4096; ++i) sum += mine[i] - i;
            Write(t[0], Slot(), sum / 4096);
        }
    """,
}  # fmt: skip
BLOCKS = 5


VECTORS, CUBES = range(2 * BLOCKS), range(BLOCKS)
TOTAL = sum(VECTORS) + sum(64 + i for i in CUBES)
EXPECTED = {
    "who is who": {i: BLOCKS * 1000 + 220 + i % 2 for i in VECTORS}
    | {64 + i: BLOCKS * 1000 + 110 for i in CUBES},
    "cube core after vector cores": {i: 5 + i for i in VECTORS} | {64 + i: 11 + 4 * i for i in CUBES},
    "vector cores after the cube core": {i: 7 + i // 2 for i in VECTORS} | {64 + i: 7 + i for i in CUBES},
    "vector cores of a block": {i: (i ^ 1) + 1 for i in VECTORS},
    "all cores": dict.fromkeys([*VECTORS, *(64 + i for i in CUBES)], TOTAL),
    "work for the cube core": dict.fromkeys(VECTORS, 1230) | {64 + i: 6 for i in CUBES},
    "each core a stack of its own": {i: i for i in VECTORS},
}
"""What the slots hold afterwards: vector core i in slot i, cube core i in slot 64 + i, others 0."""

FAULTS = {
    "a vector instruction on a cube core": (
        "LocalTensor<float> a(TPosition::VECCALC, 0, 64); if ASCEND_IS_AIC { Duplicate(a, 1.0f, 64); }",
        "LocalTensor<float> a(TPosition::VECCALC, 0, 64); if ASCEND_IS_AIV { Duplicate(a, 1.0f, 64); }",
        "wrong-core",
    ),
    "one of two vector cores": (
        "if ASCEND_IS_AIV { if (GetSubBlockIdx() == 0) CrossCoreSetFlag<2, PIPE_V>(1); }"
        "if ASCEND_IS_AIC { CrossCoreWaitFlag(1); }",
        "if ASCEND_IS_AIV { CrossCoreSetFlag<2, PIPE_V>(1); } if ASCEND_IS_AIC { CrossCoreWaitFlag(1); }",
        "deadlock",
    ),
    "two modes on one flag": (
        "if ASCEND_IS_AIV { CrossCoreSetFlag<1, PIPE_V>(1); CrossCoreSetFlag<0, PIPE_V>(1);"
        "CrossCoreWaitFlag(1); CrossCoreWaitFlag(1); }",
        "if ASCEND_IS_AIV { CrossCoreSetFlag<1, PIPE_V>(1); CrossCoreWaitFlag(1);"
        "CrossCoreSetFlag<0, PIPE_V>(1); CrossCoreWaitFlag(1); }",
        "event-misuse",
    ),
    "an assertion": (
        'ascendc_assert(GetBlockIdx() != 1, "block %ld stands at %f", GetBlockIdx(), half(0.5));',
        "ascendc_assert(GetBlockIdx() < 64);",
        "assert",
    ),
    "a trap": ("if (GetBlockIdx() == 1) Trap();", "if (GetBlockIdx() == 100) Trap();", "assert"),
    "an exception": (
        'if (GetBlockIdx() == 2) throw std::runtime_error("surprise");',
        'try { throw std::runtime_error("caught"); } catch (const std::exception &) { }',
        "crash",
    ),
}
CRASHES = {
    "a stack that is full": ("volatile char c = 0; Deep(1000, &c);", "its stack of 1 MB is full"),
    "a null pointer": ("*reinterpret_cast<volatile int *>(8) = 1;", "core 0 of kernel tested, after line"),
    "a division by zero": ("volatile int zero = 0; zero = 100 / zero;", "integer division by zero"),
}


@pytest.fixture(scope="module")
def mix(compile_kernel):
    """Runs body ``number`` of CASES, FAULTS and CRASHES on blocks of one cube and two vector cores."""
    bodies = [
        *(CLEAR + case for case in CASES.values()),
        *(CLEAR + line for case in FAULTS.values() for line in case[:2]),
        *(case[0] for case in CRASHES.values()),
    ]
    functions = "".join(f"__aicore__ void Body{i}(GM_ADDR *t)\n{{{body}}}\n" for i, body in enumerate(bodies))
    calls = "".join(f"if (tiling.size[0] == {i}) Body{i}(t);\n" for i in range(len(bodies)))
    kernel = compile_kernel(
        calls, sizes=1, blocks=BLOCKS, prelude=PRELUDE + functions, kind=("1", "2", "true")
    )
    out = [(128, np.int32)]
    return lambda number, mode=Mode.CHECK: kernel.run([], out, [number], mode=mode, one_process=True)


@pytest.mark.parametrize("name", CASES)
def test_cores_of_a_mix_kernel(mix, name) -> None:
    ran = mix(list(CASES).index(name))
    assert not ran.result.hazards
    expected = np.zeros(128, np.int32)
    for slot, value in EXPECTED[name].items():
        expected[slot] = value
    np.testing.assert_array_equal(ran.outputs[0], expected)
    timed = mix(list(CASES).index(name), Mode.TIME).result
    assert timed.latency_us == pytest.approx(ran.result.latency_us, rel=0.02)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_and_its_neighbour(mix, name) -> None:
    number = len(CASES) + 2 * list(FAULTS).index(name)
    code = FAULTS[name][-1]
    faulty = mix(number)
    assert code in faulty.codes(), faulty.result
    assert all(h.line > 0 for h in faulty.result.hazards if h.code == code)
    correct = mix(number + 1)
    assert not correct.result.hazards


def test_an_assertion_says_what_it_was_told(mix) -> None:
    ran = mix(len(CASES) + 2 * list(FAULTS).index("an assertion"))
    (hazard,) = (h for h in ran.result.hazards if h.code == "assert")
    assert "block 1 stands at 0.500000" in hazard.message
    assert "[ASSERT] op_kernel.cpp" in ran.result.output


@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_says_where(mix, name) -> None:
    number = len(CASES) + 2 * len(FAULTS) + list(CRASHES).index(name)
    result = mix(number, Mode.TIME).result
    assert result.status is ExitStatus.CRASH
    assert CRASHES[name][1] in result.message
