"""Emacs with eglot, driven by its own commands in batch mode, with the configuration that the page prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.server.documented import block, emacs

DRIVER = Path(__file__).with_name("eglot_documented.el")
MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        # µ😀 before the operations: eglot counts in utf-16
        first = ("😀", torch.softmax(x, dim=-1))
        return first[1]


def needy(x):
    return torch.relu(x)
"""


def drive(tmp_path: Path, folder: Path, action: str = "") -> Any:
    """Opens a model of ``folder``, with ``tmp_path`` as the home folder; chooses ``action``, undoes it."""
    folder.mkdir(exist_ok=True)
    model, init, out = folder / "model.py", tmp_path / "init.el", tmp_path / "out.json"
    model.write_text(MODEL, "utf-8")
    at_once = block("Emacs with eglot", "elisp").replace("(:budget 30)", "(:budget 30 :editAtOnce t)")
    assert ":editAtOnce" in at_once
    init.write_text(at_once, "utf-8")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    told = {"INIT": str(init), "MODEL": str(model), "WORDS": "torch.softmax", "OUT": str(out)}
    chosen = {"ACTION": action} if action else {}
    done = subprocess.run(
        [emacs(), "--batch", "-l", str(DRIVER)],
        env={**os.environ, "PATH": path, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", **told, **chosen},
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert out.exists(), done.stderr
    return json.loads(out.read_text("utf-8"))


@pytest.mark.usefixtures("scripted", "home", "workspace")
def test_eglot_attaches_and_a_kernel_comes_and_goes(tmp_path: Path) -> None:
    seen = drive(tmp_path, tmp_path / "models", "Generate NPU kernel")
    assert "failure" not in seen, seen
    assert seen["attached"]
    assert "Nothing says the shapes of needy's inputs." in " ".join(seen["diagnostics"])
    assert any(title.startswith("Generate NPU kernel (softmax: 12x  35 µs est.") for title in seen["titles"])
    assert ".run(x) if " in seen["edited"]
    assert seen["undone"] == MODEL
    assert seen["asked"], "Emacs asks before an edit that the server sends"


@pytest.mark.usefixtures("scripted", "home")
def test_eglot_trusts_no_other_folder(tmp_path: Path, workspace: Path) -> None:
    seen = drive(tmp_path, workspace)
    assert "This folder is not trusted, so nothing of it is run" in " ".join(seen["diagnostics"])
    assert any(title.startswith(f"Trust {workspace} and run") for title in seen["titles"])
