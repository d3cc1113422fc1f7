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

A launch may be a call of one of PyTorch's libraries instead (``{"op", "arguments", "result", "shape"}``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import cattrs
from attrs import asdict, evolve, field, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.expressions import evaluate

_MOST_PROGRAMS = (1 << 31) - 1
"""Of a grid's first dimension: CUDA's limit."""
MOST_ELSEWHERE = 65_535
"""Of its other dimensions."""


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
        limits = (_MOST_PROGRAMS, MOST_ELSEWHERE, MOST_ELSEWHERE)
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


Literal = bool | int | float | None | tuple["Literal", ...]


@frozen
class View:
    """A tensor as an operation of PyTorch's takes it: its elements at ``strides``, numbers over the sizes."""

    tensor: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]

    def at(self, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Its shape and strides at given sizes."""
        return _numbers(self.shape, sizes), _numbers(self.strides, sizes)


@frozen
class LibraryCall:
    """An operation that PyTorch's libraries compute as one stage of a kernel (``library.OPERATIONS``).
    ``result`` is an output or a scratch tensor, contiguous, of that ``shape``."""

    op: str
    arguments: tuple[View | Literal, ...]
    result: str
    shape: tuple[str, ...]

    @property
    def operands(self) -> tuple[View, ...]:
        """Its tensors."""
        return tuple(one for one in self.arguments if isinstance(one, View))

    def renamed(self, tensors: Mapping[str, str]) -> LibraryCall:
        """The same of other tensors."""
        arguments = tuple(
            evolve(one, tensor=tensors.get(one.tensor, one.tensor)) if isinstance(one, View) else one
            for one in self.arguments
        )
        return evolve(self, arguments=arguments, result=tensors.get(self.result, self.result))


def _numbers(texts: tuple[str, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(text, sizes) for text in texts)


@frozen
class LaunchRecord:
    """All launches of a kernel in turn, library calls among them. ``inputs`` and ``outputs`` name the task's
    tensors in its order, ``scalars`` its run-time numbers, ``symbols`` its sizes. ``requires``: comparisons
    that hold for the sizes which it takes; others are left to PyTorch."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    launches: tuple[Launch | LibraryCall, ...]
    symbols: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    requires: tuple[str, ...] = ()

    def takes(self, sizes: Mapping[str, int]) -> bool:
        """Whether it computes a task of given sizes."""
        return all(evaluate(text, sizes) for text in self.requires)

    @property
    def kernels(self) -> tuple[Launch, ...]:
        """The launches of jit functions."""
        return tuple(one for one in self.launches if isinstance(one, Launch))

    @property
    def library_calls(self) -> tuple[LibraryCall, ...]:
        """What libraries compute."""
        return tuple(one for one in self.launches if isinstance(one, LibraryCall))

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


def _stage_of(data: Any, _: Any) -> Launch | LibraryCall:
    if "op" in data:
        return _converter.structure(data, LibraryCall)
    return _converter.structure(data, Launch)


def _given_of(value: Any, _: Any) -> View | Literal:
    if isinstance(value, dict):
        return _converter.structure(value, View)
    return _literal_of(value)


def _literal_of(value: Any) -> Literal:
    if isinstance(value, list):
        return tuple(map(_literal_of, value))
    if value is None or isinstance(value, bool | int | float):
        return value
    raise TypeError(f"{str(value)[:40]!r} is no number, list or tensor")


_converter.register_structure_hook_func(lambda kind: kind == Launch | LibraryCall, _stage_of)
_converter.register_structure_hook_func(
    lambda kind: View in get_args(kind) and Launch not in get_args(kind), _given_of
)


def sizes_of(record: LaunchRecord, sizes: Sequence[int]) -> dict[str, int]:
    """Sizes by the names of the record's symbols, which are in the task's order."""
    return dict(zip(record.symbols, sizes, strict=True))
