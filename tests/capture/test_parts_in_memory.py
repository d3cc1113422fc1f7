"""A result that is a part of a larger tensor is one in an edit: with its strides, offset and memory."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from evokernel_core.capture.agent.regions.layouts import ITEM, text_of, view_by
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs

VIEWS = {
    "chunk": "return y.chunk(2, -1)",
    "one_of_chunks": "return y.chunk(2, 0)[1]",
    "split": "return y.split([4, 12], 2)",
    "split_and_product": "a, b = y.split(8, 2)\nreturn a * b, b",
    "unbind": "a, b, c = y.unbind(1)\nreturn c, a",
    "tensor_split": "return y.tensor_split(3, 2)",
    "select": "return y[:, -1]",
    "one_row": "return y[2:3]",
    "slice": "return y[..., 2:8]",
    "slice_in_steps": "return y[:, :, 3:15:2]",
    "slice_from_the_end": "return y[:, -2:]",
    "narrow": "return y.narrow(2, 2, 5)",
    "new_dimension": "return y[:, None, 1:]",
    "transposed": "return y.transpose(1, 2)[:, 2:]",
    "heads": "return y.view(4, 3, 2, 8).transpose(1, 2).chunk(2, 3)[0]",
    "expanded": "return y[:, :1].expand(4, 5, 16)",
    "diagonal": "return y.diagonal(0, 1, 2)",
    "unfold": "return y.unfold(2, 4, 3)",
    "as_strided": "return y.as_strided((4, 4), (2, 1), 1)",
    "part_and_all": "z = y[:, 1:]\nreturn z.exp(), z, y",
    "normalised": "return F.layer_norm(x, (16,))[:, 0]",
    "no_part": "return y.flip(1), y.transpose(0, 1)",
}
HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"


def functions() -> str:
    bodies = {name: f"y = torch.relu(x * 2 + 1)\n{view}" for name, view in VIEWS.items()}
    head = "# evokernel: x=f32[4,3,16]\ndef "
    return HEAD + "\n\n".join(f"{head}{name}(x):\n{indent(body, '    ')}\n" for name, body in bodies.items())


def in_memory(result: Any) -> list[Any]:
    """Where the tensors lie, and which of them share memory."""
    tensors = pytree.tree_leaves(result)
    owners = [tensor.untyped_storage()._cdata for tensor in tensors]
    places = [(t.shape, t.stride(), t.storage_offset(), t.untyped_storage().nbytes()) for t in tensors]
    return [places, [owners.index(owner) for owner in owners]]


@pytest.fixture(scope="module")
def both(agent: AgentClient, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Any]:
    """The functions as they are written, and the edited module."""
    text, path = functions(), tmp_path_factory.mktemp("parts") / "model.py"
    regions = agent.capture(path, text, covered_ops(ASCENDC), whole=True)
    plain: dict[str, Any] = {}
    exec(compile(text, "plain.py", "exec"), plain)
    return plain, edited_module(text, *(region for region in regions if region.task is not None))


@pytest.mark.parametrize("name", VIEWS)
def test_a_part_lies_in_memory_as_it_was_written(name: str, both: tuple[dict[str, Any], Any]) -> None:
    plain, edited = both
    x = torch.randn(4, 3, 16)
    before = runs(edited)
    with torch.no_grad():
        expected, result = plain[name](x), getattr(edited, name)(x)
    assert runs(edited) > before
    assert in_memory(result) == in_memory(expected)
    torch.testing.assert_close(result, expected)


def test_the_text_of_a_view_is_the_view() -> None:
    steps = (
        ("split", ((4, "s0"), 1)),
        (ITEM, (1,)),
        (ITEM, (slice(None), slice(1, None, 2))),
        ("unsqueeze", (0,)),
    )
    x = torch.randn(3, 9)
    text = text_of(steps, "x", lambda dim: "x.shape[1] - 4" if dim == "s0" else str(dim))
    assert text == "x.split((4, x.shape[1] - 4), 1)[1][:, 1::2].unsqueeze(0)"
    view = view_by(steps, x, lambda dim: 5 if dim == "s0" else int(dim))
    assert torch.equal(eval(text), view)
    assert view.stride() == (12, 9, 2) or view.storage_offset() == 5
