"""Kernels of cube cores in the IR: where units wait for each other, what is legal, and what is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.problems.products import read_product
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.ir.builder import Builder, whole
from evokernel_core.targets.ascendc.ir.cube import Fixpipe, LoadData, Mmad, Nd2Nz, Sum
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Constant,
    CubeSpan,
    Expr,
    Int,
    Size,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.handing_cube import Handing, handing_of, stream_of
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    For,
    Kernel,
    Memory,
    Node,
    Region,
    expressions_of,
    flat,
)
from evokernel_core.targets.ascendc.ir.renaming import renamed
from evokernel_core.targets.ascendc.kernels.matmul.matmul_family import FAMILY, read_matmul
from evokernel_core.targets.ascendc.kernels.matmul.matmul_kernel import build
from evokernel_core.targets.ascendc.kernels.matmul.matmul_schedule import (
    MatmulSchedule,
    refusal,
    steps,
)
from evokernel_core.targets.ascendc.kernels.stage import KernelStage
from evokernel_core.targets.ascendc.print import files
from evokernel_core.targets.ascendc.print.stage import cube_text
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import ExitStatus, Mode, RunRequest, RunResult, TensorFile, run_kernel
from tests.targets.ascendc.cores import on_all_cores_too

ROWS, DEPTH, COLUMNS = 160, 200, 80
"""Several tiles for each of few cores, panels for each tile and steps for each panel."""
SIZES = {"m": ROWS, "k": DEPTH, "n": COLUMNS}
few_cores = on_all_cores_too(ROWS=1600, SIZES={**SIZES, "m": 1600})
SCHEDULE = MatmulSchedule(32, 32, 32, 64, 2, 2)


def product(builder: Any, dtype: str = "float16") -> KernelTask:
    graph = builder()
    x, y = graph.input("x", ("m", "k"), dtype), graph.input("y", ("k", "n"), dtype)
    task: KernelTask = graph.task(
        graph.call("mm.default", x, y, shape=("m", "n"), dtype=dtype), symbols=SIZES
    )
    return task


def tall(columns: int, stages: int = 2, depth: int = 32, left: int = 32) -> Kernel:
    """x [m, k] times y [k, 16] in tiles of 32 rows, whose sums are single ones."""
    k = Builder("A tall matrix times a narrow one.")
    x, y, z = k.input("x", "x", "half", 2), k.input("y", "y", "half", 2), k.output("z", "output", "float", 4)
    m, along = (k.param(name, Size(extent(name))) for name in ("m", "k"))
    base, deep = Constant("BASE", left), Constant("DEPTH", depth)
    panels = [Buffer(name, "half", 2, size * deep, stages, memory=Memory.L1)
              for name, size in (("xPanel", base), ("yPanel", Int(16)))]  # fmt: skip
    operands = [Buffer("xStep", "half", 2, base * deep, 2, memory=Memory.L0A),
                Buffer("yStep", "half", 2, deep * 16, 2, memory=Memory.L0B)]  # fmt: skip
    result = Buffer("result", "float", 4, base * 16, 1, memory=Memory.L0C)
    with k.cores("index", k.param("tiles", ceil_div(m, base))) as index:
        row = k.let("row", index * base, U64)
        rows = k.let("rows", least(m - row, base))
        with k.loop("panel", ceil_div(along, deep), U64) as panel:
            start = k.let("start", panel * deep, U64)
            count = k.let("count", least(along - start, deep))
            k.do(Nd2Nz(whole(panels[0]), Region(x, row * along + start), rows, count, along))
            k.do(Nd2Nz(whole(panels[1]), Region(y, start * columns), count, Int(columns), Int(columns)))
            down, across, some = (CubeSpan(Int(0), size, size) for size in (rows, count, Int(columns)))
            with k.sum(panel):
                k.do(LoadData(whole(operands[0]), whole(panels[0]), down, across, turned=False))
                k.do(LoadData(whole(operands[1]), whole(panels[1]), across, some, turned=True))
                k.do(Mmad(*map(whole, (result, *operands)), rows, Int(columns), count))
            with k.stored():
                place = Region(z, row * columns)
                k.do(Fixpipe(place, whole(result), rows, Int(columns), rows, Int(columns)))
    return k.kernel()


@pytest.fixture
def on_cube(builder: Any, few_cores: Any, tmp_path_factory: Any) -> Callable[..., tuple[RunResult, Any]]:
    """A function of a cube kernel, its task and two matrices: the run in checked mode and its result.
    ``change``: what is done to the kernel's text before."""

    def run(
        made: KernelStage, task: KernelTask, x: Any, y: Any, change: Callable[[str], str] = str
    ) -> tuple[RunResult, Any]:
        tiling, kernel = files.single(cube_text(made, task, "built"), 3)
        folder = tmp_path_factory.mktemp("kernel")
        for name, values in (("x", x), ("y", y)):
            (folder / f"{name}.bin").write_bytes(values.tobytes())
        shape = (x.shape[0], y.shape[1])
        (spec,) = task.graph.output_specs()
        request = RunRequest(
            Mode.CHECK,
            few_cores,
            sizes=tuple({**SIZES, "m": x.shape[0], "k": x.shape[1], "n": y.shape[1]}.values()),
            inputs=tuple(
                TensorFile(folder / f"{name}.bin", len(v.tobytes())) for name, v in (("x", x), ("y", y))
            ),
            outputs=(TensorFile(folder / "z.bin", spec.nbytes(dict(zip("mn", shape, strict=True)))),),
            repeat=2,
        )
        source = ascendc_source(tiling, change(kernel), Strategy("built"))
        result = run_kernel(build_kernel(source), request)
        if result.status is not ExitStatus.OK:
            return result, None
        return result, np.fromfile(folder / "z.bin", spec.dtype).reshape(shape)

    return run


def matrices() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return tuple(rng.integers(-4, 5, size=shape).astype("f2") for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS)))  # type: ignore[return-value]


def without(event: str) -> Callable[[str], str]:
    """A change that leaves out an event, wherever it is set and waited for."""
    return lambda text: "\n".join(line for line in text.splitlines() if f"HardEvent::{event}>" not in line)


EVENTS = ("MTE1_MTE2", "MTE2_MTE1", "M_MTE1", "MTE1_M", "FIX_M", "M_FIX")


def test_every_event_between_units_is_there_and_needed(builder: Any, on_cube: Any) -> None:
    task = product(builder)
    made = build(read_product(task), SCHEDULE)
    x, y = matrices()
    expected = x.astype("f4") @ y.astype("f4")
    result, values = on_cube(made, task, x, y)
    assert result.status is ExitStatus.OK
    assert not result.hazards
    np.testing.assert_array_equal(values, expected.astype("f2"))
    for event in EVENTS:
        result, _ = on_cube(made, task, x, y, without(event))
        assert result.hazards, event


def test_flags_between_cores_are_there_and_needed(builder: Any, chip: Any, on_cube: Any) -> None:
    graph = builder()
    x, y = graph.input("x", ("m", "k"), "float16"), graph.input("y", ("k", "n"), "float16")
    made = graph.call("mm.default", x, y, shape=("m", "n"), dtype="float16")
    doubled = graph.call("mul.Tensor", made, 2.0, shape=("m", "n"), dtype="float16")
    task = graph.task(doubled, symbols=SIZES)
    kernel = FAMILY.text(task, FAMILY.strategy_of(read_matmul(task, chip), SCHEDULE), chip, "built")
    a, b = matrices()
    result, values = on_cube(kernel, task, a, b)
    assert result.status is ExitStatus.OK, result.message
    assert not result.hazards
    np.testing.assert_array_equal(values, (2 * (a.astype("f4") @ b.astype("f4")).astype("f2")))
    for flag in ("RESULT_READY", "RESULT_TAKEN"):
        result, _ = on_cube(kernel, task, a, b, lambda text, flag=flag: _without_flag(text, flag))
        assert result.hazards, flag


def _without_flag(text: str, flag: str) -> str:
    lines = text.splitlines()
    return "\n".join(line for line in lines if "CrossCore" not in line or f"({flag})" not in line)


def test_another_kernel_of_the_same_nodes(builder: Any, on_cube: Any) -> None:
    graph = builder()
    x, y = graph.input("x", ("m", "k"), "float16"), graph.input("y", ("k", 16), "float16")
    task = graph.task(graph.call("mm.default", x, y, shape=("m", 16)), symbols={"m": 70, "k": 90})
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 5, size=shape).astype("f2") for shape in ((70, 90), (90, 16)))
    result, values = on_cube(KernelStage(tall(16)), task, a, b)
    assert result.status is ExitStatus.OK, result.message
    assert not result.hazards
    np.testing.assert_array_equal(values, a.astype("f4") @ b.astype("f4"))


def test_where_buffers_are_handed_over() -> None:
    kernel = tall(16)
    stream = stream_of(kernel)
    assert stream is not None
    assert stream.panels.var.name == "panel"
    assert [type(node) for node in stream.loads] == [Nd2Nz, Nd2Nz]
    (total,) = stream.uses
    assert isinstance(total, Sum)
    assert handing_of(total.body) == Handing(0, 1, 2, 2)
    assert handing_of(stream.uses) is None  # deeper in it alone


def test_loops_that_are_no_run_are_refused(chip: Any) -> None:
    kernel = tall(16)
    (tiles,) = kernel.body
    assert isinstance(tiles, For)
    twice = evolve(kernel, body=(evolve(tiles, body=(*tiles.body, tiles.body[-1])),))
    assert stream_of(twice) is None
    assert "no-stream" in {item.rule for item in broken_rules(twice, chip, {"m": 70, "k": 90})}


@pytest.mark.parametrize(
    ("kernel", "rule", "place"),
    [
        (tall(16), None, None),
        (tall(16, depth=1024, left=256), "capacity", "L0A"),
        (tall(16, stages=9), "stages", "xPanel"),
        (tall(48), "overflow", "yPanel"),
        (tall(16, depth=24), "alignment", "yStep"),
        (tall(16, depth=4096, left=16), "parameter-limit", "Mmad"),
    ],
)
def test_rules(kernel: Kernel, rule: str | None, place: str | None, chip: Any) -> None:
    found = {(item.rule, item.place) for item in broken_rules(kernel, chip, {"m": 70, "k": 5000})}
    if rule is None:
        assert not found
    else:
        assert (rule, place) in found


def test_a_product_outside_of_a_sum_is_refused(chip: Any) -> None:
    kernel = tall(16)
    bare = evolve(kernel, body=tuple(_without_sums(kernel.body)))
    assert {"Mmad", "Fixpipe"} <= {
        item.place for item in broken_rules(bare, chip, {"m": 70, "k": 90}) if item.rule == "no-sum"
    }


def _without_sums(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, Sum):
            yield from (*node.body, *node.stores)
        elif isinstance(node, For):
            yield evolve(node, body=tuple(_without_sums(node.body)))
        else:
            yield node


def test_what_a_schedule_says_of_legality_is_what_its_kernel_says(builder: Any, chip: Any) -> None:
    """The search asks thousands of schedules without building their kernels."""
    task = product(builder, "float32")
    found = read_product(task)
    sizes = {"m": 2000, "k": 3000, "n": 2500}
    seen, queue = set(), [MatmulSchedule(128, 256, 32, 128), MatmulSchedule(16, 16, 16, 16)]
    for _ in range(2):
        queue = [item for here in queue for _, item in steps(here) if item not in seen]
        seen |= set(queue)
    answers = set()
    for item in seen:
        if min(item.base_m, item.base_n, item.base_k) < 16 or item.panel_k % max(item.base_k, 1):
            continue  # no kernel at all
        if item.parts > item.results or any(b % 16 for b in (item.base_m, item.base_n, item.base_k)):
            continue
        told = refusal(found, item, chip) is None
        answers.add(told)
        assert told == (next(broken_rules(build(found, item).kernel, chip, sizes), None) is None), item
    assert answers == {True, False}


def test_names_of_variables_change_and_nothing_else() -> None:
    kernel = tall(16)
    row, other = Var("row", U64), Var("turn.row", U64)
    changed = renamed(kernel.body, {row: other})
    used = {item for node in flat(changed) if isinstance(node, Nd2Nz) for item in _variables(node)}
    assert other in used
    assert row not in used
    assert renamed(kernel.body, {}) == kernel.body


def _variables(node: Nd2Nz) -> set[Expr]:
    return {item for part in expressions_of(node) for item in part.walk() if isinstance(item, Var)}
