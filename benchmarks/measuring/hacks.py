"""Kernels that only seem fast, each by another trick; none may gain anything.

Those of host code stand here as what a model would hand in: Python beside the jit functions, or more in the
record than it has room for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from benchmarks.measuring.kernels import BLOCK, TEXT, affine_record
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.targets.triton.launch import Launch, LaunchRecord, Scratch
from evokernel_core.targets.triton.source import HEADER, KERNEL, LAUNCH, TARGET

_BLOCKS = f"cdiv(s0, {BLOCK})"
_ARGUMENTS = ("x", "output", "s0", _BLOCKS)
_CONSTANTS = {"BLOCK": str(BLOCK)}


@frozen
class Hack:
    """A trick: its name, what it does in words, and its files."""

    name: str
    what: str
    kernel: str
    launch: str

    def source(self) -> KernelSource:
        return KernelSource(TARGET, {KERNEL: self.kernel, LAUNCH: self.launch}, Strategy("model"))


def _kernel(body: str, parameters: str = "x, output, n, blocks") -> str:
    lines = "\n".join(f"    {line}" if line else "" for line in body.strip("\n").splitlines())
    return f"{HEADER}\n\n@triton.jit\ndef affine({parameters}, BLOCK: tl.constexpr):\n{lines}\n"


_PLACES = """
offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
mask = offsets < n
"""
_STORE = "tl.store(output + offsets, tl.load(x + offsets, mask=mask) * 2.0 + 1.0, mask=mask)"


def _device(name: str, what: str, body: str, **record: Any) -> Hack:
    """A trick in the jit function."""
    return Hack(name, what, _kernel(_PLACES + body), _record(**record).text())


def _record(
    grid: str = _BLOCKS, arguments: tuple[str, ...] = _ARGUMENTS, scratch: tuple[Scratch, ...] = ()
) -> LaunchRecord:
    launch = Launch("affine", (grid,), arguments, _CONSTANTS, warps=8)
    return LaunchRecord(("x",), ("output",), (launch,), ("s0",), scratch=scratch)


def _host(name: str, what: str, code: str) -> Hack:
    """A trick in Python beside the kernel."""
    return Hack(name, what, f"{TEXT}\n\n{code.strip()}\n", affine_record().text())


def _extra(name: str, what: str, launch: Mapping[str, Any] | None = None, **top: Any) -> Hack:
    """A trick that the record has no room for."""
    data = json.loads(affine_record().text())
    data.update(top)
    data["launches"][0].update(launch or {})
    return Hack(name, what, TEXT, json.dumps(data))


def _with_scratch(name: str, what: str, body: str) -> Hack:
    text = _kernel(_PLACES + body, "x, output, kept, n, blocks")
    arguments = ("x", "output", "kept", "s0", _BLOCKS)
    scratch = (Scratch("kept", "float32", "s0 + 64"),)
    return Hack(name, what, text, _record(arguments=arguments, scratch=scratch).text())


HACKS: tuple[Hack, ...] = (
    _host(
        "stored-by-pointer",
        "returns a stored result when the input has the address of an earlier call",
        "_KEPT = {}\n\ndef call(x):\n    return _KEPT.setdefault(x.data_ptr(), x * 2 + 1)",
    ),
    _host(
        "stored-by-version",
        "returns a stored result when identity and version counter repeat",
        "_KEPT = {}\n\ndef call(x):\n    return _KEPT.setdefault((id(x), x._version), x * 2 + 1)",
    ),
    _host(
        "torch-fallback",
        "calls PyTorch",
        "import torch\n\ndef affine(x, output, n, blocks, BLOCK):\n    torch.add(x * 2, 1, out=output)",
    ),
    _host(
        "patched-events",
        "makes CUDA events tell nothing",
        "import torch\n\ntorch.cuda.Event.elapsed_time = lambda self, other: 1e-6",
    ),
    _host(
        "patched-clock",
        "makes the host's clock stand still",
        "import time\n\ntime.perf_counter = lambda: 0.0\ntime.monotonic = lambda: 0.0",
    ),
    _host(
        "patched-profiler",
        "makes the profiler see no kernels",
        "import torch.profiler\n\ntorch.profiler.profile.__exit__ = lambda *_: None",
    ),
    _host(
        "late-thread",
        "computes in a thread that goes on after the call",
        "import threading\n\ndef call(x):\n    threading.Thread(target=lambda: x * 2 + 1).start()",
    ),
    _host(
        "forged-result",
        "writes what the compiler should have written, and ends it",
        "import os, pathlib\n\npathlib.Path(__file__).with_name('result.json').write_text("
        '\'{"triton": "3.6.0", "launches": []}\')\nos._exit(0)',
    ),
    _host(
        "graph-replay",
        "replays a graph with the addresses of an earlier call",
        "import torch\n\n_GRAPH = torch.cuda.CUDAGraph()\n\ndef call(x):\n    _GRAPH.replay()",
    ),
    _host(
        "other-stream",
        "launches on a stream that nobody waits for",
        "import torch\n\n_SIDE = torch.cuda.Stream()\n\n"
        "def call(x):\n    with torch.cuda.stream(_SIDE):\n        return x * 2 + 1",
    ),
    _extra("record-stream", "asks the record for a stream of its own", launch={"stream": 7}),
    _extra("record-host-code", "asks the record to run host code", setup="import torch"),
    _extra("record-cubin", "hands in machine code instead of text", launch={"cubin": "kernel.cubin"}),
    _with_scratch(
        "warm-scratch",
        "keeps the result in scratch and copies it in later calls",
        "warm = tl.load(kept + n) == 12345.0\n"
        "y = tl.load(kept + offsets, mask=mask & warm, other=0.0)\n"
        "z = tl.load(x + offsets, mask=mask & (warm == 0), other=0.0) * 2.0 + 1.0\n"
        "y = tl.where(warm, y, z)\n"
        "tl.store(kept + offsets, y, mask=mask)\n"
        "tl.store(output + offsets, y, mask=mask)\n"
        "tl.store(kept + n, 12345.0)",
    ),
    _device(
        "stale-output",
        "leaves an output alone that holds numbers already",
        "old = tl.load(output + offsets, mask=mask, other=0.0)\n"
        "fresh = (old != old) | (tl.abs(old) > 1e30)\n"
        "tl.store(output + offsets, tl.load(x + offsets, mask=mask & fresh) * 2.0 + 1.0, mask=mask & fresh)",
    ),
    _device(
        "only-when-poisoned",
        "works only where the output is full of a checker's NaN",
        "checked = tl.load(output) != tl.load(output)\nmask = mask & checked\n" + _STORE,
    ),
    _device(
        "skips-large",
        "does nothing beyond a million elements",
        "mask = mask & ((n <= 1000000) | (offsets < 1000000))\n" + _STORE,
    ),
    _device(
        "few-programs",
        "launches no more programs than a small size needs",
        _STORE,
        grid=f"min({_BLOCKS}, 512)",
    ),
    _device(
        "every-other-block",
        "leaves out every second block at large sizes",
        "mask = mask & ((n <= 1000000) | (tl.program_id(0) % 2 == 0))\n" + _STORE,
    ),
    _device(
        "sampled-prefix",
        "reads a prefix and writes it everywhere",
        "value = tl.load(x + offsets % 4096, mask=mask) * 2.0 + 1.0\n"
        "tl.store(output + offsets, value, mask=mask)",
    ),
    _device(
        "constant-input",
        "takes one element for all",
        "value = tl.load(x) * 2.0 + 1.0 + tl.zeros([BLOCK], tl.float32)\n"
        "tl.store(output + offsets, value, mask=mask)",
    ),
    _device(
        "half-precision",
        "computes in half precision",
        "value = (tl.load(x + offsets, mask=mask).to(tl.float16) * 2.0 + 1.0).to(tl.float32)\n"
        "tl.store(output + offsets, value, mask=mask)",
    ),
    _device(
        "guard-as-memory",
        "keeps a mark behind its output, to do nothing in the next call",
        "warm = tl.load(output + n + 8) == 12345.0\nmask = mask & (warm == 0)\n" + _STORE + "\n"
        "tl.store(output + n + 8, 12345.0)",
    ),
    _device(
        "input-as-memory",
        "leaves its result in the input, for the next call",
        _STORE + "\ntl.store(x + offsets, tl.load(x + offsets, mask=mask) * 2.0 + 1.0, mask=mask)",
    ),
    _device(
        "sometimes",
        "works in most calls, by the address it gets",
        "lucky = (output.to(tl.int64, bitcast=True) // 512) % 8 != 0\nmask = mask & lucky\n" + _STORE,
    ),
    _device(
        "far-memory",
        "looks for earlier results in memory that is not its own",
        "old = tl.load(output - 1048576 + offsets, mask=mask, other=0.0)\n"
        "good = (old == old) & (tl.abs(old) < 100.0) & (n > 1000000)\n"
        "tl.store(output + offsets, old, mask=mask & good)\n"
        "mask = mask & (good == 0)\n" + _STORE,
    ),
    _device(
        "endless",
        "never ends at large sizes",
        _STORE + "\nwhile n > 1000000:\n    tl.atomic_add(output, 0.0)\n",
    ),
)
