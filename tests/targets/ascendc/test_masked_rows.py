"""Rows of which all is -inf, as a mask leaves them, under every form of a reduction, against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import refusal, strategy_of
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.queues import plan

INF = math.inf
SHAPE = (6, 5, 600)
LAST, FIRST, AROUND = (-1,), (0,), (0, 2)
FORMS: dict[tuple[int, ...], list[Schedule]] = {
    LAST: [
        Schedule(Form.PACKED, 1024, columns=640),
        Schedule(Form.RESIDENT, 768),
        *(Schedule(Form.STREAM, 256, online=online) for online in (True, False)),
        *(Schedule(Form.SHARED, 256, online=online, at_once=2**14) for online in (True, False)),
    ],
    FIRST: [
        Schedule(Form.LANES, 512),
        *(
            Schedule(Form.STEPS, 512, columns=128, spread="columns", online=online)
            for online in (True, False)
        ),
        Schedule(Form.STEPS, 1024, columns=128, spread="columns", whole=True),
    ],
    AROUND: [
        *(Schedule(Form.PIECES, 256, online=online) for online in (True, False)),
        *(Schedule(Form.SHARED, 256, online=online, at_once=2**14) for online in (True, False)),
    ],
}


def masked(dims: tuple[int, ...]) -> torch.Tensor:
    """Numbers of which one row in two has -inf, some rows nothing else, and one an infinity or no number."""
    rng = np.random.default_rng(7)
    values = torch.tensor(rng.normal(size=SHAPE)).float()
    rows = values.amax(dims, keepdim=True)
    kinds = torch.arange(rows.numel()).reshape(rows.shape) % 7
    values = values.masked_fill((kinds > 2) & (torch.tensor(rng.random(SHAPE)) < 0.6), -INF)
    values = values.masked_fill(kinds == 0, -INF).masked_fill(kinds == 1, torch.finfo(torch.float32).min)
    one = torch.zeros(SHAPE, dtype=torch.bool)
    one[-1, :, -1] = True
    values = values.masked_fill(one & (kinds == 5), math.nan)
    return values.masked_fill(one & (kinds == 4), INF)


def graph_of(dims: tuple[int, ...], builder: Any) -> tuple[KernelTask, list[Any]]:
    """What reads a maximum and a sum of powers beside their softmax, and PyTorch's results."""
    x = masked(dims)
    graph = builder()
    ref, made, shape = graph.input("x", SHAPE), {}, list(SHAPE)
    kept = list(x.amax(dims, keepdim=True).shape)

    def call(name: str, *args: Any, to: list[int] = kept, dtype: str = "float32") -> str:
        key = f"{name}{len(made)}"
        packet, overload = name.split(".")
        values = [made[arg][1] if arg in made else x if arg == "x" else arg for arg in args]
        nodes = [made[arg][0] if arg in made else ref if arg == "x" else arg for arg in args]
        result = getattr(getattr(torch.ops.aten, packet), overload)(*values)
        made[key] = graph.call(name, *nodes, shape=to, dtype=dtype), result
        return key

    top = call("amax.default", "x", dims, True)
    infinite = call("isinf.default", top, dtype="bool")
    dead = call("bitwise_and.Tensor", infinite, call("lt.Scalar", top, 0.0, dtype="bool"), dtype="bool")
    power = call("exp.default", call("sub.Tensor", "x", top, to=shape), to=shape)
    total = call("sum.dim_IntList", power, dims, True)
    share = call("div.Tensor", power, total, to=shape)
    zero = call("zeros_like.default", share, to=shape)
    whole = call("where.self", dead, zero, share, to=shape)
    safe = call("div.Tensor", power, call("add.Tensor", total, 1e-6), to=shape)
    outputs = [made[key] for key in (whole, safe, top, call("log.default", total))]
    return graph.task(*(node for node, _ in outputs)), [result for _, result in outputs]


@pytest.mark.parametrize("dims", FORMS, ids=["last", "first", "around"])
def test_rows_of_nothing_but_infinities(dims: tuple[int, ...], builder: Any, on_twin: Any) -> None:
    task, wanted = graph_of(dims, builder)
    planned = plan(task, on_twin.chip)
    for schedule in FORMS[dims]:
        assert refusal(planned, schedule, task, on_twin.chip) is None
        strategy = strategy_of(planned, schedule, "")
        found = on_twin(task, {"x": masked(dims).numpy()}, strategy, passing=frozenset({"overflow-inf"}))
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6, err_msg=str(schedule))
