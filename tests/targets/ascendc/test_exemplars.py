"""The examples of prompts are captured from their PyTorch, and what the author prints of each is verified."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.domain.serial import to_data
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.knowledge.exemplars import Typical, source_of, typical_tasks
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.local import LocalVerifier

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from exemplars import FUNCTIONS, about, captured

from tests import warm

CHIP = load_chip()
ALWAYS = ("pointwise", "columnwise", "matmul", "matmul_epilogue")
"""Of each kind of cores; the others take minutes in sum."""


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVerifier]:
    with pytest.MonkeyPatch.context() as patch, AgentClient(warm.interpreter()) as agent:
        patch.setenv("EVOKERNEL_HOME", str(tmp_path_factory.mktemp("home")))
        yield LocalVerifier(agent, TwinBackend(ascendc(CHIP)))


def test_the_stored_tasks_are_those_of_the_functions() -> None:
    words = about(FUNCTIONS)
    found = {name: (words[name], to_data(task)) for name, task in captured(FUNCTIONS)}
    assert found == {item.name: (item.about, to_data(item.task)) for item in typical_tasks()}


@pytest.mark.parametrize(
    "typical",
    [
        pytest.param(item, id=item.name, marks=() if item.name in ALWAYS else pytest.mark.thorough)
        for item in typical_tasks()
    ],
)
def test_an_exemplar_is_verified(verifier: LocalVerifier, typical: Typical) -> None:
    verdict = verifier.verify(typical.task, source_of(typical, CHIP))
    assert verdict.feasible, verdict.failed_gate
    lines = verdict.latency.lines if verdict.latency else ()
    assert lines and {line.file for line in lines} == {"op_kernel.cpp"}
    assert 0 < verdict.latency.balance <= 1  # type: ignore[union-attr]
