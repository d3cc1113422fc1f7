"""A chip that does not exist: a data file alone makes other schedules legal, chosen and cheaper."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip, load_chip, parse_chip
from evokernel_core.hardware.ascend.chip_files import chip_names
from evokernel_core.targets.ascendc.author import adapt, estimate_us, initial, moves, write
from evokernel_core.targets.ascendc.rewrites.matmul import split_count

SHAPES = {"x": (600, 300), "y": (300, 520)}
ROOT = Path(__file__).parents[3]
DOUBLED = """\
base = "ascend910b1"

[chip]
ub_bytes = 376832
hbm_gbps = 3600

[memory]
ub_total_bytes = 393216
l1_bytes = 1048576
l0c_bytes = 262144

[gm]
hbm_achieved_gbps = 2960
l2_gbps = 12400
requests_per_cycle = 10

[mte]
load_bytes_per_cycle = 64
load_hit_bytes_per_cycle = 140
cube_load_hit_bytes_per_cycle = 220
store_bytes_per_cycle = 64
"""


@pytest.fixture(scope="module")
def doubled(tmp_path_factory: pytest.TempPathFactory) -> Chip:
    """A 910B1 with unified buffer, L1, L0C and rates of twice the size."""
    path = tmp_path_factory.mktemp("chips") / "doubled.toml"
    path.write_text(DOUBLED)
    return parse_chip("doubled", path)


def product(graph: Any) -> KernelTask:
    x, y = graph.input("x", (4096, 4096), "float16"), graph.input("y", (4096, 4096), "float16")
    return _task(graph, graph.call("mm.default", x, y, shape=(4096, 4096), dtype="float16"))


def convolution(graph: Any) -> KernelTask:
    x = graph.input("x", (16, 128, 130, 130), "float16")
    weight = graph.input("weight", (256, 128, 3, 3), "float16", parameter=True)
    pairs = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    shape = (16, 256, 128, 128)
    return _task(
        graph, graph.call("convolution.default", x, weight, None, *pairs, shape=shape, dtype="float16")
    )


def transposed(graph: Any) -> KernelTask:
    x = graph.input("x", (16, 64, 64, 64), "float16")
    weight = graph.input("weight", (64, 64, 3, 3), "float16", parameter=True)
    pairs = ((1, 1), (1, 1), (1, 1), True, (0, 0), 1)
    shape = (16, 64, 64, 64)
    return _task(
        graph, graph.call("convolution.default", x, weight, None, *pairs, shape=shape, dtype="float16")
    )


def rows(graph: Any) -> KernelTask:
    x = graph.input("x", ("n", 12_000))
    found = graph.call("_softmax.default", x, 1, False, shape=("n", 12_000))
    return _task(graph, found, {"n": 4096})


def attention(graph: Any) -> KernelTask:
    shape = (8, 16, 2048, 64)
    given = [graph.input(name, shape, "float16") for name in ("query", "key", "value")]
    return _task(
        graph, graph.call("scaled_dot_product_attention.default", *given, shape=shape, dtype="float16")
    )


def _task(graph: Any, result: Any, symbols: Mapping[str, int] | None = None) -> KernelTask:
    task: KernelTask = graph.task(result, symbols=symbols)
    return task


def _product(*names: str) -> Callable[[Strategy], int]:
    return lambda strategy: math.prod(int(strategy.setting(name)) for name in names)


@frozen
class Case:
    """A task, and how much of it a schedule has on a core at a time."""

    task: Callable[[Any], KernelTask]
    held: Callable[[Strategy], int]


CASES = {
    "product": Case(product, _product("base_m", "base_n", "parts")),
    "convolution": Case(convolution, _product("base_m", "part_n", "parts")),
    "transposed": Case(transposed, _product("most_m", "most_n", "c_slots")),
    "rows": Case(rows, _product("tile")),
    "attention": Case(attention, _product("chunk", "keys")),
}


@pytest.mark.parametrize("name", CASES)
def test_larger_memories_and_rates_make_larger_tiles_and_lower_estimates(
    name: str, builder: Any, chip: Chip, doubled: Chip
) -> None:
    task, held = CASES[name].task(builder()), CASES[name].held
    here, there = initial(task, chip), initial(task, doubled)
    assert held(there) > held(here)
    assert estimate_us(task, there, doubled) < estimate_us(task, here, chip)
    assert write(task, there, doubled).source_id != write(task, here, chip).source_id


@pytest.mark.parametrize("name", ["product", "convolution", "rows", "attention"])
def test_what_only_the_larger_memories_hold_is_legal_there_alone(
    name: str, builder: Any, chip: Chip, doubled: Chip
) -> None:
    task = CASES[name].task(builder())
    there = initial(task, doubled)
    assert adapt(task, there, doubled) is not None
    assert adapt(task, there, chip) != there


def test_moves_reach_what_the_larger_memories_hold(builder: Any, chip: Chip, doubled: Chip) -> None:
    task, held = CASES["attention"].task(builder()), CASES["attention"].held
    here = initial(task, chip)
    most = [max(held(move.strategy) for move in moves(task, here, each)) for each in (chip, doubled)]
    assert most[1] > most[0]


def test_kernels_of_the_chip_run_on_its_twin(builder: Any, doubled: Chip, on_twin: Any) -> None:
    strategy, graph = initial(product(builder()), doubled), builder()
    x, y = (graph.input(name, shape, "float16") for name, shape in SHAPES.items())
    task = _task(graph, graph.call("mm.default", x, y, shape=(600, 520), dtype="float16"))
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(-4, 5, size=shape).astype("f2") for name, shape in SHAPES.items()}
    (result,) = evolve(on_twin, chip=doubled)(task, inputs, strategy=strategy)
    np.testing.assert_array_equal(result, (inputs["x"].astype("f4") @ inputs["y"].astype("f4")).astype("f2"))


def test_rewrites_choose_by_the_chip(builder: Any, chip: Chip, tmp_path: Path) -> None:
    """Of few results, each of a long sum, more cores take more parts."""
    path = tmp_path / "many.toml"
    path.write_text('base = "ascend910b1"\n[chip]\naic = 48\naiv = 96\n')
    counts = [split_count(128, 256, 262_144, 2, each) for each in (chip, parse_chip("many", path))]
    assert 1 < counts[0] <= chip.aic < counts[1] <= 2 * chip.aic


# -- nothing is said twice ------------------------------------------------------------------------

TARGET = ROOT / "evokernel_core" / "targets" / "ascendc"
AUTHOR = [
    path
    for folder in ("compiler", "package", "targets")
    for path in (ROOT / "evokernel_core" / folder).rglob("*.py")
]


def _of_chips() -> set[float]:
    """Numbers of the chip files that nothing but a chip explains: no counts, and no sizes of tiles."""
    found = {value for name in chip_names() for value in load_chip(name).constants.values()}
    large = {value for value in found if value > 1000 and (value > 2**17 or value % 64)}
    return large | {value for value in found if value > 10 and value % 1}


def _numbers(path: Path) -> Iterator[tuple[int, float]]:
    """Line and value of every number, and of every product, sum and power of numbers, in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant):
            value = node.value
        elif isinstance(node, ast.BinOp) and not any(isinstance(item, ast.Name) for item in ast.walk(node)):
            try:
                value = eval(compile(ast.Expression(node), str(path), "eval"), {"__builtins__": {}})
            except (TypeError, AttributeError):
                continue
        else:
            continue
        if isinstance(value, int | float):
            yield node.lineno, value


def test_the_author_restates_no_number_of_a_chip() -> None:
    known = _of_chips()
    assert {524288, 188416, 1850, 1480, 6200, 20.6, 11.3} <= known
    for path in AUTHOR:
        for line, value in _numbers(path):
            assert value not in known, f"{path.relative_to(ROOT)}:{line} restates {value}"


def test_the_author_is_given_its_chip() -> None:
    """It loads none by name, and reads typed fields of the one that it is given. A target names its devices,
    and the first run on a host looks which one is there."""
    names_them = (TARGET / "target.py", *(TARGET / "first_run").glob("*.py"))
    for path in AUTHOR:
        assert path in names_them or not re.search(
            r"\bload_chip\b|\bchip\.constants\b|DEFAULT_CHIP", path.read_text()
        ), path
