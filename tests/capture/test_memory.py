"""How results and what a call writes lie in memory: in an edited program as in the original.

Each row is a model, and what a program does with it: the results of that, errors among them, are the same,
and so is how they lie in memory. The kernel ran as often as the row says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import frozen
from torch.utils import _pytree as pytree

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm
from tests.capture.edited import edited_module, runs
from tests.capture.test_full_graph import executed, model

Use = Callable[[Any], Iterator[Any]]


@frozen
class Row:
    """``use`` is what the program does with its model; ``runs`` counts the kernels that run meanwhile."""

    init: str
    forward: str
    use: Use
    runs: int
    inputs: str = "torch.randn(4, 6)"


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (4, 6)))


def shared_later(model: Any) -> Iterator[Any]:
    yield model(x())
    model.b = model.a
    yield model(x())
    yield model.a


def slice_of_another(model: Any) -> Iterator[Any]:
    yield model(x())
    model.b = model.big[1:5]
    model.a = model.big[:4]
    yield model(x())
    yield model.big


def argument_of_a_buffer(model: Any) -> Iterator[Any]:
    yield model(x())
    yield model(model.big[:4].zero_())
    model.a = model.big[0]
    yield model(model.big[:4])
    yield model.big


def statistics_shared(model: Any) -> Iterator[Any]:
    yield model(x())
    model.norm.running_var = model.norm.running_mean
    yield model(x())
    yield model.norm.running_mean


def statistics_given(model: Any) -> Iterator[Any]:
    yield model(x())
    yield model(model.norm.running_mean.expand(4, 6).contiguous())
    model.norm.running_mean = model.big[0]
    yield model(model.big)
    yield model.big


def called(*makers: Callable[[], torch.Tensor]) -> Use:
    """Calls with each of several tensors."""

    def use(model: Any) -> Iterator[Any]:
        for make in makers:
            yield model(make())

    return use


def written_into(model: Any) -> Iterator[Any]:
    y = model(x())
    yield y
    yield y.add_(1)


def transposed() -> torch.Tensor:
    return x(6, 4).t()


def last_channels() -> torch.Tensor:
    return x(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)


IMAGE = "torch.randn(2, 3, 4, 5)"
LAST = IMAGE + ".contiguous(memory_format=torch.channels_last)"


def image() -> torch.Tensor:
    return x(2, 3, 4, 5)


BUFFERS = "self.register_buffer('a', torch.ones(4, 6))\nself.register_buffer('b', torch.ones(4, 6))\n"
BIG = "self.register_buffer('big', torch.ones(20, 6))"
NORM = "self.norm = nn.BatchNorm1d(6).train()\nself.register_buffer('big', torch.ones(4, 6))"
ROWS = {
    "two buffers become one": Row(
        BUFFERS, "self.a.add_(x)\nreturn torch.relu(self.b) + x * 2", shared_later, 1),
    "two buffers become parts of one": Row(
        BUFFERS + BIG, "self.a.add_(x)\nreturn torch.relu(self.b) + x * 2", slice_of_another, 1),
    "an argument lies in a larger buffer": Row(
        "self.register_buffer('a', torch.ones(6))\n" + BIG,
        "self.a.mul_(0.9).add_(x.mean(0) * 0.1)\nreturn torch.relu(x) + self.a", argument_of_a_buffer, 2),
    "statistics become one": Row(NORM, "return torch.relu(self.norm(x))", statistics_shared, 1),
    "statistics are those of the argument": Row(
        NORM, "return torch.relu(self.norm(x))", statistics_given, 2),
    "an expanded result": Row("pass", "return (torch.relu(x[:, :1]) * 2).expand(-1, 6)", written_into, 1),
    "an expanded and transposed result": Row(
        "pass", "return (torch.relu(x[:, :1]) * 2).expand(-1, 6).t() ", written_into, 1),
    "a transposed result": Row("pass", "return (torch.relu(x) * 2).t()", called(x, transposed), 1),
    "what is computed of transposed tensors": Row(
        "pass", "y = x.t()\nreturn torch.relu(y) * 2 + y, y.exp().sum(0)", called(x, transposed), 1),
    "a copy of a transposed tensor": Row(
        "pass", "y = torch.relu(x).t()\nreturn y.clone(), y.contiguous() * 2", called(x), 1),
    "heads": Row(
        "self.lin = nn.Linear(6, 6)",
        "y = torch.relu(self.lin(x)).view(x.shape[0], 2, 3).transpose(0, 1)\nreturn y, y.unsqueeze(0) * 2",
        called(x), 1),
    "the last channels first": Row(
        "self.lin = nn.Linear(3, 7)",
        "y = self.lin(x.permute(0, 2, 3, 1))\nreturn torch.relu(y).permute(0, 3, 1, 2)",
        called(image, last_channels), 1, IMAGE),
    "channels that are the last ones": Row(
        "pass", "return torch.relu(x) * 2 + x", called(last_channels, image), 1, LAST),
    "order that no result follows": Row(
        "pass", "return torch.relu(x).sum(1) * 2",
        called(last_channels, lambda: image().permute(0, 1, 3, 2)), 2, LAST),
    "gates of a transposed tensor": Row(
        "pass", "g = x.permute(0, 2, 3, 1)\nh = torch.sigmoid(g) * 2\n"
        "return h.permute(0, 3, 1, 2).view(x.shape[0], -1), h.mean(-1), h.stride()",
        called(image), 1, IMAGE),
}  # fmt: skip


EFFECTS = {
    "y = torch.relu(x) * 2\ny.requires_grad = True\nreturn y + 1": "",
    "y = torch.relu(x) * 2\ny.requires_grad = True\nreturn y": "requires_grad of a result",
    "x.requires_grad = True\nreturn torch.relu(x) * 2": "requires_grad of x",
    "setattr(x, 'requires_grad', True)\nreturn torch.relu(x) * 2": "requires_grad of x",
    "x.data = torch.relu(x) * 2\nreturn x + 1": "data of x",
    "x.set_(torch.relu(x))\nreturn torch.relu(x) * 2": "data of x",
    "x.grad = x * 2\nreturn torch.relu(x) * 2": "grad of x",
    "x.seen = 1\nreturn torch.relu(x) * 2": "seen of x",
    "y = torch.relu(x) * 2\ny.kind = 'a'\nreturn y": "kind of a result",
    "x.unsqueeze_(0)\nreturn torch.relu(x) * 2": "shape of x",
    "x.t_()\nreturn torch.relu(x) * 2": "shape of x",
    "self.w.requires_grad = False\nreturn self.w * x * 2": "requires_grad of self.w",
    "return self.w * x * 2 if self.w.requires_grad else x": "",
}
"""Bodies with what they do to a tensor that a kernel's call would not, empty where they do no such thing."""


@pytest.mark.parametrize("body", EFFECTS)
def test_what_a_call_does_to_tensors_is_not_lost(body: str, training: AgentClient, tmp_path: Path) -> None:
    text = model("self.w = nn.Parameter(torch.ones(4, 6))", body, "torch.randn(4, 6)")
    captured = training.capture(
        tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True
    )
    refused = [region.reason for region in captured if "would not" in region.reason]
    if EFFECTS[body]:
        assert any(f"It sets {EFFECTS[body]}, " in reason for reason in refused)
    else:
        assert not refused
        assert any(region.task for region in captured)


def described(value: Any) -> Any:
    """A tensor as a program sees it: where its elements lie, where that makes a difference."""
    if not isinstance(value, torch.Tensor):
        return value
    strides = [step for step, size in zip(value.stride(), value.shape, strict=True) if size > 1]
    return value.dtype, value.shape, strides, value.requires_grad


def played(model: Any, use: Use) -> list[Any]:
    """What a use gives, to the error that ends it."""
    torch.manual_seed(1)
    found: list[Any] = []
    try:
        with torch.no_grad():
            for value in use(model):
                found += pytree.tree_map(lambda item: item.clone() if _is_whole(item) else item, [value])
    except Exception as error:
        found.append(type(error))
    leaves: list[Any] = pytree.tree_leaves(found)
    return leaves


def _is_whole(value: Any) -> bool:
    """Whether a copy lies in memory as the tensor does."""
    return isinstance(value, torch.Tensor) and value.is_contiguous()


@pytest.fixture(scope="module")
def training() -> Iterator[AgentClient]:
    with AgentClient(warm.interpreter()) as client:
        yield client


@pytest.mark.parametrize("whole", [True, False], ids=["program", "part"])
@pytest.mark.parametrize("name", ROWS)
def test_memory_is_as_the_program_has_it(
    name: str, whole: bool, training: AgentClient, tmp_path: Path
) -> None:
    row = ROWS[name]
    text = model(row.init, row.forward, row.inputs)
    captured = training.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=whole)
    regions = [region for region in captured if region.task]
    if not whole and not regions:
        assert all(region.reason for region in captured)
        return
    assert regions, [region.reason for region in captured]
    edited = edited_module(text, *regions)
    results = []
    for module in (executed(text)["Model"], edited.Model):
        torch.manual_seed(0)
        results.append(played(module(), row.use))
    assert [*map(described, results[0])] == [*map(described, results[1])]
    for one, other in zip(*results, strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert runs(edited) == row.runs if whole else runs(edited) >= 1
