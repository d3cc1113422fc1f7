"""Rows of published times: what cannot be one is named and left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.silicon.cases import NoCase, model_file
from benchmarks.silicon.rows import Refused, Row, read_rows

ROW = {"id": "a", "level": "level1", "us": 5.3, "chip": "ascend910b2", "op": "gain", "shapes": [[2, 3]],
       "dtypes": ["float16"], "attrs": {"factor": 2.0}, "value_range": [-1, 1]}  # fmt: skip


def lines(tmp_path: Path, *rows: Any) -> list[Row | Refused]:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return list(read_rows(path))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"us": -1}, "no time"),
        ({"us": 0}, "no time"),
        ({"us": 1e12}, "no time"),
        ({"us": float("nan")}, "no time"),
        ({"us": "fast"}, "could not convert"),
        ({"us": None}, "float"),
        ({"chip": "ascend310"}, "no chip called"),
        ({"op": ""}, "neither an operator nor a problem"),
        ({"problem": "1_Square"}, "or both"),
        ({"id": ...}, "has no id"),
        ({"level": ...}, "has no level"),
    ],
)
def test_a_line_that_is_no_row_says_why(changed: dict[str, Any], words: str, tmp_path: Path) -> None:
    data = {key: value for key, value in {**ROW, **changed}.items() if value is not ...}
    (row,) = lines(tmp_path, data)
    assert isinstance(row, Refused) and words in row.reason


def test_others_are_read(tmp_path: Path) -> None:
    first, second = lines(tmp_path, "{", ROW)
    assert isinstance(first, Refused) and isinstance(second, Row)
    assert (second.us, second.is_operator, second.chip.name) == (5.3, True, "ascend910b2")


@pytest.mark.parametrize(
    ("kernels", "is_fused"),
    [
        ("SwiGlu×1", True),
        ("Slice×1 + SwiGlu×1", True),
        ("Transpose×3 + Cast×1 + GatherElementsV2×1", True),
        ("Cast×1 + Mul×2", False),
        ("Mul×1 + Muls×1", False),
        (None, True),
    ],
)
def test_several_kernels_are_no_fused_one(kernels: str | None, is_fused: bool, tmp_path: Path) -> None:
    (row,) = lines(tmp_path, {**ROW, "kernels": kernels})
    assert isinstance(row, Row) and row.is_fused is is_fused


def test_an_operator_s_case_is_a_model_file(tmp_path: Path) -> None:
    golden = tmp_path / "tasks" / "level1" / "gain" / "golden.py"
    golden.parent.mkdir(parents=True)
    golden.write_text(
        "import torch\n\ndef gain(x: torch.Tensor, factor: float = 1.0):\n    return x * factor\n"
    )
    (row,) = lines(tmp_path, ROW)
    assert isinstance(row, Row)
    scope: dict[str, Any] = {}
    exec(model_file(row, tmp_path, tmp_path, tmp_path).read_text(), scope)
    (x,) = scope["get_inputs"]()
    assert scope["Model"]()(x).tolist() == [[1.0] * 3] * 2


def test_an_operator_without_code_is_named(tmp_path: Path) -> None:
    (row,) = lines(tmp_path, {**ROW, "op": "unknown"})
    assert isinstance(row, Row)
    with pytest.raises(NoCase, match=r"golden\.py is not there"):
        model_file(row, tmp_path, tmp_path, tmp_path)
