"""Files of packages whose __init__ imports them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.capture.agent.loading.imports import Imports
from evokernel_core.capture.agent.loading.load import isolation
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm

NET = """
import torch
from torch import nn
from .layers import gated

class Model(nn.Module):
    def forward(self, x):
        return gated(x).exp()

def get_inputs():
    return [torch.randn(4, 6)]
"""


@pytest.mark.parametrize(
    "imported", ["from parts.layers import gated", "import parts.layers as layers; gated = layers.gated"]
)
@pytest.mark.parametrize("name", ["net", "parts"], ids=["own name", "the package's name"])
def test_a_file_that_names_its_package(agent: Any, tmp_path: Any, imported: str, name: str) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    text = NET.replace("from .layers import gated", imported)
    (folder / "__init__.py").write_text(f"from parts.{name} import Model\n")
    (folder / "layers.py").write_text("def gated(x):\n    return x * x.sigmoid()\n")
    (folder / f"{name}.py").write_text(text)
    (region,) = agent.capture(folder / f"{name}.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
    assert region.task is not None, region.reason


def test_a_package_that_imports_the_file(agent: Any, tmp_path: Any) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .net import Model\n")
    (folder / "layers.py").write_text("def gated(x):\n    return x * x.sigmoid()\n")
    (folder / "net.py").write_text(NET)
    (region,) = agent.capture(folder / "net.py", NET, covered_ops(ASCENDC), "Model.forward", whole=True)
    assert region.task is not None, region.reason


def test_a_file_that_registers_itself_runs_once(agent: Any, tmp_path: Any) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .net import Model\n")
    (folder / "layers.py").write_text(
        "KNOWN = set()\n"
        "def gated(x):\n    return x * x.sigmoid()\n"
        "def register(kind):\n    assert kind.__name__ not in KNOWN\n"
        "    KNOWN.add(kind.__name__)\n    return kind\n"
    )
    text = NET.replace("import gated", "import gated, register").replace(
        "class Model", "@register\nclass Model"
    )
    (folder / "net.py").write_text(text)
    for _ in range(2):  # and once again in the next request
        (region,) = agent.capture(folder / "net.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)
        assert region.task is not None, region.reason


def test_a_project_that_registers_with_a_library(tmp_path: Any) -> None:
    """A library takes a name once in a process; each request imports the project anew."""
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        'import torch\nLIBRARY = torch.library.Library("parts_of_test", "DEF")\n'
    )
    (folder / "layers.py").write_text("def gated(x):\n    return x * x.sigmoid()\n")
    text = NET + "\n" * 3 + 'torch.utils.data.functional_datapipe("of_test")'
    text += "(type('Pipe', (torch.utils.data.IterDataPipe,), {}))\n"
    (folder / "net.py").write_text(text)
    with AgentClient(warm.interpreter()) as agent:
        for symbol in ("Model.forward", None):
            found = agent.capture(folder / "net.py", text, covered_ops(ASCENDC), symbol, whole=bool(symbol))
            assert any(region.task for region in found), [region.reason for region in found]


def test_a_capture_leaves_no_compiled_modules_in_a_project(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "beside_the_model.py").write_text("")
    with isolation(tmp_path / "net.py", Imports(tmp_path)):
        importlib.import_module("beside_the_model")
    assert {item.name for item in tmp_path.iterdir()} == {"beside_the_model.py"}
