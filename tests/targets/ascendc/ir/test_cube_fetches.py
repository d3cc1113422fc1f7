"""Cube cores whose operands travel into L1 by themselves: their turns, their events, and what is legal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import asdict, evolve

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.kernel import Strategy
from evokernel_core.targets.ascendc.author import write
from evokernel_core.targets.ascendc.ir.builder import Builder, at, whole
from evokernel_core.targets.ascendc.ir.cube import CopyBlocks, Fixpipe, LoadFractals, Mmad, stage_of
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
from evokernel_core.targets.ascendc.ir.expr import Condition, Constant, Int, Size, State
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel, Memory, Region
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import ConvTransposeAxis
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import ConvTransposeSchedule
from evokernel_core.targets.ascendc.kernels.stage import KernelStage
from evokernel_core.targets.ascendc.print import files
from evokernel_core.targets.ascendc.print.fetching_class import fetching_class
from evokernel_core.targets.ascendc.print.stage import cube_text
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import ExitStatus, Mode, RunRequest, TensorFile, run_kernel
from tests.tables import few
from tests.targets.ascendc import conftest
from tests.targets.ascendc.cores import on_all_cores_too
from tests.targets.ascendc.transposed import Layer, close, expected, task_of, values_of

_BLOCK = Constant("C0", 8)
_SQUARE = 256


def product(*, runs: int = 64, is_row: bool = True, stages: int = 2, steps: int = 2) -> Kernel:
    """Every fractal of rows by all fractals of columns: rows stay for a tile, columns pass through L1."""
    k = Builder("Sums of fractals.")
    left, right = k.input("left", "left", "float", 4), k.input("right", "right", "float", 4)
    out = k.output("out", "out", "float", 4)
    tiles, count = k.param("tiles", Size(extent("n"))), k.param("count", Size(extent("m")))
    rows, columns = (
        Buffer(name, "float", 4, Int(_SQUARE * runs), stages, memory=Memory.L1, joined=True)
        for name in ("rows", "columns")
    )
    a, b = (
        Buffer(name, "float", 4, Int(_SQUARE), steps, memory=memory)
        for name, memory in (("a", Memory.L0A), ("b", Memory.L0B))
    )
    sums, fresh = Buffer("sums", "float", 4, Int(_SQUARE), 2, memory=Memory.L0C), State("fresh")
    with k.cores("index", tiles, in_a_row=is_row) as index:
        with k.sum():
            k.assign(fresh, 1)
            with k.loop("part", count) as part:
                with k.fetched("row", rows, Condition(part, "==", Int(0))):
                    k.do(
                        CopyBlocks(
                            at(rows, stage_of("row") * rows.elements), Region(left, index * 128), Int(16)
                        )
                    )
                with k.fetched("column", columns):
                    place = at(columns, stage_of("column") * columns.elements)
                    k.do(CopyBlocks(place, Region(right, part * 128), Int(16)))
                k.do(LoadFractals(whole(a), at(rows, stage_of("row") * rows.elements), Int(1)))
                k.do(LoadFractals(whole(b), at(columns, stage_of("column") * columns.elements), Int(1)))
                k.do(Mmad(whole(sums), whole(a), whole(b), Int(16), Int(16), _BLOCK, fresh=fresh))
                k.assign(fresh, 0)
        with k.stored():
            sixteen = Int(16)
            k.do(Fixpipe(Region(out, index * 256), whole(sums), sixteen, sixteen, sixteen, sixteen))
    return k.kernel()


def test_rows_stay_and_columns_pass_through(builder: Any, chip: Any, tmp_path: Any) -> None:
    """40 tiles of four parts each, whose units are ordered in one body with what is fetched there."""
    graph = builder()
    left, right = graph.input("left", ("n", 128)), graph.input("right", ("m", 128))
    made = graph.call("matmul.default", left, right, shape=("n", 256))
    task = graph.task(made, symbols={"n": 40, "m": 4})
    tiling, text = files.single(cube_text(KernelStage(product()), task, "built"), 3)
    rng = np.random.default_rng(3)
    given = [rng.integers(-4, 5, size=(count, 128)).astype("f4") for count in (40, 4)]
    inputs = []
    for place, values in enumerate(given):
        (tmp_path / f"{place}.bin").write_bytes(values.tobytes())
        inputs.append(TensorFile(tmp_path / f"{place}.bin", values.nbytes))
    output = TensorFile(tmp_path / "out.bin", 40 * 256 * 4)
    request = RunRequest(Mode.CHECK, chip, sizes=(40, 4), inputs=tuple(inputs), outputs=(output,), repeat=2)
    run = run_kernel(build_kernel(ascendc_source(tiling, text, Strategy("built"))), request)
    assert run.status is ExitStatus.OK and not run.hazards, run.message
    rows, columns = (values.reshape(-1, 16, 8) for values in given)
    wanted = np.einsum("nik,mjk->nij", rows, columns)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out.bin", "f4").reshape(40, 16, 16), wanted)


def test_a_fetch_finds_its_turns_by_itself() -> None:
    text = fetching_class(product(), "Product")
    seek = text[text.index("void SeekRow(") :]
    seek = seek[: seek.index("void FetchRow(")]
    assert "for (; turn.index < lastOfCore; ++turn.index, turn.part = 0) {" in seek
    assert "if (turn.part == 0) {" in seek  # only where it is met
    assert "turn.part == 0" not in text[text.index("void SeekColumn(") : text.index("void FetchColumn(")]


def test_what_is_read_in_one_body_is_free_behind_it_and_else_when_the_next_is_taken() -> None:
    text = fetching_class(product(), "Product")
    process = text[text.index("void Process(") : text.index("private:")]
    loop = process[process.index("TakeColumn();") :]
    assert loop.index("LoadFractals(b") < loop.index("MTE1_MTE2>(COLUMN_EVENTS + columnStage)")
    assert "MTE1_MTE2>(ROW_EVENTS + rowStage)" not in process
    taken = text[text.index("void TakeRow(") :]
    assert taken.index("SetFlag<HardEvent::MTE1_MTE2>") < taken.index("WaitFlag<HardEvent::MTE2_MTE1>")


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [
        (product(), None),
        (product(runs=600), "capacity"),
        (product(runs=0), "alignment"),
        (product(is_row=False), "no-stream"),
        (product(runs=1, stages=4), None),
        (product(runs=1, stages=5), "stages"),
        (product(steps=5), "stages"),
    ],
)
def test_kernels_that_fetch_are_held_against_the_rules(kernel: Kernel, rule: str | None, chip: Any) -> None:
    rules = {item.rule for item in broken_rules(kernel, chip, {"n": 40, "m": 3})}
    assert (rule is None and not rules) or rule in rules


EVENTS = ("MTE1_MTE2", "MTE2_MTE1", "M_MTE1", "MTE1_M", "FIX_M", "M_FIX")
FLAGS = ("SLAB_READY", "SLAB_FREE", "RESULT_READY", "RESULT_FREE", "WEIGHTS_READY")


LAYER = Layer((ConvTransposeAxis(2, 1, 1, 1), ConvTransposeAxis()), (5, 3), 40, 40, ((1, 41, 9),), bias=True)
STRATEGY = Strategy(
    "transposed", asdict(ConvTransposeSchedule(16, 32, 2, 16, 16, 3, turned=True, own_weights=True))
)
"""Weights pass through L1, several results lie in L0C, and each of few cores has more tiles than its rings
places."""
few_cores = on_all_cores_too(LAYER=evolve(LAYER, sizes=((1, 230, 9),)))


def test_a_kernel_that_fetches_is_right(builder: Any, on_few_cores: Any) -> None:
    values = values_of(LAYER, LAYER.sizes[0])
    (result,) = on_few_cores(task_of(builder, LAYER), values, strategy=STRATEGY)
    close(result, expected(LAYER, values), LAYER)


@few("left_out", [*(f"HardEvent::{event}>" for event in EVENTS), *FLAGS], keep=(0, 1, 7, 9))
def test_every_event_and_flag_of_the_cube_core_is_needed(
    left_out: str, builder: Any, on_few_cores: Any, few_cores: Any, monkeypatch: Any
) -> None:
    task = task_of(builder, LAYER)
    source = write(task, STRATEGY, few_cores)
    before, name, rest = source.files[KERNEL].partition("class KernelMultiplier")
    cube, entry, behind = rest.partition('extern "C"')
    kept = "\n".join(line for line in cube.splitlines() if left_out not in line)
    assert len(kept) < len(cube) - 1
    changed = source.with_files({KERNEL: before + name + kept + entry + behind})
    monkeypatch.setattr(conftest, "write", lambda *_: changed)
    with pytest.raises(AssertionError):
        on_few_cores(task, values_of(LAYER, LAYER.sizes[0]), strategy=STRATEGY)
