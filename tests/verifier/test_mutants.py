"""The mutation test of the judge, on one kernel: rules find their sites, the oracle tells mutants from honest
kernels without the judge, and the judge rejects some of each sort that costs little."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import Any

import pytest

from benchmarks.mutants import page, summary, too_few
from benchmarks.mutating.mutant import Kind, Mutant
from benchmarks.mutating.rules import RULES
from benchmarks.mutating.subjects import Subject
from benchmarks.mutating.table import Row, floats
from benchmarks.mutating.text import closing, split, statements
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.local import LocalVerifier

from .conftest import NumpyReference, softmax

pytestmark = pytest.mark.usefixtures("kernel_home")
SECRET = Draw("36" * 16)


@pytest.fixture(scope="module")
def subject() -> Subject:
    spec = TensorSpec(("s0", "s1"), "float32")
    node = Node("y", "aten._softmax.default", (ValueRef("x"), -1, False), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    task = KernelTask(
        "softmax", graph, (Symbol("s0", 64), Symbol("s1", 700)), TOLERANCES["float32"], "softmax"
    )
    row = Row("softmax", "softmax", floats((64, 700)), "torch.softmax(x, -1)")
    return Subject(row, task, write(task, initial(task, load_chip()), load_chip()))


@pytest.fixture(scope="module")
def mutants(subject: Subject) -> dict[Kind, list[Mutant]]:
    return {kind: list(rule(subject)) for kind, rule in RULES}


def test_every_rule_finds_sites_and_changes_little(
    subject: Subject, mutants: dict[Kind, list[Mutant]]
) -> None:
    before = Counter(f"{subject.source.files[TILING]}\n{subject.source.files[KERNEL]}".splitlines())
    for kind, found in mutants.items():
        assert found or kind is Kind.FORMULA, kind  # a softmax has no constants
        for mutant in found:
            after = Counter(f"{mutant.source.files[TILING]}\n{mutant.source.files[KERNEL]}".splitlines())
            changed = sum((before - after).values()) + sum((after - before).values())
            assert 0 < changed <= 24, mutant


def test_brackets_and_arguments() -> None:
    text = "    Muls(a[(x + 1) * 2], b, F(c, d), n);"
    assert text[closing(text, 8)] == ")"
    assert tuple(split("a[(x + 1) * 2], b, F(c, d), n")) == ("a[(x + 1) * 2]", "b", "F(c, d)", "n")
    (found,) = statements(f"LocalTensor<float> a;\n{text}\n")
    assert (found.op, found.dtype, found.count) == ("Muls", "float", "n")


SEEN = [
    (
        Kind.TAIL,
        "copies of tiling_.columns elements, whole 16s",
        {"output-not-written", "uninitialised-read"},
    ),
    (Kind.SYNC, "outputLocalQueue", {"missing-sync"}),
]


@pytest.mark.skipif(shutil.which("g++") is None and shutil.which("clang++") is None, reason="no compiler")
def test_the_oracle_tells_mutants_apart_and_the_judge_rejects_them(
    subject: Subject, mutants: dict[Kind, list[Mutant]]
) -> None:
    pytest.importorskip("torch")
    from benchmarks.mutating.oracle import Reference

    oracle, backend = Reference(subject, load_chip()), TwinBackend(ascendc(load_chip()))
    verifier = LocalVerifier(NumpyReference({"softmax": softmax}), backend, draw=lambda: SECRET)
    assert oracle.look(subject.source, mutants[Kind.TAIL][0].aims).state == "equal"
    broken = subject.source.with_files({KERNEL: subject.source.files[KERNEL].replace("Exp(", "Expo(")})
    assert oracle.look(broken, ()).state == "invalid"
    for kind, words, codes in SEEN:
        mutant = next(item for item in mutants[kind] if words in item.change)
        if kind is not Kind.SYNC:
            assert oracle.look(mutant.source, mutant.aims).state == "differs", mutant
        failed = verifier.verify(subject.task, mutant.source).failed_gate
        assert failed is not None, mutant
        assert failed.code in codes, failed.feedback


def _row(outcome: str, kind: str = "clip") -> dict[str, Any]:
    return {"outcome": outcome, "kind": kind, "subject": "s", "change": "c", "verdicts": [{"code": "x"}]}


def test_what_is_equal_is_not_counted() -> None:
    rows = [_row("rejected"), _row("charged"), _row("equal"), _row("invalid"), _row("passed"),
            _row("honest", "honest"), _row("refused", "honest")]  # fmt: skip
    assert summary(rows) == "mutants rejected 2 of 3, honest variants passed 1 of 2"
    assert "| clip | 5 | 1 | 1 | 3 | 1 | 1 | 1 |" in page(rows, 60)


def test_a_kind_of_which_too_few_are_counted_is_named() -> None:
    rows = [_row("rejected", kind) for kind in Kind for _ in range(40)] + [_row("honest", "honest")] * 100
    assert not list(too_few(rows))
    fewer = [*rows[11:], *[_row("equal", rows[0]["kind"])] * 11]
    assert list(too_few(fewer)) == [f"too few counted: 29 of kind {rows[0]['kind']}, 30 wanted"]
    assert "too few honest variants: 99, 100 wanted" in list(too_few(rows[:-1]))
