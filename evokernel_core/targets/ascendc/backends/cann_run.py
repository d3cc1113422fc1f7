"""Runs one kernel on an NPU: a script for the Python that has torch_npu. Not yet run on hardware.

    python cann_run.py REQUEST.json [--profile FOLDER]

REQUEST.json: ``{"library", "sizes", "scalars", "cores", "ub_bytes", "inputs": [[path or null, bytes]],
"outputs": [[path or null, bytes]], "repeat", "result"}``. Without --profile it runs ``repeat`` times on
freshly poisoned outputs, writes the outputs and then ``{"error", "hazards": [[code, number]]}`` to
``result``. With it, it warms up and records passes with torch_npu's profiler into FOLDER.

torch comes in through importlib: nothing of EvoKernel's own process may import it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
from pathlib import Path
from typing import Any

WARM_UPS, PASSES = 3, 3
GUARD = 512
POISONS = (0x7B, 0xA5)
TILING_BYTES = 65536


def compute_tiling(library: Any, request: dict[str, Any]) -> tuple[Any, int] | None:
    """The tiling's bytes and the bytes of workspace; None where the kernel declines the sizes."""
    sizes = (ctypes.c_int64 * max(1, len(request["sizes"])))(*request["sizes"])
    scalars = (ctypes.c_float * max(1, len(request["scalars"])))(*request["scalars"])
    tiling = (ctypes.c_uint64 * (TILING_BYTES // 8))()
    workspace = ctypes.c_uint64()
    cores, ub_bytes = ctypes.c_uint32(request["cores"]), ctypes.c_uint64(request["ub_bytes"])
    accepted = library.EvokernelComputeTiling(
        sizes, scalars, cores, ub_bytes, ctypes.byref(tiling), ctypes.byref(workspace)
    )
    return (tiling, workspace.value) if accepted else None


def declined(request: dict[str, Any]) -> dict[str, Any]:
    """The result where the kernel declines the sizes."""
    error = "ComputeTiling returned false for these sizes; cover them or narrow the contract."
    return {"declined": True, "error": error, "hazards": []}


def device_bytes(torch: Any, path: str | None, nbytes: int) -> Any:
    """An input on the device; zeros where there is no file."""
    if path is None:
        return torch.zeros(max(nbytes, 1), dtype=torch.uint8, device="npu")
    host = torch.frombuffer(bytearray(Path(path).read_bytes() or b"\0"), dtype=torch.uint8)
    return host.to("npu")


def poisoned(torch: Any, nbytes: int, poison: int) -> Any:
    """An output and the guard zone behind it, full of one byte."""
    return torch.full((nbytes + GUARD,), poison, dtype=torch.uint8, device="npu")


def launch(torch: Any, library: Any, tensors: list[Any], workspace: Any, tiling: Any) -> None:
    """Launches on the current stream and waits for the whole device."""
    pointers = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
    stream = ctypes.c_void_p(torch.npu.current_stream().npu_stream)
    library.EvokernelLaunch(stream, pointers, ctypes.c_void_p(workspace.data_ptr()), ctypes.byref(tiling))
    torch.npu.synchronize()


def check(torch: Any, library: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Runs with each poison, compares the runs byte by byte, and writes the outputs."""
    planned = compute_tiling(library, request)
    if planned is None:
        return declined(request)
    tiling, workspace_bytes = planned
    inputs = [device_bytes(torch, path, nbytes) for path, nbytes in request["inputs"]]
    before = [tensor.clone() for tensor in inputs]
    runs = []
    for poison in POISONS[: max(2, request["repeat"])]:
        workspace = poisoned(torch, workspace_bytes, poison)
        outputs = [poisoned(torch, nbytes, poison) for _, nbytes in request["outputs"]]
        launch(torch, library, [*inputs, *outputs], workspace, tiling)
        runs.append([output.cpu() for output in outputs])
    hazards = list(find_hazards(torch, request, inputs, before, runs))
    for (path, nbytes), output in zip(request["outputs"], runs[0], strict=True):
        Path(path).write_bytes(output[:nbytes].numpy().tobytes())
    return {"declined": False, "error": "", "hazards": hazards}


def find_hazards(torch: Any, request: dict[str, Any], inputs: Any, before: Any, runs: Any) -> Any:
    """What the twin would have seen and an NPU does not say: codes, each with the number of a tensor."""
    for index, (now, then) in enumerate(zip(inputs, before, strict=True)):
        if not torch.equal(now, then):
            yield ["input-modified", index]
    for index, (_, nbytes) in enumerate(request["outputs"]):
        first, second = runs[0][index], runs[1][index]
        if bool((first[nbytes:] != POISONS[0]).any()) or bool((second[nbytes:] != POISONS[1]).any()):
            yield ["out-of-bounds", index]
        if not torch.equal(first[:nbytes], second[:nbytes]):
            kept = (first[:nbytes] == POISONS[0]) & (second[:nbytes] == POISONS[1])
            code = "output-not-written" if bool(kept.any()) else "nondeterministic"
            yield [code, index]


def profile(torch: Any, library: Any, request: dict[str, Any], folder: str) -> dict[str, Any]:
    """Warms up and records passes; the profiler writes its CSV files into ``folder``."""
    planned = compute_tiling(library, request)
    if planned is None:
        return declined(request)
    tiling, workspace_bytes = planned
    profiler = importlib.import_module("torch_npu").profiler
    config = profiler._ExperimentalConfig(
        aic_metrics=profiler.AiCMetrics.PipeUtilization, profiler_level=profiler.ProfilerLevel.Level1
    )
    inputs = [device_bytes(torch, path, nbytes) for path, nbytes in request["inputs"]]
    outputs = [poisoned(torch, nbytes, POISONS[0]) for _, nbytes in request["outputs"]]
    workspace = poisoned(torch, workspace_bytes, POISONS[0])
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        schedule=profiler.schedule(wait=0, warmup=WARM_UPS, active=PASSES, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(folder),
        experimental_config=config,
    ) as recorder:
        for _ in range(WARM_UPS + PASSES):
            launch(torch, library, [*inputs, *outputs], workspace, tiling)
            recorder.step()
    return {"declined": False, "error": "", "hazards": []}


def main(arguments: list[str]) -> None:
    """Reads the request, does what it asks and leaves the result."""
    request = json.loads(Path(arguments[0]).read_text())
    torch = importlib.import_module("torch")
    importlib.import_module("torch_npu")
    library = ctypes.CDLL(request["library"])
    if arguments[1:2] == ["--profile"]:
        result = profile(torch, library, request, arguments[2])
    else:
        result = check(torch, library, request)
    Path(request["result"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
