"""What it costs that a kernel's code runs in another process than its judge, and what its draws are.

    python benchmarks/judge.py [--runs N] [--json OUT]
    python benchmarks/judge.py --draws [N] [--json OUT]

``--draws``: of N draws (1,000) of several tasks the share that has each class of sizes and values of
``verifier/gates/mixture.py``, and of its sizes that a kernel may treat apart also by symbol; it fails where a
class has less than its floor, or some symbol never has it.

For each kernel the seconds of a run in one process and of a judged one, in turn, and their ratio (medians).
``add``: a double-buffered add of 1 M floats; ``gather``: 16,384 elements, each of which takes the scalar unit
two reads and a write; ``matmul``: a half product of 1024 x 1024 x 1024. ``check``: with data and hazards.
``time``: modelled cycles only. ``whole``: compile (nothing cached), run and compare the result, for the add
(aim 1.5; ``time``: 2). Both runs must agree on outputs, hazards and latency. ``load``: processes that want a
core, before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef  # noqa: E402
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol  # noqa: E402
from evokernel_core.domain.tensor import TensorSpec  # noqa: E402
from evokernel_core.hardware.ascend.chip import load_chip  # noqa: E402
from evokernel_core.twin.bare import build_bare, read_launch  # noqa: E402
from evokernel_core.twin.build import BuiltKernel, prepare  # noqa: E402
from evokernel_core.twin.judge import judge_kernel  # noqa: E402
from evokernel_core.twin.run import (  # noqa: E402
    ExitStatus,
    Mode,
    RunRequest,
    RunResult,
    TensorFile,
    run_kernel,
)
from evokernel_core.twin.sources import ProgramSource  # noqa: E402
from evokernel_core.verifier.draw import Draw  # noqa: E402
from evokernel_core.verifier.gates import mixture  # noqa: E402
from evokernel_core.verifier.gates.cases import plan_cases  # noqa: E402
from evokernel_core.verifier.gates.landmarks import Landmarks, small_cases  # noqa: E402

KERNELS = Path(__file__).parent / "kernels"
WAYS: dict[str, Callable[[BuiltKernel, RunRequest], RunResult]] = {"one": run_kernel, "judged": judge_kernel}

Array = npt.NDArray[np.generic]


@frozen
class Case:
    """A kernel, its inputs by parameter, what it must write, and its scalars."""

    name: str
    blocks: int
    inputs: tuple[Array, ...]
    golden: Array
    scalars: tuple[int, ...] = ()

    def build(self, folder: Path) -> BuiltKernel:
        """The kernel's library."""
        arguments: list[dict[str, Any]] = []
        for i, array in enumerate(self.inputs):
            np.save(folder / f"{self.name}{i}.npy", array)
            arguments.append({"in": f"{self.name}{i}.npy"})
        arguments.append({"out": "y.npy", "shape": list(self.golden.shape), "dtype": str(self.golden.dtype)})
        arguments += [{"scalar": "uint32", "value": value} for value in self.scalars]
        launch = folder / f"{self.name}.json"
        launch.write_text(json.dumps({"block_dim": self.blocks, "args": arguments}))
        source = ProgramSource((KERNELS / f"{self.name}.cpp",))
        return build_bare(source, self.name, read_launch(launch), folder).built

    def request(self, folder: Path, mode: Mode) -> RunRequest:
        """A run on the inputs as raw files."""
        files = []
        for i, array in enumerate(self.inputs):
            path = folder / f"{self.name}{i}.bin"
            array.tofile(path)
            files.append(TensorFile(path if mode is Mode.CHECK else None, array.nbytes))
        out = folder / f"{self.name}.out" if mode is Mode.CHECK else None
        outputs = (TensorFile(out, self.golden.nbytes),)
        return RunRequest(mode=mode, chip=load_chip(), inputs=tuple(files), outputs=outputs)

    def right(self, folder: Path) -> bool:
        """Whether the latest run wrote what it must."""
        found = np.fromfile(folder / f"{self.name}.out", self.golden.dtype)
        return bool(np.array_equal(found, self.golden.ravel()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--draws", type=int, nargs="?", const=1000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.draws:
        return count_draws(args.draws, args.json)
    prepare()
    with tempfile.TemporaryDirectory(prefix="evokernel-judge-") as name:
        folder = Path(name)
        os.environ["EVOKERNEL_TWIN_DIR"] = str(prepare().folder.parent)
        os.environ["EVOKERNEL_HOME"] = str(folder / "home")
        figures = measure(folder, args.runs)
    print(json.dumps(figures, indent=2))
    if args.json:
        args.json.write_text(json.dumps({"summary": figures}, indent=2))
    return 0


def tasks() -> Iterator[KernelTask]:
    """Tasks of one to three symbols, of small and large sizes, and of each dtype."""
    for name, shape, dtype in (
        ("matrix", (("s0", 512), ("s1", 1024)), "float32"),
        ("row", (("s0", 100_000),), "float32"),
        ("halves", (("s0", 256), ("s1", 4096)), "float16"),
        ("images", (("s0", 16), ("s1", 96), ("s2", 128)), "bfloat16"),
        ("integers", (("s0", 640), ("s1", 500)), "int32"),
        ("large", (("s0", 4096), ("s1", 4096)), "float32"),
    ):
        spec = TensorSpec(tuple(symbol for symbol, _ in shape), dtype)
        node = Node("y", "aten.relu.default", (ValueRef("x"),), (), (spec,))
        graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
        symbols = tuple(Symbol(*item) for item in shape)
        yield KernelTask(name, graph, symbols, TOLERANCES.get(dtype, TOLERANCES["float32"]), "elementwise")


_SEEDS = 100
ANY = "any"
"""Names the share of verifications in which at least one symbol has a size of a class."""


def shares(
    task: KernelTask, verifications: Sequence[Sequence[tuple[Mapping[str, int], str]]]
) -> dict[str, float]:
    """Of each class the share of verifications that have it; one is its cases' sizes and distributions."""
    return {
        class_.name: sum(any(class_.holds(task, *case) for case in cases) for cases in verifications)
        / len(verifications)
        for class_ in mixture.CLASSES
    }


def below_floor(task: KernelTask, deviations: Mapping[str, float]) -> list[str]:
    """The classes that fewer verifications have than their floor."""
    return [
        class_.name
        for class_ in mixture.CLASSES
        if class_.applies(task) and deviations[class_.name] < class_.floor
    ]


def special_shares(
    task: KernelTask, hints: mixture.Hints, verifications: Sequence[Sequence[Mapping[str, int]]]
) -> dict[str, dict[str, float]]:
    """Of each class of sizes, for each symbol the share of verifications in which it has one of it, and as
    ``ANY`` that in which some symbol has; one verification is the sizes of its cases."""
    result: dict[str, dict[str, float]] = {}
    for class_ in mixture.SIZE_CLASSES:
        of = {symbol.name: _members(class_, symbol, hints) for symbol in task.symbols}
        seen = [
            {name for sizes in cases for name in of if sizes[name] in of[name]} for cases in verifications
        ]
        counts = {name: sum(name in names for names in seen) for name in of} | {ANY: sum(map(bool, seen))}
        result[class_.name] = {name: count / len(verifications) for name, count in counts.items()}
    return result


def below_special_floor(shares: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The classes of sizes that fewer verifications have than their floor, or that some symbol never has."""
    return [
        class_.name
        for class_ in mixture.SIZE_CLASSES
        if class_.floor and (shares[class_.name][ANY] < class_.floor or not min(shares[class_.name].values()))
    ]


def _members(class_: mixture.SizeClass, symbol: Symbol, hints: mixture.Hints) -> frozenset[int]:
    return frozenset(size for seed in range(_SEEDS) for size in class_.of(symbol, hints, Random(seed)))


def count_draws(count: int, target: Path | None) -> int:
    """Prints of each class the share of draws that have it, by task; 1 where one is below its floor."""
    rows, missed = {}, []
    for task in tasks():
        plans = (plan_cases(task, Draw(f"{number:032x}")) for number in range(count))
        drawn = [[(dict(plan.sizes), plan.distribution) for plan in cases] for cases in plans]
        found = shares(task, drawn)
        rows[task.name] = found
        missed += [f"{task.name}: {item}" for item in below_floor(task, found)]
    width = max(len(item.name) for item in mixture.CLASSES)
    print(f"{'of ' + str(count) + ' draws':{width}} floor  " + " ".join(f"{name:>9}" for name in rows))
    for item in mixture.CLASSES:
        cells = " ".join(
            f"{found[item.name]:9.1%}" if item.applies(task) else f"{'-':>9}"
            for task, found in zip(tasks(), rows.values(), strict=True)
        )
        print(f"{item.name:{width}} {item.floor:5.0%}  {cells}")
    special = {task.name: special_sizes(task, count) for task in tasks()}
    missed += [f"{task}: {name}" for task, of in special.items() for name in below_special_floor(of)]
    print_special(special)
    print("below their floor: " + ("; ".join(missed) or "none"))
    if target:
        target.write_text(json.dumps({"draws": count, "shares": rows, "special": special}, indent=2))
    return 1 if missed else 0


ASKED = 700
"""A number that the text of the counted kernel asks to be equal to."""


def special_sizes(task: KernelTask, count: int, asked: int = ASKED) -> dict[str, dict[str, float]]:
    """The shares of the classes of sizes that a kernel may treat apart, by class and symbol, in ``count``
    draws of a kernel that names some numbers."""
    hints = mixture.Hints((asked,), (64, 1408), (8,), (43, 2816), 48, (199, 296))
    known = Landmarks((8, 64, asked, 1408), (64, asked, 1408), (asked,), solved=hints.solved)
    drawn = [
        [dict(plan.sizes) for plan in small_cases(task, Draw(f"{n:032x}"), known, hints.tiling, hints.cores)]
        for n in range(count)
    ]
    return special_shares(task, hints, drawn)


def print_special(special: dict[str, dict[str, dict[str, float]]]) -> None:
    """One line for each class: of each task the share of draws, then those of its symbols."""
    for item in mixture.SIZE_CLASSES:
        cells = []
        for name, of in special.items():
            one, *others = (f"{100 * of[item.name][key]:.0f}" for key in (ANY, *_symbols(of)))
            cells.append(f"{name} {one} % ({', '.join(others)})")
        print(f"{item.name}: {item.floor:.0%} asked; {'; '.join(cells)}")


def _symbols(of: dict[str, dict[str, float]]) -> list[str]:
    return [key for key in next(iter(of.values())) if key != ANY]


def cases() -> tuple[Case, ...]:
    """The kernels with their data."""
    values = np.random.default_rng(7)
    x, y = (values.standard_normal(1 << 20).astype(np.float32) for _ in range(2))
    table = values.standard_normal(4096).astype(np.float32)
    places = values.integers(0, 4096, 8 * 2048).astype(np.int32)
    a, b = (values.integers(-3, 4, (1024, 1024)).astype(np.float16) for _ in range(2))
    return (
        Case("add", 32, (x, y), x + y, (1 << 20,)),
        Case("gather", 8, (table, places), table[places]),
        Case("matmul", 16, (a, b), a.astype(np.float32) @ b.astype(np.float32)),
    )


def measure(folder: Path, runs: int) -> dict[str, Any]:
    """All figures."""
    load = os.getloadavg()[0]
    figures: dict[str, Any] = {}
    for case in cases():
        built = case.build(folder)
        for mode in (Mode.CHECK, Mode.TIME):
            figures[f"{case.name}_{mode}"] = _compare(case, built, folder, mode, runs)
    figures["add_whole"] = _row({way: [_whole(cases()[0], folder, way) for _ in range(runs)] for way in WAYS})
    figures["load"] = [round(load, 1), round(os.getloadavg()[0], 1)]
    return figures


def _compare(case: Case, built: BuiltKernel, folder: Path, mode: Mode, runs: int) -> dict[str, float]:
    request = case.request(folder, mode)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(runs):
        seen = []
        for way, run in WAYS.items():
            result = run(built, request)
            if result.status is not ExitStatus.OK or (mode is Mode.CHECK and not case.right(folder)):
                raise SystemExit(f"{case.name} failed: {result.message} {result.hazards}")
            seconds[way].append(result.seconds)
            seen.append(evolve(result, seconds=0.0, output=""))
        if seen[0] != seen[1]:
            raise SystemExit(f"{case.name} differs between one process and two: {seen}")
    return _row(seconds)


def _whole(case: Case, folder: Path, way: str) -> float:
    shutil.rmtree(folder / "home", ignore_errors=True)
    request = case.request(folder, Mode.CHECK)
    started = time.perf_counter()
    WAYS[way](case.build(folder), request)
    if not case.right(folder):
        raise SystemExit(f"{case.name} is wrong")
    return time.perf_counter() - started


def _row(seconds: dict[str, list[float]]) -> dict[str, float]:
    row = {f"{way}_s": round(statistics.median(taken), 4) for way, taken in seconds.items()}
    return {**row, "ratio": round(row["judged_s"] / row["one_s"], 2)}


if __name__ == "__main__":
    sys.exit(main())
