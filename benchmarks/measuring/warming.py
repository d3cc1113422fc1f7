"""Fills torch.compile's cache for problems to come, and tells their run-time numbers; runs no kernel.

    python warming.py CACHE LOCK DEVICE        one request a line: {"file", "inputs"}

Answers ``{"scalars", "warm", "seconds"}`` with warm "" or why nothing was compiled.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.pop(0)  # the folder of this file, whose modules are not for everybody
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.measuring.files import THREADS, Opened, alone, forget, scalars


class OnlyCompiled(Exception):
    """Raised where the compiled graph would run."""


def main() -> None:
    """Answers until its input ends."""
    cache, lock, device = sys.argv[1:4]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    import torch

    torch.set_num_threads(THREADS)  # part of the cache's keys
    with contextlib.suppress(ImportError, AttributeError):
        _stop_before_runs()
    print(json.dumps({"ready": {}}), file=answers)
    for line in sys.stdin:
        print(json.dumps(_answer(torch, json.loads(line), lock, device)), file=answers)


def _stop_before_runs() -> None:
    from torch._inductor.output_code import CompiledFxGraph

    def stop(self: Any, inputs: Any) -> Any:
        raise OnlyCompiled

    CompiledFxGraph.__call__ = stop


def _answer(torch: Any, request: Any, lock: str, device: str) -> dict[str, Any]:
    began, said, numbers = time.monotonic(), "", list[float]()
    opened: Any = None
    with torch.no_grad():
        try:
            with alone(lock):
                opened = Opened(torch, request["file"], device)
            numbers = scalars(opened, request["inputs"])
            torch.compile(opened.model)(*opened.inputs)
            said = "it ran"
        except OnlyCompiled:
            pass
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:300]
    opened = None
    forget(torch)
    return {"scalars": numbers, "warm": said, "seconds": round(time.monotonic() - began, 1)}


if __name__ == "__main__":
    main()
