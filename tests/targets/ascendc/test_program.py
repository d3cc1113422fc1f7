"""Programs: a graph that no single kernel computes is cut, laid out in the workspace, and runs right."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.author import _best_program
from evokernel_core.compiler.fusion.program import draft, parted, plan_program
from evokernel_core.compiler.fusion.records import PROGRAM
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.domain.serial import dumps
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import check, estimate_us, initial, moves, write
from evokernel_core.targets.ascendc.kernels.fused.fused_family import FusedFamily
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.tables import few


def _softmax(values: Any) -> Any:
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def two_grids(builder: Any) -> KernelTask:
    """exp(x) is summed over its columns; the softmax over those sums has other rows."""
    graph = builder()
    x = graph.input("x", ("b", 24, 40))
    bias = graph.input("bias", (24,), parameter=True)
    powers = graph.call("exp.default", x, shape=("b", 24, 40))
    total = graph.call("sum.dim_IntList", powers, (-1,), shape=("b", 24))
    moved = graph.call("add.Tensor", total, bias, shape=("b", 24))
    result = graph.call("_softmax.default", moved, -1, False, shape=("b", 24))
    return graph.task(result, symbols={"b": 6})


def layers(builder: Any, count: int) -> KernelTask:
    """``count`` times the same: a softmax over the columns, then a sum that another grid needs."""
    graph = builder()
    value = graph.input("x", ("b", 16, 32))
    for _ in range(count):
        value = graph.call("_softmax.default", value, -1, False, shape=("b", 16, 32))
        rows = graph.call("sum.dim_IntList", value, (-1,), shape=("b", 16))
        rows = graph.call("_softmax.default", rows, -1, False, shape=("b", 16))
        column = graph.call("unsqueeze.default", rows, -1, shape=("b", 16, 1))
        value = graph.call("mul.Tensor", value, column, shape=("b", 16, 32))
    return graph.task(value, symbols={"b": 4})


def test_a_graph_of_two_grids_takes_two_launches(builder: Any, on_twin: Any, chip: Any) -> None:
    task = two_grids(builder)
    program = plan_program(task, chip, ASCENDC)
    assert len(program.stages) == 2 == len(program.kinds)
    x, bias = np.random.default_rng(0).normal(size=(5, 24, 40)).astype("f4"), np.arange(24, dtype="f4") / 9
    (result,) = on_twin(task, {"x": x, "bias": bias}, sizes={"b": 5})
    np.testing.assert_allclose(result, _softmax(np.exp(x).sum(-1) + bias), rtol=1e-4, atol=1e-6)


def test_each_kernel_of_a_program_is_drafted_once(
    builder: Any, chip: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cut asks whether a part has a schedule, and the draft of the whole which: one search answers."""
    drafted, search = [], FusedFamily.initial

    def counted(self: FusedFamily, part: KernelTask, chip: Any) -> Any:
        drafted.append(part.task_id)
        return search(self, part, chip)

    monkeypatch.setattr(FusedFamily, "initial", counted)
    draft.cache_clear()
    _best_program.cache_clear()
    initial(layers(builder, 3), chip)
    assert drafted
    assert len(drafted) == len(set(drafted))


def test_equal_stages_are_one_kernel_and_slots_are_used_again(builder: Any, on_twin: Any, chip: Any) -> None:
    task = layers(builder, 4)
    program = plan_program(task, chip, ASCENDC)
    assert len(program.kinds) < len(program.stages)
    assert len(program.slots) < len(program.stages)
    x = np.random.default_rng(1).normal(size=(4, 16, 32)).astype("f4")
    (result,) = on_twin(task, {"x": x})
    expected = x.astype("f8")
    for _ in range(4):
        expected = _softmax(expected)
        expected = expected * _softmax(expected.sum(-1))[..., None]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)


def test_stages_of_other_symbols_are_other_kernels(builder: Any, chip: Any) -> None:
    """Two sizes that are alike in the file are two in a call: one tiling function does not serve both."""
    graph = builder()
    results = []
    for size in ("a", "b"):
        value = graph.input(f"x{size}", (size, 64))
        results.append(graph.call("_softmax.default", value, -1, False, shape=(size, 64)))
    program = plan_program(graph.task(*results, symbols={"a": 8, "b": 8}), chip, ASCENDC)
    assert (len(program.stages), len(program.kinds)) == (2, 2)


def test_a_program_passes_the_audit_and_its_strategy_survives(builder: Any, chip: Any) -> None:
    task = two_grids(builder)
    strategy = initial(task, chip)
    assert strategy.family == PROGRAM
    assert len(parted(strategy)) == 2
    assert strategy.notes[0].startswith("2 runs of 2 kernels")
    source = write(task, strategy, chip)
    assert audit(task, source).status is GateStatus.PASSED
    assert estimate_us(task, strategy, chip) > 0


def test_the_moves_of_a_program_are_those_of_its_kernels(builder: Any, on_twin: Any, chip: Any) -> None:
    task = two_grids(builder)
    found = moves(task, initial(task, chip), chip)
    assert {move.family for move in found} == {"rowwise", "program"}
    texts = {write(task, move.strategy, chip).source_id for move in found}
    assert len(texts) == len(found)
    x, bias = np.random.default_rng(2).normal(size=(6, 24, 40)).astype("f4"), np.zeros(24, "f4")
    (result,) = on_twin(task, {"x": x, "bias": bias}, strategy=found[-1].strategy)
    np.testing.assert_allclose(result, _softmax(np.exp(x).sum(-1)), rtol=1e-4, atol=1e-6)


def test_an_op_of_no_family_is_named(builder: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", (8, 8))
    y = graph.call("exp.default", x, shape=(8, 8))
    task = graph.task(graph.call("linalg_inv.default", y, shape=(8, 8)))
    with pytest.raises(PlanError, match="linalg_inv"):
        check(task, chip)


_WRITE = """
import json, sys
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
task, chip = from_data(json.load(sys.stdin), KernelTask), load_chip("ascend910b1")
print(write(task, initial(task, chip), chip).source_id)
"""


@few("seeds", [("1", "2"), ("3", "4", "5")], keep=(0,))
def test_every_process_writes_the_same_program(seeds: tuple[str, ...], builder: Any) -> None:
    """Sets of names have another order in each process: the launches must not."""
    text = dumps(layers(builder, 3))
    written = {
        subprocess.run(
            [sys.executable, "-c", _WRITE],
            input=text,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in seeds
    }
    assert len(written) == 1


def test_a_product_with_a_diagonal_matrix(builder: Any, on_twin: Any, chip: Any) -> None:
    """The matrix comes from ranges, which read no input."""
    graph = builder()
    a, b = graph.input("a", ("n",)), graph.input("b", ("n", "m"))
    place = graph.call("arange.start_step", 0, SymbolicInt("n"), shape=("n",), dtype="int64")
    below = graph.call("unsqueeze.default", place, -1, shape=("n", 1), dtype="int64")
    same = graph.call("eq.Tensor", place, below, shape=("n", "n"), dtype="bool")
    matrix = graph.call("where.self", same, a, 0.0, shape=("n", "n"))
    product = graph.call("mm.default", matrix, b, shape=("n", "m"))
    task = graph.task(product, symbols={"n": 4096, "m": 4096})
    for n, m in ((37, 50), (1, 1), (1, 70), (200, 3)):
        values = {
            "a": np.random.default_rng(n).normal(size=n).astype("f4"),
            "b": np.random.default_rng(m).normal(size=(n, m)).astype("f4"),
        }
        (found,) = on_twin(task, values, sizes={"n": n, "m": m})
        np.testing.assert_allclose(found, values["a"][:, None] * values["b"], 1e-5, 1e-6)
