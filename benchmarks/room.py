"""Where a plan's time goes: each kernel's estimate beside the bound of its bytes and operations.

    python benchmarks/room.py SUITE [--levels 1,2] [--filter GLOB] [--most 20] [--json OUT]

SUITE is a folder of KernelBench-format problems, a folder a level. For the first draft of each problem, which
is planned and neither verified nor refined, sums by family what its kernels take and how much of that the
bounds are, then prints the kernels that lose most. All times are modelled.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import asdict, frozen

from evokernel_core.compiler.bounds import KernelBound
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.synthesis.session import Session, Settings


@frozen
class Row:
    """A kernel of a problem."""

    problem: str
    kernel: KernelBound

    @property
    def us(self) -> float:
        return self.kernel.launches * self.kernel.estimate_us

    @property
    def least_us(self) -> float:
        return self.kernel.launches * self.kernel.bound_us


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=Path)
    parser.add_argument("--levels", default="1,2")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--most", type=int, default=20, help="kernels to print")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    files = [
        file
        for level in args.levels.split(",")
        for file in sorted((args.suite / f"level{level}").glob(f"{args.filter}.py"))
    ]
    with Session(Settings(evaluation=False), args.suite) as session:  # as `evokernel bench` runs models
        rows = [row for file in files for row in _rows(session, file)]
    _print_families(rows)
    _print_kernels(rows, args.most)
    if args.json:
        kernels = [{"problem": row.problem, **asdict(row.kernel)} for row in rows]
        args.json.write_text(json.dumps({"kernels": kernels, "summary": _summary(rows)}, indent=1) + "\n")


def _rows(session: Session, file: Path) -> Iterator[Row]:
    """The kernels of every region of a file; what cannot be planned is named and left out."""
    name = f"{file.parent.name}/{file.stem}"
    try:
        for region in session.regions(file, programs=True):
            if region.task is not None:
                yield from (Row(name, bound) for bound in session.author.plan(region.task).bounds())
    except EvoKernelError as error:
        print(f"{name}: {error}")


def _summary(rows: Sequence[Row]) -> dict[str, float]:
    us, least = sum(row.us for row in rows), sum(row.least_us for row in rows)
    return {"us": us, "bound_us": least, "bound_over_estimate": least / us if us else 0.0}


def _print_families(rows: Sequence[Row]) -> None:
    print("| family | kernels | modelled us | bound / modelled |")
    print("| --- | --- | --- | --- |")
    families = sorted({row.kernel.family for row in rows})
    chosen = {family: [row for row in rows if row.kernel.family == family] for family in families}
    for family, found in sorted({**chosen, "all": list(rows)}.items(), key=lambda item: len(item[1])):
        figures = _summary(found)
        print(f"| {family} | {len(found)} | {figures['us']:,.0f} | {figures['bound_over_estimate']:.2f} |")


def _print_kernels(rows: Sequence[Row], most: int) -> None:
    print("\nModelled microseconds above the bound:")
    for row in sorted(rows, key=lambda item: item.us - item.least_us, reverse=True)[:most]:
        ops = ", ".join(dict.fromkeys(op.split(".")[1] for op in row.kernel.ops))
        print(f"- {row.us - row.least_us:,.1f} of {row.us:,.1f}: {row.problem}, {row.kernel.family} ({ops})")


if __name__ == "__main__":
    main()
