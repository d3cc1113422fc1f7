"""Which files of a project get regions once a run of the project's own script or test was observed.

    python benchmarks/observed.py [--interpreter PYTHON] [--json OUT] FOLDER [-- COMMAND ...]

Runs ``evokernel observe -- COMMAND`` in FOLDER, then captures each file below it of which something was
seen. Without COMMAND, what is known already is used. A file counts where at least one region was captured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import evolve

from evokernel_core.capture.observations import ObservationStore
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.region import RegionStatus
from evokernel_core.domain.settings import Settings
from evokernel_core.synthesis.offers import choose
from evokernel_core.synthesis.session import Session

CLI = (sys.executable, "-c", "from evokernel_core.cli.main import main; main()")


def main() -> int:
    args = _arguments()
    folder = args.folder.absolute()
    if args.command:
        started = time.monotonic()
        observe = (*CLI, "observe", "--workspace", str(folder), "--", *args.command)
        status = subprocess.run(observe, cwd=folder, check=False).returncode
        print(f"the command ended with {status} after {time.monotonic() - started:.0f} s")
    files = [Path(item.file) for item in ObservationStore().all(folder)]
    settings = evolve(Settings(), interpreter=args.interpreter) if args.interpreter else Settings()
    with Session(settings, folder) as session:
        rows = [captured(session, file) for file in files]
    for row in rows:
        print(f"{row['regions']:4} {Path(row['file']).relative_to(folder)} {row['reason'][:160]}")
    with_regions = sum(1 for row in rows if row["regions"])
    print(f"\n{with_regions} of {len(rows)} observed files have regions")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--interpreter")
    parser.add_argument("--json", type=Path)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:split])
    args.command = words[split + 1 :]
    return args


def captured(session: Session, file: Path) -> dict[str, Any]:
    """The regions of one file, and the most frequent reason of the definitions that were called and have
    none."""
    try:
        regions = [offer.region for offer in choose(session.offers(file))]
    except EvoKernelError as error:
        return {"file": str(file), "regions": 0, "reason": str(error)}
    found = [region for region in regions if region.task is not None]
    refused = Counter(
        region.reason
        for region in regions
        if region.task is None and region.status is not RegionStatus.NEEDS_SHAPES
    )
    reason = "" if found or not refused else refused.most_common(1)[0][0]
    return {"file": str(file), "regions": len(found), "reason": reason}


if __name__ == "__main__":
    sys.exit(main())
