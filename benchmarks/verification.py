"""What one verification takes: processor seconds of 20 tasks of ten families, in some draws each.

    python benchmarks/verification.py [--draws 3] [--json OUT] [--beside EARLIER.json]

The kernels are our own author's. Each is verified once before, so that its compiled images are kept, and then
once for each draw, with a secret of its own. With ``--beside``, which another checkout wrote on this machine,
ratios are printed too. Run it alone, on Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.mutating.judging import judge  # noqa: E402
from benchmarks.mutating.subjects import Author, Subject  # noqa: E402
from benchmarks.mutating.table import TABLE, Row  # noqa: E402
from evokernel_core.capture.client import AgentClient  # noqa: E402
from evokernel_core.hardware.ascend.chip import load_chip  # noqa: E402

EACH_FAMILY = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--beside", type=Path)
    args = parser.parse_args()
    earlier: dict[str, list[float]] = json.loads(args.beside.read_text()) if args.beside else {}
    taken = {}
    for name, seconds in measured(args.draws):
        taken[name] = seconds
        print(row(name, seconds, earlier.get(name)), flush=True)
    if args.json:
        args.json.write_text(json.dumps(taken, indent=1) + "\n")
    both = [name for name in taken if name in earlier]
    if both:
        ratios = [statistics.median(taken[name]) / statistics.median(earlier[name]) for name in both]
        total = sum(statistics.median(taken[name]) for name in both)
        before = sum(statistics.median(earlier[name]) for name in both)
        print(
            f"{len(both)} tasks: {total:.1f} s beside {before:.1f} s, {total / before:.2f}; "
            f"geometric mean {statistics.geometric_mean(ratios):.2f}"
        )
    return 0


def row(name: str, seconds: list[float], earlier: list[float] | None) -> str:
    """A task's line: the median in processor seconds, and its ratio to that of the other checkout."""
    median = statistics.median(seconds)
    ratio = f"{median / statistics.median(earlier):.2f}" if earlier else ""
    return f"{name:40} {median:6.2f} {ratio}"


def measured(draws: int) -> Iterator[tuple[str, list[float]]]:
    """Processor seconds of each draw, by task. Raises EvoKernelError where there is no verdict."""
    with tempfile.TemporaryDirectory() as folder, AgentClient(sys.executable, evaluation=True) as agent:
        author = Author(agent, load_chip(), Path(folder))
        for item in chosen():
            subject = author.subject(item)
            _verified(subject, author)
            yield subject.name, [_verified(subject, author) for _ in range(draws)]


def chosen() -> Iterator[Row]:
    """The first tasks of each family."""
    seen: Counter[str] = Counter()
    for item in TABLE:
        seen[item.family] += 1
        if seen[item.family] <= EACH_FAMILY:
            yield item


def _verified(subject: Subject, author: Author) -> float:
    before = _processor_s(author.agent)
    judge(subject.task, subject.source, author.agent, author.chip)
    return _processor_s(author.agent) - before


def _processor_s(agent: AgentClient) -> float:
    """Seconds of this process, of its children that have ended, and of the agent, which lives on."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(each.ru_utime + each.ru_stime for each in used)
    if agent.pid is None:
        return own
    after_name = Path(f"/proc/{agent.pid}/stat").read_text().rpartition(")")[2].split()
    return own + sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
