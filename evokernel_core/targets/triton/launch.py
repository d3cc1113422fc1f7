"""The launch record of a Triton kernel: what a host does with its jit functions, as data.

The host code of a package is printed from it, a judge launches cubins by it, and a model that writes a kernel
writes one. It is the file ``launch.json``:

    {
      "inputs": ["x"], "scalars": [], "outputs": ["output"], "symbols": ["s0", "s1"],
      "requires": ["s1 <= 65536"],
      "scratch": [{"name": "partial", "dtype": "float32", "elements": "s0 * 4"}],
      "launches": [
        {"kernel": "softmax_rows", "grid": ["s0"], "arguments": ["x", "output", "s0", "s1"],
         "constants": {"BLOCK": "next_power_of_2(s1)"}, "warps": 4, "stages": 2}
      ]
    }
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import cattrs
from attrs import asdict, field, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.expressions import evaluate

_MOST_PROGRAMS = (1 << 31) - 1
"""Of a grid's first dimension (CUDA's limit); 65,535 of the others."""
_MOST_ELSEWHERE = 65_535


@frozen
class Scratch:
    """Memory of a call: so many ``elements``, uninitialised, or zeros."""

    name: str
    dtype: str
    elements: str
    zeroed: bool = False


@frozen
class Launch:
    """One launch of a jit function. ``grid``: one to three numbers of programs. ``arguments``: names of
    tensors, scratch and scalars, or numbers over the sizes, in the function's order; ``constants``: its
    constexpr parameters, each a number over the sizes."""

    kernel: str
    grid: tuple[str, ...]
    arguments: tuple[str, ...]
    constants: Mapping[str, str] = field(factory=dict)
    warps: int = 4
    stages: int = 2

    def programs(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """The grid at given sizes. Raises UsageError where no device has it."""
        numbers = [evaluate(text, sizes) for text in self.grid]
        limits = (_MOST_PROGRAMS, _MOST_ELSEWHERE, _MOST_ELSEWHERE)
        if not 1 <= len(numbers) <= 3 or any(
            not 0 <= n <= most for n, most in zip(numbers, limits, strict=False)
        ):
            raise UsageError(
                "The grid of {kernel} is {grid}; no device launches that.",
                kernel=self.kernel,
                grid=" x ".join(map(str, numbers)) or "empty",
            )
        x, y, z = (*numbers, 1, 1)[:3]
        return x, y, z

    def constants_at(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Its constexpr parameters at given sizes."""
        return {name: evaluate(text, sizes) for name, text in self.constants.items()}


@frozen
class LaunchRecord:
    """All launches of a kernel in turn. ``inputs`` and ``outputs`` name the task's tensors in its order,
    ``scalars`` its run-time numbers, ``symbols`` its sizes. ``requires``: comparisons that hold for the sizes
    which it takes; others are left to PyTorch."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    launches: tuple[Launch, ...]
    symbols: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    requires: tuple[str, ...] = ()

    def takes(self, sizes: Mapping[str, int]) -> bool:
        """Whether it computes a task of given sizes."""
        return all(evaluate(text, sizes) for text in self.requires)

    def tensors(self) -> tuple[str, ...]:
        """The names that stand for memory."""
        return (*self.inputs, *self.outputs, *(one.name for one in self.scratch))

    def scratch_elements(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The elements of each scratch tensor at given sizes."""
        return {one.name: evaluate(one.elements, sizes) for one in self.scratch}

    def text(self) -> str:
        """The file ``launch.json``."""
        return json.dumps(asdict(self), indent=2) + "\n"


def read_launches(text: str) -> LaunchRecord:
    """From the file ``launch.json``. Raises UsageError for what is no launch record."""
    try:
        data = json.loads(text)
        record = _converter.structure(data, LaunchRecord)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ExceptionGroup) as error:
        raise UsageError(
            "launch.json is no launch record ({why}); give inputs, outputs and launches.", why=_why(error)
        ) from error
    _require_names(record)
    return record


def tensor_names(task: KernelTask) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The names of a task's input tensors, scalars and outputs, as records have them."""
    from evokernel_core.domain.graph import InputKind

    scalars = tuple(one.name for one in task.graph.inputs if one.kind is InputKind.SCALAR)
    inputs = tuple(one.name for one in task.graph.inputs if one.kind is not InputKind.SCALAR)
    stem = next(
        name for name in ("output", "result", "outcome", "computed") if name not in (*inputs, *scalars)
    )
    count = len(task.graph.outputs)
    outputs = (stem,) if count == 1 else tuple(f"{stem}_{place}" for place in range(count))
    return inputs, scalars, outputs


def _require_names(record: LaunchRecord) -> None:
    names = (*record.tensors(), *record.scalars, *record.symbols)
    bad = [name for name in names if not name.isidentifier() or not name.isascii()]
    if bad or len(set(names)) != len(names):
        raise UsageError(
            "launch.json names {names} twice or as no identifier; give each its own name.",
            names=", ".join(bad or sorted({name for name in names if names.count(name) > 1})),
        )


def _why(error: BaseException) -> str:
    if isinstance(error, ExceptionGroup):
        return _why(error.exceptions[0])
    return f"{type(error).__name__}: {error}"[:120]


def _text_of(value: Any, _: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(f"{value!r} is no number or name")
    return str(value)


def _number_of(value: Any, _: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _truth_of(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


_converter = cattrs.Converter(forbid_extra_keys=True, prefer_attrib_converters=False)
_converter.register_structure_hook(str, _text_of)
_converter.register_structure_hook(int, _number_of)
_converter.register_structure_hook(bool, _truth_of)


def sizes_of(record: LaunchRecord, sizes: Sequence[int]) -> dict[str, int]:
    """Sizes by the names of the record's symbols, which are in the task's order."""
    return dict(zip(record.symbols, sizes, strict=True))
