"""What a function writes in place an edit writes, too, or it leaves it to the function: values, versions,
order in memory, and tensors that PyTorch does not let anybody write into."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs

WRITES = {
    "of_argument": "x.mul_(2)\nreturn x + 1",
    "twice": "x.mul_(2).add_(1)\nreturn x",
    "part_of_it": "x.mul_(2).add_(1)\nreturn x[:, :4]",
    "augmented": "x += y\nreturn x * 2",
    "augmented_alone": "x += y * 2",
    "of_view": "z = x[:, :8]\nz += y[:, 8:]\nreturn x * 2",
    "of_transposed": "x.t().add_(y.t())\nreturn x * 2",
    "of_local": "z = x * 2\nz += y\nreturn z + 1",
    "out": "return torch.add(x, 2, out=y)",
    "out_of_view": "torch.exp(x[:, :8], out=y[:, :8])\nreturn y * 2",
    "layer": "return F.relu(x, inplace=True) * 2",
    "both": "x.add_(y)\ny.mul_(2)\nreturn x * y",
    "only_written": "x.copy_(y * 2)\nreturn x + 1",
    "detached": "x.detach().add_(y)\nreturn x * 2",
    "data": "x.data.add_(y)\nreturn x * 2",
    "not_read": "return torch.zeros_like(x) + y",
}
REFUSED = {"data"}
"""Writes that autograd does not count."""


def transposed() -> torch.Tensor:
    return torch.randn(16, 8).t()


def of_inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.randn(8, 16)


GIVEN: dict[str, Callable[[], torch.Tensor]] = {
    "plain": lambda: torch.randn(8, 16),
    "transposed": transposed,
    "expanded": lambda: torch.randn(1, 16).expand(8, 16),
    "of inference mode": of_inference,
    "parameter": lambda: torch.nn.Parameter(torch.randn(8, 16)),
}


@pytest.fixture(scope="module")
def both(agent: AgentClient, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Any]:
    """The functions as they are written, and the edited module."""
    head = "# evokernel: x=f32[8,16], y=f32[8,16]\ndef "
    text = "import torch\nimport torch.nn.functional as F\n\n\n" + "\n\n".join(
        f"{head}{name}(x, y):\n{indent(body, '    ')}\n" for name, body in WRITES.items()
    )
    path = tmp_path_factory.mktemp("writes") / "model.py"
    regions = agent.capture(path, text, covered_ops(ASCENDC), whole=True)
    plain: dict[str, Any] = {}
    exec(compile(text, "plain.py", "exec"), plain)
    return plain, edited_module(text, *(region for region in regions if region.task is not None))


def outcome(function: Callable[..., Any], x: torch.Tensor, y: torch.Tensor) -> Any:
    """Values and places in memory of all results and of the arguments, and what was written."""
    versions = [None if one.is_inference() else one._version for one in (x, y)]
    with torch.no_grad():
        try:
            result = function(x, y)
        except RuntimeError as error:
            return str(error)[:40], x.tolist(), y.tolist()
    results = [one for one in pytree.tree_leaves(result) if isinstance(one, torch.Tensor)]
    written = [
        one._version > before for one, before in zip((x, y), versions, strict=True) if before is not None
    ]
    owned = [[one is x, one is y] for one in results]
    places = [(one.stride(), one.storage_offset()) for one in results]
    return [one.tolist() for one in (x, y, *results)], places, owned, written


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", WRITES)
def test_an_edit_writes_what_the_function_writes(
    name: str, given: str, both: tuple[dict[str, Any], Any]
) -> None:
    plain, edited = both
    torch.manual_seed(0)
    y, before = torch.randn(8, 16), runs(edited)
    torch.manual_seed(1)
    expected = outcome(plain[name], GIVEN[given](), y.clone())
    torch.manual_seed(1)
    assert outcome(getattr(edited, name), GIVEN[given](), y.clone()) == expected
    assert given != "plain" or name in REFUSED or runs(edited) > before
