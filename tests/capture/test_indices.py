"""Integer inputs of references: drawn from the values that the graph reads as indices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.domain.errors import UnsupportedRegion
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec

_OPS = """gather.default index_select.default index.Tensor embedding.default nll_loss_forward.default
    nll_loss2d_forward.default scatter.value arange.start_step eq.Tensor remainder.Scalar any.dim any.dims
    logical_not.default ge.Scalar slice.Tensor zeros_like.default one_hot.default"""


@pytest.fixture
def index_graph(agent: AgentClient, fusible: dict[str, str], tmp_path: Path) -> Any:
    """The task of an expression over the tensors of a shape comment."""
    ops = fusible | dict.fromkeys((f"aten.{name}" for name in _OPS.split()), "kernel")

    def run(shapes: str, body: str) -> KernelTask:
        names = ", ".join(part.split("=")[0].strip() for part in shapes.split(", "))
        head = "import torch\nimport torch.nn.functional as F\n\n\n"
        text = f"{head}# evokernel: {shapes}\ndef f({names}):\n    return {body}\n"
        (region,) = agent.capture(tmp_path / "model.py", text, ops, whole=True)
        assert region.task, region.reason
        return region.task

    return run


def load(path: Path, spec: TensorSpec, sizes: dict[str, int]) -> torch.Tensor:
    """A .bin file as the tensor that its spec describes."""
    values = torch.frombuffer(bytearray(path.read_bytes()), dtype=getattr(torch, spec.dtype))
    return values.reshape(spec.sizes(sizes))


ROWS = [
    ("x=f32[9,5], n=i64[9,5]", "x.gather(0, n) + 1", (0, 9)),
    ("x=f32[9,5], n=i64[9,3]", "torch.take_along_dim(x, n, 1) + 1", (0, 5)),
    ("x=f32[9,5], n=i64[4]", "x.index_select(1, n) + 1", (0, 5)),
    ("x=f32[9,5], n=i64[4]", "x[:, n] + 1", (-5, 5)),
    ("x=f32[9,5], n=i64[4]", "F.embedding(n.unsqueeze(0).expand(2, 4), x) + 1", (0, 9)),
    ("x=f32[9,5], n=i64[9]", "F.one_hot(n, 5) * x", (0, 5)),
    ("x=f32[9,5], n=i64[9]", "F.nll_loss(x, n, reduction='none') + 1", (0, 5)),
    ("x=f32[9,5,2], n=i64[9,2]", "F.cross_entropy(x, n)", (0, 5)),
    ("x=f32[9,5], n=i64[9,5]", "(x * 0).scatter(1, n, 1.0) + x", (0, 5)),
    ("x=f32[9,5], n=i64[9,5]", "x.gather(1, n) + x.gather(0, n)", (0, 5)),
]


@pytest.mark.parametrize(("shapes", "body", "limits"), ROWS)
@pytest.mark.parametrize("distribution", ["normal", "structured"])
def test_indices_are_in_range_and_reach_all_of_it(
    agent: AgentClient, tmp_path: Path, index_graph: Any, shapes: str, body: str,
    limits: tuple[int, int], distribution: str,
) -> None:  # fmt: skip
    task = index_graph(shapes, body)
    position = next(i for i, item in enumerate(task.graph.inputs) if item.spec.dtype == "int64")
    spec = task.graph.inputs[position].spec
    low, high = limits
    seen: set[int] = set()
    for seed in range(12):
        case = agent.reference(task, task.sizes, seed, distribution, tmp_path / f"case{seed}")
        values = load(case.inputs[position], spec, task.sizes)
        ignored = values == -100
        assert bool(((values >= low) & (values < high) | ignored).all())
        seen |= set(values[~ignored].tolist())
    assert max(seen) == high - 1
    assert distribution == "structured" or len(seen) > 1


def test_losses_see_the_class_that_they_ignore(agent: AgentClient, tmp_path: Path, index_graph: Any) -> None:
    task = index_graph("x=f32[64,5], n=i64[64]", "F.cross_entropy(x, n)")
    case = agent.reference(task, task.sizes, 3, "normal", tmp_path / "case")
    values = load(case.inputs[1], task.graph.inputs[1].spec, task.sizes)
    assert 0 < int((values == -100).sum()) < 32
    assert torch.isfinite(load(case.outputs[0], task.graph.output_specs()[0], task.sizes)).all()


def test_sizes_with_indices_beyond_a_tensor_are_unsupported(
    agent: AgentClient, tmp_path: Path, index_graph: Any
) -> None:
    task = index_graph("x=f32[9,5], y=f32[7]", "x[torch.arange(y.shape[0])] + 1")
    names = [symbol.name for symbol in task.symbols]
    beyond = dict.fromkeys(names, 4) | {names[-1]: 6}
    with pytest.raises(UnsupportedRegion, match="beyond a tensor"):
        agent.reference(task, beyond, 0, "normal", tmp_path / "case")


def test_numbers_of_sizes_make_the_sizes_fixed(index_graph: Any) -> None:
    task = index_graph("x=f32[9,5]", "x * (0.5 / x.shape[1])")
    assert not task.symbols


@pytest.mark.parametrize(
    ("body", "places", "least"),
    [("x[:, [-1]] + 1", np.s_[:, [-1]], [1, 1]), ("x[[2]] * 2", np.s_[[2]], [3, 1])],
)
def test_places_that_are_numbers(
    agent: AgentClient, index_graph: Any, tmp_path: Path, body: str, places: Any, least: list[int]
) -> None:
    task = index_graph("x=f32[9,5]", body)
    assert [symbol.minimum for symbol in task.symbols] == least
    case = agent.reference(task, task.sizes, 1, "normal", tmp_path / "case")
    x, found = (
        load(path, spec, task.sizes)
        for path, spec in zip(
            (*case.inputs, *case.outputs),
            (task.graph.inputs[0].spec, *task.graph.output_specs()),
            strict=True,
        )
    )
    torch.testing.assert_close(found, eval(body, {"x": x}), rtol=0, atol=0)
    assert found.shape == x.numpy()[places].shape
