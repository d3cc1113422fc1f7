"""Vector cores in the IR beside cube cores that are text: flags, loops that two cores share, and events."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.problems.recurrent import Recurrence
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import Constant, TilingField, VectorCore
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.kernels.recurrent.gates import build
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_schedule import best, buffer_bytes
from evokernel_core.targets.ascendc.print.vector_kernel import arguments_of, vector_class
from evokernel_core.targets.ascendc.source import KERNEL
from tests.targets.ascendc import conftest
from tests.targets.ascendc.test_recurrent import task_of

HALF = Constant("HALF", 64)


def halves() -> Kernel:
    """Copies tiles of two halves, one for each vector core, when the cube core says that they are there."""
    k = Builder("Halves of tiles.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "workspace + tiling.behind", "float", 4)
    run = Buffer("run", "float", 4, HALF, 2)
    with k.cores("tile", TilingField("tiles"), with_cube=True) as tile:
        place = (tile * 2 + VectorCore()) * HALF
        k.take("THERE")
        k.load(run, x, place, HALF)
        k.store(y, place, run, HALF)
        k.give("TAKEN")
        k.fence("MTE3_MTE2")
    return k.kernel()


def test_the_vector_cores_of_a_cube_core_share_a_turn() -> None:
    text, arguments = vector_class(halves(), "Halves"), arguments_of(halves())
    assert "tile = GetBlockIdx() / GetTaskRatio(); tile < tiling_.tiles; tile += GetBlockNum()" in text
    assert "(tile * 2 + GetSubBlockIdx()) * HALF" in text
    assert text.index("CrossCoreWaitFlag(THERE);") < text.index("DataCopyPad(")
    assert "CrossCoreSetFlag<2, PIPE_MTE3>(TAKEN);" in text and "HardEvent::MTE3_MTE2" in text
    assert arguments == "x, workspace + tiling.behind"


@pytest.mark.parametrize("left_out", [r"Wait.*PRODUCTS_READY", r"Wait.*INPUTS_READY", "MTE3_MTE2"])
def test_flags_and_events_are_needed(
    left_out: str, builder: Any, on_twin: Any, chip: Any, monkeypatch: Any
) -> None:
    task = task_of(builder, "gru", layers=2, biases=False)
    rng = np.random.default_rng(1)
    sizes = {"t": 6, "b": 3}
    inputs = {item.name: rng.normal(size=item.spec.sizes(sizes)).astype("f4") for item in task.graph.inputs}
    on_twin(task, inputs, sizes=sizes)
    source = write(task, initial(task, chip), chip)
    lines = source.files[KERNEL].splitlines()
    kept = [line for line in lines if not re.search(left_out, line)]
    assert len(kept) < len(lines)
    changed = source.with_files({KERNEL: "\n".join(kept)})
    monkeypatch.setattr(conftest, "write", lambda *_: changed)
    with pytest.raises(AssertionError):
        on_twin(task, inputs, sizes=sizes)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_gates_are_legal_and_take_what_schedules_count(
    kind: str, stacked: bool, dtype: str, chip: Any
) -> None:
    names = ("0", "1")
    lengths = extent(9), extent(20), extent(100)
    found = Recurrence(
        kind, names[: 2 - stacked], names, names, names, "h", "c", 0, False, *lengths, (0, 1, 2),
        names[1:] if stacked else (), dtype,
    )  # fmt: skip
    item = best(found, {}, chip)
    cells = "result2" if kind == "lstm" else ""
    carried = "h" if found.carries else ""
    addresses = {
        "projections": ["x0", "x1"][: 2 - stacked], "input_biases": ["b0", "b1"],
        "hidden_biases": ["c0", "c1"],
        "hidden_input": "h", "carried_input": carried, "outputs": "result0", "last_states": "result1",
        "last_cells": cells,
    }  # fmt: skip
    kernel = build(found, item, addresses)
    assert allocation.bytes_of(kernel) <= buffer_bytes(found, item) <= chip.ub_bytes
    tiles = -(-20 // item.batch), -(-100 // item.hidden)
    fields = {
        "steps": 9, "batch": 20, "hidden": 100, "ticks": 11, "units": 2 * tiles[0] * tiles[1], "blockDim": 4,
        "batchTiles": tiles[0], "hiddenTiles": tiles[1], "unitsPerSignal": 1, "rowPitch": 1, "stepPitch": 20,
        "stateElements": 112 * item.batch,
    }  # fmt: skip
    known = {f"tiling.{name}": value for name, value in fields.items()}
    assert not list(broken_rules(kernel, chip, known))
