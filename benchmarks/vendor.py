"""The vendor's built-in operators, published on a chip, beside what is modelled for them and for our kernels.

    python benchmarks/vendor.py [--only REGEX] [--json OUT] [--page]

For every published row (`evokernel_core/vendor/published.jsonl`) PyTorch code of what the operator computes
is captured with the row's sizes and dtypes, and three figures are printed: the row's, which was measured;
the model of that operator as one launch, which hints show beside kernels; and the author's plan of least
estimate for the same code. All three are of the row's chip. Each figure that is modelled comes with its
distance from what was measured. Exit status 1: a row has no kernel of ours, or its code could not be
captured."""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.vendor_rows.texts import HEAD, text_of  # noqa: E402
from evokernel_core.capture.client import AgentClient  # noqa: E402
from evokernel_core.compiler.coverage import covered_ops  # noqa: E402
from evokernel_core.domain.errors import PlanError  # noqa: E402
from evokernel_core.domain.region import Region  # noqa: E402
from evokernel_core.hardware.ascend.chip import load_chip  # noqa: E402
from evokernel_core.hardware.ascend.eager import fused_us  # noqa: E402
from evokernel_core.targets.ascendc import author  # noqa: E402
from evokernel_core.targets.ascendc.target import ASCENDC  # noqa: E402
from evokernel_core.vendor.recognise import recognised  # noqa: E402
from evokernel_core.vendor.rival import Published, published  # noqa: E402

CAPTURE_S = 900.0
PAGE = ROOT / "docs" / "results" / "vendor_operators.md"


@frozen
class Compared:
    """A row with both modelled figures in microseconds. ``function``: what hints would name, empty where none
    of its table is all that the operator computes."""

    row: Published
    vendor_us: float
    ours_us: float
    function: str

    @property
    def vendor_error(self) -> float:
        return self.vendor_us / self.row.us - 1

    @property
    def ours_share(self) -> float:
        """Our modelled time over the vendor's measured one: two kinds of figures, and no claim of a gain."""
        return self.ours_us / self.row.us


def main() -> int:
    args = _arguments()
    rows = [row for row in published() if re.search(args.only, row.id)]
    regions = _captured(rows)
    compared, refused = [], []
    for row, region in zip(rows, regions, strict=True):
        try:
            compared.append(_compared(row, region))
        except PlanError as error:
            refused.append((row.id, str(error)))
    _print(compared, refused)
    summary = {name: _figures(items) for name, items in _by_operator(compared)}
    summary["all"] = {**_figures(compared), "refused": len(refused)}
    print(json.dumps(summary["all"]))
    if args.json:
        text = json.dumps({"rows": [_as_json(item) for item in compared], "summary": summary}, indent=1)
        args.json.write_text(text + "\n")
    if args.page:
        PAGE.write_text(page(compared, refused))
    return 1 if refused else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose id matches")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


def _captured(rows: Sequence[Published]) -> list[Region | None]:
    """The region of each row's code, None for one that is not captured whole."""
    text = HEAD + "".join(text_of(row, f"row{index}") for index, row in enumerate(rows))
    with (
        tempfile.TemporaryDirectory(prefix="evokernel-vendor-") as folder,
        AgentClient(sys.executable, timeout_s=CAPTURE_S) as agent,
    ):
        path = Path(folder) / "rows.py"
        path.write_text(text)
        found = {item.symbol: item for item in agent.capture(path, text, covered_ops(ASCENDC), whole=True)}
    return [found.get(f"row{index}") for index in range(len(rows))]


def _compared(row: Published, region: Region | None) -> Compared:
    """Raises PlanError where the author writes no kernel for the row."""
    if region is None or region.task is None:
        raise PlanError(region.reason if region else "Its code was not captured.")
    chip, task = load_chip(row.chip), region.task
    ours = author.estimate_us(task, author.initial(task, chip), chip)
    found = recognised(task)
    return Compared(row, fused_us(task, chip), ours, found.name if found else "")


def _by_operator(compared: Iterable[Compared]) -> list[tuple[str, list[Compared]]]:
    groups: dict[str, list[Compared]] = {}
    for item in compared:
        groups.setdefault(item.row.operator, []).append(item)
    return list(groups.items())


def _figures(compared: Sequence[Compared]) -> dict[str, float | int]:
    if not compared:
        return {"rows": 0}
    errors = [item.vendor_error for item in compared]
    return {
        "rows": len(compared),
        "recognised": sum(bool(item.function) for item in compared),
        "vendor_median_abs_error": round(statistics.median(map(abs, errors)), 3),
        "vendor_median_error": round(statistics.median(errors), 3),
        "vendor_below_measured": sum(error < 0 for error in errors),
        "ours_over_measured_median": round(statistics.median(item.ours_share for item in compared), 3),
    }


def _print(compared: Sequence[Compared], refused: Sequence[tuple[str, str]]) -> None:
    print(
        f"{'row':34} {'measured':>10} {'one launch':>10} {'':>6} {'ours':>10}   (us; the last two estimated)"
    )
    for item in compared:
        vendor, ours = f"{item.vendor_error:+.0%}", f"{item.ours_share - 1:+.0%}"
        figures = f"{item.row.us:10.2f} {item.vendor_us:10.2f} {vendor:>6} {item.ours_us:10.2f} {ours:>6}"
        print(f"{item.row.id:34} {figures}  {item.function}")
    for name, why in refused:
        print(f"{name:34} {why}")
    print("", *_table(compared), sep="\n")


def _table(compared: Sequence[Compared]) -> Iterator[str]:
    yield "| operator | rows | vendor estimated, median error | ours estimated over vendor measured, median |"
    yield "|---|---|---|---|"
    for name, items in [*_by_operator(compared), ("all", list(compared))]:
        figures = _figures(items)
        if figures["rows"]:
            error, share = figures["vendor_median_error"], figures["ours_over_measured_median"]
            yield f"| {name} | {figures['rows']} | {error:+.0%} | {share:.2f} |"


def page(compared: Sequence[Compared], refused: Sequence[tuple[str, str]]) -> str:
    """The page of docs/results."""
    lines = [
        "# The vendor's fused operators, measured and estimated",
        "",
        "Written by `make vendor-operators`, for every published row of the 910B2 that has a kernel here:",
        "what was **measured** of the vendor's operator, what is **estimated** for it as one launch,",
        "and what is **estimated** for our plan of least estimate (not searched, not run).",
        "",
        *_table(compared),
        "",
        "The last column compares two kinds of numbers and claims no gain: our model may be too fast.",
        "Updates of lists of tensors (`torch._foreach_*`) are in no table that regions are compared with.",
        *(f"\n- no kernel: {name}: {why}" for name, why in refused),
    ]
    return "\n".join(lines) + "\n"


def _as_json(item: Compared) -> dict[str, Any]:
    return {
        "id": item.row.id,
        "operator": item.row.operator,
        "function": item.function,
        "chip": item.row.chip,
        "shapes": item.row.shapes,
        "dtypes": item.row.dtypes,
        "source": item.row.source,
        "vendor_measured_us": item.row.us,
        "vendor_modelled_us": round(item.vendor_us, 3),
        "ours_modelled_us": round(item.ours_us, 3),
    }


if __name__ == "__main__":
    sys.exit(main())
