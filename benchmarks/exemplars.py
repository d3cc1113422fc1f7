"""Captures the tasks whose kernels are the examples of prompts: benchmarks/knowledge/functions.py.

    python benchmarks/exemplars.py

Writes evokernel_core/targets/ascendc/knowledge/tasks.json anew, with the kind of kernel that the author
launches for each on the default chip. Needs torch.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import evolve

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.knowledge.exemplars import TASKS
from evokernel_core.targets.ascendc.knowledge.kinds import kind_of
from evokernel_core.targets.ascendc.target import ASCENDC

FUNCTIONS = Path(__file__).parent / "knowledge" / "functions.py"


def captured(file: Path) -> Iterator[tuple[str, KernelTask]]:
    """Each function of a file with its task, under the function's name. Raises SystemExit for one without."""
    with AgentClient(sys.executable, evaluation=True) as client:
        for region in client.capture(file, None, covered_ops(ASCENDC), whole=True):
            name = region.symbol.partition(".")[0].lower()
            if region.task is None:
                raise SystemExit(f"{region.symbol} has no task: {region.reason}")
            yield name, evolve(region.task, name=name)


def about(file: Path) -> dict[str, str]:
    """What each function returns and takes, in the words of its file."""
    text = file.read_text()
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        function = node.body[-1] if isinstance(node, ast.ClassDef) else node
        if isinstance(function, ast.FunctionDef) and isinstance(function.body[-1], ast.Return):
            result = ast.get_source_segment(text, function.body[-1])
            shapes = text.splitlines()[function.lineno - 1].partition("# evokernel: ")[2]
            found[node.name.lower()] = f"{str(result).removeprefix('return ')} of {shapes}"
    return found


def rows() -> list[dict[str, Any]]:
    """The content of the file."""
    chip, words = load_chip(), about(FUNCTIONS)
    found = []
    for name, task in captured(FUNCTIONS):
        kind = kind_of(task, chip)
        row = {"name": name, "about": words[name], "family": kind.family, "cores": kind.cores.name}
        found.append({**row, "task": to_data(task)})
    return found


def main() -> int:
    made = rows()
    TASKS.write_text("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in made) + "\n]\n")
    for row in made:
        print(f"{row['name']:24} {row['family']:16} {row['cores']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
