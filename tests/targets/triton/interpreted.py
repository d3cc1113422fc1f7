"""A child process that runs kernels by their launch records in Triton's interpreter: one JSON line a request.

A request: ``folder`` with kernel.py, launch.json and the inputs NAME.npy; ``sizes``; ``dtypes`` and
``shapes`` by tensor name. The outputs are written there as NAME.npy, floats as float64. Each tensor stands in
a guard zone of garbage, which must be there afterwards.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

from evokernel_core.targets.triton.expressions import evaluate
from evokernel_core.targets.triton.launch import read_launches

GUARD = 64
"""Elements in front of a tensor and behind it."""


def garbage(count: int, dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.full((count,), float("nan"), dtype=dtype)
    if dtype == torch.bool:
        return torch.ones(count, dtype=dtype)
    return torch.full((count,), torch.iinfo(dtype).max - 3, dtype=dtype)


class Guarded:
    """A tensor between two guards."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        count = int(np.prod(shape, dtype=np.int64))
        self.whole = garbage(count + 2 * GUARD, dtype)
        self.tensor = self.whole[GUARD : GUARD + count].view(shape)

    def intact(self) -> bool:
        expected = garbage(GUARD, self.whole.dtype)
        ends = (self.whole[:GUARD], self.whole[-GUARD:])
        return all(torch.equal(end.nan_to_num(), expected.nan_to_num()) for end in ends)


def answer(request: dict[str, Any]) -> None:
    folder, sizes = Path(request["folder"]), request["sizes"]
    record = read_launches((folder / "launch.json").read_text())
    spec = importlib.util.spec_from_file_location(folder.name, folder / "kernel.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    memory: dict[str, Guarded] = {}
    for name in (*record.inputs, *record.outputs):
        memory[name] = Guarded(tuple(request["shapes"][name]), getattr(torch, request["dtypes"][name]))
        if name in record.inputs:
            memory[name].tensor.copy_(torch.from_numpy(np.load(folder / f"{name}.npy")))
    for one in record.scratch:
        memory[one.name] = Guarded((evaluate(one.elements, sizes),), getattr(torch, one.dtype))
        if one.zeroed:
            memory[one.name].tensor.zero_()
    for launch in record.launches:
        arguments = [
            memory[word].tensor if word in memory else evaluate(word, sizes) for word in launch.arguments
        ]
        grid = launch.programs(sizes)
        if all(grid):
            getattr(module, launch.kernel)[grid](*arguments, **launch.constants_at(sizes))
    if broken := [name for name, one in memory.items() if not one.intact()]:
        raise AssertionError(f"written beyond {broken}")
    for name in record.outputs:
        tensor = memory[name].tensor
        np.save(folder / f"{name}.npy", (tensor.double() if tensor.is_floating_point() else tensor).numpy())


def take_sizes_of_one_as_numbers() -> None:
    """Loops over run-time bounds: numpy 2.4 makes no number of an array of one element."""
    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patched


def multiply_bfloat16() -> None:
    """Products of bfloat16, which the interpreter stores as integers and multiplies as such."""
    builder = interpreter.InterpreterBuilder
    plain = builder.create_dot

    def exact(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        a, b = (self.cast_impl(one, tl.float32) if one.dtype.scalar == tl.bfloat16 else one for one in (a, b))
        return plain(self, a, b, d, *rest)

    builder.create_dot = exact


def main() -> None:
    multiply_bfloat16()
    take_sizes_of_one_as_numbers()
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            answer(json.loads(line))
            print(json.dumps(""), flush=True)
        except Exception:
            print(json.dumps(traceback.format_exc()), flush=True)


main()
