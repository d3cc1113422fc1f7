"""An edited model means what the original means, whatever is changed between two calls of it.

The perturbations are those of benchmarks/meaning.py; the kernels compute what their references do.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm
from tests.capture.edited import edited_module, runs

HERE = Path(__file__).parent
DATA = HERE.parent / "data" / "meaning"
TRIAL = HERE.parent.parent / "benchmarks" / "corpus" / "trial"
SLOW = {("caller", number) for number in (0, 1, 8, 9, 10)}
"""Compilers and tracers, seconds each: of one model only."""
MODELS = sorted(path.stem for path in (DATA).glob("*.py"))


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


side = loaded("trial_side", TRIAL / "side.py")
compare = loaded("trial_compare", TRIAL / "compare.py")


SHARE = 7
"""One in so many of the perturbations, another share for each model: benchmarks/meaning.py makes all."""


def cases(name: str, whole: bool = False) -> list[tuple[str, int, str]]:
    found = side.perturbations.plan(side.Telling(ModuleType(name)))
    chosen = [case for case in found if name == "rms_norm" or case[:2] not in SLOW]
    return chosen[(MODELS.index(name) * 2 + whole) % SHARE :: SHARE]


def perturbed(module: ModuleType, case: tuple[str, int, str]) -> dict[str, Any]:
    outcome: dict[str, Any] = side.perturbed(side.Telling(module), module.__file__, *case, 0)
    return outcome


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentClient]:
    """Modules are captured in evaluation, as the product does unless it is told otherwise."""
    with AgentClient(warm.interpreter(), evaluation=True) as client:
        yield client


@pytest.mark.parametrize("whole", [False, True], ids=["single kernels", "programs"])
@pytest.mark.parametrize("name", MODELS)
def test_an_edit_means_what_the_text_meant(
    name: str, whole: bool, agent: AgentClient, tmp_path: Path
) -> None:
    path = DATA / f"{name}.py"
    text = path.read_text()
    original = loaded(f"original_{name}", path)
    captured = agent.capture(
        tmp_path / "model.py", text, covered_ops(ASCENDC) if whole else fused_ops(), whole=whole
    )
    edited = edited_module(text, *apart(captured))
    found: Counter[str] = Counter()
    for case in cases(name, whole):
        after = perturbed(edited, case)
        row = compare.compared(perturbed(original, case), after)
        found[row["verdict"]] += 1
        assert row["verdict"] in ("same", "skipped"), row
    assert found["same"] > 10 and runs(edited) > 2, (found, runs(edited))


def apart(regions: tuple[Region, ...]) -> list[Region]:
    """The regions with a kernel that do not overlap one before them."""
    chosen: list[Region] = []
    for region in regions:
        if region.task is not None and not any(region.span.overlaps(other.span) for other in chosen):
            chosen.append(region)
    return chosen


def test_a_guard_that_is_missing_is_seen(agent: AgentClient, tmp_path: Path) -> None:
    """The harness itself: an edit whose guards always hold differs, without an exception."""
    path = DATA / "config_object.py"
    text = path.read_text()
    original = loaded("original_config_object", path)
    edited = edited_module(
        text, *apart(agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True))
    )
    kernels = [value for value in vars(edited).values() if hasattr(value, "holds")]
    assert kernels
    for kernel in kernels:
        kernel.holds = lambda *given: True
    verdicts = Counter(
        compare.compared(perturbed(original, case), perturbed(edited, case))["verdict"]
        for case in cases("config_object")
    )
    assert verdicts["differs"] + verdicts["raised"] > 5, verdicts
