"""Rules come from what the hardware or the compiler refused, never from wrong numbers alone."""

from __future__ import annotations

import pytest

from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Hazard, Severity, Verdict
from evokernel_core.synthesis.lessons import RULES, error_class, rules, summary


def failed(gate: GateName, code: str, feedback: str = "", *hazards: Hazard) -> Verdict:
    return Verdict("t", "s", "v", (GateResult(gate, GateStatus.FAILED, code, feedback, hazards=hazards),))


@pytest.mark.parametrize("code", RULES)
def test_rules_read_as_prohibitions(code: str) -> None:
    (rule,) = rules(failed(GateName.CORRECTNESS, code))
    assert rule.title.startswith("You cannot ")
    assert rule.title.endswith(".")


def test_hazards_give_rules_and_warnings_do_not() -> None:
    error = Hazard("alignment", Severity.ERROR, "at 17")
    warning = Hazard("overflow-inf", Severity.WARNING, "inf")
    found = rules(failed(GateName.CORRECTNESS, "hazard", "", error, error, warning))
    assert [rule.title for rule in found] == [RULES["alignment"]]


@pytest.mark.parametrize(
    ("feedback", "names"),
    [
        ("op_kernel.cpp:12: ‘Sotfmax’ is not a member of ‘AscendC’", ["Sotfmax"]),
        ("op_kernel.cpp:12: no member named 'Sotfmax' in namespace 'AscendC'", ["Sotfmax"]),
        ("'Tile' was not declared in this scope", []),
        ("no member named 'x' in 'Tile'", []),
    ],
)
def test_only_unknown_names_of_the_interface_give_rules(feedback: str, names: list[str]) -> None:
    found = rules(failed(GateName.COMPILE, "compile", feedback))
    assert [rule.title.split("::")[1].split(":")[0] for rule in found] == names


def test_wrong_numbers_give_no_rule() -> None:
    verdict = failed(GateName.CORRECTNESS, "numeric", "3 of 8 elements differ.")
    assert rules(verdict) == ()
    assert error_class(verdict) == "correctness:numeric"
    assert summary(verdict) == "Failed at correctness (numeric): 3 of 8 elements differ."
