"""Inputs of a launch that are made for it: ``{"fill": "random", "shape": [8, 256], "dtype": "float16"}``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evokernel_core.domain.errors import UsageError
from evokernel_core.twin.dtypes import DTYPES, PACKED, from_memory, nbytes_of, to_memory

MOST_INPUT_BYTES = 1024**3
"""Of all inputs that are made for a launch."""
FILLS = ("random", "zeros", "ones", "arange")


class Fills:
    """Makes the inputs of one launch in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made, self._bytes = 0, 0

    def filled(self, arg: Mapping[str, Any]) -> dict[str, Any]:
        """An argument of a LAUNCH.json with files in place of what is to be made, in lists too. Raises
        UsageError for a fill that is none, and for more than a GiB."""
        given = dict(arg)
        if isinstance(given.get("in"), Mapping):
            fill = given["in"]
            given |= {"in": self._file(fill), "shape": list(fill["shape"]), "dtype": fill["dtype"]}
        if "list" in given:
            given["list"] = [self.filled(each) for each in given["list"]]
        return given

    def _file(self, fill: Mapping[str, Any]) -> str:
        check_fill(fill)
        dtype, shape = fill["dtype"], tuple(fill["shape"])
        self._bytes += nbytes_of(dtype, int(np.prod(shape, dtype=object)))
        if self._bytes > MOST_INPUT_BYTES:
            raise UsageError("The inputs of a launch have more than a GiB together; make them smaller.")
        self._made += 1
        path = self._folder / f"made{self._made}.{'bin' if dtype == 'bfloat16' else 'npy'}"
        kind = np.dtype("float32" if dtype == "bfloat16" else DTYPES[dtype])
        values = _values(fill, shape, kind, self._made)
        if dtype == PACKED:  # what memory keeps of them
            values = from_memory(to_memory(values, dtype), dtype, values.size).reshape(shape)
        if dtype == "bfloat16":
            path.write_bytes((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())
        else:
            np.save(path, values)
        return str(path)


def check_fill(fill: Mapping[str, Any]) -> None:
    """Raises UsageError for what does not say how to fill an input."""
    shape = fill.get("shape")
    sizes = isinstance(shape, list | tuple) and all(isinstance(size, int) and size >= 0 for size in shape)
    if fill.get("dtype") not in DTYPES or fill.get("fill") not in FILLS or not sizes:
        raise UsageError(
            f'An input is filled with "fill" of {", ".join(FILLS)}, a "shape" and a "dtype" of '
            f"{', '.join(DTYPES)}."
        )
    if not isinstance(fill.get("seed", 0), int) or fill.get("seed", 0) < 0:
        raise UsageError('The "seed" of an input that is filled is a number from 0 on.')


def _values(fill: Mapping[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any], number: int) -> Any:
    match fill["fill"]:
        case "zeros":
            return np.zeros(shape, dtype)
        case "ones":
            return np.ones(shape, dtype)
        case "arange":
            return np.arange(int(np.prod(shape)), dtype=np.float64).astype(dtype).reshape(shape)
    drawn = np.random.default_rng([fill.get("seed", 0), number])
    if dtype.kind == "f":
        return drawn.standard_normal(shape).astype(dtype)
    return drawn.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
