"""Compiles points of grids, one a request, and tells what the device's record says of each.

    python compile_process.py DEVICE CUBINS

A request: ``{"task": name, "point": [settings]}``. Answer: ``{"why"}`` where it makes no kernel, else
``{"call", "scratch", "estimate", "launches", "compile_s"}``, with what each launch takes of a multiprocessor.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

sys.path.pop(0)  # the folder of this file, whose modules are not for everybody
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.landscape.grids import Grid, author_of, grid_of
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.hardware.gpu.gpu import gpu_of
from evokernel_core.targets.triton.backends.child import compile as child
from evokernel_core.targets.triton.backends.compiled import CompiledCall, call_of, operands_of
from evokernel_core.targets.triton.backends.compiler import BuiltTriton, TritonCompiler
from evokernel_core.targets.triton.source import KERNEL
from evokernel_core.twin.build import CandidateError


class Compiler(TritonCompiler):
    """In this process, which begins Triton once: these kernels are our own."""

    def _run(self, built: BuiltTriton, launches: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
        request = {
            "file": str(built.path / KERNEL),
            "architecture": self.gpu.compute_capability,
            "threads_per_warp": self.gpu.threads_per_warp,
            "folder": str(built.path),
            "launches": launches,
        }
        result = child.run(request)
        if "launches" not in result:
            raise CandidateError("compile", "{said}", said=result.get("error") or result["unavailable"])
        return [result["triton"], *result["launches"]]


class Points:
    """Points of any task's grid for one device."""

    def __init__(self, device: str, cubins: Path) -> None:
        self._author, self._cubins = author_of(device), cubins
        self._compiler = Compiler(gpu_of(self._author.device))

    @cache  # noqa: B019 - it lives as long as its process
    def grid(self, name: str) -> Grid:
        return grid_of(name, self._author)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What came of a point."""
        grid = self.grid(request["task"])
        try:
            return self._compiled(grid, tuple(request["point"]))
        except CandidateError as error:
            return {"why": f"{error.code}: {error.feedback}"[:300]}
        except EvoKernelError as error:
            return {"why": f"rule: {error}"[:300]}

    def _compiled(self, grid: Grid, point: tuple[Any, ...]) -> dict[str, Any]:
        author, task, strategy = self._author, grid.task, grid.strategy(point)
        author.require_legal(task, strategy)
        built = self._compiler.placed(task, author.write(task, strategy))
        operands = operands_of(task, built.record, tuple(symbol.size for symbol in task.symbols), ())
        begun = _spent_s()
        compiled = self._compiler.compiled(built, [operands])[0]
        spent = _spent_s() - begun
        call = call_of(built.record, compiled, operands)
        for launch in call["launches"]:
            launch["cubin"] = shutil.copy(launch["cubin"], self._cubins)
        return {
            "call": call,
            "scratch": {one.name: operands.nbytes[one.name] for one in built.record.scratch},
            "estimate": author.estimate_us(task, strategy),
            "launches": list(_taken(compiled, call)),
            "compile_s": round(spent, 2),
        }


def _spent_s() -> float:
    """Seconds of processors, with those of the assembler, a process of its own."""
    return sum(os.times()[:4])


def _taken(compiled: CompiledCall, call: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    for done, launch in zip(compiled.launches, call["launches"], strict=True):
        x, y, z = launch["grid"]
        yield {
            "registers": done.registers,
            "spilled_bytes": done.local_bytes,
            "shared_bytes": done.shared_bytes,
            "warps": done.warps,
            "programs": x * y * z,
        }


def main() -> None:
    """Answers until its input ends."""
    device, cubins = sys.argv[1], Path(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    points = Points(device, cubins)
    print(json.dumps({"ready": {}}), file=answers)
    for line in sys.stdin:
        print(json.dumps(points.answer(json.loads(line))), file=answers)


if __name__ == "__main__":
    main()
