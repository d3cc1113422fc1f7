"""Builds the twin with every compiler of this machine, runs one program with each and compares the bits.

    python benchmarks/compilers.py [--json OUT]

Exit status 1 where a compiler does not build the twin, or gives other results than the first one.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = """\
#include <cstdio>
#include <vector>
#include "acl/acl.h"
#include "kernel_operator.h"

constexpr uint32_t kTile = 2048;

__global__ __vector__ __aicore__ void mixture(GM_ADDR x, GM_ADDR z)
{
    AscendC::TPipe pipe;
    AscendC::GlobalTensor<half> from, to;
    from.SetGlobalBuffer((__gm__ half *)x + AscendC::GetBlockIdx() * kTile, kTile);
    to.SetGlobalBuffer((__gm__ half *)z + AscendC::GetBlockIdx() * kTile, kTile);
    AscendC::TQue<AscendC::TPosition::VECIN, 1> in;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
    AscendC::TBuf<AscendC::TPosition::VECCALC> wide;
    pipe.InitBuffer(in, 1, kTile * sizeof(half));
    pipe.InitBuffer(out, 1, kTile * sizeof(half));
    pipe.InitBuffer(wide, kTile * sizeof(float));
    auto x16 = in.AllocTensor<half>();
    AscendC::DataCopy(x16, from, kTile);
    in.EnQue(x16);
    x16 = in.DeQue<half>();
    auto x32 = wide.Get<float>();
    AscendC::Cast(x32, x16, AscendC::RoundMode::CAST_NONE, kTile);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Exp(x32, x32, kTile);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Muls(x32, x32, 0.37F, kTile);
    AscendC::PipeBarrier<PIPE_V>();
    auto z16 = out.AllocTensor<half>();
    AscendC::Cast(z16, x32, AscendC::RoundMode::CAST_RINT, kTile);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Add(z16, z16, x16, kTile);
    out.EnQue(z16);
    in.FreeTensor(x16);
    z16 = out.DeQue<half>();
    AscendC::DataCopy(to, z16, kTile);
    out.FreeTensor(z16);
}

int main()
{
    const uint32_t blocks = 4;
    const size_t bytes = blocks * kTile * sizeof(half);
    std::vector<uint16_t> host(blocks * kTile);
    for (size_t i = 0; i < host.size(); ++i) {
        host[i] = aclFloatToFloat16((static_cast<float>(i % 977) - 488) / 100);
    }
    uint8_t *x = nullptr, *z = nullptr;
    aclrtSetDevice(0);
    aclrtMalloc((void **)&x, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void **)&z, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(x, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    mixture<<<blocks, nullptr, nullptr>>>(x, z);
    aclrtMemcpy(host.data(), bytes, z, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    for (uint16_t value : host) {
        std::printf("%04x", value);
    }
    return 0;
}
"""


def compilers() -> dict[str, dict[str, str]]:
    """Each compiler found with the environment that makes the twin choose it."""
    found = {name: {"CXX": path} for name in ("g++", "clang++") if (path := shutil.which(name))}
    if importlib.util.find_spec("ziglang") is not None:
        found["zig"] = {"CXX": f"{sys.executable} -m ziglang c++"}
    return found


def measure(environment: dict[str, str], folder: Path) -> dict[str, Any]:
    """Builds the twin in a home of its own, runs the program twice; seconds and a hash of its output."""
    source = folder / "mixture.asc"
    source.write_text(PROGRAM)
    home = {"EVOKERNEL_HOME": str(folder / "home"), "EVOKERNEL_TWIN_DIR": str(folder / "twin")}
    start = "from evokernel_core.cli.main import main; main()"
    command = [sys.executable, "-c", start, "twin", "run", str(source)]
    seconds = []
    for _ in range(2):
        started = time.monotonic()
        done = subprocess.run(
            command, env={**os.environ, **environment, **home}, capture_output=True, text=True, check=False
        )
        seconds.append(round(time.monotonic() - started, 2))
    first = done.stdout.partition("\n")[0]
    return {
        "ok": done.returncode == 0,
        "first_s": seconds[0],
        "again_s": seconds[1],
        "bits": hashlib.sha256(first.encode()).hexdigest()[:16],
        "error": "" if done.returncode == 0 else (done.stderr or done.stdout)[-2000:],
    }


def main() -> None:
    """Prints one line a compiler."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, dest="json_path")
    options = parser.parse_args()
    report = {}
    for name, environment in compilers().items():
        with tempfile.TemporaryDirectory() as folder:
            report[name] = measure(environment, Path(folder))
        print(f"{name:8} {report[name]}", flush=True)
    if options.json_path:
        options.json_path.write_text(json.dumps(report, indent=1))
    same = len({result["bits"] for result in report.values()}) == 1
    print("same bits" if same else "the bits differ")
    sys.exit(0 if same and all(result["ok"] for result in report.values()) else 1)


if __name__ == "__main__":
    main()
