"""Powers with a constant exponent on the twin against PyTorch's CPU kernels: zeros of both signs, infinities,
NaN, subnormal numbers, halfway values and ordinary ones, in each type of floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

EXPONENTS = (0.5, -0.5, 1.5, 2.0, 3.0, -1.0, 0.0, 1 / 3)
ORDINARY = (1.0, -1.0, 1.5, -1.5, 2.0, 0.25, 3.0, -2.5, 100.0, 1.0009765625, 1.00048828125, 0.333)
SUBNORMAL = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}
NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126}
EDGES = (0.0, -0.0, math.inf, -math.inf, math.nan)
ROUNDING = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 4e-6}


@pytest.mark.parametrize("dtype", ROUNDING)
def test_powers_of_special_values(dtype: str, builder: Any, on_twin: Any) -> None:
    least, normal = SUBNORMAL[dtype], NORMAL[dtype]
    values = (*EDGES, least, -least, 3 * least, normal, -normal, *ORDINARY)
    x = torch.tensor(np.asarray(values, "f8")).to(getattr(torch, dtype))
    graph = builder()
    ref = graph.input("x", [len(x)], dtype)
    calls = [
        graph.call("pow.Tensor_Scalar", ref, number, shape=[len(x)], dtype=dtype) for number in EXPONENTS
    ]
    raw = x.float().numpy() if dtype == "bfloat16" else x.numpy()
    results = on_twin.tolerant(graph.task(*calls), {"x": raw})
    wrong = []
    for number, got in zip(EXPONENTS, results, strict=True):
        wanted = torch.pow(x, number).double().numpy()
        given = np.asarray(got, "f8")
        close = np.isclose(given, wanted, rtol=ROUNDING[dtype], atol=2 * least, equal_nan=True)
        wrong += [
            f"{values[i]!r} ** {number:.3g}: {given[i]!r} instead of {wanted[i]!r}"
            for i in np.flatnonzero(~close)
        ]
    assert not wrong, "\n".join(wrong)
