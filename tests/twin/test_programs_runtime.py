"""The host runtime: memory, streams, events and what its misuse is answered with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evokernel_core.cli.twin import run

pytestmark = pytest.mark.usefixtures("kernel_home")

PROGRAM = """\
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "acl/acl.h"
#include "kernel_operator.h"

__global__ __vector__ __aicore__ void copy(GM_ADDR x, GM_ADDR z, uint32_t count)
{
    AscendC::GlobalTensor<float> from, to;
    from.SetGlobalBuffer((__gm__ float *)x, count);
    to.SetGlobalBuffer((__gm__ float *)z, count);
    AscendC::TPipe pipe;
    AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(queue, 1, count * sizeof(float));
    auto in = queue.AllocTensor<float>();
    AscendC::DataCopy(in, from, count);
    queue.EnQue(in);
    auto out = queue.DeQue<float>();
    AscendC::DataCopy(to, out, count);
    queue.FreeTensor(out);
}

static void Say(const char *what, aclError status)
{
    std::printf("%s %d|%s\\n", what, status, status == 0 ? "" : aclGetRecentErrMsg());
}

static void Misuse(void *x, aclrtStream stream)
{
    char host[64];
    void *other = nullptr;
    Say("big", aclrtMalloc(&other, 100ULL << 30, ACL_MEM_MALLOC_HUGE_FIRST));
    Say("none", aclrtMalloc(&other, 0, ACL_MEM_MALLOC_HUGE_FIRST));
    Say("capacity", aclrtMemcpy(x, 16, host, 32, ACL_MEMCPY_HOST_TO_DEVICE));
    Say("kind", aclrtMemcpy(host, 64, host, 32, ACL_MEMCPY_DEVICE_TO_HOST));
    Say("side", aclrtMemcpy(x, 64, x, 32, ACL_MEMCPY_HOST_TO_DEVICE));
    Say("free", aclrtFree(host));
    Say("free host", aclrtFreeHost(host));
    Say("device", aclrtSetDevice(3));
    aclrtStream gone = nullptr;
    aclrtCreateStream(&gone);
    aclrtDestroyStream(gone);
    Say("stream", aclrtSynchronizeStream(gone));
    aclrtEvent event = nullptr, other_event = nullptr;
    float elapsed = 0;
    aclrtCreateEvent(&event);
    aclrtCreateEvent(&other_event);
    Say("event", aclrtEventElapsedTime(&elapsed, event, other_event));
    Say("synchronised", aclrtSynchronizeStream(stream));
}

int main(int argc, char **argv)
{
    const size_t bytes = 1024;
    void *early = nullptr;
    Say("early", aclrtMalloc(&early, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtContext context = nullptr;
    aclrtCreateContext(&context, 0);
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    float *host = nullptr;
    uint8_t *x = nullptr, *z = nullptr;
    aclrtMallocHost((void **)&host, bytes);
    aclrtMalloc((void **)&x, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMallocAlign32((void **)&z, bytes, ACL_MEM_MALLOC_NORMAL_ONLY);
    for (int i = 0; i < 256; ++i) {
        host[i] = i;
    }
    aclrtMemcpyAsync(x, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    aclrtMemset(z, bytes, 0, bytes);
    aclrtEvent start = nullptr, end = nullptr;
    aclrtCreateEventWithFlag(&start, ACL_EVENT_TIME_LINE);
    aclrtCreateEvent(&end);
    aclrtRecordEvent(start, stream);
    copy<<<1, nullptr, stream>>>(x, z, 256);
    copy<<<1, nullptr, stream>>>(x, z, 256);
    aclrtRecordEvent(end, stream);
    aclrtSynchronizeEvent(end);
    float elapsed = 0;
    aclrtEventElapsedTime(&elapsed, start, end);
    std::memset(host, 0, bytes);
    aclrtMemcpy(host, bytes, z, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    std::printf("soc %s last %g us %.3f\\n", aclrtGetSocName(), host[255], elapsed * 1000);
    int64_t cores = 0;
    uint32_t devices = 0;
    aclrtGetDeviceCount(&devices);
    aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &cores);
    const float half = aclFloat16ToFloat(aclFloatToFloat16(1.5F));
    std::printf("devices %u cores %d half %g\\n", devices, (int)cores, half);
    ACL_APP_LOG(ACL_WARNING, "left out");
    ACL_APP_LOG(ACL_ERROR, "logged %d", 7);
    if (argc > 1 && std::strcmp(argv[1], "misuse") == 0) {
        Misuse(x, stream);
    }
    if (argc > 1 && std::strcmp(argv[1], "past") == 0) {
        Say("past", aclrtMemcpy(host, 4096, x + 512, 1024, ACL_MEMCPY_DEVICE_TO_HOST));
    }
    aclrtFree(x);
    aclrtFree(z);
    aclrtFreeHost(host);
    aclrtDestroyStream(stream);
    aclrtDestroyContext(context);
    aclrtResetDevice(0);
    return aclFinalize();
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "runtime.asc"
    path.write_text(PROGRAM)
    return str(path)


def report(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(run, ["--json", *arguments], catch_exceptions=False)
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def test_memory_streams_and_modelled_events(program: str) -> None:
    text = CliRunner().invoke(run, ["--chip", "ascend910b2", program], catch_exceptions=False).output
    assert "soc Ascend910B2 last 255" in text
    assert "devices 1 cores 48 half 1.5" in text
    assert ("main: logged 7" in text, "left out" in text) == (True, False)
    data = report(program)
    elapsed = sum(launch["latency_us"] for launch in data["launches"])
    printed = CliRunner().invoke(run, [program], catch_exceptions=False).output
    assert f"us {elapsed:.3f}" in printed
    assert data["ok"], data
    assert [hazard["code"] for hazard in data["hazards"]] == ["acl-misuse"]
    assert "before there is a device" in data["hazards"][0]["message"]


@pytest.mark.parametrize(
    ("what", "status", "words"),
    [
        ("early", 107002, "call aclrtSetDevice(0) first"),
        ("big", 207001, "is asked for 107374182400 bytes"),
        ("none", 100000, "0 bytes"),
        ("capacity", 100000, "copy 32 bytes to a place for 16"),
        ("kind", 107000, "its source is no device memory"),
        ("side", 107000, "its source is device memory, but its kind says host memory"),
        ("free", 107000, "aclrtMalloc did not give"),
        ("free host", 107000, "aclrtMallocHost did not give"),
        ("device", 107001, "there is only device 0"),
        ("stream", 107003, "a stream that was never created or is destroyed"),
        ("event", 107000, "that aclrtRecordEvent recorded"),
        ("synchronised", 0, ""),
    ],
)
def test_misuse_is_answered_with_a_code_and_a_sentence(
    program: str, what: str, status: int, words: str
) -> None:
    output = CliRunner().invoke(run, [program, "--", "misuse"], catch_exceptions=False).output
    (line,) = [line for line in output.splitlines() if line.startswith(f"{what} {status}|")]
    assert words in line


def test_a_copy_past_the_end_of_a_buffer_fails_the_run(program: str) -> None:
    data = report(program, "--", "past")
    assert not data["ok"]
    assert "touches 1024 bytes at the source" in data["hazards"][-1]["message"]
