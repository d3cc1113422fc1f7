"""Reductions, and what PyTorch builds on them, on the twin over wide rows: results stay in the range of
PyTorch's own, and are NaN where PyTorch's are and nowhere else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from evokernel_core.compiler.lowering.reductions import REDUCTIONS
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import refusal, strategy_of
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.queues import plan
from tests.tables import few

INF, NAN = math.inf, math.nan
ROWS, COLUMNS = 40, 600
X = "x"
LAST = (-1,)
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "_softmax.default": ((X, -1, False), {}),
    "_log_softmax.default": ((X, -1, False), {}),
    "logsumexp.default": ((X, LAST), {}),
    "amax.default": ((X, LAST, True), {}),
    "amin.default": ((X, LAST, True), {}),
    "max.dim": ((X, -1, True), {}),
    "min.dim": ((X, -1, True), {}),
    "mean.dim": ((X, LAST, True), {}),
    "sum.dim_IntList": ((X, LAST, True), {}),
    "var.correction": ((X, LAST), {"correction": 0}),
    "std.correction": ((X, LAST), {"correction": 1}),
    "var_mean.correction": ((X, LAST), {"correction": 0}),
    "linalg_vector_norm.default": ((X, 2, LAST), {}),
    "native_layer_norm.default": ((X, [COLUMNS], None, None, 1e-5), {}),
}
ELSEWHERE = frozenset({"max.default", "min.default", "mean.default", "sum.default", "prod.dim_int"})
"""All of a tensor at once is one row of it; a product needs lanes side by side."""
RANGES = {
    "_softmax": (0.0, 1.0),
    "_log_softmax": (-INF, 0.0),
    "var": (0.0, INF),
    "std": (0.0, INF),
    "var_mean": (0.0, INF),
    "linalg_vector_norm": (0.0, INF),
}
"""By packet, between what the first result lies."""
BEYOND = (9, 10, 19)
"""Rows whose sums are beyond float32, by the order in which they are added: PyTorch adds in float64 what it
takes a variance of."""
SUMS = frozenset({"sum", "mean", "var", "std", "var_mean", "native_layer_norm"})
FORMS = [
    Schedule(Form.PACKED, 1024, columns=640),
    Schedule(Form.RESIDENT, 768),
    *(Schedule(Form.STREAM, 256, online=online) for online in (True, False)),
    Schedule(Form.SHARED, 256, online=True, at_once=2**14),
]
COLUMN_FORMS = [
    Schedule(Form.LANES, 512),
    *(Schedule(Form.STEPS, 512, columns=64, spread="columns", online=online) for online in (True, False)),
]


def wide_rows(dtype: str) -> torch.Tensor:
    """Rows of one kind each: usual, tiny, large beside their spread, constant, zeros of both signs, as large
    as the type goes, masked in part and wholly, and with infinities and no numbers among others."""
    rng = np.random.default_rng(11)
    kind = getattr(torch, dtype)
    least, most = (float(x) for x in (torch.finfo(kind).tiny, torch.finfo(kind).max))
    usual = rng.normal(size=(ROWS, COLUMNS))
    one, some = rng.integers(COLUMNS), rng.random(COLUMNS) < 0.5
    usual[1] *= 1e-3
    usual[2] *= math.sqrt(least)
    usual[3] = 1000 + usual[3] * 0.5
    usual[4] = 3.3
    usual[5], usual[6] = -0.0, 0.0
    usual[7] = np.where(some, 0.0, -0.0)
    usual[8] *= 30
    usual[9] = np.sign(usual[9]) * most
    usual[10] = -most
    usual[11][some] = -INF
    usual[12] = -INF
    usual[13] = INF
    usual[14][one] = INF
    usual[15][one] = -INF
    usual[16][one] = NAN
    usual[17] = NAN
    usual[18][0], usual[18][-1] = INF, -INF
    usual[19] = np.where(some, most, -most)
    usual[20] = np.where(some, -INF, NAN)
    usual[21] = -1e-3 + usual[21] * 1e-6
    usual[22] = np.linspace(-100, 100, COLUMNS)
    usual[23][0], usual[23][-1] = NAN, -INF
    usual[24:] = np.geomspace(1e-3, 3e4, ROWS - 24)[:, None]
    return torch.tensor(usual).to(kind)


def graph_of(
    name: str, x: torch.Tensor, builder: Any, first: bool = False
) -> tuple[KernelTask, torch.Tensor]:
    """The call's first result alone, over the last dimension or the ``first``."""
    args, kwargs = CALLS[name]
    if first:
        args = tuple(0 if arg == -1 else (0,) if arg == LAST else arg for arg in args)
    packet, overload = name.split(".")
    results = getattr(getattr(torch.ops.aten, packet), overload)(x, *args[1:], **kwargs)
    dtype = str(x.dtype).removeprefix("torch.")
    graph = builder()
    ref = graph.input(X, list(x.shape), dtype)
    values = [ref, *(tuple(arg) if isinstance(arg, list) else arg for arg in args[1:])]
    if isinstance(results, torch.Tensor):
        made = graph.call(name, *values, shape=list(results.shape), dtype=dtype, **kwargs)
        return graph.task(made), results
    specs = [TensorSpec(list(item.shape), str(item.dtype).removeprefix("torch.")) for item in results]
    made = graph.calls(name, *values, outputs=specs, **kwargs)
    return graph.task(made), results[0]


def schedules(task: KernelTask, forms: list[Schedule], chip: Any) -> list[Strategy]:
    """Those of the forms that are legal for the task."""
    planned = plan(task, chip)
    return [strategy_of(planned, form, "") for form in forms if refusal(planned, form, task, chip) is None]


def test_every_reduction_has_a_row() -> None:
    assert {name.removeprefix("aten.") for name in REDUCTIONS} == CALLS.keys() | ELSEWHERE


def check(name: str, got: Any, want: Any, dtype: str, form: str) -> None:
    if name.partition(".")[0] in SUMS and dtype != "float16":
        got, want = (np.delete(values, BEYOND, 0) for values in (got, want))
    same = np.isnan(got) == np.isnan(want)
    rows = np.flatnonzero(~same.reshape(len(got), -1).all(-1))
    assert not len(rows), (name, dtype, form, rows, got[rows].ravel()[:4], want[rows].ravel()[:4])
    least, most = RANGES.get(name.split(".", maxsplit=1)[0], (-INF, INF))
    outside = (got < least) | (got > most)
    assert not outside.any(), (name, dtype, form, got[outside][:4])
    unequal = np.isinf(got) != np.isinf(want)
    rows = np.flatnonzero(unequal.reshape(len(got), -1).any(-1))
    assert not len(rows), (name, dtype, form, rows, got[rows].ravel()[:4], want[rows].ravel()[:4])


def compare(name: str, dtype: str, builder: Any, on_twin: Any, first: bool = False) -> None:
    rows = wide_rows(dtype)
    x = rows.t().contiguous() if first else rows
    task, result = graph_of(name, x, builder, first)
    want = result.double().numpy()
    raw = x.float().numpy() if dtype == "bfloat16" else x.numpy()
    for strategy in schedules(task, COLUMN_FORMS if first else FORMS, on_twin.chip):
        (found,) = on_twin(task, {X: raw}, strategy, passing=frozenset({"overflow-inf"}))
        form = f"{strategy.setting('form')} {strategy.setting('online')}"
        check(
            name,
            np.asarray(found, "f8").T if first else np.asarray(found, "f8"),
            want.T if first else want,
            dtype,
            form,
        )


TYPES = {"float32": (0, 1, 2, 3, 7, 9, 12), "float16": (0, 9), "bfloat16": (0,)}
"""By type, the rows of CALLS that make test runs."""
TABLE = [(name, dtype) for dtype in TYPES for name in CALLS]
IN_COLUMNS = [(name, dtype) for name, dtype in TABLE if name != "native_layer_norm.default"]


@few(
    ("name", "dtype"),
    TABLE,
    keep=tuple(len(CALLS) * i + row for i, rows in enumerate(TYPES.values()) for row in rows),
)
def test_wide_rows(name: str, dtype: str, builder: Any, on_twin: Any) -> None:
    compare(name, dtype, builder, on_twin)


@few(("name", "dtype"), IN_COLUMNS, keep=(0, 3, 9))
def test_wide_columns(name: str, dtype: str, builder: Any, on_twin: Any) -> None:
    compare(name, dtype, builder, on_twin, first=True)
