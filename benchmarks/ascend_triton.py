"""Triton for Ascend before the vendor's own compiler: which first drafts its front takes, and whether tiles
that a chip cannot hold are noticed.

    python benchmarks/ascend_triton.py TASKS [--chip ascend910b1] [--every 1] [--planted 24] [--json OUT]

TASKS is a folder of captured tasks. Each draft goes through triton-ascend's front (`make ascend-triton`
installs it) and the count of tiles that are alive at once. Planted are drafts whose blocks are enlarged until
one tile alone is larger than the buffer.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from attrs import evolve

from evokernel_core.domain.admission import read_task
from evokernel_core.domain.errors import EvoKernelError, PlanError, VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import gpu_of
from evokernel_core.targets import author_for
from evokernel_core.targets.triton.backends.ascend_front import FrontBackend, open_front
from evokernel_core.targets.triton.launch import Launch, read_launches
from evokernel_core.targets.triton.source import LAUNCH
from evokernel_core.twin.build import CandidateError

_BLOCK = re.compile(r"COLUMNS|ROWS|LINES|STEPS|BLOCK.*")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--chip", default="ascend910b1")
    parser.add_argument("--every", type=int, default=1, help="take every so manieth task")
    parser.add_argument("--planted", type=int, default=24)
    parser.add_argument("--json", type=Path, metavar="OUT")
    args = parser.parse_args()
    author = author_for(args.chip, "triton")
    front = open_front(author)
    drafts = list(_drafts(sorted(args.tasks.glob("*.json"))[:: args.every], author))
    try:
        result = {**_offered(front, drafts), **_planted(front, drafts, args.planted)}
    except VerifierUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(result, indent=1))
    if args.json:
        args.json.write_text(json.dumps(result) + "\n")
    return 0


def _drafts(paths: list[Path], author: Any) -> Iterator[tuple[str, KernelTask, KernelSource]]:
    for path in paths:
        data = json.loads(path.read_text())
        try:
            task = read_task(data.get("task", data))
            yield path.stem, task, author.plan(task).write()
        except PlanError as error:
            print(f"{path.stem}: not written: {error}", file=sys.stderr)


def _offered(front: FrontBackend, drafts: list[tuple[str, KernelTask, KernelSource]]) -> dict[str, Any]:
    passed, by_kind, failed, most = 0, Counter[str](), {}, 0
    for name, task, source in drafts:
        try:
            launches = front.build(task, source).launches
        except CandidateError as error:
            failed[name] = f"{error.code}: {error}"[:300]
            print(f"{name}: {failed[name]}", file=sys.stderr)
            continue
        passed += 1
        by_kind[source.strategy.family] += 1
        most = max([most, *(launch.live_bytes for launch in launches)])
    return {
        "offered": len(drafts),
        "passed": passed,
        "by_kind": dict(sorted(by_kind.items())),
        "failed": failed,
        "most_live_bytes": most,
    }


def _planted(
    front: FrontBackend, drafts: list[tuple[str, KernelTask, KernelSource]], wanted: int
) -> dict[str, Any]:
    """Of so many drafts with larger blocks, those that are refused for their tiles."""
    planted, missed = 0, []
    for name, task, source in drafts:
        if planted == wanted:
            break
        enlarged = _enlarged(source, gpu_of(front.author.device).live_bytes)
        if enlarged is None:
            continue
        try:
            front.build(task, enlarged)
        except CandidateError as error:
            if error.code != "live-tiles":
                continue  # refused before tiles are counted
        except EvoKernelError:
            continue
        else:
            missed.append(name)
        planted += 1
    return {"planted": planted, "planted_found": planted - len(missed), "planted_missed": missed}


def _enlarged(source: KernelSource, nbytes: int) -> KernelSource | None:
    """The same with the blocks of its first kernel so large that one tile of 16-bit elements has more than so
    many bytes; None where it has no blocks that are numbers."""
    record = read_launches(source.files[LAUNCH])
    for place, launch in enumerate(record.launches):
        if not isinstance(launch, Launch):
            continue
        blocks = {name: int(text) for name, text in launch.constants.items() if _is_block(name, text)}
        if not blocks:
            continue
        largest = max(blocks, key=lambda name: blocks[name])
        tile = math.prod(sorted(blocks.values())[-2:])  # products have a third, which sums do not
        factor = 2 << max((2 * nbytes // tile).bit_length() - 1, 0)
        constants = {**launch.constants, largest: str(blocks[largest] * factor)}
        launches = [*record.launches]
        launches[place] = evolve(launch, constants=constants)
        return source.with_files({LAUNCH: evolve(record, launches=tuple(launches)).text()})
    return None


def _is_block(name: str, text: str) -> bool:
    return _BLOCK.fullmatch(name) is not None and text.isdecimal()


if __name__ == "__main__":
    sys.exit(main())
