"""What is planned, what is refused and in which words; schedules and features."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.compiler.features import task_features
from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.targets.ascendc.audit.text import check_text
from evokernel_core.targets.ascendc.author import write
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, moves, refusal
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.queues import plan
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.targets.ascendc.target import ASCENDC


def softmax_task(builder: Any, shape: tuple[Any, ...], dtype: str = "float32", **symbols: int) -> KernelTask:
    b = builder()
    x = b.input("x", shape, dtype)
    task: KernelTask = b.task(
        b.call("_softmax.default", x, -1, False, shape=shape, dtype=dtype), symbols=symbols
    )
    return task


def _unknown(b: Any) -> ValueRef:
    return b.call("bmm.default", b.input("x", [2, 3, 4]), b.input("y", [2, 4, 5]), shape=[2, 3, 5])


def _interleaved(b: Any) -> ValueRef:
    return b.call("sum.dim_IntList", b.input("x", [2, 3, 4, 5]), (0, 2), shape=[3, 5])


def _empty(b: Any) -> ValueRef:
    return b.call("relu.default", b.input("x", [0, 4]), shape=[0, 4])


def _double(b: Any) -> ValueRef:
    return b.call("relu.default", b.input("x", [4], "float64"), shape=[4], dtype="float64")


def _integers(b: Any) -> ValueRef:
    return b.call("add.Tensor", b.input("x", [4], "int32"), 1, shape=[4], dtype="int32")


def _bool_arithmetic(b: Any) -> ValueRef:
    x = b.input("x", [4], "bool")
    return b.call("add.Tensor", x, x, shape=[4], dtype="bool")


def _indices(b: Any) -> ValueRef:
    outputs = [TensorSpec([4], "float32"), TensorSpec([4], "int64")]
    node = b.calls("max.dim", b.input("x", [4, 8]), 1, outputs=outputs)
    return b.call("add.Tensor", ValueRef(node.name, 1), 0.5, shape=[4])


def _huge(b: Any) -> ValueRef:
    return b.call("relu.default", b.input("x", [2**20, 2**15]), shape=[2**20, 2**15])


def _two_axes(b: Any) -> ValueRef:
    rows = b.call("sum.dim_IntList", b.input("x", [6, 4, 4]), (2,), shape=[6, 4])
    return b.call("sum.dim_IntList", rows, (1,), shape=[6])


def _nested_axes(b: Any) -> ValueRef:
    x = b.input("x", [4, 4, 4])
    rows = b.call("sum.dim_IntList", x, (2,), shape=[4, 4])
    sums = b.call("sum.dim_IntList", rows, (1,), shape=[4])
    wide = b.call("view.default", sums, (4, 1, 1), shape=[4, 1, 1])
    return b.call("sub.Tensor", x, wide, shape=[4, 4, 4])


def _many_inputs(b: Any) -> ValueRef:
    value = b.input("x0", [64])
    for index in range(1, 10):
        value = b.call("add.Tensor", value, b.input(f"x{index}", [64]), shape=[64])
    return value


def _odd_view(b: Any) -> ValueRef:
    x, w = b.input("x", [6, 4]), b.input("w", [5, 1])
    y = b.call("view.default", x, (4, 6), shape=[4, 6])
    z = b.call("add.Tensor", y, x, shape=[4, 6])
    return b.call("add.Tensor", z, w, shape=[4, 6])


def _inside_columns(b: Any) -> ValueRef:
    x = b.input("x", [2, 3, 4, 5])
    scaled = b.call("mul.Tensor", x, b.input("w", [3, 1, 1]), shape=[2, 3, 4, 5])
    moved = b.call("add.Tensor", scaled, b.input("v", [4, 1]), shape=[2, 3, 4, 5])
    return b.call("sum.dim_IntList", moved, (1, 2, 3), shape=[2])


REFUSALS: list[tuple[Callable[[Any], ValueRef], str]] = [
    (_unknown, "aten.bmm.default is not covered by any schedule family"),
    (_interleaved, "reduces another dimension than"),
    (_empty, "has no elements"),
    (_double, "dtype float64"),
    (_integers, "int32"),
    (_bool_arithmetic, "on bool tensors is not covered"),
    (_indices, "indices|int64"),
    (_huge, "more than the 64 GiB of device memory"),
    (_two_axes, "differs from the rest"),
    (_nested_axes, "reduces another dimension"),
    (_many_inputs, "one kernel has queues for 8"),
    (_odd_view, "does not nest|differs"),
    (_inside_columns, "broadcast inside the reduced dimensions"),
]


@pytest.mark.parametrize(("make", "reason"), REFUSALS, ids=lambda item: getattr(item, "__name__", None))
def test_what_is_not_covered_is_refused_with_its_reason(
    make: Callable[[Any], ValueRef], reason: str, builder: Any
) -> None:
    b = builder()
    output = make(b)
    with pytest.raises(PlanError, match=reason) as caught:
        plan(b.task(output), load_chip())
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert sentence[0].isupper() or sentence.startswith("aten.")


def test_a_kernel_has_as_many_results_as_queues(builder: Any) -> None:
    for count in (8, 9):
        b = builder()
        x = b.input("x", [64])
        task = b.task(*(b.call("mul.Tensor", x, float(item + 2), shape=[64]) for item in range(count)))
        if count == 8:
            assert len(plan(task, load_chip()).outputs) == 8
        else:
            with pytest.raises(PlanError, match="has 9 outputs; one kernel has queues for 8"):
                plan(task, load_chip())


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("float16", 2)])
def test_a_copy_steps_over_as_many_bytes_as_its_field_holds(
    dtype: str, size: int, builder: Any, chip: Chip
) -> None:
    """Columns of lanes: from one row to the next a copy steps over all lanes, counted in 32 bits of bytes."""
    b = builder()
    x = b.input("x", (64, 300, 500), dtype)
    task = b.task(b.call("sum.dim_IntList", x, (1,), shape=[64, 500], dtype=dtype))
    (most,) = re.findall(r"MOST_COLUMNS = (\d+);", write(task, initial(task, chip), chip).files[TILING])
    assert int(most) == (2**32 - 1) // size


def test_every_rule_has_one_of_three_kinds() -> None:
    assert set(fused_ops().values()) == {"pointwise", "reduction", "view"}
    assert fused_ops()["aten.gelu.default"] == "pointwise"
    assert fused_ops()["aten._softmax.default"] == "reduction"
    assert fused_ops()["aten.view.default"] == "view"


def test_neighbouring_dimensions_collapse(builder: Any) -> None:
    b = builder()
    x, w = b.input("x", [2, 3, 4, 5]), b.input("w", [3, 1, 1])
    planned = plan(b.task(b.call("mul.Tensor", x, w, shape=[2, 3, 4, 5])), load_chip())
    assert [str(size) for size in (*planned.outer, planned.mid, planned.inner)] == ["2", "3", "20"]


def test_symbolic_sizes_stay_symbolic(builder: Any) -> None:
    planned = plan(softmax_task(builder, ("s0", "s1", 64), s0=4, s1=8), load_chip())
    assert str(planned.rows) == "s0 * s1"
    assert str(planned.inner) == "64"


@pytest.mark.parametrize(
    ("shape", "form"),
    [
        ((64, 4096), {Form.RESIDENT, Form.PACKED}),
        ((96, 100_000), {Form.STREAM}),
        ((8, 100_000), {Form.SHARED}),
        ((4096, 32), {Form.PACKED}),
    ],
)
def test_the_first_form_follows_the_length_of_rows(
    shape: tuple[int, ...], form: set[Form], builder: Any, chip: Chip
) -> None:
    assert Schedule.of(initial(softmax_task(builder, shape), chip)).form in form


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AcmeNet", "acmenet"),
        ("Ärgernis", "rgernis"),
        ("Modèle_é2", "mod_le_2"),
        ("秘密模型", "kernel"),
        ("my net.forward", "my_net_forward"),
        ("étape2", "tape2"),
        ("2layers", "op_2layers"),
        ("", "kernel"),
    ],
)
def test_a_kernel_is_named_in_letters_that_compilers_and_the_audit_take(
    builder: Any, chip: Chip, name: str, expected: str
) -> None:
    task = evolve(softmax_task(builder, (512, 64)), name=name)
    source = write(task, initial(task, chip), chip)
    assert f"{expected}_kernel(" in source.files[KERNEL].lower()
    for file, text in ((KERNEL, source.files[KERNEL]), (TILING, source.files[TILING])):
        assert text.isascii() and list(check_text(file, text)) == []


def test_moves_are_legal_named_and_change_the_source(builder: Any, chip: Chip) -> None:
    task = softmax_task(builder, (512, 1000), "float16")
    start = initial(task, chip)
    planned = plan(task, load_chip())
    found = moves(task, start, chip)
    sources = {write(task, move.strategy, chip).source_id for move in found}
    assert len(sources) == len(found) > 4
    assert write(task, start, chip).source_id not in sources
    for move in found:
        assert move.strategy.move == move.name
        assert refusal(planned, Schedule.of(move.strategy), task, chip) is None


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        (Schedule(Form.RESIDENT, 100), "whole number"),
        (Schedule(Form.RESIDENT, 512), "does not fit a tile"),
        (Schedule(Form.RESIDENT, 16_640), "at most"),
        (Schedule(Form.RESIDENT, 16_128), "bytes"),
        (Schedule(Form.PACKED, 8192, columns=4096, reduction="fold"), "repeat stride"),
    ],
)
def test_illegal_schedules_are_refused_before_compiling(
    schedule: Schedule, reason: str, builder: Any, chip: Chip
) -> None:
    task = softmax_task(builder, (64, 4096))
    assert reason in str(refusal(plan(task, load_chip()), schedule, task, chip))


def test_the_same_strategy_writes_the_same_source(builder: Any, chip: Chip) -> None:
    task = softmax_task(builder, (64, 300))
    strategy = initial(task, chip)
    assert write(task, strategy, chip) == write(task, strategy, chip)


def test_features_tell_tasks_apart(builder: Any) -> None:
    small, large = softmax_task(builder, (64, 300)), softmax_task(builder, (64, 30_000))
    half = softmax_task(builder, (64, 300), "float16")
    assert task_features(small, ASCENDC) == task_features(softmax_task(builder, (64, 300)), ASCENDC)
    assert task_features(small, ASCENDC)["log_elements"] < task_features(large, ASCENDC)["log_elements"]
    assert "dtype:float16" in task_features(half, ASCENDC)
    assert all(abs(weight) < 10 for weight in task_features(large, ASCENDC).values())
