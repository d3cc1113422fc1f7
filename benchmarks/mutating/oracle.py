"""Whether a kernel's result is wrong: PyTorch in float64 on inputs aimed at a mutation, and the twin without
the judge's gates. An error counts where it is far beyond the honest kernel's own on the same inputs and
what a rounding of the inputs moves."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from attrs import define, field, frozen

from benchmarks.mutating.mutant import Aim
from benchmarks.mutating.subjects import Subject
from benchmarks.mutating.table import module_text
from evokernel_core import temporary
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.tensor import TensorSpec, evaluate_dim
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.twin.build import CandidateError, build_kernel
from evokernel_core.twin.run import ExitStatus, Limits, Mode, RunRequest, TensorFile, run_kernel

LIMITS = Limits(wall_s=60.0, cpu_s=10.0)
SEEN = {"float32": 1e-3, "float16": 2e-2}
"""The share of an output's magnitude from which an error is one."""
BEYOND = 16
"""How many times the honest kernel's error, and what a rounding of the inputs moves, that is at least."""
ROUNDED = {"float32": 2.0**-23, "float16": 2.0**-10}
VERSION = 3
"""Of the rules by which an error counts; what was seen by others is looked at again."""
Arrays = tuple[Any, ...]


@frozen
class Oracle:
    """What was seen. ``state``: ``differs``, ``equal``, or ``invalid`` where the text does not compile."""

    state: str
    words: str = ""


@define
class Reference:
    """The float64 results, and the honest kernel's errors, of one subject, by the aim."""

    subject: Subject
    chip: Chip
    _model: Any = field(init=False, default=None)
    _known: dict[Aim, tuple[dict[str, Any], Arrays, tuple[float, ...] | None]] = field(
        init=False, factory=dict
    )

    def look(self, source: KernelSource, aims: tuple[Aim, ...], shown: KernelSource | None = None) -> Oracle:
        """Whether a kernel differs on any of the aims; ``shown`` is run in its place."""
        try:
            build_kernel(source)
        except CandidateError as error:
            return Oracle("invalid", str(error)[:300])
        for aim in aims:
            inputs, right, honest = self._at(aim)
            if honest is None:
                continue  # the honest kernel declines or overflows there
            errors = self._errors(shown or source, aim, inputs, right)
            if errors is None:
                continue
            for seen, allowed, spec in zip(errors, honest, self._outputs, strict=True):
                if seen > max(BEYOND * allowed, SEEN.get(spec.dtype, 0.0)):
                    return Oracle("differs", f"{seen:.2g} (honest {allowed:.2g}) at {aim}")
        return Oracle("equal")

    @property
    def _outputs(self) -> tuple[TensorSpec, ...]:
        return self.subject.task.graph.output_specs()

    def _at(self, aim: Aim) -> tuple[dict[str, Any], Arrays, tuple[float, ...] | None]:
        if aim not in self._known:
            inputs = self._inputs(aim)
            right = self._right(inputs)
            errors = self._errors(self.subject.source, aim, inputs, right)
            usable = errors is not None and all(np.isfinite(error) and error < 0.1 for error in errors)
            moved = map(_distance, self._right(_rounded(inputs)), right)
            allowed = tuple(map(max, errors, moved)) if errors is not None and usable else None
            self._known[aim] = inputs, right, allowed
        return self._known[aim]

    def _sizes(self, aim: Aim) -> dict[str, int]:
        symbols = self.subject.task.symbols
        sizes = {symbol.name: symbol.size for symbol in symbols}
        for place, size in aim.sizes:
            if place < len(symbols):
                sizes[symbols[place].name] = max(size, symbols[place].minimum)
        return sizes

    def _inputs(self, aim: Aim) -> dict[str, Any]:
        sizes = self._sizes(aim)
        seed = hashlib.sha256(f"{self.subject.name} {aim}".encode()).digest()
        numbers = np.random.default_rng(int.from_bytes(seed[:8], "little"))
        specs = {item.name: item.spec for item in self.subject.task.graph.inputs}
        made: dict[str, Any] = {}
        for name, item in self.subject.row.inputs.items():
            shape = specs[name].sizes(sizes)
            if item.limit is not None:
                table, dim = item.limit
                made[name] = numbers.integers(0, evaluate_dim(specs[table].shape[dim], sizes), shape)
            elif item.dtype.startswith("int"):
                most = min(aim.whole, np.iinfo(item.dtype).max - 1)
                made[name] = numbers.integers(-most, most + 1, shape)
            else:
                made[name] = numbers.standard_normal(shape) * aim.scale + aim.offset
            made[name] = np.ascontiguousarray(made[name].astype(item.dtype))
        return made

    def _right(self, inputs: dict[str, Any]) -> Arrays:
        if self._model is None:
            names: dict[str, Any] = {}
            exec(module_text(self.subject.row, self.subject.row.formula), names)
            self._model = names["Model"]()
        with torch.no_grad():
            given = {name: _wide(torch.from_numpy(array)) for name, array in inputs.items()}
            results = self._model(**given)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(result.to(getattr(torch, spec.dtype)).numpy()
                     for result, spec in zip(results, self._outputs, strict=True))  # fmt: skip

    def _errors(
        self, source: KernelSource, aim: Aim, inputs: dict[str, Any], right: Arrays
    ) -> tuple[float, ...] | None:
        """How far each output is from the right one; None for sizes that the kernel declines, or at which it
        does not end in its time, which says nothing of what it computes."""
        sizes = self._sizes(aim)
        with temporary.folder("oracle") as name:
            folder = Path(name)
            files = []
            for item in self.subject.task.graph.inputs:
                path = folder / f"{item.name}.bin"
                inputs[item.name].tofile(path)
                files.append(TensorFile(path, inputs[item.name].nbytes))
            results = tuple(TensorFile(folder / f"out{i}.bin", array.nbytes) for i, array in enumerate(right))
            built = build_kernel(source)
            request = RunRequest(Mode.CHECK, self.chip, tuple(sizes.values()), (), tuple(files), results)
            run = run_kernel(built, request, LIMITS)
            if run.status in (ExitStatus.DECLINED, ExitStatus.TIMEOUT):
                return None
            if run.status is not ExitStatus.OK or not all(
                file.path and file.path.exists() for file in results
            ):
                return (np.inf,) * len(right)
            given = [np.fromfile(file.path, array.dtype).reshape(array.shape)  # type: ignore[arg-type]
                     for file, array in zip(results, right, strict=True)]  # fmt: skip
        return tuple(_distance(*pair) for pair in zip(given, right, strict=True))


def _rounded(inputs: dict[str, Any]) -> dict[str, Any]:
    """The same with floats moved by a rounding each: no kernel can be blamed for what that does."""
    numbers = np.random.default_rng(36)
    moved = dict(inputs)
    for name, array in inputs.items():
        if str(array.dtype) in ROUNDED:
            step = ROUNDED[str(array.dtype)]
            moved[name] = array.astype(np.float64) * (1 + step * numbers.choice([-1, 1], array.shape))
    return moved


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _distance(given: Any, right: Any) -> float:
    """The largest error as a share of the right values' magnitude; infinite where one is not finite and the
    other is, or for integers that differ."""
    if right.dtype.kind in "iu":
        return 0.0 if np.array_equal(given, right) else np.inf
    given, right = given.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(right)
    if (
        not np.array_equal(given[~finite], right[~finite], equal_nan=True)
        or not np.isfinite(given[finite]).all()
    ):
        return np.inf
    if not finite.any():
        return 0.0
    magnitude = np.sqrt(np.mean(right[finite] ** 2))
    away = np.abs(given[finite] - right[finite]).max()
    return float(away / magnitude) if magnitude > 0 else float(np.inf if away else 0.0)
