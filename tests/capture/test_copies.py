"""What eager PyTorch copies is priced as a copy, and what it answers with a view costs nothing."""

from __future__ import annotations

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.eager import eager_launches
from evokernel_core.targets.ascendc.target import ASCENDC

SHAPE = (2, 4, 6, 8)
MOVES = {
    "flatten": "x.flatten(1)",
    "view": "x.view(8, -1)",
    "unflatten": "x.unflatten(1, (2, 2))",
    "transpose": "x.transpose(1, 2)",
    "expand": "x[:, :, None].expand(2, 4, 3, 6, 8)",
    "repeat heads": "x[:, :, None].expand(2, 4, 3, 6, 8).reshape(2, 12, 6, 8)",
    "expand of one": "x[:, :, None].expand(2, 4, 1, 6, 8).reshape(2, 4, 6, 8)",
    "merge heads": "x.transpose(1, 2).reshape(2, 6, 32)",
    "flatten behind a transpose": "x.transpose(0, 1).flatten(2)",
    "flatten of transposed": "x.transpose(2, 3).flatten(2)",
    "slice": "x[:, ::2].reshape(-1, 8)",
    "slice of columns": "x[..., :4].reshape(-1, 4)",
    "slice of columns, flat": "x[..., :4].reshape(-1)",
    "select": "x[:, 1].reshape(2, -1)",
    "movedim": "x.movedim(1, 3).reshape(2, -1)",
    "unflatten of transposed": "x.transpose(1, 2).unflatten(0, (2, 1))",
    "contiguous": "x.contiguous()",
    "contiguous of transposed": "x.transpose(1, 2).contiguous()",
    "contiguous, then a view": "x.transpose(1, 2).contiguous().view(2, 6, -1)",
    "contiguous, then transposed": "x.transpose(1, 2).contiguous().transpose(1, 2)",
    "clone": "x.clone()",
    "channels last": "x.contiguous(memory_format=torch.channels_last)",
    "to channels last": "x.to(memory_format=torch.channels_last)",
    "channels last, then flat": "x.to(memory_format=torch.channels_last).flatten(2)",
    "interleaved": "x.repeat_interleave(3, dim=1)",
    "pixel_shuffle": "torch.nn.functional.pixel_shuffle(x, 2)",
    "same type": "x.to(x.dtype)",
    "chunk": "x.chunk(2, 1)[1]",
    "diagonal": "x.diagonal(0, 2, 3).reshape(2, -1)",
    "dropout": "torch.nn.functional.dropout(x, 0.5, False)",
}
"""Each moves elements of ``x``, in one copy at most."""
COUNTED = {
    "two uses": ("x.transpose(1, 2).contiguous().view(2, -1) + x.transpose(1, 2).reshape(2, -1)", 2),
    "copied twice": ("x.transpose(1, 2).contiguous().transpose(1, 2).contiguous() + 1", 2),
    "behind another": ("(x.transpose(1, 2) + 1).reshape(2, 6, 32) + 1", 2),
}
"""Sums, and what PyTorch launches besides the last one of each."""


X = torch.zeros(SHAPE)


def of(text: str) -> torch.Tensor:
    found: torch.Tensor = eval(text, {"x": X, "torch": torch})
    return found


def is_copied(move: str) -> bool:
    return of(move).untyped_storage().data_ptr() != X.untyped_storage().data_ptr()


@pytest.fixture(scope="module", params=[False, True], ids=["regions", "whole functions"])
def tasks(
    agent: AgentClient, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, KernelTask]:
    """The task of each expression, by its name. A single kernel is none whose result follows another order of
    elements in eager PyTorch."""
    given = {name: f"{move} + 1" for name, move in MOVES.items()}
    given |= {name: text for name, (text, _) in COUNTED.items()}
    shape = ",".join(map(str, SHAPE))
    functions = [
        f"# evokernel: x=f32[{shape}]\ndef f{number}(x):\n    return {text}\n"
        for number, text in enumerate(given.values())
    ]
    path = tmp_path_factory.mktemp("copies") / "moves.py"
    path.write_text("import torch\n\n\n" + "\n\n".join(functions))
    regions = agent.capture(path, None, covered_ops(ASCENDC), whole=request.param)
    found = {item.symbol: item.task for item in regions if item.task}
    known = {name: found.get(f"f{number}") for number, name in enumerate(given)}
    refused = {name for name, task in known.items() if task is None}
    follows = {name for name, text in given.items() if not of(text).is_contiguous()}
    assert refused == (set() if request.param else follows)
    return {name: task for name, task in known.items() if task}


def launches(task: KernelTask) -> int:
    """Of an eager run."""
    return len(eager_launches(task, load_chip()))


@pytest.mark.parametrize("name", MOVES)
def test_what_torch_copies_is_priced(tasks: dict[str, KernelTask], name: str) -> None:
    if name in tasks:
        assert launches(tasks[name]) == 1 + is_copied(MOVES[name])


@pytest.mark.parametrize("name", COUNTED)
def test_each_copy_is_priced_once(tasks: dict[str, KernelTask], name: str) -> None:
    if name in tasks:
        assert launches(tasks[name]) == 1 + COUNTED[name][1]
