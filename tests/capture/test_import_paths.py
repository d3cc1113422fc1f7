"""Captures of files whose imports are found as their programs find them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.errors import ImportFailed
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm

OPS = "import torch\n\n\ndef gate(x):\n    return torch.sigmoid(x) * x\n"
NET = "import torch\n{imported}\n\n\n# evokernel: x=f16[512,1024]\nclass Net(torch.nn.Module):\n"
NET += "    def forward(self, x):\n        return gate(torch.tanh(x)) + 1\n"
LAYOUTS = {
    "own package": ("pkg/sub", "from pkg.sub.ops import gate", "pkg/sub/ops.py"),
    "relative": ("pkg", "from .ops import gate", "pkg/ops.py"),
    "relative upwards": ("pkg/sub", "from ..ops import gate", "pkg/ops.py"),
    "another package": ("models", "from utils.ops import gate", "utils/ops.py"),
    "below src": ("scripts", "from lib.ops import gate", "src/lib/ops.py"),
    "PYTHONPATH": ("app", "from shared.ops import gate", "elsewhere/shared/ops.py"),
    "a module of PYTHONPATH": ("app", "from shared import gate", "elsewhere/shared.py"),
}


def written(folder: Path, name: str) -> Path:
    inner, imported, ops = LAYOUTS[name]
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").touch()
    for path, text in ((folder / inner / "net.py", NET.format(imported=imported)), (folder / ops, OPS)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / inner / "net.py"


def captured(agent: AgentClient, file: Path) -> list[Region]:
    return [item for item in agent.capture(file, None, covered_ops(ASCENDC), whole=True) if item.task]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_is_captured_with_the_imports_of_its_programs(
    agent: AgentClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))
    file = written(tmp_path, name)
    (region,) = captured(agent, file)
    digests: dict[str, Any] = dict(region.site.code) if region.site else {}
    assert any(item.endswith("ops.py:gate") or item.endswith("shared.py:gate") for item in digests)


def test_what_packages_import_is_read_again(agent: AgentClient, tmp_path: Path) -> None:
    file = written(tmp_path, "own package")
    (first,) = captured(agent, file)
    (tmp_path / "pkg" / "sub" / "ops.py").write_text(OPS.replace("* x", "+ x"))
    file.write_text(f"{file.read_text()}\n")
    (second,) = captured(agent, file)
    assert first.task and second.task and first.task.task_id != second.task.task_id


def test_a_package_of_another_project_is_another_one(agent: AgentClient, tmp_path: Path) -> None:
    """Two projects may have a package of one name, and no ``__init__.py`` to tell them apart."""
    for number, text in enumerate((OPS, OPS.replace("* x", "+ x"))):
        file = written(tmp_path / str(number), "own package")
        (tmp_path / str(number) / "pkg" / "sub" / "ops.py").write_text(text)
        (region,) = captured(agent, file)
        assert region.task
        assert ("add" in region.task.graph.nodes[2].op) == bool(number)


def test_a_module_that_is_not_there_is_no_package_to_install_alone(
    agent: AgentClient, tmp_path: Path
) -> None:
    file = written(tmp_path, "own package")
    file.write_text(file.read_text().replace("pkg.sub.ops", "no_such.ops"))
    with pytest.raises(ImportFailed, match="or name its folder in PYTHONPATH"):
        captured(agent, file)


def test_an_environment_of_its_own_has_its_own_path(tmp_path: Path) -> None:
    file = written(tmp_path, "PYTHONPATH")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "elsewhere")}
    with AgentClient(warm.interpreter(), environment=environment) as client:
        assert captured(client, file)
