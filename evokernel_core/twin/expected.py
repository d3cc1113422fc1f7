"""Outputs of a launch beside what they ought to be: golden files, or reference expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.dtypes import DTYPES
from evokernel_core.twin.expression import Expression

Argument = Mapping[str, Any]
Array = npt.NDArray[np.float64]


@frozen
class Tolerance:
    """How far an element may be from what is expected, as numpy.isclose has it."""

    rtol: float
    atol: float


def outputs_of(args: Sequence[Argument]) -> Iterator[Argument]:
    """The outputs of a launch, those in lists included."""
    for arg in args:
        yield from (entry for entry in arg.get("list", (arg,)) if "out" in entry)


def elements_of(path: Path, dtype: str) -> Array:
    """The numbers in a file of a tensor."""
    values = np.load(path) if path.suffix == ".npy" else np.fromfile(path, DTYPES[dtype])
    if dtype == "bfloat16" and values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


def compared(output: Argument, cwd: Path, wanted: Array, label: str, tolerance: Tolerance) -> Iterator[str]:
    """A sentence where an output's file differs from what is wanted, which ``label`` names."""
    name = output["out"]
    left, right = elements_of(cwd / name, output["dtype"]).ravel(), wanted.ravel()
    if left.size != right.size:
        yield f"{name} has {left.size} elements, {label} has {right.size}."
        return
    close = np.isclose(left, right, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True)
    if not close.all():
        wrong = np.flatnonzero(~close)
        first = int(wrong[0])
        gaps = np.abs(left[wrong] - right[wrong])
        worst = float(np.max(gaps, where=np.isfinite(gaps), initial=0.0))
        yield (
            f"{name} differs from {label} in {wrong.size} of {left.size} elements, first at {first} "
            f"({left[first]:.6g} instead of {right[first]:.6g}), at most by {worst:.4g}."
        )


def check_references(
    references: Mapping[str, Expression], parameters: Sequence[str], args: Sequence[Argument]
) -> None:
    """Raises UsageError for an expression with a name that is no parameter of which the launch says the
    elements."""
    known = _by_name(parameters, args)
    for expression in references.values():
        if missing := sorted(expression.names - known.keys()):
            raise UsageError(
                "The reference {text} names {missing}, and the kernel's inputs and scalars are {known}.",
                text=expression.text,
                missing=", ".join(missing),
                known=", ".join(known),
            )


def operands(
    expression: Expression, parameters: Sequence[str], args: Sequence[Argument], cwd: Path
) -> dict[str, Array]:
    """What an expression reads. Raises UsageError."""
    known = _by_name(parameters, args)
    return {name: _elements(known[name], cwd) for name in expression.names}


def _by_name(parameters: Sequence[str], args: Sequence[Argument]) -> dict[str, Argument]:
    """The arguments that have elements before the launch, by the kernel's names for them."""
    given = (args[arg["same"]] if "same" in arg else arg for arg in args)
    return {
        name: arg
        for name, arg in zip(parameters, given, strict=True)
        if arg.keys() & {"in", "from", "scalar"}
    }


def _elements(arg: Argument, cwd: Path) -> Array:
    if "scalar" in arg:
        return np.asarray(arg["value"], np.float64)
    path = cwd / (arg.get("in") or arg["from"])
    if path.suffix != ".npy" and arg.get("dtype") not in DTYPES:
        raise UsageError("A reference reads {path}, so give its shape and dtype.", path=path.name)
    values = elements_of(path, arg.get("dtype", ""))
    return values.reshape(arg["shape"]) if "shape" in arg else values
