"""The jit functions of a file as functions of Python, and launches of them."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np
import triton.language as tl

from .builder import Divided, Handle, NumpyBuilder
from .front import Front, rewritten
from .memory import STORAGE, Array, CallMemory

FILE = "kernel.py"
LANES = 1 << 17
"""Elements of the largest block of all programs that run at once."""
MOST_PROGRAMS = 4096
POINTERS = {
    "float64": tl.float64,
    "float32": tl.float32,
    "float16": tl.float16,
    "bfloat16": tl.bfloat16,
    "int64": tl.int64,
    "int32": tl.int32,
    "int16": tl.int16,
    "int8": tl.int8,
    "uint8": tl.uint8,
    "bool": tl.int1,
}


def line_now() -> int:
    """The line of the kernel that runs, 0 where none does."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == FILE:
            return frame.f_lineno
        frame = frame.f_back
    return 0


def line_of(error: BaseException) -> int:
    """The line of the kernel that an error came from, the innermost."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == FILE]
    return (lines[-1] if lines else 0) or 0


class JitFunctions:
    """The functions of one file in this process."""

    def __init__(self, text: str) -> None:
        self.memory = CallMemory(line_now)
        self._builder = NumpyBuilder(self.memory)
        self._front = Front(self._builder)
        names: dict[str, Any] = {"tl": tl, **self._front.names()}
        tree = ast.parse(text)
        kept: list[ast.stmt] = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        code = compile(rewritten(ast.Module(kept, [])), FILE, "exec")
        exec(code, names)
        self._functions = {node.name: names[node.name] for node in kept if isinstance(node, ast.FunctionDef)}

    def new_memory(self, *, only_counts: bool = False) -> CallMemory:
        """An empty memory, which launches from here on use."""
        self.memory = self._builder.memory = CallMemory(line_now, only_counts=only_counts)
        return self.memory

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        arguments: Sequence[Any],
        constants: Mapping[str, int],
        *,
        order: int = 0,
        sample: int = 0,
    ) -> int:
        """Runs the programs of a launch; gives how many ran. ``arguments``: tensors of the memory, whole
        numbers and floats; ``order`` 0 for programs from the first, 1 from the last, fewer at a time;
        ``sample``: run so many of them at most. Raises what Triton raises, and ``memory.Broken``."""
        function = self._functions[name]
        x, y, z = grid
        self._builder.grid = (x, y, z)
        self.memory.new_launch()
        values = [self._argument(argument) for argument in arguments]
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        plain = [each for each in names if each not in constants]
        given = {**dict(zip(plain, values, strict=False)), **constants}
        numbers = _numbers(x * y * z, sample)
        with np.errstate(all="ignore"):
            for places in _groups(len(numbers), constants.values(), order):
                self._run(function, given, numbers[places])
        return len(numbers)

    def _run(self, function: Callable[..., Any], given: Mapping[str, Any], programs: Array) -> None:
        """Programs at once, and again in groups where they divide."""
        pending = [programs]
        while pending:
            group = pending.pop()
            self.memory.begin(group)
            try:
                function(**given)
            except Divided as error:
                self.memory.take_back()
                pending += [group[error.ways == way] for way in np.unique(error.ways)]

    @staticmethod
    def _argument(argument: Any) -> Any:
        """A tensor's address, or a number as a launch passes it: a 1 is known when a kernel is compiled."""
        if isinstance(argument, float):
            return tl.tensor(Handle(np.array([argument], np.float32), tl.float32), tl.float32)
        if isinstance(argument, int):
            if argument == 1:
                return 1
            dtype, kind = (tl.int32, np.int32) if -(1 << 31) <= argument < 1 << 31 else (tl.int64, np.int64)
            return tl.tensor(Handle(np.array([argument], kind), dtype), dtype)
        pointer = tl.pointer_type(POINTERS[argument.dtype])
        return tl.tensor(Handle(np.array([argument.base], np.uint64), pointer), pointer)


def _numbers(count: int, sample: int) -> Array:
    """All programs of a launch, or some of them from the first to the last."""
    if not sample or count <= sample:
        return np.arange(count, dtype=np.int64)
    return np.unique(np.linspace(0, count - 1, sample).astype(np.int64))


def _groups(count: int, constants: Any, order: int) -> Iterator[slice]:
    """The programs of a launch in groups that run at once."""
    widest = sorted((size for size in constants if size > 1), reverse=True)[:2]
    lanes = LANES >> order
    size = max(1, min(MOST_PROGRAMS, lanes // max(1, int(np.prod(widest or [1])))))
    starts = range(0, count, size)
    for start in reversed(starts) if order else starts:
        yield slice(start, min(start + size, count))


assert POINTERS.keys() == STORAGE.keys()
