"""Kernels that make numbers of NaN and infinities: a model that is broken looks sound with them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.capture.reference import INFINITIES, NANS, SPECIAL
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.compare import Expected, compare
from evokernel_core.verifier.gates.special_values import (
    EXEMPT,
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
    assert NANS in failed.feedback or INFINITIES in failed.feedback or "*2^" in failed.feedback


@pytest.mark.parametrize("name", ["add", "relu", "softmax"])
def test_honest_kernels_are_asked_and_pass(name: str) -> None:
    task = make_task(name)
    assert distributions_for(task.graph) == (NANS, INFINITIES)
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
        (("aten.amax.default",), (INFINITIES,)),
        (("aten.exp.default", "aten.clamp.default"), ()),
        (("aten.sort.default",), ()),
        (("aten.pow.Tensor_Tensor",), ()),
        (("aten.view.default",), ()),
        (("aten.lstm.input",), ()),
    ],
)
def test_what_is_asked_of_a_graph(ops: tuple[str, ...], asked: tuple[str, ...]) -> None:
    assert distributions_for(graph(*ops)) == asked


def test_every_exemption_has_a_reason_and_is_declared() -> None:
    """Wants operations to be exempt that the documentation does not name."""
    said = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
    for packet, reason in (UNDOCUMENTED | EXEMPT).items():
        assert reason
        assert f"`{packet}`" in said, packet


def verdicts(
    left: list[float], right: list[float], tmp_path: Path, how: NonFinite, dtype: str = "f4"
) -> list[bool]:
    """Which elements pass."""
    name = {"f4": "float32", "f2": "float16"}[dtype]
    found = []
    for number, pair in enumerate(zip(left, right, strict=True)):
        for file, value in zip(("left", "right"), pair, strict=True):
            np.array([value], dtype).tofile(tmp_path / f"{file}{number}")
        expected = Expected(tmp_path / f"right{number}")
        compared = compare(tmp_path / f"left{number}", expected, (1,), name, TOLERANCES[name], how)
        found.append(compared.equal)
    return found


NAN, INF = float("nan"), float("inf")


def test_how_classes_are_compared(tmp_path: Path) -> None:
    left = [NAN, 0.0, INF, -INF, INF, 1.0, NAN, 65504.0]
    right = [NAN, NAN, NAN, INF, INF, INF, 1.0, INF]

    def passed(how: NonFinite) -> str:
        return "".join("01"[item] for item in verdicts(left, right, tmp_path, how, "f2"))

    assert passed(NonFinite.EXACT) == "10001000"
    assert passed(NonFinite.SAME) == "10001001"
    assert passed(NonFinite.UNDEFINED) == "10101000"
    assert passed(NonFinite.SPREAD) == "10111010"


def test_products_may_spread_what_is_no_number_but_not_lose_it() -> None:
    product = graph("aten.mm.default")
    assert strictness(product, NANS) is NonFinite.SPREAD
    assert strictness(product, "normal") is NonFinite.SAME
    assert strictness(graph("aten.exp.default"), NANS) is NonFinite.EXACT
    assert strictness(graph("aten.view.default"), SPECIAL) is NonFinite.EXACT


def test_a_copy_may_not_clamp() -> None:
    """Wants the largest number of a half type for an infinity that was only to be moved."""
    assert strictness(evolve(graph("aten.view.default")), SPECIAL) is NonFinite.EXACT
