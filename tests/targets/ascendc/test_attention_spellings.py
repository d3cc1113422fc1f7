"""Attention as people write it out, captured with torch: each spelling is the attention kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.aten import ATTENTION
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.compiler.legalise import legalised
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm
from tests.capture.test_full_graph import executed
from tests.tables import few

HEADS, ONE_HEAD = "2,3,40,16", "6,40,16"
SCORES = "s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))\n"
LOWER = SCORES + "n = q.size(-2)\nm = torch.tril(torch.ones(n, n, device=q.device))\n"
SPELLINGS = {
    "one expression": (HEADS, "", "return torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1) @ v"),
    "queries scaled": (HEADS, "", "q = q * q.shape[-1] ** -0.5\nreturn (q @ k.mT).softmax(-1) @ v"),
    "matmul": (
        HEADS, "", "s = torch.matmul(q, k.transpose(-1, -2)) * 0.25\nreturn torch.matmul(s.softmax(-1), v)",
    ),
    "bmm": (ONE_HEAD, "", "s = torch.bmm(q, k.transpose(1, 2)) * 0.25\nreturn torch.bmm(s.softmax(-1), v)"),
    "dropout in eval": (HEADS, "", SCORES + "return F.dropout(s.softmax(-1), 0.1, training=False) @ v"),
    "softmax in float32": (
        HEADS, "", SCORES + "p = F.softmax(s, -1, dtype=torch.float32).to(q.dtype)\nreturn p @ v",
    ),
    "softmax by hand": (
        HEADS, "",
        SCORES + "e = torch.exp(s - s.amax(-1, keepdim=True))\nreturn (e / e.sum(-1, keepdim=True)) @ v",
    ),
    "einsum": (
        HEADS, "",
        "s = torch.einsum('bhid,bhjd->bhij', q, k) * 0.25\n"
        "return torch.einsum('bhij,bhjd->bhid', s.softmax(-1), v)",
    ),
    "einsum, heads behind": (
        "2,40,3,16", "",
        "s = torch.einsum('bqhd,bkhd->bhqk', q, k) * 0.25\n"
        "return torch.einsum('bhqk,bkhd->bqhd', s.softmax(-1), v).contiguous()",
    ),
    "a temperature": (HEADS, "m=f32[1]", "return (q @ k.mT / m.abs()).softmax(-1) @ v"),
    "an added mask": (HEADS, "m=f32[40,40]", SCORES + "return (s + m).softmax(-1) @ v"),
    "a mask over heads": (HEADS, "m=f32[2,1,1,40]", SCORES + "return (s + m).softmax(-1) @ v"),
    "a mask of truth": (
        HEADS, "m=bool[40,40]", SCORES + "return s.masked_fill(m, float('-inf')).softmax(-1) @ v",
    ),
    "a mask of truth over images": (
        HEADS, "m=bool[2,1,1,40]", SCORES + "return torch.where(m, s, float('-inf')).softmax(-1) @ v",
    ),
    "tril": (HEADS, "", LOWER + "return s.masked_fill(m == 0, float('-inf')).softmax(-1) @ v"),
    "tril of truth": (HEADS, "", LOWER + "return s.masked_fill(~m.bool(), -1e9).softmax(-1) @ v"),
    "where tril": (
        HEADS, "", LOWER + "return torch.where(m != 0, s, float('-inf')).softmax(-1) @ v",
    ),
    "triu": (
        HEADS, "",
        SCORES + "n = q.size(-2)\nm = torch.triu(torch.ones(n, n), diagonal=1).bool()\n"
        "return s.masked_fill(m, torch.finfo(s.dtype).min).softmax(-1) @ v",
    ),
    "triu that is added": (
        HEADS, "",
        SCORES + "n = q.size(-2)\nm = torch.triu(torch.full((n, n), float('-inf')), diagonal=1)\n"
        "return (s + m).softmax(-1) @ v",
    ),
}  # fmt: skip
OTHERS = {
    "over the queries": (HEADS, "", SCORES + "return s.softmax(-2) @ v"),
    "scores that are read again": (HEADS, "", SCORES + "return s.softmax(-1) @ v + s.sum()"),
    "scaled behind the mask": (HEADS, "m=f32[40,40]", "return ((q @ k.mT + m) * 0.25).softmax(-1) @ v"),
    "scores turned around": (HEADS, "", "return (q @ k.mT * -0.25).softmax(-1) @ v"),
    "a scale for each head": (HEADS, "m=f32[3,1,1]", "return (q @ k.mT / m).softmax(-1) @ v"),
    "rows that may see nothing": (
        HEADS,
        "m=bool[40,40]",
        SCORES + "return s.masked_fill(m, -1e9).softmax(-1) @ v",
    ),
    "the other triangle": (HEADS, "", LOWER + "return s.masked_fill(m != 0, -1e9).softmax(-1) @ v"),
    "weights turned": (HEADS, "", SCORES + "return s.softmax(-1).mT @ v"),
}


def text_of(spelling: tuple[str, str, str]) -> str:
    shape, mask, body = spelling
    shapes = [*(f"{name}=f32[{shape}]" for name in "qkv"), *filter(None, [mask])]
    lines = body.replace("\n", "\n    ")
    head = "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"
    return f"{head}# evokernel: {', '.join(shapes)}\ndef f(q, k, v{', m' * bool(mask)}):\n    {lines}\n"


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentClient]:
    with AgentClient(warm.interpreter()) as client:
        yield client


def captured(spelling: tuple[str, str, str], agent: AgentClient, folder: Any) -> KernelTask:
    text = text_of(spelling)
    (region,) = agent.capture(folder / "model.py", text, covered_ops(ASCENDC), "f", whole=True)
    assert region.task is not None, region.reason
    return region.task


def count(task: KernelTask, chip: Any) -> int:
    return sum(node.op == ATTENTION for node in legalised(task, chip, ASCENDC).graph.nodes)


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_spelling_is_one_attention(name: str, agent: AgentClient, chip: Any, tmp_path: Any) -> None:
    assert count(captured(SPELLINGS[name], agent, tmp_path), chip) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_attention_stays_products(name: str, agent: AgentClient, chip: Any, tmp_path: Any) -> None:
    assert count(captured(OTHERS[name], agent, tmp_path), chip) == 0


@few("name", SPELLINGS, keep=(6, 8, 9, 12, 13, 15))
def test_a_spelling_computes_what_torch_does(
    name: str, agent: AgentClient, on_twin: Any, tmp_path: Any
) -> None:
    task = captured(SPELLINGS[name], agent, tmp_path)
    rng = np.random.default_rng(0)
    inputs = {}
    for operand in task.graph.inputs:
        values = rng.normal(size=operand.spec.sizes(task.sizes)).astype("f4")
        inputs[operand.expression] = values > 0 if operand.spec.dtype == "bool" else values
    if SPELLINGS[name][1].startswith("m=bool"):
        inputs["m"][0], inputs["m"][1] = True, False  # one of them sees no key
    (result,) = on_twin(task, {item.name: inputs[item.expression] for item in task.graph.inputs})
    function = executed(text_of(SPELLINGS[name]))["f"]
    expected = function(**{key: torch.from_numpy(value) for key, value in inputs.items()})
    np.testing.assert_allclose(result, expected.numpy(), rtol=1e-4, atol=1e-4)
