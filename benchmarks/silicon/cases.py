"""The code of a row as a model file: a problem of KernelBench, or the golden function of an operator."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.silicon.rows import Row

_FEW = 1 << 16
"""Integers up to which random ones are drawn; of more, whose values no trace reads, all are one number."""


class NoCase(Exception):
    """A row whose code is not there, or cannot be called with what the row says."""


def model_file(row: Row, kernelbench: Path, suite: Path, folder: Path) -> Path:
    """The file of a row; those of operators are written to ``folder``. Raises NoCase."""
    return _problem(row, kernelbench) if row.problem else _operator(row, suite, folder)


def _problem(row: Row, kernelbench: Path) -> Path:
    number = row.problem.partition("_")[0]
    file = next((kernelbench / row.level).glob(f"{number}_*.py"), None)
    if file is None:
        raise NoCase(f"{kernelbench / row.level} has no problem {number}")
    return file


def _operator(row: Row, suite: Path, folder: Path) -> Path:
    golden = suite / "tasks" / row.level / row.op / "golden.py"
    if not golden.is_file():
        raise NoCase(f"{golden} is not there")
    text = golden.read_text("utf-8")
    names = _tensors(text, row.op)
    shapes, dtypes = row.data.get("shapes") or [], row.data.get("dtypes") or []
    if not shapes or len(shapes) > len(names):
        raise NoCase(f"{row.op} takes {len(names)} tensors, and the row has {len(shapes)} shapes")
    dtypes = [*dtypes, *dtypes[-1:] * (len(shapes) - len(dtypes))]
    ranges = _ranges(row.data.get("value_range"), len(shapes))
    inputs = [_made(*given) for given in zip(shapes, dtypes, ranges, strict=True)]
    used = names[: len(shapes)]
    attributes = {key: value for key, value in (row.data.get("attrs") or {}).items() if key not in used}
    path = folder / f"{row.id}.py"
    path.write_text(text + _model(row.op, used, inputs, attributes))
    return path


def _tensors(text: str, op: str) -> list[str]:
    """The names of a golden function's arguments that are tensors, or lists of them."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    function = next((node for node in functions if node.name == op), None)
    if function is None:
        raise NoCase(f"the golden file of {op} has no function of that name")
    arguments = [*function.args.args, *function.args.kwonlyargs]
    return [
        argument.arg
        for argument in arguments
        if argument.annotation is not None and "Tensor" in ast.unparse(argument.annotation)
    ]


def _ranges(given: Any, count: int) -> Sequence[Any]:
    each = isinstance(given, list) and len(given) == count and all(isinstance(part, list) for part in given)
    return given if each else [given] * count


def _made(shape: Any, dtype: Any, values: Any) -> str:
    """Python text of an input."""
    if shape is None:
        return "None"
    if shape and isinstance(shape[0], list):
        dtypes = dtype if isinstance(dtype, list) else [dtype] * len(shape)
        return "[" + ", ".join(_made(*pair, values) for pair in zip(shape, dtypes, strict=True)) + "]"
    kind = f"dtype=torch.{dtype}"
    if dtype == "bool":
        return f"torch.ones({shape}, {kind})"
    if "int" not in dtype:
        return f"torch.full({shape}, 0.5, {kind})"
    low, high = _numbers(values)
    if math.prod(shape) > _FEW or high > 2**31:
        return f"torch.full({shape}, {max(low, 0)}, {kind})"
    return f"torch.randint({low}, {max(high, low) + 1}, {shape}, {kind})"


def _numbers(values: Any) -> tuple[int, int]:
    is_pair = isinstance(values, list) and len(values) == 2
    if not is_pair or not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return 0, 1
    return int(values[0]), int(values[1])


def _model(op: str, names: Sequence[str], inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    given = [f"{name}={name}" for name in names] + [f"{key}={value!r}" for key, value in attributes.items()]
    return f"""

inf, nan = float("inf"), float("nan")


class Model(torch.nn.Module):
    def forward(self, {", ".join(names)}):
        made = {op}({", ".join(given)})
        return made.contiguous() if isinstance(made, torch.Tensor) else made


def get_inputs():
    return [{", ".join(inputs)}]


def get_init_inputs():
    return []
"""
