"""Where a file's imports start, with and without ``__init__.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evokernel_core.import_root import import_path, import_root

OPS = "def gate(x):\n    return x\n"
ALONE = "import math\n"
PACKAGE = {"pkg/sub/ops.py": OPS}
LAYOUTS: dict[str, tuple[dict[str, str], str, str]] = {
    "alone": ({"pkg/net.py": ALONE}, "pkg/net.py", "pkg"),
    "a package": ({"pkg/__init__.py": "", "pkg/net.py": ALONE}, "pkg/net.py", "."),
    "a sibling": ({"pkg/ops.py": OPS, "pkg/net.py": "from ops import gate\n"}, "pkg/net.py", "pkg"),
    "own package": ({**PACKAGE, "pkg/sub/net.py": "from pkg.sub.ops import gate\n"}, "pkg/sub/net.py", "."),
    "a module of its package": (
        {**PACKAGE, "pkg/sub/net.py": "from pkg.sub import ops\n"}, "pkg/sub/net.py", "."
    ),
    "by name": ({**PACKAGE, "pkg/sub/net.py": "import pkg.sub.ops as ops\n"}, "pkg/sub/net.py", "."),
    "relative": ({"pkg/ops.py": OPS, "pkg/net.py": "from .ops import gate\n"}, "pkg/net.py", "."),
    "relative module": ({"pkg/ops.py": OPS, "pkg/net.py": "from . import ops\n"}, "pkg/net.py", "."),
    "relative upwards": (
        {"pkg/ops.py": OPS, "pkg/sub/net.py": "from ..ops import gate\n"}, "pkg/sub/net.py", "."
    ),
    "package in a folder": (
        {"ns/pkg/__init__.py": "", "ns/pkg/ops.py": OPS, "ns/pkg/net.py": "from ns.pkg.ops import gate\n"},
        "ns/pkg/net.py", ".",
    ),
    "named beside": (
        {"pkg/sub/ops.py": OPS, "pkg/sub/net.py": "from pkg.sub.ops import gate\n"}, "pkg/sub/ops.py", "."
    ),
    "named relatively": ({"pkg/ops.py": OPS, "pkg/net.py": "from .ops import gate\n"}, "pkg/ops.py", "."),
    "named above": ({"pkg/net.py": ALONE, "main.py": "from pkg.net import math\n"}, "pkg/net.py", "."),
    "another is named above": (
        {"pkg/net.py": ALONE, "pkg/ops.py": OPS, "main.py": "from pkg.ops import gate\n"}, "pkg/net.py", "pkg"
    ),
    "below src": (
        {"src/pkg/ops.py": OPS, "src/pkg/net.py": "from pkg.ops import gate\n"}, "src/pkg/net.py", "src"
    ),
    "another package": (
        {"utils/ops.py": OPS, "models/net.py": "from utils.ops import gate\n"}, "models/net.py", "."
    ),
    "a module above": ({"ops.py": OPS, "models/net.py": "from ops import gate\n"}, "models/net.py", "."),
    "a folder called like a library": (
        {"torch/nn/x.py": "", "torch/net.py": "import json.decoder\ntry:\n    import torch.nn\n"
         "except ImportError:\n    pass\n", "json/decoder.py": ""}, "torch/net.py", "torch",
    ),
}  # fmt: skip
"""Files, the one that is asked for, and its root."""


def written(folder: Path, files: dict[str, str]) -> Path:
    (folder / "project").mkdir()
    for name, text in {"pyproject.toml": "", **files}.items():
        path = folder / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "project"


@pytest.mark.parametrize("name", LAYOUTS)
def test_imports_start_where_python_finds_them(tmp_path: Path, name: str) -> None:
    files, file, root = LAYOUTS[name]
    project = written(tmp_path, files)
    assert import_root(project / file) == (project / root).resolve()
    folder = import_root(project / file)
    module = ".".join((project / file).relative_to(folder).with_suffix("").parts)
    done = subprocess.run(
        [sys.executable, "-SsE", "-c", f"import {module}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_file_stays_with_the_kernels_that_it_calls(tmp_path: Path) -> None:
    """Other imports than those of when they were written do not part them."""
    project = written(tmp_path, {
        "pkg/ops.py": OPS, "pkg/net.py": "from evokernel_kernels import relu_1\nfrom pkg.ops import gate\n",
    })  # fmt: skip
    assert import_root(project / "pkg" / "net.py") == project
    (project / "pkg" / "evokernel_kernels" / "relu_1").mkdir(parents=True)
    assert import_root(project / "pkg" / "net.py") == project / "pkg"


def test_a_project_ends_at_its_top(tmp_path: Path) -> None:
    project = written(tmp_path, {"pkg/net.py": "from outside.ops import gate\n"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "ops.py").write_text(OPS)
    assert import_root(project / "pkg" / "net.py") == project / "pkg"


def test_a_text_that_changes_is_read_again(tmp_path: Path) -> None:
    project = written(tmp_path, {"pkg/ops.py": OPS, "pkg/net.py": ALONE})
    net = project / "pkg" / "net.py"
    assert import_root(net) == project / "pkg"
    net.write_text("from pkg.ops import gate\n")
    assert import_root(net) == project


def test_folders_of_the_environment_and_of_the_project_are_looked_through(tmp_path: Path) -> None:
    project = written(tmp_path, {"pkg/net.py": ALONE, "src/other/ops.py": OPS})
    lib = tmp_path / "lib"
    found = import_path(project / "pkg" / "net.py", os.pathsep.join(["", str(lib)]))
    assert (found.root, found.first) == (project / "pkg", (lib,))
    assert found.last == (project, project / "src")
