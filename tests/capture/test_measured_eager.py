"""What was published of eager PyTorch on a chip stands where a person's code is the same work."""

from __future__ import annotations

from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.verdict import Baseline, LatencySource
from evokernel_core.targets.ascendc.target import ASCENDC

TEXT = """
import torch


# evokernel: {name}=f16[{sizes}]
def activation({name}):
    return torch.sigmoid({name})
"""


def baseline(agent: AgentClient, folder: Path, name: str, sizes: str, chip: str) -> Baseline:
    path, text = folder / "model.py", TEXT.format(name=name, sizes=sizes)
    path.write_text(text)
    (region,) = agent.capture(path, text, covered_ops(ASCENDC))
    assert region.task is not None, region.reason
    return ASCENDC.baseline(region.task, ASCENDC.device(chip))


@pytest.mark.parametrize("name", ["x", "hidden_states"])
def test_the_same_work_is_measured_whatever_it_is_called(
    agent: AgentClient, tmp_path: Path, name: str
) -> None:
    measured = baseline(agent, tmp_path, name, "1024,1024", "ascend910b2")
    assert (measured.word, measured.low_us, measured.high_us) == (
        LatencySource.MEASURED, measured.us, measured.us
    )  # fmt: skip
    assert measured.us == pytest.approx(5.3, abs=0.1)
    assert measured.source == "cann-bench, sigmoid 1"


@pytest.mark.parametrize(
    ("sizes", "chip"), [("1024,1000", "ascend910b2"), ("1024,1024", "ascend910b1"), ("2,1024", "ascend910b2")]
)
def test_other_sizes_and_chips_are_modelled(
    agent: AgentClient, tmp_path: Path, sizes: str, chip: str
) -> None:
    modelled = baseline(agent, tmp_path, "x", sizes, chip)
    assert (modelled.word, modelled.source) == (LatencySource.MODELLED, "")
    assert modelled.low_us <= modelled.us <= modelled.high_us and modelled.low_us < modelled.high_us
