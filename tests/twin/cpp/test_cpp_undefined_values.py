"""What nobody wrote is not 0, and a core's stack ends."""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from evokernel_core.hardware.ascend.chip import load_chip
from tests.twin.cpp.conftest import Compile, CompiledBody

PRELUDE = """
struct Member { int32_t n; __aicore__ inline int32_t Get() const { return n; } };
struct Written { int32_t n = 0; __aicore__ inline int32_t Get() const { return n; } };
class Holder { public: __aicore__ inline void Init(int32_t n) { if (n > 100) { n_ = n; } } __aicore__ inline int32_t Get() const { return n_; } private: int32_t n_; };
__aicore__ inline int32_t Unset(int32_t way) { int32_t n; if (way > 100) { n = 0; } return n; }
__aicore__ inline float UnsetFloat(int32_t way) { float n; if (way > 100) { n = 0.0f; } return n; }
"""
# What a kernel adds to a tensor: 0 where it is defined.
VALUES: Mapping[str, str] = {
    "a scalar": "added = Unset(way);",
    "a float": "added = UnsetFloat(way);",
    "a member": "Member m; added = m.Get();",
    "a member that Init leaves": "Holder m; m.Init(way); added = m.Get();",
    "an element": "int32_t n[4]; added = n[way & 3];",
    "an initialised member": "Written m; added = m.Get();",
    "an initialised element": "int32_t n[4] = {}; added = n[way & 3];",
}
BODY = f"""
    const int32_t way = static_cast<int32_t>(tiling.size[0]);
    float added = 0;
    switch (way) {{
    {" ".join(f"case {number}: {{ {text} break; }}" for number, text in enumerate(VALUES.values()))}
    }}
    GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float *)t[0], 8);
    for (int i = 0; i < 8; ++i) {{ z.SetValue(i, 1.0f + added); }}
"""


@pytest.fixture(scope="module")
def values(compile_kernel: Compile) -> CompiledBody:
    return compile_kernel(BODY, sizes=1, prelude=PRELUDE)


@pytest.mark.parametrize("name", VALUES)
def test_undefined_values_are_seen(name: str, values: CompiledBody) -> None:
    ran = values.run([], [(8, np.float32)], sizes=[list(VALUES).index(name)])
    assert bool((ran.outputs[0] == 1).all()) == ("initialised" in name)


FRAMES = """
#define KEPT __attribute__((noinline)) __aicore__ inline float
KEPT Half(int64_t n) { volatile float kept[4000]; kept[n] = 1.0f; return kept[n]; }
KEPT Whole(int64_t n) { volatile float kept[8300]; kept[n] = 1.0f; return kept[n]; }
KEPT Outer(int64_t n) { volatile float kept[4400]; kept[n] = Half(n); return kept[n]; }
"""


def test_a_stack_holds_what_that_of_the_chip_holds(compile_kernel: Compile) -> None:
    assert load_chip().memory.stack_bytes == 32768
    kernel = compile_kernel(
        """
    float got = 0;
    switch (tiling.size[0]) { case 0: got = Half(3); break; case 1: got = Whole(3); break; case 2: got = Outer(3); break; }
    GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float *)t[0], 8);
    for (int i = 0; i < 8; ++i) { z.SetValue(i, got); }
    """,
        sizes=1,
        prelude=FRAMES,
    )
    for way, codes in enumerate((set(), {"stack-capacity"}, {"stack-capacity"})):
        assert kernel.run([], [(8, np.float32)], sizes=[way]).codes() == codes
