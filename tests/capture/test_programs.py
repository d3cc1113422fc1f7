"""Files that say their inputs only by what they do when they are run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.domain.errors import CaptureError, ImportFailed, ShapesNeeded
from evokernel_core.domain.region import RegionStatus
from tests import warm

HEAD = """
import argparse, os, socket, subprocess, sys, time
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.scale = options["scale"]

    def forward(self, x):
        return torch.relu(x) * self.scale


class Net(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.block = Block(options)

    def forward(self, x):
        return self.block(x).sigmoid() + 1.0


"""
CALL = "Net({'scale': 2.0}).cuda()(torch.randn(4, 8, device='cuda'))\n"
MAIN = "if __name__ == '__main__':\n"


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentClient]:
    """An agent of its own: what the programs of other files did to their process does not show here."""
    with AgentClient(warm.interpreter()) as client:
        yield client


def main(body: str) -> str:
    return f"{HEAD}{MAIN}{indent(body, '    ')}"


ALL = {"Block.forward", "Net.forward"}


def found_in(agent: AgentClient, path: Path, text: str, fusible: dict[str, str]) -> set[str]:
    path.write_text(text)
    regions = agent.capture(path, None, fusible)
    return {item.symbol for item in regions if item.status is RegionStatus.CANDIDATE}


@pytest.mark.parametrize(
    "body",
    [
        CALL,
        f"{CALL}sys.exit(3)\n",
        f"{CALL}raise RuntimeError('later')\n",
        f"parser = argparse.ArgumentParser()\nparser.add_argument('--n', type=int, default=2)\n"
        f"args = parser.parse_args()\n{CALL}",
        f"while True:\n    {CALL}",
        f"time.sleep(600)\n{CALL}",
        "net = Net({'scale': 2.0})\nopt = torch.optim.SGD([torch.zeros(2, requires_grad=True)], 0.1)\n"
        "for _ in range(1000):\n    loss = net(torch.randn(3, 4)).mean()\n    print(loss.item())\n",
        f"try:\n    {CALL}    open('x').read()\nexcept Exception:\n    pass\n",
    ],
    ids=["call", "exit", "error", "argparse", "endless", "sleep", "training", "caught"],
)
def test_what_the_main_block_calls_gets_regions(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str], body: str
) -> None:
    assert found_in(agent, tmp_path / "net.py", main(body), fusible) == ALL


@pytest.mark.parametrize(
    "end",
    [CALL, f"{CALL}sys.exit(2)\n", f"sys.exit(0)\n\n\n{MAIN}    {CALL}", f"while True:\n    {CALL}"],
    ids=["call", "exit", "main behind exit", "endless"],
)
def test_what_a_module_calls_itself_gets_regions(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str], end: str
) -> None:
    assert found_in(agent, tmp_path / "net.py", HEAD + end, fusible) == ALL


def test_a_function_that_the_main_block_calls_gets_regions(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str]
) -> None:
    text = "import torch\n\n\ndef f(x, *, k=2.0):\n    return torch.relu(x) * k\n\n\n"
    text += f"{MAIN}    print(f(torch.arange(6.0).reshape(2, 3), k=3.0))\n"
    assert found_in(agent, tmp_path / "f.py", text, fusible) == {"f"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("p = argparse.ArgumentParser()\np.add_argument('--data', required=True)\np.parse_args()\n",
         "its command line needs arguments: the following arguments are required: --data"),
        ("open('data.bin', 'rb').read()\n", "FileNotFoundError"),
        ("torch.load('weights.pt')\n", "FileNotFoundError"),
        ("subprocess.run(['true'])\n", "it starts another program"),
        ("os.system('true')\n", "it starts another program"),
        ("socket.create_connection(('127.0.0.1', 9))\n", "it uses the network"),
        ("input()\n", "EOFError"),
        ("os.open('made.txt', os.O_WRONLY | os.O_CREAT)\n", "it writes files"),
        ("assert torch.cuda.is_available()\n", "AssertionError"),
    ],
)  # fmt: skip
def test_a_program_that_cannot_go_on_says_what_to_do(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str], body: str, words: str
) -> None:
    path = tmp_path / "net.py"
    with pytest.raises(ShapesNeeded) as caught:
        found_in(agent, path, main(body + CALL), fusible)
    assert words in str(caught.value)
    assert "'evokernel observe -- python net.py ...'" in str(caught.value)
    assert not (tmp_path / "made.txt").exists()


_AS_NPU = "as if on an NPU"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("assert not torch.npu.is_available()\n", True),
        ("device = 'npu' if torch.npu.is_available() else 'cpu'\nopen('data.bin', 'rb')\n", True),
        ("torch.npu.set_device(0)\nopen('data.bin', 'rb')\n", True),
        ("import torch_npu\nopen('data.bin', 'rb')\n", True),
        ("import torch_npu\ntorch_npu.no_such_function()\n", True),
        ("torch.ones(2, device='npu')\nopen('data.bin', 'rb')\n", True),
        ("torch.ones(2).to(torch.device('npu:0'))\nopen('data.bin', 'rb')\n", True),
        ("nn.Linear(2, 2).npu()\nopen('data.bin', 'rb')\n", True),
        ("nn.Linear(2, 2).to('npu')\nopen('data.bin', 'rb')\n", True),
        ("torch.ones(2).npu()\nopen('data.bin', 'rb')\n", True),
        ("import torch_npu\nsubprocess.run(['npu-smi'])\n", True),
        ("open('data.bin', 'rb')\n", False),
        ("nn.Linear(2, 2).to('cuda')\nopen('data.bin', 'rb')\n", False),
        ("x = torch.cuda.is_available()\nopen('data.bin', 'rb')\n", False),
    ],
)  # fmt: skip
def test_a_program_that_ran_as_if_on_an_npu_says_so(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str], body: str, told: bool
) -> None:
    for text in (main(body + CALL), HEAD + body + CALL):
        with pytest.raises((ShapesNeeded, ImportFailed)) as caught:
            found_in(agent, tmp_path / "net.py", text, fusible)
        assert (_AS_NPU in str(caught.value)) == told, caught.value


@pytest.mark.thorough
def test_an_endless_program_without_a_model_ends(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str]
) -> None:
    started = time.monotonic()
    with pytest.raises(ShapesNeeded, match="had not called a model after"):
        found_in(agent, tmp_path / "net.py", main("while True:\n    pass\n"), fusible)
    assert time.monotonic() - started < 40


def test_a_program_has_no_effects(agent: AgentClient, tmp_path: Path, fusible: dict[str, str]) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("mine")
    body = (
        "os.makedirs('out/deep', exist_ok=True)\nwith open('out.txt', 'w') as f:\n    f.write('x')\n"
        f"os.remove({str(kept)!r})\nos.environ['MARK'] = 'set'\ntorch.save({{}}, 'model.pt')\n{CALL}"
    )
    assert found_in(agent, tmp_path / "net.py", main(body), fusible) == ALL
    assert {item.name for item in tmp_path.iterdir()} - {"__pycache__"} == {"kept.txt", "net.py"}
    assert kept.read_text() == "mine"
    again = main("assert 'MARK' not in os.environ\n" + CALL)
    assert found_in(agent, tmp_path / "net2.py", again, fusible) == ALL


def test_definitions_behind_a_script_that_ends_are_there(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str]
) -> None:
    text = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\nargs = p.parse_args()\n"
        f"{HEAD}def get_inputs():\n    return [torch.rand(2, 3)]\n\n\n"
        "def get_init_inputs():\n    return [{'scale': 1.5}]\n"
    )
    assert found_in(agent, tmp_path / "net.py", text, fusible) == ALL


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import torch\nprint(undefined)\n\n\ndef f(x):\n    return torch.relu(x)\n", ImportFailed),
        ("import torch\nimport not_there\n", ImportFailed),
        ("import torch\nopen('nothing')\n\n\ndef f(x):\n    return torch.relu(x)\n", ShapesNeeded),
    ],
)
def test_what_is_wrong_with_a_file_is_told_from_what_it_lacks(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str], text: str, error: type[CaptureError]
) -> None:
    with pytest.raises(error, match="line 2"):
        found_in(agent, tmp_path / "net.py", text, fusible)


def test_the_main_block_runs_only_where_nothing_else_is_known(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str]
) -> None:
    text = HEAD + "def get_inputs():\n    return [torch.rand(2, 3)]\n\n\n"
    text += (
        "def get_init_inputs():\n    return [{'scale': 1.5}]\n\n\n" + MAIN + "    while True:\n        pass\n"
    )
    started = time.monotonic()
    assert found_in(agent, tmp_path / "net.py", text, fusible) == ALL
    assert time.monotonic() - started < 10


def test_the_files_run_for_themselves(tmp_path: Path) -> None:
    """The programs above are right: what is refused is not refused for a mistake in them."""
    path = tmp_path / "net.py"
    path.write_text(main(CALL.replace(".cuda()", "").replace("'cuda'", "'cpu'")))
    assert subprocess.run([sys.executable, str(path)], check=False).returncode == 0


def test_a_module_named_like_its_package_is_captured(
    agent: AgentClient, tmp_path: Path, fusible: dict[str, str]
) -> None:
    package = tmp_path / "net"
    package.mkdir()
    (package / "__init__.py").write_text("from net.net import Net\n")
    (package / "parts.py").write_text("SCALE = 2.0\n")
    text = f"from net.parts import SCALE\n{HEAD}{MAIN}    {CALL}"
    assert found_in(agent, package / "net.py", text, fusible) == ALL
