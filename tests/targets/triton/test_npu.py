"""Triton for Ascend: launches of as many programs as cores, tiles that fit, and the vendor's own front."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip_files import chip_names
from evokernel_core.hardware.gpu.gpu import gpu_of
from evokernel_core.hardware.gpu.npu import npu
from evokernel_core.targets import author_for
from evokernel_core.targets.triton.backends.ascend_front import LONGEST_NAME, AscendFront, front_python
from evokernel_core.targets.triton.launch import read_launches
from evokernel_core.targets.triton.source import KERNEL, LAUNCH
from evokernel_core.twin.build import CandidateError
from tests.targets.ascendc.conftest import GraphBuilder
from tests.targets.triton.child import Child, run_source
from tests.targets.triton.written import softmax_source, softmax_task, total_task

CHIP = "ascend910b1"


def gelu_task() -> KernelTask:
    g = GraphBuilder()
    x = g.input("x", ("s0", "s1"), "float16")
    return g.task(
        g.call("gelu.default", x, shape=("s0", "s1"), dtype="float16"), symbols={"s0": 300, "s1": 70}
    )


def clipped_product(dtype: str) -> KernelTask:
    """With what no library does behind a product."""
    g = GraphBuilder()
    a, b = g.input("a", ("s0", "s1"), dtype), g.input("b", ("s1", "s2"), dtype)
    product = g.call("mm.default", a, b, shape=("s0", "s2"), dtype=dtype)
    clipped = g.call("clamp.default", product, -0.5, 0.5, shape=("s0", "s2"), dtype=dtype)
    result = g.call("gelu.default", clipped, shape=("s0", "s2"), dtype=dtype)
    return g.task(result, symbols={"s0": 300, "s1": 100, "s2": 200})


TASKS: dict[str, Callable[[], KernelTask]] = {
    "element-wise": gelu_task,
    "rows": softmax_task,
    "long rows": lambda: softmax_task(rows=64, columns=30_000),
    "all elements": total_task,
    "products": lambda: clipped_product("float32"),
    "products of halves": lambda: clipped_product("float16"),
}


def written(task: KernelTask) -> KernelSource:
    return author_for(CHIP, "triton").plan(task).write()


@pytest.mark.parametrize("name", TASKS)
def test_a_launch_has_no_more_programs_than_the_chip_has_cores(name: str) -> None:
    task = TASKS[name]()
    source = written(task)
    for launch in read_launches(source.files[LAUNCH]).kernels:
        assert launch.programs({**task.sizes})[0] <= npu(CHIP).multiprocessors
    assert "div_rn" not in source.files[KERNEL] and "tf32" not in source.files[KERNEL]


def test_it_computes_the_same(interpreter: Child, tmp_path: Path) -> None:
    task = softmax_task(rows=150, columns=37)  # programs take several rows, and not all as many
    x = np.random.default_rng(3).standard_normal((150, 37)).astype(np.float32)
    (result,) = run_source(interpreter, tmp_path / "kernel", task, written(task), {"x": x})
    powers = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(result, powers / powers.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("chip", chip_names())
def test_every_chip_is_a_device_of_both_targets(chip: str) -> None:
    assert author_for(chip).target.name == "ascendc"
    author = author_for(chip, "triton")
    assert gpu_of(author.device).backend == "npu" and gpu_of(author.device).live_bytes == 196_608
    planned = author.plan(softmax_task())
    assert 0 < author.device.launch_us < planned.estimate_us() < 100
    same = author_for(chip).target.baseline(softmax_task(), author_for(chip).device)
    assert author.target.baseline(softmax_task(), author.device) == same


def test_names_are_as_long_as_the_runtime_takes() -> None:
    task = evolve(softmax_task(), name="softmax_of_attention_scores_" * 4)
    (launch,) = read_launches(written(task).files[LAUNCH]).kernels
    assert 20 < len(launch.kernel) <= LONGEST_NAME


def test_a_long_name_is_refused_before_anything_is_compiled() -> None:
    source = softmax_source()
    files = {name: text.replace("softmax_rows", "softmax_rows" * 5) for name, text in source.files.items()}
    with pytest.raises(CandidateError, match="has more than 49 characters"):
        AscendFront(npu(CHIP), "").build(softmax_task(), source.with_files(files))


@pytest.fixture(scope="module")
def front() -> Any:
    if not front_python():
        pytest.skip("no triton-ascend here; make ascend-triton installs it")
    return AscendFront(npu(CHIP), front_python())


@pytest.mark.parametrize("name", TASKS)
def test_the_vendors_front_takes_it(name: str, front: AscendFront) -> None:
    task = TASKS[name]()
    built = front.build(task, written(task))
    assert built.launches and all(0 < one.live_bytes <= 196_608 for one in built.launches)


def test_what_the_front_refuses_is_said(front: AscendFront) -> None:
    source = written(clipped_product("float32"))
    text = source.files[KERNEL].replace('"ieee"', '"tf32"')
    with pytest.raises(CandidateError, match="use input_precision='hf32' on Ascend"):
        front.build(clipped_product("float32"), source.with_files({KERNEL: text}))


def test_a_tile_that_no_chip_holds_is_refused(front: AscendFront) -> None:
    task = softmax_task(rows=8, columns=50)
    source = written(task)
    text = source.files[LAUNCH].replace("next_power_of_2(s1)", "65536")
    with pytest.raises(CandidateError, match="bytes of tiles alive at once, and Ascend 910B1 holds 196608"):
        front.build(task, source.with_files({LAUNCH: text}))
