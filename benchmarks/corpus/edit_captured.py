"""Put every region of a file in place without writing kernels: what a guard lets through is its reference.

    python benchmarks/corpus/edit_captured.py FILE --interpreter PYTHON

Prints what ``evokernel synth --apply --json`` prints. Verifying kernels takes minutes a file and says nothing
about edits and guards, which a run under EVOKERNEL_EMULATE=1 tests as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from attrs import evolve

from evokernel_core.capture.edit import plan_edit
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.region import Region
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.verdict import Verdict
from evokernel_core.import_root import import_root
from evokernel_core.package.write import kernel_name, placed
from evokernel_core.synthesis.offers import choose
from evokernel_core.synthesis.session import Session
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.targets.packages import write_package

NO_SOURCE = ascendc_source("", "", Strategy("none"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--interpreter", required=True)
    parser.add_argument("--single", action="store_true", help="no programs of several kernels")
    args = parser.parse_args()
    file = args.file.absolute()
    settings = evolve(Settings(interpreter=args.interpreter), programs=not args.single)
    try:
        with Session(settings, file.parent) as session:
            regions = [offer.region for offer in choose(session.offers(file))]
    except EvoKernelError as error:
        print(f"evokernel: {error}", file=sys.stderr)
        return error.exit_status
    rows = [applied(file, region) for region in sorted(regions, key=_position, reverse=True)]
    print(json.dumps({"file": str(file), "regions": rows}))
    return 0


def _position(region: Region) -> tuple[int, int]:
    return region.span.line, region.span.column


def applied(file: Path, region: Region) -> dict[str, Any]:
    row: dict[str, Any] = {
        "line": region.span.line, "end_line": region.span.end_line, "symbol": region.symbol,
        "op_category": region.op_category, "status": region.status.value, "reason": region.reason,
    }  # fmt: skip
    if region.task is None:
        return {**row, "kernel_dir": None}
    package = placed(region)
    name = kernel_name(region.task, package.site)
    try:
        edited = plan_edit(file.read_text(encoding="utf-8"), region, name)
    except EvoKernelError as error:
        return {**row, "status": "not applied", "reason": str(error), "kernel_dir": None}
    verdict = Verdict(region.task.task_id, NO_SOURCE.source_id, "none", ())
    folder = write_package(import_root(file), region.task, package, NO_SOURCE, verdict)
    file.write_text(edited, encoding="utf-8")
    return {**row, "kernel_dir": str(folder)}


if __name__ == "__main__":
    sys.exit(main())
