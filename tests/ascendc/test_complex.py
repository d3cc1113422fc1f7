"""Complex numbers in kernels, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.ascendc.author import initial
from evokernel_core.domain.errors import PlanError
from evokernel_core.twin.roofline import eager_us, roofline_us

COMPLEX = "complex64"


def values(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def as_complex(pairs: Any) -> Any:
    return pairs[..., 0].astype("c16") + 1j * pairs[..., 1]


def as_pairs(numbers: Any) -> Any:
    return np.stack([numbers.real, numbers.imag], -1)


def test_products_of_matrices_and_what_follows(builder: Any, on_twin: Any, chip: Any) -> None:
    graph = builder()
    x, w = graph.input("x", ("m", 24, 2)), graph.input("w", (24, "n", 2))
    left = graph.call("view_as_complex.default", x, shape=("m", 24), dtype=COMPLEX)
    right = graph.call("view_as_complex.default", w, shape=(24, "n"), dtype=COMPLEX)
    turned = graph.call("_conj.default", right, shape=(24, "n"), dtype=COMPLEX)
    product = graph.call("mm.default", left, turned, shape=("m", "n"), dtype=COMPLEX)
    length = graph.call("abs.default", product, shape=("m", "n"))
    task = graph.task(
        graph.call("view_as_real.default", product, shape=("m", "n", 2)), length, symbols={"m": 20, "n": 33}
    )
    assert 0 < roofline_us(task, chip) < eager_us(task, chip)
    for m, n in ((20, 33), (1, 1), (17, 64)):
        a, b = values(m, m, 24, 2), values(n, 24, n, 2)
        found, lengths = on_twin(task, {"x": a, "w": b}, sizes={"m": m, "n": n})
        expected = as_complex(a) @ as_complex(b).conj()
        np.testing.assert_allclose(found, as_pairs(expected), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(lengths, np.abs(expected), rtol=1e-4, atol=1e-4)


def test_an_operation_without_a_rule_is_named(builder: Any, chip: Any) -> None:
    graph = builder()
    x = graph.input("x", (4, 2))
    z = graph.call("view_as_complex.default", x, shape=(4,), dtype=COMPLEX)
    root = graph.call("tan.default", z, shape=(4,), dtype=COMPLEX)
    task = graph.task(graph.call("view_as_real.default", root, shape=(4, 2)))
    with pytest.raises(PlanError, match=r"aten\.tan\.default of complex numbers"):
        initial(task, chip)
