"""Answers frames: first the text of a kernel, then cases of it, until the other end closes the pipe."""

from __future__ import annotations

import os
import resource
import select
import sys
import threading
import time
from typing import IO, Any

from . import frames


def main() -> None:
    """Serves the pipe on standard input; what kernels print are errors. The argument, where there is one, is
    the most bytes of address space that this process may have: a sandbox has limited it already."""
    if sys.argv[1:]:
        limit = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    source = os.fdopen(os.dup(0), "rb")
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(source.fileno(),), daemon=True).start()
    _serve(source, target)


def _end_with(descriptor: int) -> None:
    """Ends this process when nobody holds the other end of the pipe."""
    poll = select.poll()
    poll.register(descriptor, 0)
    poll.poll()
    os._exit(3)


def _serve(source: IO[bytes], target: IO[bytes]) -> None:
    import triton

    from .cases import run_case
    from .kernels import JitFunctions, line_of

    frames.write(target, {"ready": triton.__version__})
    kernels: JitFunctions | None = None
    while (frame := frames.read(source)) is not None:
        head, blobs = frame
        started = time.monotonic()
        try:
            if kernels is None:
                kernels = JitFunctions(head["kernel"])
                answer: dict[str, Any] = {"status": "ok"}
                outputs: list[Any] = []
            else:
                answer, outputs = run_case(kernels, head, blobs)
        except MemoryError:
            answer, outputs = {"status": "memory"}, []
        except Exception as error:  # whatever a text brings Triton to
            answer, outputs = {"status": "error", "line": line_of(error), "why": _why(error)}, []
        frames.write(target, {**answer, "seconds": time.monotonic() - started}, outputs)


def _why(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:400]
