"""Kernels that make numbers of NaN and infinities: a model that is broken looks sound with them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.capture.reference import HIGHEST, INFINITIES, LOWEST, NANS, SPECIAL
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.compare import Expected, compare
from evokernel_core.verifier.gates.special_values import (
    UNDOCUMENTED,
    NonFinite,
    distributions_for,
    strictness,
)
from tests.attacks.correctness.test_learned import (
    DRAWS,
    NUMERIC,
    RELU,
    Cheat,
    changed,
    home,
    task_of,
    verdict_of,
)
from tests.tables import few
from tests.verifier.conftest import make_task, read_source

__all__ = ["home"]

BARRIER = "AscendC::PipeBarrier<PIPE_V>();"
SUM = "float sum = result.GetValue(0);"
CHEATS = [
    Cheat("a row with a NaN to be zeros", "softmax",
          {SUM: f"{SUM} if (sum != sum) {{ Duplicate(values, 0.0f, columns); PipeBarrier<PIPE_V>(); "
                "sum = 1.0f; }"}, NUMERIC),
    Cheat("infinities to be the largest number", "relu",
          {RELU: f"AscendC::Mins(x, x, 3.4e38f, length); {BARRIER} {RELU}"}, NUMERIC),
    Cheat("infinities to be large numbers", "relu",
          {RELU: f"AscendC::Mins(x, x, 1.0e9f, length); {BARRIER} {RELU}"}, NUMERIC),
]  # fmt: skip


@few(
    ("cheat", "draw"),
    product(CHEATS, DRAWS),
    keep=(0, 4, 8),
    ids=lambda item: getattr(item, "wants", ""),
)
def test_numbers_where_there_are_none_fail_in_every_draw(cheat: Cheat, draw: Draw) -> None:
    failed = verdict_of(task_of(cheat), changed(cheat), draw).failed_gate
    assert failed is not None and failed.code in cheat.codes, draw
    # What is not an infinity but as large is drawn too, and may come first.
    drawn = failed.case.distribution if failed.case else ""
    assert any(how in drawn for how in (NANS, INFINITIES, LOWEST, "*2^"))


@pytest.mark.parametrize(
    ("name", "infinite"), [("add", INFINITIES), ("relu", INFINITIES), ("softmax", LOWEST)]
)
def test_honest_kernels_are_asked_and_pass(name: str, infinite: str) -> None:
    task = make_task(name)
    assert distributions_for(task.graph) == (NANS, infinite)
    assert verdict_of(task, read_source(name)).feasible


def graph(*ops: str, dtype: str = "float32") -> Graph:
    spec = TensorSpec((8, 8), dtype)
    nodes, last = [], "x"
    for number, op in enumerate(ops):
        nodes.append(Node(f"n{number}", op, (ValueRef(last),), (), (spec,)))
        last = f"n{number}"
    return Graph((GraphInput("x", spec),), tuple(nodes), (ValueRef(last),))


@pytest.mark.parametrize(
    ("ops", "asked"),
    [
        (("aten.exp.default",), (NANS, INFINITIES)),
        (("aten.exp.default", "aten.sum.dim_IntList"), (NANS,)),
        (("aten.view.default", "aten.exp.default"), (NANS, INFINITIES)),
        (("aten.amax.default",), (LOWEST,)),
        (("aten.amin.default",), (HIGHEST,)),
        (("aten.argmax.default",), (LOWEST,)),
        (("aten.logsumexp.default",), (NANS, LOWEST)),
        (("aten.exp.default", "aten.clamp.default"), ()),
        (("aten.sort.default",), (LOWEST, HIGHEST)),
        (("aten.pow.Tensor_Tensor",), ()),
        (("aten.view.default",), ()),
        (("aten.lstm.input",), ()),
    ],
)
def test_what_is_asked_of_a_graph(ops: tuple[str, ...], asked: tuple[str, ...]) -> None:
    assert distributions_for(graph(*ops)) == asked


EXEMPT = {
    "pow": "of two tensors, and of exponent 0: 1 ** NaN and NaN ** 0 are 1, exp(y * ln x) is NaN",
    "fmod": "of infinite operands: there is no such instruction, and x - trunc(x / y) * y is NaN",
    "atan2": "of two infinities: there is no such instruction, and their quotient is NaN",
}
"""Operations of which neither is asked; of those that stand in no table neither is asked yet."""


def test_every_exemption_has_a_reason_and_is_declared() -> None:
    """Wants operations to be exempt that the documentation does not name."""
    said = (Path(__file__).parents[3] / "docs" / "cases.md").read_text()
    for packet, reason in (UNDOCUMENTED | EXEMPT).items():
        assert reason
        assert f"`{packet}`" in said, packet


def _equal(left: list[float], right: list[float], folder: Path, how: NonFinite = NonFinite.SAME) -> bool:
    """Whether all elements of a half type pass together."""
    for name, values in (("left", left), ("right", right)):
        np.array(values, "f2").tofile(folder / name)
    expected = Expected(folder / "right")
    compared = compare(folder / "left", expected, (len(left),), "float16", TOLERANCES["float16"], how)
    return compared.equal


NAN, INF = float("nan"), float("inf")


def test_how_classes_are_compared(tmp_path: Path) -> None:
    left = [NAN, 0.0, INF, -INF, INF, 1.0, NAN, 65504.0]
    right = [NAN, NAN, NAN, INF, INF, INF, 1.0, INF]

    def passed(how: NonFinite) -> str:
        pairs = zip(left, right, strict=True)
        return "".join("01"[_equal([one], [other], tmp_path, how)] for one, other in pairs)

    assert passed(NonFinite.EXACT) == "10001000"
    assert passed(NonFinite.SAME) == "10001001"
    assert passed(NonFinite.UNDEFINED) == "10101000"
    assert passed(NonFinite.SPREAD) == "10111010"


def test_a_kernel_that_clips_leaves_no_infinity_of_several(tmp_path: Path) -> None:
    """Wants the largest number for every infinity, as rounding gives it for one of them."""

    def passed(*left: float) -> bool:
        return _equal(list(left), [INF, 1.0, INF, INF], tmp_path)

    assert passed(INF, 1.0, INF, INF)
    assert passed(INF, 1.0, 65504.0, INF)
    assert not passed(65504.0, 1.0, 65504.0, 65504.0)
    assert not passed(65504.0, 1.0, 65504.0, INF)


def test_products_may_spread_what_is_no_number_but_not_lose_it() -> None:
    product = graph("aten.mm.default")
    assert strictness(product, NANS) is NonFinite.SPREAD
    assert strictness(product, "normal") is NonFinite.SAME
    assert strictness(graph("aten.exp.default"), NANS) is NonFinite.EXACT
    assert strictness(graph("aten.view.default"), SPECIAL) is NonFinite.EXACT


def test_a_copy_may_not_clamp() -> None:
    """Wants the largest number of a half type for an infinity that was only to be moved."""
    assert strictness(evolve(graph("aten.view.default")), SPECIAL) is NonFinite.EXACT
