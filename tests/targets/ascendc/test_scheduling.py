"""Kernels whose cores all wait for each other are scheduled as a batch, and no others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.kernels.family import Cores, KernelFacts, StageText
from evokernel_core.targets.ascendc.print.scheduling import batched
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.conditions import BUILT_IN, active_tokens
from evokernel_core.twin.kernels import MIX, find_kernels

BATCH = 'extern "C" __schedmode__(1) __global__'


@pytest.mark.parametrize("waits", [True, False])
def test_waits_of_all_cores_take_the_batch_mode(waits: bool) -> None:
    kernel = 'extern "C" __global__ __mix__(1, 2) void name(GM_ADDR x)\n{\n}\n'
    text = batched(StageText("", "", kernel, "name", KernelFacts(Cores.BOTH, waits_for_all=waits)))
    assert text == (kernel.replace('extern "C"', 'extern "C" __schedmode__(1)') if waits else kernel)
    (found,) = find_kernels([tuple(active_tokens(text, dict(BUILT_IN)))]).values()
    assert (found.name, found.ratio) == ("name", MIX)


def product(graph: Any) -> KernelTask:
    """softmax(x w), a product and rows: two kernels that meet."""
    x, w = graph.input("x", ("m", 24)), graph.input("w", (24, 24), parameter=True)
    y = graph.call("mm.default", x, w, shape=("m", 24))
    task: KernelTask = graph.task(
        graph.call("_softmax.default", y, -1, False, shape=("m", 24)), symbols={"m": 70}
    )
    return task


def test_emitted_kernels_are_in_batch_mode_where_they_wait(builder: Any, chip: Any) -> None:
    task = product(builder())
    strategy = initial(task, chip)
    (apart,) = (move for move in moves(task, strategy, chip) if move.name == "a launch for each kernel")
    for chosen, expected in ((strategy, True), (apart.strategy, False)):
        source = write(task, chosen, chip)
        assert ("SyncAll" in source.files[KERNEL]) == expected
        assert (BATCH in source.files[KERNEL]) == expected
        assert audit(task, source).status is GateStatus.PASSED


def test_cube_cores_have_no_pipe(builder: Any, chip: Any) -> None:
    """A TPipe on a cube core sets events that kernels set too; vector cores have one each."""
    task = product(builder())
    text = write(task, initial(task, chip), chip).files[KERNEL]
    for body in re.findall(r"__cube__ void.*?^}", text, re.DOTALL | re.MULTILINE):
        assert "TPipe" not in body
    assert text.count("TPipe pipe;") == 1
    assert text.count("InitSocState();") == 1
