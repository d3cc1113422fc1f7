"""How far the modelled latencies are from published measurements of real chips.

    python benchmarks/latency_model.py [--measurements PATH] [--samples DIR] [--only REGEX]
                                       [--operators DIR] [--hold-out SERIES,...]
                                       [--picture OUT.svg] [--page OUT.md] [--json OUT] [--known JSON]

Rows that name a public sample as it is are executed on the twin in timing mode with the row's chip
(`executed`; ``--samples``: the folder ``examples/01_simd_cpp_api`` of an asc-devkit checkout), and so are
rows of public operators with their own tiling (``--operators``: a checkout of ops-nn). Others are predicted
from the chip's constants (`analytic`). Prints each row, whether each series keeps its direction, and a
summary for both kinds and for all rows. Without ``--measurements`` the rows are
those of ``published_latency.jsonl`` beside this file. ``--known``: results of a former ``--json``, whose rows
are not run again, so that a run of hours can be made in parts.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.latency.analytic import analytic_us  # noqa: E402
from benchmarks.latency.operators import run_operator  # noqa: E402
from benchmarks.latency.page import page  # noqa: E402
from benchmarks.latency.picture import Point, draw  # noqa: E402
from benchmarks.latency.rows import Row, read_rows  # noqa: E402
from benchmarks.latency.samples import Prediction, run_sample  # noqa: E402
from evokernel_core.hardware.ascend.chip import load_chip  # noqa: E402
from evokernel_core.twin.build import CandidateError  # noqa: E402

PUBLISHED = Path(__file__).parent / "published_latency.jsonl"
SAME = 0.02
"""Two measurements closer than this share have no direction."""
HELD_OUT = "cb2_swi_glu,cb2_group_norm,cb2_add_rms_norm_dynamic_quant,mm_hp,mm_basic,mm_gelu,doc_l2"
"""The series that no constant was fitted to."""


@frozen
class Compared:
    """A row and what was predicted for it."""

    row: Row
    how: str
    predicted: float

    @property
    def error(self) -> float:
        """Relative: 0.1 is 10 % too slow."""
        return self.predicted / self.row.value - 1.0


def main() -> int:
    args = _arguments()
    rows = [row for path in args.measurements for row in read_rows(path) if re.search(args.only, row.id)]
    compared: list[Compared] = []
    known = {
        item["id"]: Prediction(item["predicted"], item["how"])
        for path in args.known
        for item in json.loads(path.read_text())["rows"]
    }
    for row in rows:
        prediction = known.get(row.id) or _predict(row, args.samples, args.operators)
        _print_row(row, prediction)
        if prediction.value is not None:
            compared.append(Compared(row, prediction.how, prediction.value))
    held_out = frozenset(args.hold_out.split(",")) - {""}
    summary = summarise(compared, held_out)
    _print_series(compared)
    print(json.dumps(summary, indent=2))
    if args.picture:
        draw(_points(compared, held_out), args.picture)
    if args.page:
        executed = [item for item in compared if item.how == "executed"]
        args.page.write_text(page(executed, held_out, _figures, load_chip("ascend910b1").path))
    if args.json:
        args.json.write_text(
            json.dumps({"rows": [_as_json(item) for item in compared], "summary": summary}, indent=2)
        )
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--measurements", type=Path, action="append")
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--operators", type=Path, action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--hold-out", default=HELD_OUT)
    parser.add_argument("--page", type=Path, help="the page of docs/results")
    parser.add_argument(
        "--known", type=Path, action="append", default=[], help="a former --json: not run again"
    )
    parser.add_argument("--picture", type=Path, help="executed rows, modelled against measured")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.measurements = args.measurements or [PUBLISHED]
    return args


def _predict(row: Row, samples: Path | None, operators: Sequence[Path]) -> Prediction:
    executed = _executed(row, samples, operators)
    if executed is not None and executed.value is not None:
        return executed
    why = executed.why if executed is not None else ""
    value = analytic_us(row)
    return Prediction(value, "analytic", why or ("" if value is not None else "not predicted"))


def _executed(row: Row, samples: Path | None, operators: Sequence[Path]) -> Prediction | None:
    try:
        found = run_operator(row, operators)
        return run_sample(row, samples) if found is None and samples is not None else found
    except CandidateError as error:
        return Prediction(None, "executed", f"does not compile: {str(error).splitlines()[0]}")


def _print_row(row: Row, prediction: Prediction) -> None:
    if prediction.value is None:
        print(f"{row.id:32} {prediction.why}", flush=True)
        return
    error = 100 * (prediction.value / row.value - 1)
    note = f"  ({prediction.why})" if prediction.why else ""
    print(
        f"{row.id:32} {prediction.how:9} {prediction.value:12.2f} {row.value:12.2f} {error:+7.1f} %{note}",
        flush=True,
    )


def _points(compared: Iterable[Compared], held_out: frozenset[str]) -> Iterator[Point]:
    for item in compared:
        if item.how == "executed" and item.row.unit == "us":
            group = "held out" if item.row.series in held_out else "fitted"
            yield Point(item.row.value, item.predicted, group, item.row.id)


def _print_series(compared: Sequence[Compared]) -> None:
    for series, items in _by_series(compared):
        kept, pairs = direction(items)
        if pairs:
            print(f"series {series:34} keeps the direction of {kept} of {pairs} pairs")


def _by_series(compared: Iterable[Compared]) -> list[tuple[str, list[Compared]]]:
    ordered = sorted(compared, key=lambda item: item.row.series)
    return [(name, list(items)) for name, items in itertools.groupby(ordered, lambda item: item.row.series)]


def direction(items: Sequence[Compared]) -> tuple[int, int]:
    """Pairs of a series whose order the prediction keeps, and pairs whose measurements differ."""
    kept = pairs = 0
    for one, other in itertools.combinations(items, 2):
        if abs(one.row.value / other.row.value - 1) <= SAME:
            continue
        pairs += 1
        kept += (one.predicted - other.predicted) * (one.row.value - other.row.value) > 0
    return kept, pairs


def summarise(compared: Sequence[Compared], held_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Figures for all rows, for each way of predicting and, where given, of the executed rows for the series
    held out and the others."""
    kinds = sorted({item.how for item in compared})
    found: dict[str, Any] = _figures(compared)
    found["by_kind"] = {kind: _figures([item for item in compared if item.how == kind]) for kind in kinds}
    if held_out:
        executed = [item for item in compared if item.how == "executed"]
        found["held_out"] = _parted([item for item in executed if item.row.series in held_out])
        found["fitted"] = _parted([item for item in executed if item.row.series not in held_out])
    return found


def _parted(compared: Sequence[Compared]) -> dict[str, Any]:
    """Of all, and of those whose launch is a large part."""
    short = [item for item in compared if item.row.is_short]
    return {**_figures(compared), "below_30_us": _figures(short)}


def _figures(compared: Sequence[Compared]) -> dict[str, float | int]:
    if not compared:
        return {"rows": 0}
    shares = [
        kept / pairs for _, items in _by_series(compared) for kept, pairs in [direction(items)] if pairs
    ]
    return {
        "rows": len(compared),
        "median_abs_error": round(statistics.median(abs(item.error) for item in compared), 4),
        "spearman": round(_spearman(compared), 4),
        "series_direction_rate": round(statistics.fmean(shares), 4) if shares else 1.0,
    }


def _spearman(compared: Sequence[Compared]) -> float:
    """Rank correlation of prediction and measurement."""
    if len(compared) < 2:
        return 1.0
    predicted = _ranks([item.predicted for item in compared])
    measured = _ranks([item.row.value for item in compared])
    return statistics.correlation(predicted, measured)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, equal values sharing their mean rank."""
    order = sorted(values)
    return [(2 * order.index(value) + order.count(value) + 1) / 2 for value in values]


def _as_json(item: Compared) -> dict[str, Any]:
    return {
        "id": item.row.id,
        "series": item.row.series,
        "chip": item.row.chip.name,
        "how": item.how,
        "predicted": item.predicted,
        "measured": item.row.value,
        "unit": item.row.unit,
        "error": item.error,
    }


if __name__ == "__main__":
    sys.exit(main())
