"""A function of PyTorch for each row: what its operator computes, with the row's sizes in a comment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evokernel_core.vendor.rival import Published

_SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
HEAD = "import torch\nimport torch.nn.functional as F\nimport torch_npu\n"


def text_of(row: Published, name: str) -> str:
    """A function called ``name``."""
    body = _BODIES[row.operator](row)
    names = [f"x{i}" for i in range(len(row.tensors))]
    shapes = [
        f"{name}={_SHORT[dtype]}[{','.join(map(str, shape))}]"
        for name, (shape, dtype) in zip(names, row.tensors, strict=True)
    ]
    lines = body.replace("\n", "\n    ")
    return f"\n\n# evokernel: {', '.join(shapes)}\ndef {name}({', '.join(names)}):\n    {lines}\n"


def _swiglu(row: Published) -> str:
    return f"return torch_npu.npu_swiglu(x0, {row.arguments['dim']})"


def _group_norm(row: Published) -> str:
    group, eps = row.arguments["group"], row.arguments["eps"]
    return f"return torch_npu.npu_group_norm_silu(x0, x1, x2, {group}, {eps})[0]"


def _dynamic_quant(row: Published) -> str:
    return "return torch_npu.npu_dynamic_quant(x0)"


def _add_norm_quant(row: Published) -> str:
    eps = row.arguments["epsilon"]
    norm = f"y, _, total = torch_npu.npu_add_rms_norm(x0, x1, x2, {eps})"
    return f"{norm}\nwhole, scale = torch_npu.npu_dynamic_quant(y)\nreturn whole, total, scale"


def _swiglu_quant(row: Published) -> str:
    """Of activations of 16 bits, without or with a scale behind."""
    scale = ", smooth_scales=x1[0]" if len(row.tensors) > 1 else ""
    left = row.arguments["activate_left"]
    return f"return torch_npu.npu_swiglu_quant(x0{scale}, activate_left={left}, quant_mode=1)"


def _addcdiv(row: Published) -> str:
    lists = len(row.tensors) // 3
    terms = [f"x{i} + {row.arguments['scalar']} * x{lists + i} / x{2 * lists + i}" for i in range(lists)]
    return f"return {', '.join(terms)}"


def _attention(row: Published) -> str:
    """Batch, positions, heads, features; several heads share their keys."""
    turned = [f"x{i}.transpose(1, 2)" for i in range(3)]
    causal = bool(row.arguments["causal"])
    call = f"F.scaled_dot_product_attention({', '.join(turned)}, is_causal={causal}, enable_gqa=True)"
    return f"return {call}.transpose(1, 2)"


_BODIES: Mapping[str, Callable[[Published], str]] = {
    "SwiGlu": _swiglu,
    "GroupNormSilu": _group_norm,
    "DynamicQuant": _dynamic_quant,
    "AddRmsNormDynamicQuant": _add_norm_quant,
    "DequantSwigluQuant": _swiglu_quant,
    "ForeachAddcdivScalar": _addcdiv,
    "FusedInferAttentionScore": _attention,
}
