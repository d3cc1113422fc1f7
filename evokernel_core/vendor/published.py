"""Published measurements of the vendor's built-in operators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import field, frozen

_ROWS = Path(__file__).parent / "published.jsonl"


@frozen
class Published:
    """One measurement: microseconds of an operator's task on a chip. ``shapes`` and ``dtypes`` are those of
    its operands in their order, None for one that is absent; a list of shapes is a list of tensors. The
    versions of the toolkit that the rows come from are not stated there."""

    id: str
    operator: str
    chip: str
    shapes: tuple[Any, ...]
    dtypes: tuple[str | None, ...]
    arguments: Mapping[str, Any] = field(hash=False)
    us: float
    source: str

    @property
    def tensors(self) -> tuple[tuple[tuple[int, ...], str], ...]:
        """Shape and dtype of each tensor that is there, lists taken apart."""
        result: list[tuple[tuple[int, ...], str]] = []
        dtypes = self.dtypes * len(self.shapes) if len(self.dtypes) == 1 else self.dtypes
        for shape, dtype in zip(self.shapes, dtypes, strict=False):
            several = shape if shape and isinstance(shape[0], tuple) else [shape]
            if shape is not None and dtype is not None:
                result += [(one, dtype) for one in several]
        return tuple(result)


@lru_cache(maxsize=1)
def published() -> tuple[Published, ...]:
    """Every row that the product carries; each names its source."""
    return tuple(_row(json.loads(line)) for line in _ROWS.read_text("utf-8").splitlines())


def _row(data: Mapping[str, Any]) -> Published:
    shapes, dtypes = _tuples(data["shapes"]), tuple(data["dtypes"])
    return Published(**{**data, "shapes": shapes, "dtypes": dtypes})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
