"""Spellings of what functions of torch_npu compute are recognised, near misses are not, and what is
recognised is that function: its composition in PyTorch gives the same numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from attrs import frozen
from torch.nn import functional

from evokernel_core.capture.agent.npu.functions import FILES
from evokernel_core.capture.agent.npu.table import TABLE as COMPOSITIONS
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from evokernel_core.vendor.functions import TABLE
from evokernel_core.vendor.recognise import Recognised, recognised
from tests import warm

assert FILES  # the compositions are entered when their files are imported

_KINDS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@frozen
class Case:
    """A function of tensors and its body; ``call``: what it is, empty where it is nothing of the table."""

    shapes: str
    body: str
    call: str = ""

    @property
    def arguments(self) -> list[str]:
        return [item.split("=")[0] for item in self.shapes.split(", ")]


def x(dtype: str = "f32", shape: str = "6,16") -> str:
    return f"x={dtype}[{shape}]"


def xw(dtype: str = "f32", shape: str = "6,16", weight: str = "16") -> str:
    return f"x={dtype}[{shape}], w={dtype}[{weight}]"


RMS = "torch_npu.npu_rms_norm(x, w, epsilon=1e-06)"
ADDED = "torch_npu.npu_add_rms_norm(x, y, w, 1e-06)"
XYW = "x=f16[6,16], y=f16[6,16], w=f16[16]"
QKV = "q=f16[2,4,6,16], k=f16[2,4,5,16], v=f16[2,4,5,16]"
LAYER = "torch_npu.npu_layer_norm_eval(x, list(x.shape[-1:]), w, b, 1e-05)"
HALF = "torch_npu.npu_rotary_mul(x, c, s, rotary_mode='half')"
SWIGLU = "torch_npu.npu_swiglu(x, dim=-1)"
ROPE = "x=f16[2,4,6,16], c=f16[1,1,6,16], s=f16[1,1,6,16]"
TURNED = "torch.cat((-x[..., 8:], x[..., :8]), -1)"
QUANT = "t = x.float()\na = t.abs().amax(-1, keepdim=True) / 127\nreturn "

SPELLINGS = [
    Case(xw(), "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w", RMS),
    Case(
        xw("f16"),
        "h = x.float()\nh = h * torch.rsqrt(h.pow(2).mean(-1, True) + 1e-6)\nreturn w * h.half()",
        RMS,
    ),
    Case(
        xw("bf16"),
        "h = x.float()\nreturn (h / (h.square().mean(-1, True) + 1e-6).sqrt() * w.float()).bfloat16()",
        RMS,
    ),
    Case(xw("f16"), "return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w", RMS),
    Case(xw(), "return w * x * (1e-6 + (x ** 2).sum(-1, keepdim=True) / x.shape[-1]) ** -0.5", RMS),
    Case(
        xw(shape="2,3,4,5", weight="4,5"),
        "return x * torch.rsqrt((x * x).mean((2, 3), True) + 1e-6) * w",
        RMS,
    ),
    Case(xw(), "r = torch.rsqrt((x * x).mean(-1, True) + 1e-6)\nreturn x * r * w, r", RMS),
    Case(
        XYW,
        "h = x + y\n"
        "f = h.float()\n"
        "r = torch.rsqrt(f.pow(2).mean(-1, True) + 1e-6)\n"
        "return (f * r).half() * w, h",
        ADDED,
    ),
    Case(xw() + ", b=f32[16]", "return F.layer_norm(x, (16,), w, b)", LAYER),
    Case(
        xw() + ", b=f32[16]",
        "d = x - x.mean(-1, True)\nreturn w * d / ((d * d).mean(-1, True) + 1e-5).sqrt() + b",
        LAYER,
    ),
    Case(
        "x=f16[2,8,4,6], w=f16[8], b=f16[8]",
        "return F.silu(F.group_norm(x, 4, w, b, 1e-3))",
        "torch_npu.npu_group_norm_silu(x, w, b, 4, 0.001)",
    ),
    Case(
        "x=f32[2,8,4,6], w=f32[8], b=f32[8]",
        "g = x.reshape(2, 4, -1)\nd = g - g.mean(-1, True)\n"
        "n = (d * torch.rsqrt((d * d).mean(-1, True) + 1e-3)).reshape(x.shape)\n"
        "n = n * w.view(1, -1, 1, 1) + b.view(8, 1, 1)\nreturn n * torch.sigmoid(n)",
        "torch_npu.npu_group_norm_silu(x, w, b, 4, 0.001)",
    ),
    Case(x("f16"), "a, b = x.chunk(2, -1)\nreturn F.silu(a) * b", SWIGLU),
    Case(x("f16"), "return x[:, 8:] * x[:, :8] * x[:, :8].sigmoid()", SWIGLU),
    Case(
        x(),
        "a, b = torch.split(x, 3, 0)\nreturn b * (a / (1 + torch.exp(-a)))",
        "torch_npu.npu_swiglu(x, dim=-2)",
    ),
    Case(
        x(),
        "a, b = x.chunk(2, -1)\nreturn a * F.gelu(b)",
        "torch_npu.npu_geglu(x, dim=-1, approximate=0, activate_left=False)",
    ),
    Case(
        x(),
        "a, b = x.chunk(2, -1)\nreturn F.gelu(a, approximate='tanh') * b",
        "torch_npu.npu_geglu(x, dim=-1, approximate=1, activate_left=True)",
    ),
    Case(
        ROPE, "h = x.shape[-1] // 2\nr = torch.cat((-x[..., h:], x[..., :h]), -1)\nreturn x * c + r * s", HALF
    ),
    Case(ROPE, "a, b = x.chunk(2, -1)\nreturn s * torch.cat((b.neg(), a), 3) + c * x", HALF),
    Case(
        ROPE,
        "t = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)\nreturn x * c + t * s",
        "torch_npu.npu_rotary_mul(x, c, s, rotary_mode='interleave')",
    ),
    Case(
        x("f16"),
        QUANT + "(t / a).round().clamp(-128, 127).to(torch.int8), a.squeeze(-1)",
        "torch_npu.npu_dynamic_quant(x, smooth_scales=None)",
    ),
    Case(
        xw("bf16"),
        "t = x.float() * w.float()\na = t.abs().amax(-1) * (1 / 127)\n"
        "return torch.round(t / a.unsqueeze(-1)).to(torch.int8), a",
        "torch_npu.npu_dynamic_quant(x, smooth_scales=w)",
    ),
    Case(
        QKV,
        "return F.scaled_dot_product_attention(q, k, v)",
        "torch_npu.npu_fusion_attention(q, k, v, q.shape[1], 'BNSD', scale=q.shape[-1] ** -0.5)",
    ),
    Case(
        QKV,
        "return F.scaled_dot_product_attention(q, k, v, scale=0.3)",
        "torch_npu.npu_fusion_attention(q, k, v, q.shape[1], 'BNSD', scale=0.3)",
    ),
    Case(x(), "return x * torch.sigmoid(1.702 * x)", "torch_npu.npu_fast_gelu(x)"),
    Case(x("f16"), "return x / (1 + torch.exp(-x))", "torch_npu.npu_silu(x)"),
    Case(x(), "return x * torch.tanh(F.softplus(x))", "torch_npu.npu_mish(x)"),
    Case(x(), "return 0.5 * x * (1 + torch.erf(x / 2 ** 0.5))", "torch_npu.npu_gelu(x, approximate='none')"),
    Case(
        x(),
        "return 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x * x * x)))",
        "torch_npu.npu_gelu(x, approximate='tanh')",
    ),
]

MISSES = {
    "eps outside the root": Case(xw(), "return x / ((x * x).mean(-1, keepdim=True).sqrt() + 1e-6) * w"),
    "eps added to each square": Case(xw(), "return x * torch.rsqrt((x * x + 1e-6).mean(-1, True)) * w * 2"),
    "something that may be no number": Case(
        xw(), "return x * torch.rsqrt((x * x).mean(-1, True) + 1e-6 + w * 0) * w"
    ),
    "another axis": Case(xw(shape="16,16"), "return x * torch.rsqrt((x * x).mean(0, True) + 1e-6) * w"),
    "mean subtracted": Case(
        xw(), "d = x - x.mean(-1, True)\nreturn x * torch.rsqrt((d * d).mean(-1, True) + 1e-6) * w"
    ),
    "no weight": Case(x(), "return x * torch.rsqrt((x * x).mean(-1, True) + 1e-6)"),
    "one more than the weight": Case(xw(), "return x * torch.rsqrt((x * x).mean(-1, True) + 1e-6) * (1 + w)"),
    "a mean for one width alone": Case(xw(), "return x * torch.rsqrt((x * x).sum(-1, True) / 16 + 1e-6) * w"),
    "a sum and no mean": Case(xw(), "return x * torch.rsqrt((x * x).sum(-1, True) + 1e-6) * w"),
    "rounded on the way": Case(
        xw(), "return (x * torch.rsqrt((x * x).mean(-1, True) + 1e-6)).half().float() * w"
    ),
    "rounded to the other half": Case(
        xw("bf16"),
        "h = x.float()\nreturn (h * torch.rsqrt((h * h).mean(-1, True) + 1e-6)).half().bfloat16() * w",
    ),
    "a weight of another type": Case(
        "x=f16[6,16], w=f32[16]", "return x * torch.rsqrt((x * x).mean(-1, True) + 1e-6) * w"
    ),
    "a result of another type": Case(
        xw("f16"), "h = x.float()\nreturn h * torch.rsqrt((h * h).mean(-1, True) + 1e-6) * w"
    ),
    "a weight of rows": Case(
        xw(shape="16,16", weight="16,1"), "return x * torch.rsqrt((x * x).mean(-1, True) + 1e-6) * w"
    ),
    "a deviation with a correction": Case(
        xw() + ", b=f32[16]",
        "return w * (x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() + b",
    ),
    "halves the other way": Case(x("f16"), "a, b = x.chunk(2, -1)\nreturn a * F.silu(b)"),
    "no halves": Case(x("f16"), "return F.silu(x[:, :6]) * x[:, 10:]"),
    "every second": Case(x("f16"), "return F.silu(x[:, ::2]) * x[:, 1::2]"),
    "halves by themselves": Case("a=f16[6,16], b=f16[6,16]", "return F.silu(a) * b"),
    "no minus": Case(ROPE, "return x * c + torch.cat((x[..., 8:], x[..., :8]), -1) * s"),
    "turned the other way": Case(ROPE, "return x * c + torch.cat((x[..., 8:], -x[..., :8]), -1) * s"),
    "a third of the turn": Case(ROPE, "return x * c + torch.cat((-x[..., 4:], x[..., :4]), -1) * s"),
    "halves for one width alone": Case(ROPE, f"return x * c + {TURNED} * s"),
    "three axes": Case(
        "x=f16[4,6,16], c=f16[1,6,16], s=f16[1,6,16]",
        "a, b = x.chunk(2, -1)\nreturn s * torch.cat((b.neg(), a), 2) + c * x",
    ),
    "a quant of 128": Case(
        x("f16"), QUANT.replace("127", "128") + "(t / a).round().to(torch.int8), a.squeeze(-1)"
    ),
    "a quant by columns": Case(
        x("f16"), QUANT.replace("-1", "0") + "(t / a).round().to(torch.int8), a.squeeze(0)"
    ),
    "cut off and not rounded": Case(x("f16"), QUANT + "(t / a).to(torch.int8), a.squeeze(-1)"),
    "a quant in half": Case(
        x("f16"), QUANT.replace("x.float()", "x") + "(t / a).round().to(torch.int8), a.float().squeeze(-1)"
    ),
    "another slope": Case(x(), "return x * torch.sigmoid(1.7 * x)"),
    "a root of a square": Case(x(), "return torch.sqrt(x * x) * torch.sigmoid(x)"),
    "attention of float32": Case(
        "q=f32[2,4,6,16], k=f32[2,4,6,16], v=f32[2,4,6,16]", "return F.scaled_dot_product_attention(q, k, v)"
    ),
    "features that are no sixteens": Case(
        "q=f16[2,4,6,20], k=f16[2,4,6,20], v=f16[2,4,6,20]", "return F.scaled_dot_product_attention(q, k, v)"
    ),
    "a factor for each head": Case(
        "x=f16[2,4,6,16], c=f16[1,4,6,16], s=f16[1,4,6,16]",
        "a, b = x.chunk(2, -1)\nreturn s * torch.cat((b.neg(), a), 3) + c * x",
    ),
    "a last axis beyond the limit": Case(
        "x=f16[2,4,6,900], c=f16[1,1,6,900], s=f16[1,1,6,900]",
        "a, b = x.chunk(2, -1)\nreturn s * torch.cat((b.neg(), a), 3) + c * x",
    ),
    "causal": Case(
        "q=f16[2,4,6,16], k=f16[2,4,6,16], v=f16[2,4,6,16]",
        "return F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    ),
}

_SQUARES = ("x * x", "x.pow(2)", "x ** 2", "x.square()", "torch.square(x)", "torch.mul(x, x)")
_MEANS = (
    "({}).mean(-1, keepdim=True)",
    "torch.mean({}, dim=-1, keepdim=True)",
    "({}).sum(-1, True) / x.shape[-1]",
    "({}).mean(-1).unsqueeze(-1)",
    "({}).mean(-1)[:, None]",
    "({}).sum(1, keepdim=True) / w.shape[0]",
)
_SUMS = ("({}) + 1e-6", "1e-6 + ({})", "torch.add({}, 1e-6)")
_NORMS = (
    "x * torch.rsqrt({})",
    "x / torch.sqrt({})",
    "({}) ** -0.5 * x",
    "x * (1 / ({}).sqrt())",
    "x.div(({}).sqrt())",
    "torch.rsqrt({}) * x",
    "x * ({}).pow(-0.5)",
    "x * ({}).sqrt().reciprocal()",
)
_WEIGHTS = ("({}) * w", "w * ({})", "torch.mul({}, w)", "({}) * w.view(1, -1)", "({}) * w[None]")
_TYPES = {
    "f32": ("return {}",),
    "f16": (
        "return {}",
        "x = x.float()\nreturn ({}).half()",
        "x = x.to(torch.float32)\nreturn ({}).to(torch.float16)",
    ),
    "bf16": ("x = x.float()\nw = w.float()\nreturn ({}).bfloat16()", "return {}"),
}


def random_norms(count: int) -> Iterator[Case]:
    """RMS norms put together from spellings of their parts."""
    pick = random.Random(11)
    for _ in range(count):
        text = pick.choice(_SQUARES)
        for parts in (_MEANS, _SUMS, _NORMS, _WEIGHTS):
            text = pick.choice(parts).format(text)
        dtype = pick.choice(list(_TYPES))
        yield Case(xw(dtype), pick.choice(_TYPES[dtype]).format(text), RMS)


OF_TABLE = {
    "npu_rms_norm": (xw("f16"), "(x, w, 1e-5)[0]"),
    "npu_add_rms_norm": (XYW, "(x, y, w)[0]"),
    "npu_layer_norm_eval": (xw() + ", b=f32[16]", "(x, [16], w, b)"),
    "npu_group_norm_silu": ("x=f16[2,8,4,6], w=f16[8], b=f16[8]", "(x, w, b, 4)[0]"),
    "npu_swiglu": (x("f16"), "(x)"),
    "npu_geglu": (x("f16"), "(x)"),
    "npu_rotary_mul": (ROPE, "(x, c, s)"),
    "npu_dynamic_quant": (x("f16"), "(x)"),
    "npu_fusion_attention": (
        "q=f16[2,4,6,16], k=f16[2,4,6,16], v=f16[2,4,6,16]",
        "(q, k, v, 4, 'BNSD', scale=0.25)[0]",
    ),
    "npu_fast_gelu": (x("f16"), "(x)"),
    "npu_silu": (x("f16"), "(x)"),
    "npu_mish": (x("f16"), "(x)"),
    "npu_gelu": (x("f16"), "(x, approximate='tanh')"),
}
"""A call of each function of the table, which captures see as its composition."""

_RANDOM = list(random_norms(40))
_CALLS = [Case(shapes, f"return torch_npu.{name}{call}", name) for name, (shapes, call) in OF_TABLE.items()]
_ALL = [*SPELLINGS, *MISSES.values(), *_RANDOM, *_CALLS]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Region]:
    """The region of each case, all captured from one file."""
    head = "import math\nimport torch\nimport torch_npu\nimport torch.nn.functional as F\n"
    functions = [
        f"\n\n# evokernel: {case.shapes}\ndef f{i}({', '.join(case.arguments)}):\n    "
        + case.body.replace("\n", "\n    ")
        + "\n"
        for i, case in enumerate(_ALL)
    ]
    path = tmp_path_factory.mktemp("spellings") / "model.py"
    path.write_text(head + "".join(functions))
    with AgentClient(warm.interpreter()) as agent:
        regions = agent.capture(path, path.read_text(), covered_ops(ASCENDC), whole=True)
    return {int(region.symbol[1:]): region for region in regions if region.task is not None}


def _recognised(found: Mapping[int, Region], case: Case) -> tuple[Recognised | None, str]:
    """What a case is, and as which call."""
    region = found[_ALL.index(case)]
    assert region.task is not None, region.reason
    names = {item.name: item.expression for item in region.task.graph.inputs}
    match = recognised(region.task)
    return match, match.call(names) if match else ""


@pytest.mark.parametrize("case", [*SPELLINGS, *_RANDOM], ids=lambda case: case.body[-60:])
def test_spellings_are_the_function(found: Mapping[int, Region], case: Case) -> None:
    match, call = _recognised(found, case)
    assert call == case.call
    assert match is not None
    scope = {name: _drawn(text) for name, text in (item.split("=") for item in _split(case.shapes))}
    wanted = _run(case.body, scope)
    npu = SimpleNamespace(**COMPOSITIONS)
    everything = eval(call, {"torch_npu": npu, "list": list}, dict(scope))
    given = everything if isinstance(everything, tuple) else (everything,)
    for result, place in zip(wanted, match.results, strict=True):
        _close(given[place], result)


def _split(shapes: str) -> list[str]:
    return shapes.split(", ")


def _drawn(text: str) -> torch.Tensor:
    kind, _, sizes = text.rstrip("]").partition("[")
    shape = [int(size) for size in sizes.split(",")]
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(text))).to(_KINDS[kind])


def _run(body: str, scope: Mapping[str, Any]) -> tuple[Any, ...]:
    import math

    text = f"def f({', '.join(scope)}):\n    " + body.replace("\n", "\n    ")
    made: dict[str, Any] = {"torch": torch, "math": math, "F": functional}
    exec(text, made)
    result = made["f"](**scope)
    return result if isinstance(result, tuple) else (result,)


def _close(given: torch.Tensor, wanted: torch.Tensor) -> None:
    assert (given.shape, given.dtype) == (wanted.shape, wanted.dtype)
    close = partial(torch.testing.assert_close, check_dtype=True)
    if wanted.dtype is torch.int8:  # a number half way between two may go to either
        assert (given.int() - wanted.int()).abs().max() <= 1
    elif wanted.dtype is torch.float32:
        close(given, wanted, rtol=1e-5, atol=1e-5)
    else:  # intermediate results of 16 bits are rounded once or several times
        steps = 2.0 ** (-7 if wanted.dtype is torch.bfloat16 else -10)
        close(given, wanted, rtol=8 * steps, atol=8 * steps)


@pytest.mark.parametrize("name", MISSES)
def test_near_misses_are_not(found: Mapping[int, Region], name: str) -> None:
    assert _recognised(found, MISSES[name])[1] == ""


@pytest.mark.parametrize("case", _CALLS, ids=lambda case: case.call)
def test_the_compositions_are_those_of_captures(found: Mapping[int, Region], case: Case) -> None:
    match, _ = _recognised(found, case)
    assert match is not None
    assert match.function.name == case.call


def test_every_function_of_the_table_is_tried() -> None:
    assert {function.name for function in TABLE} == set(OF_TABLE)
    assert set(OF_TABLE) <= set(COMPOSITIONS)
