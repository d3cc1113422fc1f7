"""Complex numbers in kernels, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.ops import COMPLEX_MULTIPLY
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.eager import eager_us
from evokernel_core.hardware.roofline import roofline_us
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, legalised, write
from evokernel_core.targets.ascendc.kernels.complex_multiply.complex_multiply_family import FAMILY
from tests.tables import few

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


GRIDS = {
    "rows of heads share the factors of a position": (("b", "s", 3, 5), (1, "s", 1, 5)),
    "positions of a head": (("b", 3, "s", 4), ("s", 4)),
    "the same sizes": (("b", "s", 6), ("b", "s", 6)),
    "one factor for each number": (("b", "s", 37), (37,)),
    "long rows": (("b", 2, 1500), ("b", 1, 1500)),
}
SIZES = [(2, 7), (1, 1), (3, 50), (1, 130)]


@few("tile", [128, 2048], keep=(0,))
@pytest.mark.parametrize("name", GRIDS)
def test_products_of_pairs(name: str, tile: int, builder: Any, on_twin: Any, chip: Any) -> None:
    sizes, shared = GRIDS[name]
    graph = builder()
    x, w = graph.input("x", (*sizes, 2)), graph.input("w", (*shared, 2))
    a = graph.call("view_as_complex.default", x, shape=sizes, dtype=COMPLEX)
    b = graph.call("view_as_complex.default", w, shape=shared, dtype=COMPLEX)
    z = graph.call("mul.Tensor", b, a, shape=sizes, dtype=COMPLEX)
    y = graph.call("view_as_real.default", z, shape=(*sizes, 2))
    symbols = {"b": 2, "s": 7}
    task = graph.task(y, symbols={key: n for key, n in symbols.items() if key in sizes})
    strategy = initial(task, chip)
    assert strategy.family == "paired"
    strategy = FAMILY.adapt(
        legalised(task, load_chip()), evolve(strategy, settings=(("buffers", 2), ("tile", tile))), chip
    )
    assert strategy is not None
    assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED
    for seed, (batch, length) in enumerate(SIZES):
        bound = {"b": batch, "s": length}
        shape, own = ([bound.get(str(dim), dim) for dim in each] for each in (sizes, shared))
        left, right = values(seed, *shape, 2), values(seed + 9, *own, 2)
        named = {key: n for key, n in bound.items() if key in task.sizes}
        (found,) = on_twin(task, {"x": left, "w": right}, strategy, sizes=named)
        expected = as_pairs(as_complex(left) * as_complex(right))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_views_of_pairs_stay_pairs(builder: Any, on_twin: Any, chip: Any) -> None:
    """A rotary embedding from a position on, whose heads lie in front of the positions."""
    graph = builder()
    x, w = graph.input("x", (2, "s", 3, 8)), graph.input("w", (60, 4, 2))
    pairs = graph.call("view.default", x, (2, SymbolicInt("s"), 3, 4, 2), shape=(2, "s", 3, 4, 2))
    a = graph.call("view_as_complex.default", pairs, shape=(2, "s", 3, 4), dtype=COMPLEX)
    a = graph.call("permute.default", a, (0, 2, 1, 3), shape=(2, 3, "s", 4), dtype=COMPLEX)
    b = graph.call("view_as_complex.default", w, shape=(60, 4), dtype=COMPLEX)
    b = graph.call("slice.Tensor", b, 0, 5, SymbolicInt("s + 5"), shape=("s", 4), dtype=COMPLEX)
    z = graph.call("mul.Tensor", a, b, shape=(2, 3, "s", 4), dtype=COMPLEX)
    task = graph.task(graph.call("view_as_real.default", z, shape=(2, 3, "s", 4, 2)), symbols={"s": 7})
    assert any(node.op == COMPLEX_MULTIPLY.name for node in legalised(task, load_chip()).graph.nodes)
    for s in (7, 1, 40):
        given, table = values(s, 2, s, 3, 8), values(s + 1, 60, 4, 2)
        (found,) = on_twin(task, {"x": given, "w": table}, sizes={"s": s})
        numbers = as_complex(given.reshape(2, s, 3, 4, 2)).transpose(0, 2, 1, 3)
        np.testing.assert_allclose(
            found, as_pairs(numbers * as_complex(table)[5 : s + 5]), rtol=1e-4, atol=1e-4
        )


def test_angles_know_the_signs_of_zeros(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 2))
    z = graph.call("view_as_complex.default", x, shape=("n",), dtype=COMPLEX)
    task = graph.task(graph.call("angle.default", z, shape=("n",)), symbols={"n": 36})
    ends = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf]
    given = np.array([(re, im) for re in ends for im in ends], "f4")
    (found,) = on_twin(task, {"x": given})
    np.testing.assert_allclose(found, np.arctan2(given[:, 1], given[:, 0]), rtol=1e-5, atol=1e-6)


def test_a_quotient_by_zero_divides_either_part(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x, w = graph.input("x", ("n", 2)), graph.input("w", ("n", 2))
    a, b = (graph.call("view_as_complex.default", each, shape=("n",), dtype=COMPLEX) for each in (x, w))
    ratio = graph.call("div.Tensor", a, b, shape=("n",), dtype=COMPLEX)
    task = graph.task(graph.call("view_as_real.default", ratio, shape=("n", 2)), symbols={"n": 40})
    left, right = values(1, 40, 2), values(2, 40, 2) * np.float32(1e25)
    left[0], left[1], right[:3], right[3, 0] = (0, -3), (-1, 0), 0, 0
    (found,) = on_twin(task, {"x": left, "w": right})
    with np.errstate(all="ignore"):
        expected = as_pairs(as_complex(left) / as_complex(right))
        expected[:3] = left[:3] / np.float32(0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-30)
