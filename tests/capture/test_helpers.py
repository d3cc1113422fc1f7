"""Functions that take no tensors are not asked for the shapes of their inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import RegionStatus
from evokernel_core.targets.ascendc.target import ASCENDC

HEAD = """
import abc
import argparse
import functools
from dataclasses import dataclass
from typing import Any, Callable, List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader


KNOWN = []


@dataclass
class Config:
    width: int = 4


@dataclass
class Batch:
    x: Tensor


class Net(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


"""
HELPERS = {
    "main": "def main():\n    return torch.randn(3)",
    "conv3x3": "def conv3x3(i, o, stride=1):\n    return nn.Conv2d(i, o, 3, stride)",
    "seeded": "def seeded(seed):\n    torch.manual_seed(seed)",
    "pick": "def pick(name='cuda', index=0):\n    return torch.device(f'{name}:{index}')",
    "optimizer": "def optimizer(model, lr):\n    return torch.optim.SGD(model.parameters(), lr=lr)",
    "train": "def train(args, model, device, loader, optimizer, epoch):\n    model.train()\n"
    "    for i, (x, y) in enumerate(loader):\n        optimizer.zero_grad()\n"
    "        F.mse_loss(model(x.to(device)), y).backward()\n        optimizer.step()\n"
    "        print(f'{epoch} {args.lr}')",
    "annotated": "def annotated(config: Config, net: nn.Module, sizes: List[int], f: Callable):\n"
    "    return torch.zeros(config.width)",
    "optional": "def optional(n: Optional[int], p: 'str | None'):\n    return torch.zeros(3)",
    "save": "def save(net, path='x.pt'):\n    torch.save(net.state_dict(), path)",
    "load": "def load(path, device):\n    return torch.load(path, map_location=device)",
    "mode": "def mode(kind):\n    return nn.ReLU() if kind == 'relu' else nn.GELU()",
    "verbose": "def verbose(net: nn.Module, loud):\n    if loud:\n        print(torch.__version__)",
    "checked": "def checked(rank, net: nn.Module):\n    if rank == 0 and torch.cuda.is_available():\n"
    "        print(net)",
    "unused": "def unused(_):\n    return nn.ReLU()",
    "compiled": "def compiled(fn):\n    return torch.compile(fn) if torch.cuda.is_available() else fn",
    "scripted": "def scripted(f):\n    return torch.jit.script(f)",
    "timed": "def timed(fn):\n    @functools.wraps(fn)\n    def inner(x):\n        return fn(x)\n"
    "    return inner",
    "partially": "def partially(fn):\n    return functools.partial(fn, inplace=True)",
    "noted": "def noted(cls):\n    KNOWN.append(cls)\n    return cls\n\n\n"
    "@noted\nclass Noted(Net):\n    pass",
    "named": "def named(name):\n    return lambda f: KNOWN.append((name, f)) or f\n\n\n"
    "@named(name=torch.float)\ndef float_size():\n    return 4",
    "grid": "def grid(n):\n    return torch.stack([torch.ones(3) for _ in range(n)])",
}
STUBS = {
    "Base": "class Base(nn.Module):\n    def forward(self, x):\n        raise NotImplementedError",
    "Worded": "class Worded(nn.Module):\n    def forward(self, x):\n        '''What comes.'''\n"
    "        raise NotImplementedError('a subclass has it')",
    "Abstract": "class Abstract(nn.Module):\n    @abc.abstractmethod\n    def forward(self, x): ...",
    "Passed": "class Passed(nn.Module):\n    def forward(self, x, emb):\n        pass",
    "Protocol": "class Protocol(nn.Module):\n    def forward(self, x):\n        '''What comes.'''",
    "to_come": "def to_come(x):\n    raise NotImplementedError",
}
"""Definitions without a body, which nobody can run a program for."""
TENSORS = {
    "Fails": "class Fails(nn.Module):\n    def forward(self, x):\n        y = torch.relu(x)\n"
    "        raise NotImplementedError(y)",
    "Refuses": "class Refuses(nn.Module):\n    def forward(self, x):\n        raise ValueError(x.shape)",
    "Inherits": "class Inherits(Base):\n    def forward(self, x):\n        return super().forward(x) * 2",
    "plain": "def plain(x):\n    return torch.relu(x)",
    "scaled": "def scaled(x, scale=2.0):\n    return torch.relu(x) * scale",
    "typed": "def typed(x: Tensor, n: int) -> Tensor:\n    return torch.relu(x) * n",
    "several": "def several(xs: List[Tensor]):\n    return torch.stack(xs)",
    "anything": "def anything(x: Any):\n    return torch.relu(x)",
    "a_list": "def a_list(xs: list):\n    return torch.stack(xs)",
    "batched": "def batched(batch: Batch):\n    return torch.relu(batch.x)",
    "with_model": "def with_model(model, x):\n    return torch.relu(model(x))",
    "spread": "def spread(*xs):\n    return torch.stack(xs)",
    "optional_mask": "def optional_mask(scores, mask=None):\n    if mask is not None:\n"
    "        scores = scores + mask\n    return torch.softmax(scores, -1)",
    "methods": "def methods(x):\n    return F.relu(x.view(-1).mean())",
    "shown": "def shown(x):\n    print(x)\n    return torch.relu(x)",
    "sized": "def sized(x):\n    if x.dim() == 3:\n        x = x[0]\n    return torch.relu(x)",
    "either": "def either(x: 'Tensor | float'):\n    return torch.relu(x)",
}
MAIN = "if __name__ == '__main__':\n    Net()(torch.randn(3))\n"


@pytest.fixture(scope="module")
def asked(agent: AgentClient, tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The functions that a capture asks for the shapes of their inputs."""
    path = tmp_path_factory.mktemp("helpers") / "net.py"
    path.write_text(
        HEAD + "\n\n\n".join([*HELPERS.values(), *STUBS.values(), *TENSORS.values()]) + f"\n\n\n{MAIN}"
    )
    regions = agent.capture(path, None, covered_ops(ASCENDC), whole=True)
    assert any(item.task for item in regions)
    return frozenset(item.symbol for item in regions if item.status is RegionStatus.NEEDS_SHAPES)


@pytest.mark.parametrize("name", HELPERS)
def test_a_function_without_tensors_is_not_asked_for_shapes(asked: frozenset[str], name: str) -> None:
    assert name not in asked


@pytest.mark.parametrize("name", STUBS)
def test_what_has_no_body_is_not_asked_for_shapes(asked: frozenset[str], name: str) -> None:
    assert not {name, f"{name}.forward"} & asked


@pytest.mark.parametrize("name", TENSORS)
def test_a_function_that_may_take_tensors_is(asked: frozenset[str], name: str) -> None:
    assert name in asked


def test_what_a_program_calls_without_tensors_takes_none(agent: AgentClient, tmp_path: Path) -> None:
    """The body of ``act`` does not tell; a call of it does."""
    path = tmp_path / "net.py"
    act = "def act(kind):\n    return torch.nn.ModuleDict({'relu': nn.ReLU()})[kind]\n\n\n"
    path.write_text(HEAD + act + MAIN + "    act('relu')\n    plain = 1\n")
    regions = agent.capture(path, None, covered_ops(ASCENDC), whole=True)
    assert {item.symbol for item in regions} == {"Net.forward"}


def test_a_shape_comment_is_an_answer(agent: AgentClient, tmp_path: Path) -> None:
    """What it says wrongly is told, whatever the function takes."""
    path = tmp_path / "net.py"
    path.write_text(HEAD + f"# evokernel: n=f16[\n{HELPERS['grid']}\n\n\n{MAIN}")
    regions = agent.capture(path, None, covered_ops(ASCENDC), whole=True)
    assert "grid" in {item.symbol for item in regions}
