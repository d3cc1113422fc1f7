"""Through which modules the author's work on one kernel passes, and how often it turns back.

    python benchmarks/modules_of_write.py [--json OUT]

A softmax of [n, d] is planned first; then ``write`` is traced, with nothing kept from before but the
legalised task. A turn back is a call from one module into another that the trace had entered earlier; each
pair of modules counts once. Data (``domain``, ``hardware``), sizes and values are left out, since every part
reads them; ``into_records`` are the turns that read what a kernel, its plan or its schedule are made of.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import click

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc import author

PACKAGE = "evokernel_core."
DATA = ("domain.", "hardware.", "compiler.shapes.", "compiler.lowering.values", "compiler.rewrites.")


RECORDS = frozenset(
    (
        "compiler.lowering.plan",
        "targets.ascendc.ir.expr",
        "targets.ascendc.ir.floats",
        "targets.ascendc.ir.nodes",
        "targets.ascendc.kernels.fused.settings",
    )
)


def softmax() -> KernelTask:
    spec = TensorSpec(("n", "d"), "float32")
    node = Node("result", "aten._softmax.default", (ValueRef("x"), -1, False), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("result"),))
    return KernelTask("softmax", graph, (Symbol("n", 300), Symbol("d", 70)), TOLERANCES["float32"], "softmax")


class Trace:
    """The modules in the order in which they are entered, and the pairs that turn back."""

    def __init__(self) -> None:
        self.entered: dict[str, int] = {}
        self.back: dict[tuple[str, str], None] = {}
        self._stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        short = module.removeprefix(PACKAGE)
        if module == short or short.startswith(DATA):
            return
        if event == "call":
            caller = self._stack[-1] if self._stack else short
            self._stack.append(short)
            now, before = len(self.entered), self.entered.get(short)
            self.entered.setdefault(short, now)
            if before is not None and short != caller and before < self.entered[caller]:
                self.back[caller, short] = None
        elif event == "return" and self._stack:
            self._stack.pop()


def traced() -> Trace:
    task, chip = softmax(), load_chip()
    strategy = author.initial(task, chip)
    for kept in gc.get_objects():
        if isinstance(kept, functools._lru_cache_wrapper) and "legalise" not in kept.__module__:
            kept.cache_clear()
    trace = Trace()
    sys.setprofile(trace)
    try:
        author.write(task, strategy, chip)
    finally:
        sys.setprofile(None)
    return trace


@click.command()
@click.option("--json", "out", type=click.Path(path_type=Path))
def main(out: Path | None) -> None:
    trace = traced()
    for caller, module in trace.back:
        click.echo(f"{caller} -> {module}")
    summary = {
        "modules": len(trace.entered),
        "turns_back": len(trace.back),
        "into_records": sum(module in RECORDS for _, module in trace.back),
    }
    click.echo(json.dumps(summary))
    if out is not None:
        out.write_text(json.dumps({"summary": summary}))


if __name__ == "__main__":
    main()
