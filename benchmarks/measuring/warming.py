"""Fills torch.compile's cache for problems to come, and tells their run-time numbers; runs no kernel.

    python warming.py CACHE LOCK DEVICE        one request a line: {"file", "inputs"}

Answers ``{"scalars", "warm", "seconds"}`` with warm "" or why nothing was compiled. With ``"other"``, the
file of a kernel that others published, that is called once instead: it fills Triton's cache and shows what
ends a process; answer: ``{"seconds"}`` or ``{"error", "broken", "memory"}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

sys.path.pop(0)  # the folder of this file, whose modules are not for everybody
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.measuring import flags
from benchmarks.measuring.classes import AS_LEFT
from benchmarks.measuring.files import THREADS, Opened, alone, forget, lent, scalars
from benchmarks.measuring.others import Other
from evokernel_core.targets.triton.backends.child.judge import failed


class OnlyCompiled(Exception):
    """Raised where the compiled graph would run."""


def main() -> None:
    """Answers until its input ends."""
    cache, lock, device = sys.argv[1:4]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    os.environ["TRITON_CACHE_DIR"] = str(Path(cache) / "triton")
    import torch

    torch.set_num_threads(THREADS)  # part of the cache's keys
    with contextlib.suppress(ImportError, AttributeError):
        _stop_before_runs()
    print(json.dumps({"ready": {}}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        answer = (_tried if "other" in request else _answer)(torch, request, lock, device)
        print(json.dumps(answer), file=answers)
        if answer.get("broken"):
            answers.flush()
            os._exit(3)


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


def _tried(torch: Any, request: Any, lock: str, device: str) -> dict[str, Any]:
    """Calls a kernel once, with the device to itself except while Triton compiles."""
    began = time.monotonic()
    answer: dict[str, Any] = {}
    with torch.no_grad():
        try:
            with alone(lock) as held, _untuned(torch, held):
                opened = Opened(torch, request["file"], device)
                Other(torch, request["other"], opened).first()
                _wait(torch)
        except Exception as error:
            answer = failed(error)
    opened = None
    flags.write(torch, flags.of_class(AS_LEFT))
    forget(torch)
    return {**answer, "seconds": round(time.monotonic() - began, 1)}


@contextlib.contextmanager
def _untuned(torch: Any, held: TextIO) -> Iterator[None]:
    """While Triton compiles, others have the device; its autotuner runs every setting once and times none:
    what it chose on a busy device would not be its best."""
    import triton.compiler
    from triton.runtime.autotuner import Autotuner

    compiled, benchmark = triton.compiler.compile, Autotuner.do_bench

    def compile_apart(*arguments: Any, **options: Any) -> Any:
        _wait(torch)
        with lent(held):
            return compiled(*arguments, **options)

    def once(call: Callable[[], Any], quantiles: Sequence[float]) -> list[float]:
        call()
        return [0.0] * len(quantiles)

    triton.compiler.compile, Autotuner.do_bench = compile_apart, property(lambda self: once)
    try:
        yield
    finally:
        triton.compiler.compile, Autotuner.do_bench = compiled, benchmark


def _wait(torch: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
