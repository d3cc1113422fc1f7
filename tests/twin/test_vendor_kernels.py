"""Which kernels torch_npu launches for an operation, and what they cost by size."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.hardware.ascend.chip_files import chip_names
from evokernel_core.hardware.ascend.eager import eager_launches, eager_us, fused_us, rival_us
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


def masked_fill(shape: tuple[int, ...], mask: tuple[int, ...]) -> KernelTask:
    return retyped(task_of("aten.masked_fill.Scalar", [shape, mask], shape, 0.0), "float32", "bool")


def mixed(op: str, *dtypes: str) -> KernelTask:
    return retyped(task_of(op, [(64, 64)] * len(dtypes), (64, 64), dtype=dtypes[0]), *dtypes)


def retyped(task: KernelTask, *dtypes: str) -> KernelTask:
    inputs = zip(task.graph.inputs, dtypes, strict=True)
    given = tuple(evolve(given, spec=evolve(given.spec, dtype=dtype)) for given, dtype in inputs)
    return evolve(task, graph=evolve(task.graph, inputs=given))


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
    "a norm is one": (
        task_of("aten.linalg_vector_norm.default", [(8, 16)], (8, 1), 2, (1,), True), ["linalg_vector_norm"],
    ),
    "a mask is repeated to the size of the copy that it is filled into": (
        masked_fill((8, 16), (1, 16)), ["TensorMove", "BroadcastTo", "masked_fill"],
    ),
    "and not where it has that size": (masked_fill((8, 16), (8, 16)), ["TensorMove", "masked_fill"]),
    "integers are cast to what a product of them and floats is": (
        mixed("aten.mul.Tensor", "float16", "int8"), ["Cast", "mul"],
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


@given(st.integers(1, 400), st.integers(1 << 16, 1 << 20))
def test_a_piece_is_one_core_s(pieces: int, cycles: int) -> None:
    """The busiest core has whole pieces: 49 take 48 cores as long as 96 do."""
    moved = CHIP.aiv * CHIP.eager.core_bytes  # as much as has all cores started, and no more
    rounds = math.ceil(pieces / CHIP.aiv)
    taken = launch_us(Launch("", moved, 0.0, float(cycles) * pieces, pieces), CHIP)
    assert taken >= CHIP.eager.launch_us + rounds * cycles / CHIP.mhz
    alike = launch_us(Launch("", moved, 0.0, float(cycles) * rounds * CHIP.aiv, rounds * CHIP.aiv), CHIP)
    assert pieces < CHIP.aiv or taken == pytest.approx(alike)


def test_few_cores_copy_at_their_own_rate() -> None:
    one, all_cores = (launch_us(Launch("", 1 << 24, pieces=count), CHIP) for count in (1, CHIP.aiv))
    assert one > 10 * all_cores


def test_what_was_made_just_before_is_read_from_l2() -> None:
    """The second of two operations reads what the first one wrote, which device memory does not tell."""
    shape = (1024, 1024)
    ref, spec = ValueRef("y"), TensorSpec(shape, "float32")
    first = task_of("aten.abs.default", [shape], shape)
    second = Node("z", "aten.neg.default", (ref,), (), (spec,))
    both = evolve(
        first, graph=evolve(first.graph, nodes=(*first.graph.nodes, second), outputs=(ValueRef("z"),))
    )
    cold, warm = eager_launches(both, CHIP)
    assert (cold.warm, warm.warm) == (0.0, 4.0 * 1024 * 1024)
    assert launch_us(warm, CHIP) < launch_us(cold, CHIP)


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


def halves(rows: int, columns: int) -> KernelTask:
    """One half of a matrix' rows times the exponential of the other."""
    x, half = TensorSpec((2 * rows, columns), "float16"), TensorSpec((rows, columns), "float16")
    nodes = (
        Node("parts", "aten.split.Tensor", (ValueRef("x"), rows), (), (half, half)),
        Node("gate", "aten.exp.default", (ValueRef("parts", 0),), (), (half,)),
        Node("y", "aten.mul.Tensor", (ValueRef("gate"), ValueRef("parts", 1)), (), (half,)),
    )
    graph = Graph((GraphInput("x", x),), nodes, (ValueRef("y"),))
    return KernelTask("halves", graph, (), TOLERANCES["float16"], "activation")


def test_a_part_that_begins_within_a_block_is_copied_first() -> None:
    """As in published rows of SwiGlu along another dimension than the last: Slice and SwiGlu."""
    aligned, other = fused_us(halves(511, 2048), CHIP), fused_us(halves(511, 2047), CHIP)
    assert other > aligned + CHIP.eager.launch_us
    assert rival_us(halves(511, 2048), CHIP) <= aligned
