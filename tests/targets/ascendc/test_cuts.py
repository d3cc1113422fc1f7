"""Programs one step away from another, and those in which statistics of norms are kernels of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.coverage import view_ops
from evokernel_core.compiler.fusion import cuts
from evokernel_core.compiler.fusion.cuts import covered, recuts, with_moments_apart
from evokernel_core.compiler.fusion.partition import Group, in_order
from evokernel_core.compiler.fusion.program import draft, joined, plan_program
from evokernel_core.compiler.fusion.records import Program
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.author import estimate_us, initial, legalised, moves
from evokernel_core.targets.ascendc.fusion.launches import MOST_TOGETHER, together_us
from evokernel_core.targets.ascendc.fusion.micro_batch_choice import Cut, memory_in_l2, steps
from evokernel_core.targets.ascendc.fusion.micro_batches import Batch
from evokernel_core.targets.ascendc.target import ASCENDC

LARGE = {"n": 64, "h": 130, "w": 130}
SMALL = {"n": 3, "h": 9, "w": 14}
CHANNELS, OUTPUTS, GROUPS = 3, 8, 2


def normed(builder: Any, *, norm: bool = True) -> KernelTask:
    """A convolution, a norm of groups of channels, a tanh, and the log-sum-exp of the channels."""
    graph = builder()
    x = graph.input("x", ("n", CHANNELS, "h", "w"))
    weight = graph.input("weight", (OUTPUTS, CHANNELS, 3, 3), parameter=True)
    shape = ("n", OUTPUTS, "h - 2", "w - 2")
    value = graph.call(
        "convolution.default", x, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, shape=shape
    )
    if norm:
        apart = ("n", GROUPS, OUTPUTS // GROUPS, "h - 2", "w - 2")
        one = ("n", GROUPS, 1, 1, 1)
        grouped = graph.call("view.default", value, apart, shape=apart)
        both = [TensorSpec(one, "float32")] * 2
        dims = (2, 3, 4)
        variance = graph.calls("var_mean.correction", grouped, dims, outputs=both, correction=0, keepdim=True)
        mean = evolve(variance, index=1)
        rate = graph.call("rsqrt.default", graph.call("add.Tensor", variance, 1e-5, shape=one), shape=one)
        centred = graph.call("sub.Tensor", grouped, mean, shape=apart)
        value = graph.call("mul.Tensor", centred, rate, shape=apart)
        value = graph.call("view.default", value, shape, shape=shape)
    value = graph.call("tanh.default", value, shape=shape)
    result = graph.call("logsumexp.default", value, (1,), True, shape=("n", 1, "h - 2", "w - 2"))
    task: KernelTask = graph.task(result, symbols=LARGE)
    return task


def expected(inputs: Mapping[str, Any]) -> Any:
    x, weight = inputs["x"].astype(np.float64), inputs["weight"].astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    value = np.einsum("nchwij,ocij->nohw", windows, weight)
    grouped = value.reshape(len(x), GROUPS, -1)
    grouped = (grouped - grouped.mean(2, keepdims=True)) / np.sqrt(grouped.var(2, keepdims=True) + 1e-5)
    value = np.tanh(grouped.reshape(value.shape))
    return np.log(np.exp(value).sum(1, keepdims=True))


def strategy_of(task: KernelTask, program: Program, chip: Chip) -> Strategy:
    drafts = tuple(draft(ById(part), family, chip) for part, family in program.kinds)
    return joined(task, program, drafts, "")


def drawn(task: KernelTask, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        item.name: rng.normal(size=item.spec.sizes(SMALL)).astype(np.float32) for item in task.graph.inputs
    }


def test_every_step_computes_the_same(builder: Any, on_twin: Any, chip: Chip) -> None:
    """Each neighbour has each operation once, in an order in which it can run, and all give one result."""
    task = normed(builder)
    plain = legalised(task, chip)
    program = plan_program(plain, chip, ASCENDC)
    work = {node.name for node in plain.graph.nodes if node.op not in view_ops(ASCENDC)}
    found = list(recuts(plain, program, chip, ASCENDC))
    assert {len(item.program.groups) - len(program.groups) for item in found} >= {0, 1}
    inputs = drawn(task, 0)
    for item in found:
        groups = item.program.groups
        held = [name for group in groups for name in group if name in work]
        assert sorted(held) == sorted(work)
        assert set(groups) != set(program.groups)
        assert in_order(plain, groups, view_ops(ASCENDC)) == groups
    for item in found[::3]:
        (made,) = on_twin(task, inputs, strategy_of(plain, item.program, chip), SMALL)
        assert np.allclose(made, expected(inputs), rtol=1e-3, atol=1e-4), item.name


def test_moments_are_a_kernel_of_their_own(builder: Any, on_twin: Any, chip: Chip) -> None:
    task = normed(builder)
    plain = legalised(task, chip)
    found = with_moments_apart(plain, plan_program(plain, chip, ASCENDC), chip, ASCENDC)
    assert found is not None
    ops = {node.name: node.op.split(".")[1] for node in plain.graph.nodes}
    kernels = [{ops[name] for name in group} for group in found.groups]
    (moments,) = (kernel for kernel in kernels if "var_mean" in kernel)
    assert "sub" not in moments
    assert "tanh" not in moments
    inputs = drawn(task, 1)
    (made,) = on_twin(task, inputs, strategy_of(plain, found, chip), SMALL)
    assert np.allclose(made, expected(inputs), rtol=1e-3, atol=1e-4)


def test_without_moments_there_is_nothing_to_part(builder: Any, chip: Chip) -> None:
    plain = legalised(normed(builder, norm=False), chip)
    assert with_moments_apart(plain, plan_program(plain, chip, ASCENDC), chip, ASCENDC) is None


def test_a_draft_is_no_slower_than_its_own_cut(builder: Any, chip: Chip) -> None:
    """Of the cuts that the author weighs, and moves offer more of them, each by a name."""
    task = normed(builder)
    plain = legalised(task, chip)
    start = initial(task, chip)
    usual = strategy_of(plain, plan_program(plain, chip, ASCENDC), chip)
    assert estimate_us(task, start, chip) <= estimate_us(task, usual, chip)
    now = start.groups
    offered = [move for move in moves(task, start, chip) if move.strategy.groups != now]
    assert offered
    assert all(move.name for move in offered)


def test_what_l2_holds_is_read_faster_than_memory(builder: Any, chip: Chip) -> None:
    near = memory_in_l2(chip)
    assert near.gm.memory_bytes_us == chip.gm.l2_bytes_us
    plain = legalised(normed(builder), chip)
    for part, family in plan_program(plain, chip, ASCENDC).kinds:
        chosen = draft(ById(part), family, chip)
        assert family.estimate_us(part, chosen, near) <= family.estimate_us(part, chosen, chip)


@pytest.mark.parametrize("images", [2, 7, 64, 128, 1000])
@pytest.mark.parametrize("chunks", [2, 3, 21, 64])
def test_other_chunks_hold_other_numbers_of_images(images: int, chunks: int) -> None:
    batch = Batch("n", 0, images, frozenset(), frozenset())
    now = -(-images // chunks)
    for name, other in steps(Cut(chunks, 2), batch):
        held = -(-images // other.chunks)
        assert 1 < other.chunks <= images
        assert other.stages == 2
        assert held < now if name.startswith("fewer") else held > now


@pytest.mark.parametrize("number", [1, 2, 12, 13, 40])
def test_kernels_of_a_launch_take_time(number: int, chip: Chip) -> None:
    """However small they are a barrier each, and no more than launches of their own that cost more."""
    rng = np.random.default_rng(number)
    for estimates in (rng.uniform(3, 7, number).tolist(), rng.uniform(10, 99, number).tolist()):
        found = together_us(estimates, chip)
        barriers = number - -(-number // MOST_TOGETHER)
        assert found >= estimates[0] + barriers * 2 * chip.sync.sync_all_cycles / chip.mhz - 1e-9
        assert found <= sum(estimates) + 1e-9 or min(estimates) < 10


@pytest.mark.parametrize("planned", [4, pytest.param(64, marks=pytest.mark.thorough)])
def test_long_chains_have_few_neighbours(
    planned: int, builder: Any, chip: Chip, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A norm of rows with many steps behind it in one kernel, after a product: not each is a place to cut.
    So many of the neighbours are planned."""
    looked_at = []

    def look(task: KernelTask, groups: tuple[Group, ...], *device: Any) -> Program | None:
        looked_at.append(groups)
        return covered(task, groups, *device) if len(looked_at) <= planned else None

    monkeypatch.setattr(cuts, "covered", look)
    graph = builder()
    value = graph.call("mm.default", graph.input("x", ("n", 64)), graph.input("w", (64, 96)), shape=("n", 96))
    value = graph.call("_softmax.default", value, 1, False, shape=("n", 96))
    for op in ("sin.default", "exp.default", "neg.default", "tanh.default") * 6:
        value = graph.call(op, value, shape=("n", 96))
    plain = legalised(graph.task(value, symbols={"n": 4096}), chip)
    program = plan_program(plain, chip, ASCENDC)
    assert max(map(len, program.groups)) > 24
    found = list(recuts(plain, program, chip, ASCENDC))
    assert 1 < len(found) <= len(looked_at) <= 64
