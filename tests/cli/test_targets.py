"""``--target`` and ``--chip`` on the command line: what is planned for which device, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.cli.options import settings_from
from evokernel_core.domain.errors import UsageError
from tests import warm

MODEL = """\
import torch


# evokernel: x=f32[64,256]
def f(x):
    return torch.softmax(torch.relu(x) * 2.0, -1)
"""
OPTIONS: dict[str, Any] = {
    "interpreter": "", "target": "auto", "chip": "", "budget": 1, "patience": 0, "proposer": "schedule",
    "policy": "qvalue", "retrieval": "none", "verifier_url": "", "verifier_ca_bundle": "",
    "candidates_at_once": 0, "half": False, "seed": 0, "base_url": "", "model": "",
}  # fmt: skip


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The settings of shared options, of which some are given."""
    from evokernel_core.cli import options
    from evokernel_core.domain.settings import ModelEndpoint

    monkeypatch.setattr(options.model_options, "endpoint_from", lambda _: ModelEndpoint())
    monkeypatch.setattr(options, "with_keys", lambda settings: settings)
    return lambda **given: settings_from({**OPTIONS, **given})


@pytest.mark.parametrize(
    ("target", "chip", "device"),
    [
        ("auto", "", "ascend910b1"),
        ("ascendc", "", "ascend910b1"),
        ("ascendc", "ascend910b4", "ascend910b4"),
        ("triton", "", "nvidia_h200"),
        ("triton", "nvidia_rtx4090", "nvidia_rtx4090"),
        ("auto", "metax_c500", "metax_c500"),
        ("triton", "ascend910b4", "ascend910b4"),
    ],
)
def test_no_chip_is_the_targets_own(target: str, chip: str, device: str, settings: Any) -> None:
    assert settings(target=target, chip=chip).chip == device


def test_a_device_of_another_target_is_not_supported(settings: Any) -> None:
    words = "Kernels for nvidia_h200 in AscendC are not supported yet; choose one of"
    with pytest.raises(UsageError, match=words):
        settings(target="ascendc", chip="nvidia_h200")


@pytest.mark.usefixtures("warm_torch")
@pytest.mark.parametrize(
    ("options", "target", "chip"),
    [
        ((), "ascendc", "ascend910b1"),
        (("--target", "triton"), "triton", "nvidia_h200"),
        (("--chip", "nvidia_a100"), "triton", "nvidia_a100"),
        (("--target", "triton", "--chip", "ascend910b2"), "triton", "ascend910b2"),
    ],
)
def test_a_plan_is_for_the_device(options: tuple[str, ...], target: str, chip: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    environment = os.environ | {"EVOKERNEL_HOME": str(tmp_path / "home")}
    command = warm.evokernel("synth", tmp_path / "model.py", "--plan", "--json", *options)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    (row,) = json.loads(done.stdout)["regions"]
    assert (row["status"], row["target"], row["chip"]) == ("candidate", target, chip)
    assert row["latency_source"] == row["baseline_source"] == "modelled"
    assert 0 < row["roofline_us"] <= row["estimate_us"] < row["baseline_us"]
    assert row["vendor"] is None
