"""Edits: only the region and its imports change, and reverting gives the text back."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.capture.edit import minimal_edits, plan_edit, revert_edit
from evokernel_core.capture.text import TextChange, apply_change, span_of
from evokernel_core.domain.errors import EditConflict
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.task import KernelTask, Tolerance
from evokernel_core.domain.tensor import TensorSpec

KERNEL = "softmax_3f9a1c2b"
MODEL = '''"""A model."""
from torch import nn  # modules
import torch


class Model(nn.Module):
    def forward(self, x, größe):
        # keep   this
        h = größe * self.scale   # and this
        y = torch.exp(
            h  # inside
        )
        return torch.softmax(y, dim=1) , x


def other(x):
    return torch.softmax(x, dim=1)
'''


def region(text: str, source: str, expressions: list[str], *, replacement: str = "{call}",
           symbol: str = "Model.forward") -> Region:  # fmt: skip
    """A region on the first occurrence of ``source``."""
    spec = TensorSpec((4,), "float32")
    inputs = tuple(GraphInput(f"i{k}", spec, expression=item) for k, item in enumerate(expressions))
    node = Node("relu", "aten.relu.default", (ValueRef("i0"),), (), (spec,))
    graph = Graph(inputs, (node,), (ValueRef("relu"),))
    task = KernelTask("t", graph, (), Tolerance(1e-4, 1e-4), "activation")
    start = text.index(source)
    return Region(
        id="r", file="model.py", symbol=symbol, span=span_of(text, start, start + len(source)),
        source=source, source_hash=hashlib.sha256(source.encode()).hexdigest(), replacement=replacement,
        op_category="softmax", status=RegionStatus.CANDIDATE, task=task,
    )  # fmt: skip


SOFTMAX = "torch.softmax(y, dim=1)"
RUN = MODEL[MODEL.index("h = größe") : MODEL.index("        return torch")].rstrip("\n")
CASES = [
    region(MODEL, SOFTMAX, ["y"]),
    region(MODEL, RUN, ["größe", "self.scale"], replacement="y = {call}"),
    region(MODEL, "torch.softmax(x, dim=1)", ["x"], symbol="other"),
]


def test_an_expression_is_replaced_and_imported() -> None:
    edited = plan_edit(MODEL, CASES[0], KERNEL)
    expected = MODEL.replace(SOFTMAX, f"torch.ops.evokernel.{KERNEL}(y)").replace(
        "import torch\n\n", f"import torch\nimport evokernel_kernels.{KERNEL}  # noqa: F401\n\n"
    )
    assert edited == expected


def test_statements_are_replaced() -> None:
    edited = plan_edit(MODEL, CASES[1], KERNEL)
    assert f"        # keep   this\n        y = torch.ops.evokernel.{KERNEL}(größe, self.scale)\n" in edited


def test_a_long_call_is_wrapped() -> None:
    long = ["self.attention(self.first_normalisation(x))", "self.second_normalisation.weight", "x"]
    edited = plan_edit(MODEL, region(MODEL, SOFTMAX, long), KERNEL)
    assert f"({KERNEL}" not in edited
    assert f"        return torch.ops.evokernel.{KERNEL}(\n            {long[0]},\n" in edited


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("head", ["", "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n"])
def test_apply_then_revert_is_the_identity(case: Region, newline: str, head: str) -> None:
    text = (head + MODEL).replace("\n", newline)
    moved = region(text, case.source.replace("\n", newline), ["y"], replacement=case.replacement,
                   symbol=case.symbol)  # fmt: skip
    edited = plan_edit(text, moved, KERNEL)
    assert edited != text
    compile(edited, "model.py", "exec")
    assert plan_edit(edited, moved, KERNEL) == edited
    assert revert_edit(edited, moved, KERNEL) == text


LINES = st.sampled_from(["", "# note", "import math", "x = 1", "def added(a):\n    return a", "'''text'''"])


@given(st.lists(LINES, max_size=6), st.lists(LINES, max_size=6), st.sampled_from(CASES))
def test_regions_are_found_where_they_moved_to(before: list[str], after: list[str], case: Region) -> None:
    docstring, rest = MODEL.split("\n", 1)
    text = "\n".join([docstring, *before, rest, *after])
    edited = plan_edit(text, case, KERNEL)
    assert revert_edit(edited, case, KERNEL) == text


@pytest.mark.parametrize("header", ["import torch as th\nfrom torch import nn\n", "from torch import nn\n"])
def test_torch_is_imported_where_its_name_is_missing(header: str) -> None:
    text = header + "\n\ndef f(x):\n    return nn.functional.silu(x)\n"
    case = region(text, "nn.functional.silu(x)", ["x"], symbol="f")
    edited = plan_edit(text, case, KERNEL)
    assert "\nimport torch  # for torch.ops.evokernel\n" in edited
    assert revert_edit(edited, case, KERNEL) == text


def test_two_uses_share_the_import() -> None:
    text = "import torch\n\n\ndef f(x, y):\n    a = torch.relu(x)\n    return a, torch.relu(y)\n"
    first, second = (region(text, f"torch.relu({name})", [name], symbol="f") for name in "xy")
    both = plan_edit(plan_edit(text, first, KERNEL), second, KERNEL)
    assert both.count(f"import evokernel_kernels.{KERNEL}") == 1
    assert revert_edit(revert_edit(both, second, KERNEL), first, KERNEL) == text


def test_a_reformatted_call_is_reverted() -> None:
    edited = plan_edit(MODEL, CASES[0], KERNEL)
    reformatted = edited.replace(f"{KERNEL}(y)", f"{KERNEL}(\n            y,\n        )")
    assert revert_edit(reformatted, CASES[0], KERNEL) == MODEL


@pytest.mark.parametrize(
    "text",
    [
        MODEL.replace(SOFTMAX, "torch.softmax(y, dim=0)"),
        MODEL.replace("def forward", "\n    def backward"),
        MODEL.replace("def forward(self, x, größe):", "def forward(self"),
        "\n" + MODEL.replace("# keep   this", f"z = {SOFTMAX}"),
    ],
)
def test_a_changed_text_is_a_conflict(text: str) -> None:
    with pytest.raises(EditConflict):
        plan_edit(text, CASES[0], KERNEL)


def test_nothing_to_revert_is_a_conflict() -> None:
    with pytest.raises(EditConflict, match="nothing to revert"):
        revert_edit(MODEL, CASES[0], KERNEL)


@given(st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "é", ""]), max_size=12),
       st.lists(st.sampled_from(["a\n", "b\n", "x\n", "é", "𝛼"]), max_size=12))  # fmt: skip
def test_minimal_edits_lead_from_old_to_new(old_parts: list[str], new_parts: list[str]) -> None:
    old, new = "".join(old_parts), "".join(new_parts)
    text = old
    for change in reversed(minimal_edits(old, new)):
        text = apply_change(text, change)
    assert text == new


def test_minimal_edits_are_small() -> None:
    edited = plan_edit(MODEL, CASES[0], KERNEL)
    changes = minimal_edits(MODEL, edited)
    assert len(changes) == 2
    assert all(isinstance(change, TextChange) for change in changes)
    assert changes[1].span.line == MODEL[: MODEL.index(SOFTMAX)].count("\n") + 1
