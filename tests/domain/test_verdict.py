"""What a verdict says of itself."""

from __future__ import annotations

import pytest
from attrs import evolve

from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.verdict import (
    DrawnCase,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    Verdict,
)

LATENCY = Latency(2.0, LatencySource.MODELLED, "chip", 1, (), "", 1.0, 4.0)
PASSED, FAILED = GateStatus


@pytest.mark.parametrize(
    ("statuses", "latency", "feasible"),
    [
        ((PASSED, PASSED), LATENCY, True),
        ((PASSED, PASSED), None, False),
        ((PASSED, FAILED), LATENCY, False),
        ((FAILED, FAILED), LATENCY, False),
    ],
)
def test_a_kernel_is_feasible_where_all_gates_passed_and_it_was_timed(
    statuses: tuple[GateStatus, ...], latency: Latency | None, feasible: bool
) -> None:
    gates = tuple(GateResult(name, status) for name, status in zip(GateName, statuses, strict=False))
    assert Verdict("0" * 64, "0" * 64, "twin", gates, latency).feasible is feasible


WRONG = Sentence("Output {output} differs.", output=0)
FULL = Sentence("{feedback} Compared at full size: {what}.", feedback=WRONG, what="a part")
CASE = DrawnCase((("rows", 7), ("n", 3)), "normal", 12)
FAILURE = GateResult(GateName.CORRECTNESS, GateStatus.FAILED, "numeric", WRONG, case=CASE)


@pytest.mark.parametrize(("sizes", "told"), [(CASE.sizes, "rows=7, n=3"), ((), "the sizes of the file")])
def test_a_failure_says_what_it_was_run_with(sizes: tuple[tuple[str, int], ...], told: str) -> None:
    gate = evolve(FAILURE, case=evolve(CASE, sizes=sizes))
    assert gate.words() == f"Output 0 differs. (with {told}; inputs: normal, seed 12)"
    assert gate.words(seed=False) == f"Output 0 differs. (with {told}; inputs: normal)"
    assert from_data(to_data(gate), GateResult) == gate
    assert evolve(gate, case=None).words() == WRONG


@pytest.mark.parametrize(
    ("stood", "feedback"),
    [
        (joined([WRONG, CASE.words()]), WRONG),
        (joined([WRONG, Sentence("Again."), CASE.words()]), "Output 0 differs. Again."),
        (Sentence(FULL, feedback=joined([WRONG, CASE.words()]), what="a part"), FULL),
        (f"{WRONG} {CASE.words()}", WRONG),
        (f"{WRONG} {CASE.words()} Compared at full size: a part.", FULL),
    ],
    ids=["sentences", "several", "within one", "text", "within a text"],
)
def test_the_case_of_an_earlier_verdict_is_read_out_of_its_words(stood: str, feedback: str) -> None:
    data = to_data(evolve(FAILURE, feedback=stood, case=None))
    del data["case"]
    read = from_data(data, GateResult)
    assert (read, read.feedback) == (evolve(FAILURE, feedback=feedback), feedback)
    if isinstance(stood, Sentence):
        assert read.feedback.values


@pytest.mark.parametrize(
    ("gate", "feedback"),
    [
        (GateName.COMPILE, f"{WRONG} {CASE.words()}"),
        (GateName.CORRECTNESS, "The kernel crashed (with a signal)."),
    ],
)
def test_other_words_of_an_earlier_verdict_stay(gate: GateName, feedback: str) -> None:
    data = to_data(GateResult(gate, GateStatus.FAILED, "code", feedback))
    del data["case"]
    read = from_data(data, GateResult)
    assert (read.feedback, read.case) == (feedback, None)


def test_what_is_said_of_a_newer_verdict_is_no_case() -> None:
    gate = evolve(FAILURE, feedback=f"{WRONG} {CASE.words()}", case=None)
    assert from_data(to_data(gate), GateResult) == gate
