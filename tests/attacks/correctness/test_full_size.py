"""Kernels that are right at every size that is run with all of its data and wrong beyond, where they do as
much work as elsewhere: each must fail in every draw. All are honest kernels with a few words changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from attrs import evolve

from evokernel_core.domain.task import Symbol
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.draw import Draw, fresh
from evokernel_core.verifier.gates import cases
from evokernel_core.verifier.gates.slices.choice import choose
from evokernel_core.verifier.local import LocalVerifier
from tests.attacks.correctness.test_learned import (
    DRAWS,
    RELU,
    SCALE,
    Cheat,
    changed,
    task_of,
    verdict_of,
)
from tests.homes import own_home
from tests.tables import few
from tests.verifier.conftest import FUNCTIONS, NumpyReference, make_task, read_source

ELEMENTS = {"s0": 1_200_000_000}
"""4.8 GB in and out: more bytes than 32 bits count."""
ROWS = {"s0": 40_000, "s1": 8192}
START = "const uint32_t start = AscendC::GetBlockIdx() * tiling.perBlock;"
COUNT = "count_ = tiling.total - start < tiling.perBlock ? tiling.total - start : tiling.perBlock;"
MEMBER = "uint32_t tile_ = 0;"
LANES = "static constexpr uint32_t LANES = 64;"
NUMERIC = frozenset({"numeric"})
UNSEEN = frozenset({"output-not-written"})


def _where(condition: str) -> dict[str, str]:
    """Another instruction of the same cost where the condition holds."""
    return {
        RELU: "if (" + condition + ") { AscendC::Abs(y, x, length); } else { " + RELU + " }",
        COUNT: COUNT + " total_ = tiling.total; start_ = start;",
        MEMBER: MEMBER + " uint32_t total_ = 0; uint32_t start_ = 0;",
    }


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_home(tmp_path_factory.mktemp("home")):
        yield


CHEATS = [
    Cheat("offsets in bytes that run over 32 bits", "relu",
          {START: "const uint32_t block = AscendC::GetBlockIdx(); "
                  "const uint32_t start = block * tiling.perBlock * 4u / 4u;"},
          UNSEEN, ELEMENTS),
    Cheat("offsets in elements that run over 31 bits, negative from there on", "relu",
          {"xGm_[offset]": "xGm_[static_cast<int32_t>(start_ + offset) < 0 ? 0u : offset]",
           COUNT: COUNT + " start_ = start;", MEMBER: MEMBER + " uint32_t start_ = 0;"},
          UNSEEN, {"s0": 2_200_000_000}),
    Cheat("everything beyond 1 GB is wrong", "relu",
          _where("start_ + offset > 250000000u"), NUMERIC, ELEMENTS),
    Cheat("one core in all computes something else", "relu",
          _where("total_ > 200000000u && AscendC::GetBlockIdx() == 7"), NUMERIC, ELEMENTS),
    Cheat("the last tile of all is left alone", "relu",
          _where("total_ > 200000000u && start_ + offset + length == total_"), NUMERIC, ELEMENTS),
    Cheat("the first tile of all is left alone", "relu",
          _where("total_ > 200000000u && start_ + offset == 0"), NUMERIC, ELEMENTS),
    Cheat("all rows are wrong where there are many", "softmax",
          {SCALE: "Muls(values, values, (rows > 30000 && columns == 8192 ? 1.1f : 1.0f) / sum, columns);"},
          NUMERIC, ROWS),
    Cheat("only the last of many rows are wrong", "softmax",
          {SCALE: "Muls(values, values, (row_ > 30000 && columns == 8192 ? 1.1f : 1.0f) / sum, columns);",
           " Compute();": " row_ = row; Compute();", LANES: LANES + " uint32_t row_ = 0;"}, NUMERIC, ROWS),
    Cheat("a quarter of all rows is a copy of the sixth", "softmax",
          {"CopyIn(row);": "CopyIn(row > 30000 && columns == 8192 ? 5 : row);"},
          UNSEEN | NUMERIC, ROWS),
]  # fmt: skip


@few(
    ("cheat", "draw"), product(CHEATS, DRAWS[:2]), keep=(0, 7, 8), ids=lambda item: getattr(item, "wants", "")
)
def test_a_kernel_that_is_wrong_beyond_what_is_run_fails(cheat: Cheat, draw: Draw) -> None:
    assert cases.total_bytes(task_of(cheat), task_of(cheat).sizes) > cases.RUN_LIMIT
    failed = verdict_of(task_of(cheat), changed(cheat), draw).failed_gate
    assert failed is not None, cheat.wants
    assert failed.code in cheat.codes, failed.feedback
    assert "Compared at full size" in failed.feedback


HONEST = [("relu", ELEMENTS), ("relu", {"s0": 2_200_000_000}), ("softmax", ROWS), ("add", ROWS)]
"""The softmax waits for elements of local memory in each of many rows, which takes long."""


@few(("name", "sizes"), HONEST, keep=(1, 3))
def test_the_honest_kernels_pass_and_the_verdict_says_what_was_compared(
    name: str, sizes: dict[str, int]
) -> None:
    task = evolve(make_task(name), symbols=tuple(Symbol(key, size) for key, size in sizes.items()))
    verdict = verdict_of(task, read_source(name))
    assert verdict.feasible, verdict.failed_gate
    assert verdict.full_size.startswith("chosen slices (s0 ") and "in 64 places" in verdict.full_size


def test_a_replay_looks_at_the_same_slices() -> None:
    task = evolve(make_task("relu"), symbols=(Symbol("s0", 300_000_000),))
    runs = []
    for draw in (DRAWS[0], DRAWS[0], DRAWS[1]):
        reference = NumpyReference(FUNCTIONS)
        LocalVerifier(reference, TwinBackend(ascendc(load_chip())), draw=lambda draw=draw: draw).verify(
            task, read_source("relu")
        )
        runs.append(reference.calls)
    assert runs[0] == runs[1] != runs[2]


def test_a_task_without_slices_says_so() -> None:
    """Wants to be taken for compared; the verdict must say that nothing was."""
    task = evolve(make_task("relu"), symbols=(Symbol("s0", 300_000_000),))
    (node,) = task.graph.nodes
    unknown = evolve(task, graph=evolve(task.graph, nodes=(evolve(node, op="aten.cumsum.default"),)))
    assert choose(unknown, fresh()) == (
        "no dimension is known to cut its tensors into parts that are computed apart"
    )
