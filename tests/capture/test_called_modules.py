"""Where a call cannot be one region as a whole, the modules that it calls are tried, and why is a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.targets.ascendc.target import ASCENDC

HEAD = """
import functools
import torch
from torch import nn
import torch.nn.functional as F

SEEN = 0


def noted(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.line = nn.Linear(width, width)

    def forward(self, x):
        y = torch.sigmoid(self.line(x))
        z = y * x
        return z + 1.0


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.block = Block(width)

    def forward(self, x):
        y = self.block(x)
        return torch.tanh(y) * 2.0


"""
SUPPLIED = "\n\ndef get_inputs():\n    return [torch.randn(4, 8)]\n"
MAIN = "\n\nif __name__ == '__main__':\n    "
OUTER = "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
OUTER += "        self.net = Net()\n\n"
OUTER += "    {decorator}def forward(self, x):\n        {body}\n"


def model(body: str, decorator: str = "") -> str:
    return OUTER.format(body="\n        ".join(body.split("; ")), decorator=decorator) + SUPPLIED


def loss(arguments: str, body: str, call: str) -> str:
    return f"def loss_fn({arguments}):\n    " + "\n    ".join(body.split("; ")) + f"\n{MAIN}{call}\n"


REFUSED = {
    "a model as argument": (
        "loss_fn",
        loss("model, x", "y = model(x); return F.mse_loss(y, x)", "loss_fn(Net(), torch.randn(4, 8))"),
    ),
    "a step": (
        "loss_fn",
        loss("model, opt, x", "opt.zero_grad(); y = model(x).mean(); y.backward(); opt.step(); return y",
             "net = Net()\n    loss_fn(net, torch.optim.SGD(net.parameters(), 0.1), torch.randn(4, 8))"),
    ),
    "it prints": ("Model.forward", model("print('x'); return self.net(x) + 3.0")),
    "it sets a global": ("Model.forward", model("global SEEN; SEEN = 1; return self.net(x) + 3.0")),
    "a decorator": ("Model.forward", model("y = self.net(x); return y + 3.0", "@noted\n    ")),
    "a generator": ("Model.forward", model("yield self.net(x) + 3.0")),
    "defined twice": (
        "Model.forward",
        f"if SEEN:\n{indent(OUTER.format(body='return self.net(x)', decorator=''), '    ')}\n\n"
        + model("return self.net(x) + 3.0"),
    ),
    "an object as result": ("Model.forward", model("y = self.net(x); return {1, y.dim()}, y")),
    "draws of Python": (
        "Model.forward", model("import random; y = self.net(x); return y * random.random()")
    ),
}  # fmt: skip
"""Functions that are no region as a whole, each with the file that it is in."""
_NOT_RUN = ("a generator", "defined twice")
Rows = Callable[[str], tuple[Region, ...]]


@pytest.fixture(scope="module")
def rows(agent: AgentClient, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of each file, captured once."""
    folder = tmp_path_factory.mktemp("called")

    def capture(name: str) -> tuple[Region, ...]:
        path = folder / f"{name.replace(' ', '_')}.py"
        path.write_text(HEAD + REFUSED[name][1])
        return agent.capture(path, None, covered_ops(ASCENDC), whole=True)

    return capture


def whole(rows: tuple[Region, ...], symbol: str) -> list[Region]:
    """The regions that are all of a function's body."""
    last = {"Net.forward": 2, "Block.forward": 3}[symbol]
    return [
        item for item in rows
        if item.symbol == symbol and item.task and item.span.end_line - item.span.line == last - 1
    ]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_function_is_a_row_with_its_reason(rows: Rows, name: str) -> None:
    found = [item for item in rows(name) if item.symbol == REFUSED[name][0] and item.task is None]
    assert found and all(item.status is RegionStatus.UNSUPPORTED and item.reason for item in found)


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in _NOT_RUN])
def test_the_modules_that_it_calls_are_taken_as_a_whole(rows: Rows, name: str) -> None:
    (net,) = whole(rows(name), "Net.forward")
    assert net.task and len(net.task.graph.nodes) >= 6


def test_modules_within_a_refused_one_are_taken_too(agent: AgentClient, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    printing = HEAD.replace("        y = self.block(x)", "        print('net')\n        y = self.block(x)")
    path.write_text(printing + model("print('model'); return self.net(x) + 3.0"))
    found = agent.capture(path, None, covered_ops(ASCENDC), whole=True)
    assert len(whole(found, "Block.forward")) == 1
    assert {item.symbol for item in found if item.task is None} == {"Model.forward", "Net.forward"}


def test_what_a_caller_does_is_no_fault_of_what_it_calls(agent: AgentClient, tmp_path: Path) -> None:
    """A module is asked for by its name; the function around it prints."""
    path = tmp_path / "net.py"
    path.write_text(HEAD + model("print('model'); return self.net(x) + 3.0"))
    found = agent.capture(path, None, covered_ops(ASCENDC), "Net.forward", whole=True)
    assert len(whole(found, "Net.forward")) == 1


def test_what_the_first_call_sets_is_seen_within_another(agent: AgentClient, tmp_path: Path) -> None:
    """A buffer that is made at first, before the module is tried by itself."""
    path = tmp_path / "net.py"
    making = "        if not hasattr(self, 'mask'):\n            self.mask = torch.ones(8)\n"
    lazy = HEAD.replace("        y = self.block(x)", f"{making}        y = self.block(x) * self.mask")
    path.write_text(lazy + model("print('model'); return self.net(x) + 3.0"))
    found = agent.capture(path, None, covered_ops(ASCENDC), whole=True)
    assert any(
        "The first call sets self.mask" in item.reason for item in found if item.symbol == "Net.forward"
    )


def test_what_fails_in_another_file_is_told_beside_what_ran(agent: AgentClient, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("def broken(x):\n    raise RuntimeError('no such layout')\n")
    path = tmp_path / "net.py"
    path.write_text(
        HEAD + "from other import broken\n\n\n" + loss("x", "y = torch.relu(x) + 1; return broken(y)",
                                                       "loss_fn(torch.randn(4, 8))")
    )  # fmt: skip
    found = agent.capture(path, None, covered_ops(ASCENDC), whole=True)
    assert any("no such layout" in item.reason for item in found if item.symbol == "loss_fn")
