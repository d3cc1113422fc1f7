"""Whole programs: launch forms, qualifiers, several files, and images for both core types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evokernel_core.cli.twin import run
from evokernel_core.twin.conditions import BUILT_IN, active_tokens
from evokernel_core.twin.images import distinguishes
from evokernel_core.twin.kernels import CUBE, MIX, VECTOR, CoreRatio, find_kernels
from evokernel_core.twin.preprocess import LaunchSyntaxError, find_launches, rewrite_launches

pytestmark = pytest.mark.usefixtures("kernel_home")

SHARED = """\
#pragma once
#include <cstdint>
struct Scale { float factor; int32_t shift; };
constexpr uint32_t kCount = 64;
"""

KERNELS = """\
#include "kernel_operator.h"
#include "shared.h"

namespace scaling {

template <typename T, int Times>
__aicore__ inline void Apply(GM_ADDR x, GM_ADDR z, Scale scale)
{
    AscendC::TPipe pipe;
    AscendC::GlobalTensor<T> from, to;
    from.SetGlobalBuffer((__gm__ T *)x + AscendC::GetBlockIdx() * kCount, kCount);
    to.SetGlobalBuffer((__gm__ T *)z + AscendC::GetBlockIdx() * kCount, kCount);
    AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(queue, 1, kCount * sizeof(T));
    auto in = queue.AllocTensor<T>();
    AscendC::DataCopy(in, from, kCount);
    queue.EnQue(in);
    auto out = queue.DeQue<T>();
    AscendC::PipeBarrier<PIPE_ALL>();
    for (int i = 0; i < Times; ++i) {
        AscendC::Muls(out, out, (T)scale.factor, kCount);
        AscendC::Adds(out, out, (T)scale.shift, kCount);
    }
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::DataCopy(to, out, kCount);
    queue.FreeTensor(out);
}

template <typename T, int Times>
__global__ __vector__ __aicore__ void Repeat(GM_ADDR x, GM_ADDR z, Scale scale)
{
    Apply<T, Times>(x, z, scale);
}

}  // namespace scaling

extern "C" [aicore] __global__ void plain(GM_ADDR x, GM_ADDR z, Scale scale, int32_t *unused)
{
    scaling::Apply<float, 1>(x, z, scale);
}

extern "C" __global__ __aicore__ void same(GM_ADDR x, GM_ADDR z)
{
    scaling::Apply<float, 1>(x, z, {1.0F, 0});
}

void Twice(uint32_t blocks, void *stream, uint8_t *x, uint8_t *z, const Scale &scale)
{
    scaling::Repeat<float, 2><<<blocks, nullptr, stream>>>(x, z, scale);
}
"""

MAIN = """\
#include <cstdio>
#include <vector>
#include "acl/acl.h"
#include "shared.h"
#include "aclrtlaunch_same.h"

void Twice(uint32_t blocks, void *stream, uint8_t *x, uint8_t *z, const Scale &scale);
extern "C" void plain(uint8_t *x, uint8_t *z, Scale scale, int32_t *unused);

int main(int argc, char **argv)
{
    const uint32_t blocks = 3;
    const size_t bytes = blocks * kCount * sizeof(float);
    std::vector<float> host(blocks * kCount, 1.0F);
    aclrtStream stream = nullptr;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtCreateStream(&stream);
    uint8_t *x = nullptr, *z = nullptr;
    aclrtMalloc((void **)&x, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void **)&z, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(x, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    Twice(blocks, stream, x, z, {3.0F, 1});      // 3*(3+1)+1 = 13
    plain<<<blocks, nullptr>>>(z, x, Scale{2.0F, 5}, nullptr);  // 31
    void *untyped = x;
    ACLRT_LAUNCH_KERNEL(same)(blocks, stream, untyped, z);
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(host.data(), bytes, z, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("%g %g %s\\n", host.front(), host.back(), argc > 1 ? argv[1] : "");
    aclrtFree(x);
    aclrtFree(z);
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    return aclFinalize();
}
"""


def evokernel(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(run, [*arguments, "--json"], catch_exceptions=False)
    data: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return data


def test_a_program_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "shared.h").write_text(SHARED)
    (tmp_path / "kernels.asc").write_text(KERNELS)
    (tmp_path / "main.cpp").write_text(MAIN)
    files = [str(tmp_path / "main.cpp"), "--source", str(tmp_path / "kernels.asc")]
    options = [*files, "-I", str(tmp_path / "include")]
    text = CliRunner().invoke(run, [*options, "--", "word"], catch_exceptions=False)
    assert "31 31 word" in text.output
    data = evokernel(*options)
    assert data["ok"], data
    assert [launch["kernel"] for launch in data["launches"]] == ["scaling::Repeat<float,2>", "plain", "same"]


def test_an_error_in_a_header_of_a_program_names_the_header(tmp_path: Path) -> None:
    (tmp_path / "shared.h").write_text(SHARED.replace("factor;", "factor"))
    (tmp_path / "kernels.asc").write_text(KERNELS)
    data = evokernel(str(tmp_path / "kernels.asc"))
    assert "shared.h:3: " in data["error"]


def test_what_nothing_defines_is_named(tmp_path: Path) -> None:
    (tmp_path / "shared.h").write_text(SHARED)
    (tmp_path / "main.cpp").write_text(
        MAIN.replace('#include "aclrtlaunch_same.h"', "").replace("ACLRT", "//")
    )
    data = evokernel(str(tmp_path / "main.cpp"))
    assert "nothing defines" in data["error"] and "Twice" in data["error"]


TWO_IMAGES = """\
#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"

#if defined(__DAV_C220_CUBE__)
constexpr int32_t kSide = 100;
#else
constexpr int32_t kSide = 1;
#endif

__global__ __mix__(1, 2) void mark(GM_ADDR z, int32_t base)
{
    AscendC::GlobalTensor<int32_t> to;
    to.SetGlobalBuffer((__gm__ int32_t *)z);
    if constexpr (AscendC::g_coreType == AscendC::AIC) {
        static_assert(kSide == 100 || AscendC::g_coreType != AscendC::AIC);
        to.SetValue(AscendC::GetBlockIdx() * 16, base + kSide);
    } else {
        to.SetValue(32 + AscendC::GetBlockIdx() * 16, base + kSide);
    }
}

int main()
{
    const size_t bytes = 1024;
    uint8_t *z = nullptr;
    int32_t host[bytes / 4];
    aclrtStream stream = nullptr;
    aclrtSetDevice(0);
    aclrtCreateStream(&stream);
    aclrtMalloc((void **)&z, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemset(z, bytes, 0, bytes);
    mark<<<2, nullptr, stream>>>(z, 1000);
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(host, bytes, z, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    for (int i = 0; i < 6; ++i) {
        std::printf("%d ", host[i * 16]);
    }
    return 0;
}
"""


def test_a_source_that_tells_core_types_apart_is_compiled_for_both(tmp_path: Path) -> None:
    (tmp_path / "two.asc").write_text(TWO_IMAGES)
    result = CliRunner().invoke(run, [str(tmp_path / "two.asc")], catch_exceptions=False)
    assert "1100 1100 1001 1001 1001 1001" in result.output


@pytest.mark.parametrize(
    ("head", "body", "ratio"),
    [
        ("__vector__ __global__ __aicore__", "Mmad();", VECTOR),
        ("__global__ __cube__", "", CUBE),
        ("__global__ __mix__(1, 1) __aicore__", "", CoreRatio(1, 1, mixed=True)),
        ("__global__ __aicore__", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);", CUBE),
        ("__global__ __aicore__", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);", MIX),
        ("__global__ __aicore__", "Adds();", VECTOR),
        ("__global__ __aicore__", "Helper();", CUBE),
        ("__global__ __aicore__", "Worker<float> w; w.Run();", MIX),
        ("__global__ __aicore__", "SyncAll();", CoreRatio(0, 1, mixed=True)),
        ("template <int N> __global__ __aicore__", "MACRO();", CUBE),
    ],
)
def test_the_cores_of_a_kernel(head: str, body: str, ratio: CoreRatio) -> None:
    text = f"""
        #define MACRO() Fixpipe()
        #define OTHER 1
        void Helper() {{ LoadData(); }}
        template <typename T> class Worker {{ void Run() {{ Matmul<T> mm; }} }};
        {head} void kernel(GM_ADDR x, const __gm__ float *y) {{ {body} }}
    """
    (kernel,) = find_kernels([tuple(active_tokens(text, dict(BUILT_IN)))]).values()
    assert kernel.ratio == ratio
    assert kernel.parameters == ("GM_ADDR x", "const __gm__ float * y")


def test_tiling_keys_with_core_ratios_of_their_own() -> None:
    text = """__global__ __aicore__ void kernel(GM_ADDR x) {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
        if (TILING_KEY_IS(4)) { KERNEL_TASK_TYPE(4, KERNEL_TYPE_MIX_AIC_1_1); }
    }"""
    (kernel,) = find_kernels([tuple(active_tokens(text, {}))]).values()
    assert kernel.ratio == VECTOR
    assert kernel.by_key == {4: CoreRatio(1, 1, mixed=True)}


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("#if MODE == 2", "a"),
        ("#if MODE == 1", "b"),
        ("#ifdef MODE", "a"),
        ("#ifndef MODE", "b"),
        ("#if defined(MODE) && !defined(OTHER)", "a"),
        ("#if (__NPU_ARCH__ == 2201) && (MODE > 1 || 0)", "a"),
        ("#if UNKNOWN", "b"),
        ("#if MODE << 2 == 0x8UL", "a"),
        ("#if WITH(1, 2)", "ab"),
        ("#if 0\n#elif MODE % 2 == 0", "a"),
        ("#if 1 / 0", "ab"),
    ],
)
def test_conditions(condition: str, left: str) -> None:
    text = f"#define MODE 2\n{condition}\na\n#else\nb\n#endif\nc"
    tokens = [token.text for token in active_tokens(text, dict(BUILT_IN)) if token.text in ("a", "b", "c")]
    assert "".join(tokens) == left + "c"


@pytest.mark.parametrize(
    ("launch", "call"),
    [
        ("k<<<8, nullptr, s>>>(x, 0);", "k(evokernelArgument0, 0);"),
        ("ns::k<T, 3><<<n>>>(x);", ""),
        ("ns::k<T, 3><<<n, 0>>>(x);", "ns::k<T, 3>(evokernelArgument0);"),
        ("k<<<n, 0, s, 1>>>({1, 2}, NULL);", "k({1, 2}, NULL);"),
        ("k<<<n, 0, s>>>(make<int, 2>(1));", "k(make<int, 2>(1));"),
        ("ACLRT_LAUNCH_KERNEL(k)(n, s, x);", "k(::evokernel::twin::Untyped(evokernelArgument0));"),
    ],
)
def test_launch_forms(launch: str, call: str) -> None:
    if not call:
        with pytest.raises(LaunchSyntaxError, match="1 parameters"):
            rewrite_launches(launch)
        return
    (found,) = find_launches(launch)
    assert found.line == 1
    assert f"{{ {call} }}" in rewrite_launches(launch)


def test_core_types_told_apart_while_running_need_one_image() -> None:
    assert not distinguishes("if ASCEND_IS_AIC { } if (g_coreType == AIC) { }")
    assert distinguishes("if constexpr (g_coreType == AIC) { }")
    assert distinguishes("#ifdef __DAV_C220_CUBE__\n#endif")
