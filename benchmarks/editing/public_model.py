"""A model file of a public package, as a person has it after one run of a program that uses it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

TRANSFORMERS = "transformers==5.23.0"
JEDI = "jedi-language-server==0.47.0"
_MODEL = "transformers/models/big_bird/modeling_big_bird.py"
"""2,501 lines."""
_PROGRAM = """\
import torch
from transformers import BigBirdConfig
from transformers.models.big_bird import modeling_big_bird as parts

config = BigBirdConfig(hidden_size=256, num_attention_heads=4, intermediate_size=1024)
x, wide = torch.rand(8, 256, 256), torch.rand(8, 256, 1024)
with torch.no_grad():
    parts.BigBirdIntermediate(config).eval()(x)
    parts.BigBirdOutput(config).eval()(wide, x)
    parts.BigBirdSelfOutput(config).eval()(x, x)
    parts.BigBirdSelfAttention(config).eval()(x)
    parts.BigBirdPredictionHeadTransform(config).eval()(x)
"""
"""The parts of one layer: a trace of the whole model would take minutes."""


class PublicModel:
    """An environment in ``folder`` with the package, the torch that runs this, and jedi's server."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        if not (self.bin / "jedi-language-server").exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            pip = [self.bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, TRANSFORMERS, JEDI], check=True)
        site = next((folder / "lib").glob("python3*")) / "site-packages"
        (site / "zz_torch.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
        self.path = site / _MODEL

    def observe(self, work: Path, environment: Mapping[str, str]) -> None:
        """Runs a program once, so that the shapes of the model's inputs are known."""
        program = work / "use_big_bird.py"
        program.write_text(_PROGRAM)
        evokernel = Path(sys.executable).with_name("evokernel")
        subprocess.run(
            [evokernel, "observe", "--workspace", self.path.parent, "--", self.bin / "python", program],
            check=True, env=dict(environment), cwd=work, stdout=subprocess.DEVNULL,
        )  # fmt: skip
