"""Rules come from what the hardware or the compiler refused, never from wrong numbers alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evokernel_core.domain.experience import ExperienceKind
from evokernel_core.domain.settings import ModelEndpoint, RetrievalName
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Hazard, Severity, Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.contexts import Librarian
from evokernel_core.synthesis.lessons import error_class, is_refuted, rules, summary
from evokernel_core.synthesis.proposers.llm import LlmProposer
from evokernel_core.synthesis.rules import learned_rules
from evokernel_core.synthesis.search import Search
from evokernel_core.targets.ascendc.lessons import RULES
from evokernel_core.targets.ascendc.target import ascendc
from tests.synthesis.test_privacy import task_of


def failed(gate: GateName, code: str, feedback: str = "", *hazards: Hazard) -> Verdict:
    return Verdict("t", "s", "v", (GateResult(gate, GateStatus.FAILED, code, feedback, hazards=hazards),))


@pytest.mark.parametrize("code", RULES)
def test_rules_read_as_prohibitions(code: str) -> None:
    (rule,) = rules(failed(GateName.CORRECTNESS, code), "ascendc")
    assert rule.title.startswith("You cannot ")
    assert rule.title.endswith(".")


def test_hazards_give_rules_and_warnings_do_not() -> None:
    error = Hazard("alignment", Severity.ERROR, "at 17")
    warning = Hazard("overflow-inf", Severity.WARNING, "inf")
    found = rules(failed(GateName.CORRECTNESS, "hazard", "", error, error, warning), "ascendc")
    assert [rule.title for rule in found] == [RULES["alignment"]]


@pytest.mark.parametrize(
    ("feedback", "names"),
    [
        ("op_kernel.cpp:12: ‘Sotfmax’ is not a member of ‘AscendC’", ["Sotfmax"]),
        ("op_kernel.cpp:12: no member named 'Sotfmax' in namespace 'AscendC'", ["Sotfmax"]),
        ("op_kernel.cpp:80: 'Subs' is not a member of 'AscendC'; did you mean 'Sub'?", ["Subs"]),
        ("op_kernel.cpp:80: no member named 'Subs' in namespace 'AscendC'; did you mean 'Sub'?", ["Subs"]),
        ("no member named 'InitBufer' in 'AscendC::TPipe'; did you mean 'InitBuffer'?", []),
        (
            "no member named 'Divs' in namespace 'AscendC'\nno matching function for call to 'DataCopy'\n"
            "use of undeclared identifier 'MyTile'",
            ["Divs"],
        ),
        ("'Sub' is not a member of 'AscendC'", []),
        ("'TPipe' is not a member of 'AscendC'", []),
        ("'Tile' was not declared in this scope", []),
        ("no member named 'x' in 'Tile'", []),
    ],
)
def test_only_unknown_names_of_the_interface_give_rules(feedback: str, names: list[str]) -> None:
    found = rules(failed(GateName.COMPILE, "compile", feedback), "ascendc")
    assert [rule.title.split("::")[1].split(":")[0] for rule in found] == names


@pytest.mark.parametrize(
    ("name", "refuted"), [("Sub", True), ("TPipe", True), ("DataCopy", True), ("Subs", False)]
)
def test_rules_of_earlier_versions_that_forbid_what_there_is_are_not_shown(
    tmp_path: Path, name: str, refuted: bool
) -> None:
    text = f"You cannot use AscendC::{name}: there is none."
    rule = make_experience(ExperienceKind.RULE, text, text)
    assert is_refuted(rule) is refuted
    asked = task_of("x", "weight", "scale", "rows", "net")
    with Memory(tmp_path / "memory.db") as memory:
        memory.add_experience(rule)
        proposer = LlmProposer(ModelEndpoint("http://127.0.0.1:9/v1", "none"), ascendc(load_chip()))
        librarian = Librarian(memory, proposer, asked, {}, RetrievalName.SIMILARITY, random.Random(1))
        shown = librarian.context(Search(asked, 5), None).experiences
        assert (rule in shown) is not refuted
        assert (rule.id in [item.id for item in learned_rules(memory)]) is not refuted


def test_wrong_numbers_give_no_rule() -> None:
    verdict = failed(GateName.CORRECTNESS, "numeric", "3 of 8 elements differ.")
    assert rules(verdict, "ascendc") == ()
    assert error_class(verdict) == "correctness:numeric"
    assert summary(verdict) == "Failed at correctness (numeric): 3 of 8 elements differ."
