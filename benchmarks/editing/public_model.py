"""A model file of a public package, and jedi's server to read it with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TRANSFORMERS = "transformers==5.23.0"
JEDI = "jedi-language-server==0.47.0"
FUNCTIONS = 40
_MODEL = "transformers/models/big_bird/modeling_big_bird.py"
"""2,501 lines."""
_FUNCTION = "\n\ndef attention_{number}(x):\n    return torch.softmax(x, dim=-1)\n"


class PublicModel:
    """An environment in ``folder`` with both. ``text`` is the file with some functions behind it, in which
    the scripted worker of the tests finds regions: the server is on trial, not the capture of a model."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        if not (self.bin / "jedi-language-server").exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            pip = [self.bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", TRANSFORMERS], check=True)
            subprocess.run([*pip, JEDI], check=True)
        self.path = next((folder / "lib").glob("python3*")) / "site-packages" / _MODEL
        functions = (_FUNCTION.format(number=number) for number in range(FUNCTIONS))
        self.text = self.path.read_text("utf-8") + "".join(functions)
