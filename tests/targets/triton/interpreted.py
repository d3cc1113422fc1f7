"""A child process that runs kernels by the product's interpreter, which keeps the rules of memory.

One JSON line a request with ``kernel`` (text), ``head`` (``interpreter_case.Call.head``), and files of raw
``inputs`` and ``outputs``. It answers each with what failed, or nothing. An interpreting process has one
kernel: each request is answered in a fork of this one.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evokernel_core.targets.triton.backends.interpreted.cases import run_case
from evokernel_core.targets.triton.backends.interpreted.kernels import JitFunctions


def answer(request: dict[str, Any]) -> str:
    blobs = [Path(path).read_bytes() for path in request["inputs"]]
    told, outputs = run_case(JitFunctions(request["kernel"]), request["head"], blobs)
    if told["hazards"]:
        return f"{told['hazards']}"
    for path, data in zip(request["outputs"], outputs, strict=True):
        Path(path).write_bytes(data.tobytes())
    return ""


def told(line: str) -> str:
    try:
        return answer(json.loads(line))
    except Exception:
        return traceback.format_exc()


def main() -> None:
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    print("ready", flush=True)
    for line in sys.stdin:
        fork = os.fork()
        if not fork:
            print(json.dumps(told(line)), flush=True)
            os._exit(0)
        _, status = os.waitpid(fork, 0)
        if status:
            print(json.dumps(f"the process ended with {status}"), flush=True)


main()
