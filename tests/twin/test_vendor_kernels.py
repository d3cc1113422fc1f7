"""Which kernels torch_npu launches for an operation, and what they cost by size."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.hardware.ascend.chip_files import chip_names
from evokernel_core.hardware.ascend.eager import eager_launches, eager_us
from evokernel_core.hardware.ascend.launches import Launch, launch_us

CHIP = load_chip("ascend910b2")


def task_of(
    op: str, shapes: list[tuple[int, ...]], made: tuple[int, ...], *args: Any, dtype: str = "float32"
) -> KernelTask:
    names = [f"x{number}" for number in range(len(shapes))]
    inputs = tuple(
        GraphInput(name, TensorSpec(shape, dtype)) for name, shape in zip(names, shapes, strict=True)
    )
    node = Node("y", op, (*map(ValueRef, names), *args), (), (TensorSpec(made, dtype),))
    return KernelTask("one", Graph(inputs, (node,), (ValueRef("y"),)), (), TOLERANCES["float32"], "other")


CONVOLUTION = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
KERNELS = {
    "one kernel for an element-wise operation": (task_of("aten.exp.default", [(64, 64)], (64, 64)), ["exp"]),
    "a product": (task_of("aten.mm.default", [(64, 32), (32, 16)], (64, 16)), ["MatMulV3"]),
    "a convolution changes formats": (
        task_of(
            "aten.convolution.default", [(2, 3, 8, 8), (4, 3, 3, 3)], (2, 4, 8, 8), None, *CONVOLUTION
        ),
        ["TransData", "TransData", "Conv2D", "TransData"],
    ),
    "a scan with places goes along the first dimension": (
        task_of("aten.cummin.default", [(8, 16)], (8, 16), 1),
        ["Transpose", "Transpose", "Transpose", "cummin", "Cast"],
    ),
    "and needs no transpose there": (
        task_of("aten.cummin.default", [(8, 16)], (8, 16), 0), ["cummin", "Cast"],
    ),
    "a place is cast": (task_of("aten.argmax.default", [(8, 16)], (8,), 1), ["argmax", "Cast"]),
    "logsumexp is several": (
        task_of("aten.logsumexp.default", [(8, 16)], (8, 1), (1,), True),
        ["logsumexp", "Sub", "Exp", "logsumexp", "Equal", "Select", "Log", "Add"],
    ),
    "integers are sorted by the AI CPU": (
        task_of("aten.topk.default", [(8, 16)], (8, 2), 2, dtype="int32"), ["topk"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_an_operation_launches_what_profiles_show(name: str) -> None:
    task, kernels = KERNELS[name]
    assert [launch.kernel for launch in eager_launches(task, CHIP)] == kernels


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 30), st.floats(0, 1e9), st.sampled_from(chip_names()))
def test_more_work_is_never_cheaper(read: int, written: int, cycles: float, name: str) -> None:
    chip = load_chip(name)
    less = launch_us(Launch("", read, written, cycles), chip)
    assert chip.eager.launch_us <= less < math.inf
    # a core more is started where there is more to move, which divides the work too
    started = chip.aiv * chip.eager.core_us
    for launch in (Launch("", 2 * read, written, cycles), Launch("", read, written, 2 * cycles)):
        assert launch_us(launch, chip) >= less - cycles / chip.mhz - 1e-9
    assert launch_us(Launch("", read, written, cycles, serial_us=5.0), chip) == pytest.approx(less + 5.0)
    assert started < 2.5


@pytest.mark.parametrize(
    ("op", "args", "made", "dtype"),
    [
        ("aten.topk.default", (2,), (2048, 2), "int32"),
        ("aten.cummin.default", (1,), (2048, 2048), "float32"),
        ("aten.argmax.default", (0,), (2048,), "float32"),
        ("aten.flip.default", ((1,),), (2048, 2048), "float32"),
    ],
)
def test_what_runs_step_by_step_or_on_the_ai_cpu_takes_long(
    op: str, args: tuple[Any, ...], made: tuple[int, ...], dtype: str
) -> None:
    """As in published rows, where such kernels take from ten to a thousand times a copy's time."""
    shape = (2048, 2048)
    slow = eager_us(task_of(op, [shape], made, *args, dtype=dtype), CHIP)
    assert slow > 10 * eager_us(task_of("aten.abs.default", [shape], shape, dtype=dtype), CHIP)


@pytest.mark.parametrize(
    ("op", "shape", "dtype", "measured_us"),
    [
        # published: hicann/cann-bench at 3f051056, tasks/metadata/910b2.json
        ("aten.sigmoid.default", (1024, 1024), "float16", 5.3),
        ("aten.mish.default", (8192, 8192), "float16", 673.35),
        ("aten.gelu.default", (4096, 4096), "bfloat16", 62.32),
    ],
)
def test_activations_take_what_silicon_takes(
    op: str, shape: tuple[int, ...], dtype: str, measured_us: float
) -> None:
    assert eager_us(task_of(op, [shape], shape, dtype=dtype), CHIP) == pytest.approx(measured_us, rel=0.3)


def test_every_chip_has_costs_of_the_vendor() -> None:
    chips: list[Chip] = [load_chip(name) for name in chip_names()]
    assert all(chip.eager.read_gbps <= chip.hbm_gbps for chip in chips)
