"""Family recurrent in Triton: LSTM, GRU and plain RNN of any length against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import load_gpu
from evokernel_core.hardware.gpu.npu import npu
from evokernel_core.targets.triton.launch import read_launches
from evokernel_core.targets.triton.source import LAUNCH
from evokernel_core.targets.triton.target import TRITON
from tests.tables import few
from tests.targets.ascendc.test_recurrent import GATES, SIZES, recurrent, task_of
from tests.targets.triton.child import Child, run_source

TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("lstm", {}),
    ("lstm", {"both": True, "batch_first": True, "layers": 2}),
    ("gru", {"hidden": 33}),
    ("gru", {"layers": 3, "zeros": True}),
    ("rnn_tanh", {"both": True, "biases": False}),
    ("rnn_relu", {"batch_first": True, "biases": False}),
    ("lstm", {"biases": False, "outputs": (1,)}),
    ("lstm", {"layers": 2, "outputs": (2,)}),
    ("gru", {"both": True, "layers": 2, "outputs": (1,)}),
    ("lstm", {"dtype": "float16"}),
    ("gru", {"dtype": "bfloat16", "batch_first": True}),
]


def _author() -> KernelAuthor:
    return KernelAuthor(TRITON, load_gpu())


@pytest.fixture
def written(interpreter: Child, tmp_path: Any) -> Any:
    """The results of a whole task's first draft."""
    count = iter(range(1_000))

    def run(task: KernelTask, inputs: dict[str, Any], sizes: dict[str, int]) -> list[Any]:
        source = _author().plan(task).write()
        return run_source(interpreter, tmp_path / f"kernel_{next(count)}", task, source, inputs, sizes)

    return run


def _drawn(task: KernelTask, sizes: dict[str, int], scale: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(sum(sizes.values()))
    shares = {True: 0.4 * scale, False: scale}
    return {
        one.name: (rng.normal(size=one.spec.sizes(sizes)) * shares[one.name[0] == "p"]).astype("f4")
        for one in task.graph.inputs
    }


@few("case", CASES, keep=(0, 1, 2, 4, 6, 8, 9))
def test_layers_at_many_sizes(case: tuple[str, dict[str, Any]], builder: Any, written: Any) -> None:
    kind, given = case
    task = task_of(builder, kind, **given)
    tolerance = TOLERANCE[given.get("dtype", "float32")]
    for steps, batch in SIZES[1:3]:
        sizes = {"t": steps, "b": batch}
        inputs = _drawn(task, sizes)
        if "dtype" in given:
            inputs = {name: np.round(16 * value) / 16 for name, value in inputs.items()}
        results = written(task, inputs, sizes)
        exact = recurrent(task, inputs)
        for ref, result in zip(task.graph.outputs, results, strict=True):
            np.testing.assert_allclose(result, exact[ref.index], rtol=tolerance, atol=tolerance)


@few("kind", GATES, keep=(0, 2))
def test_tiny_values_keep_their_digits(kind: str, builder: Any, written: Any) -> None:
    task = task_of(builder, kind)
    sizes = {"t": 4, "b": 3}
    inputs = _drawn(task, sizes, 2.0**-17)
    results = written(task, inputs, sizes)
    exact = recurrent(task, inputs)
    for ref, result in zip(task.graph.outputs, results, strict=True):
        np.testing.assert_allclose(result, exact[ref.index], rtol=1e-5, atol=1e-10)


def test_a_stack_alone_is_kernels_of_ours(builder: Any) -> None:
    task = task_of(builder, "gru", layers=2)
    assert read_launches(_author().plan(task).write().files[LAUNCH]).kernels


def test_a_state_that_no_program_holds_is_refused(builder: Any) -> None:
    with pytest.raises(PlanError, match="No tile of the kernel fits"):
        _author().plan(task_of(builder, "rnn_tanh", hidden=8193))


def test_kernels_for_ascend_have_no_barrier(builder: Any) -> None:
    with pytest.raises(PlanError, match="needs a barrier"):
        KernelAuthor(TRITON, npu("ascend910b1")).plan(task_of(builder, "gru"))
