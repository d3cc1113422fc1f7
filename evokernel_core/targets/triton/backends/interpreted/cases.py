"""One case: tensors are laid out, launches run as often as asked, and memory's rules are looked at."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from .kernels import JitFunctions, line_of
from .memory import POISONS, STORAGE, Broken, CallMemory, CallTensor, Counts


def run_case(
    kernels: JitFunctions, head: dict[str, Any], blobs: list[bytes]
) -> tuple[dict[str, Any], list[Any]]:
    """The answer to a case, and the outputs of its first run.

    ``head``: ``tensors`` with name, dtype, elements, role, whether they are zeros, and whether their elements
    are among the ``blobs``; ``launches`` with kernel, grid, arguments (``["tensor", place]`` or
    ``["number", value]``) and constants, or an operation (library.py); ``repeat``; ``sample``, how many
    programs of each launch run at most, 0 for all of them."""
    first: list[Any] = []
    answer: dict[str, Any] = {"status": "ok", "hazards": []}
    for run in range(head["repeat"]):
        memory = kernels.new_memory(only_counts=bool(head["sample"]))
        tensors = _tensors(memory, head["tensors"], blobs, run)
        try:
            answer["counts"] = [
                _launched(kernels, memory, tensors, launch, run, head["sample"])
                for launch in head["launches"]
            ]
        except Broken as error:
            broken = {"rule": error.rule, "values": error.values, "line": line_of(error)}
            return {**answer, "hazards": [*memory.hazards(), broken]}, []
        if head["sample"]:
            return answer, []
        outputs = [tensor for tensor in tensors if tensor.role == "output"]
        hazards = [*memory.hazards(), *_unwritten(outputs)]
        if run == 0:
            first = [tensor.data for tensor in outputs]
        elif not memory.has_float_atomics:
            hazards += _changed(outputs, first)
        if hazards:
            return {**answer, "hazards": hazards}, []
    return answer, first


def _launched(
    kernels: JitFunctions,
    memory: CallMemory,
    tensors: list[CallTensor],
    launch: dict[str, Any],
    run: int,
    sample: int,
) -> dict[str, Any]:
    """Runs a launch, or what a library computes in its place; gives what it did, and how many of its programs
    ran. Where programs are only counted, libraries are not called."""
    memory.counts = Counts()
    if "op" in launch:
        if not sample:
            from .library import call

            call(memory, tensors, launch)
        return {**memory.counts.data(), "ran": 1}
    arguments = [tensors[value] if kind == "tensor" else value for kind, value in launch["arguments"]]
    ran = kernels.launch(
        launch["kernel"], launch["grid"], arguments, launch["constants"], order=run % 2, sample=sample
    )
    return {**memory.counts.data(), "ran": ran}


def _tensors(
    memory: CallMemory, asked: list[dict[str, Any]], blobs: list[bytes], run: int
) -> list[CallTensor]:
    given = iter(blobs)
    tensors = []
    for one in asked:
        kind = np.dtype(STORAGE[one["dtype"]])
        if one["given"]:
            data = np.frombuffer(next(given), kind)
        elif one["zeroed"]:
            data = _zeros(one["elements"], kind)
        else:
            poison = bytes([POISONS[run % len(POISONS)]])
            data = np.frombuffer(bytearray(poison * (one["elements"] * kind.itemsize)), kind)
        tensors.append(memory.add(one["name"], one["dtype"], data, one["role"]))
    return tensors


def _zeros(elements: int, kind: Any) -> Any:
    """Zeros that take memory where somebody stores, however many there are."""
    size = max(elements * kind.itemsize, 1)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), kind, count=elements)


def _unwritten(outputs: list[CallTensor]) -> list[dict[str, Any]]:
    hazards = []
    for tensor in outputs:
        if tensor.written is not None and not tensor.written.all():
            missing = np.flatnonzero(~tensor.written)
            values = {"element": int(missing[0]), "tensor": tensor.name, "more": int(missing.size) - 1}
            hazards.append({"rule": "output-not-written", "values": values, "line": 0})
    return hazards


def _changed(outputs: list[CallTensor], first: list[Any]) -> list[dict[str, Any]]:
    return [
        {"rule": "nondeterministic", "values": {"tensor": tensor.name}, "line": 0}
        for tensor, before in zip(outputs, first, strict=True)
        if tensor.data.tobytes() != before.tobytes()
    ]
