"""Each function of the table of torch_npu against a formulation of its own in float64 numbers of NumPy."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from evokernel_core.capture.agent.errors import Unsupported
from evokernel_core.capture.agent.npu.functions import FILES, function
from evokernel_core.capture.agent.npu.table import TABLE, OutsideTable

Array = Any
CASES: list[Any] = []
_random = np.random.default_rng(7)


def floats(*shape: int) -> Array:
    return _random.uniform(-2, 2, shape)


def bytes_(*shape: int) -> Array:
    return _random.integers(-100, 100, shape).astype(np.int8)


def case(name: str, *args: Any, dtypes: str = "", **kwargs: Any) -> Callable[..., Any]:
    """Arguments for a function; arrays become tensors. ``dtypes`` are those of the results that are not
    the first argument's."""

    def add(expected: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(pytest.param(name, args, kwargs, expected, dtypes.split(), id=f"{name}-{len(CASES)}"))
        return expected

    return add


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def erf_gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def tanh_gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def halves(x: Array, axis: int = -1) -> tuple[Array, Array]:
    first, second = np.split(x, 2, axis)
    return first, second


# activations
@case("npu_gelu", floats(3, 5))
@case("npu_gelu", floats(3, 5), approximate="tanh")
def _gelu(x: Array, approximate: str = "none") -> Array:
    return tanh_gelu(x) if approximate == "tanh" else erf_gelu(x)


@case("npu_fast_gelu", floats(3, 5))
@case("fast_gelu", floats(7))
def _fast_gelu(x: Array) -> Array:
    return x / (1 + np.exp(-1.702 * x))


@case("npu_silu", floats(3, 5))
@case("npu_silu_", floats(3, 5))
def _silu(x: Array) -> Array:
    return x * sigmoid(x)


@case("npu_mish", floats(3, 5))
def _mish(x: Array) -> Array:
    return x * np.tanh(np.log1p(np.exp(x)))


@case("npu_swiglu", floats(3, 8))
@case("npu_swiglu", floats(3, 8, 5), dim=1)
def _swiglu(x: Array, dim: int = -1) -> Array:
    gate, value = halves(x, dim)
    return gate * sigmoid(gate) * value


@case("npu_clipped_swiglu", floats(2, 3, 8), limit=0.5)
@case("npu_clipped_swiglu", floats(2, 4, 6), dim=1, alpha=1.1, limit=1.0, bias=0.5, interleaved=False)
@case("npu_clipped_swiglu", floats(2, 4, 6), dim=1, limit=1.0)
def _clipped(
    x: Array, dim: int = -1, alpha: float = 1.702, limit: float = 7.0, bias: float = 1.0,
    interleaved: bool = True,
) -> Array:  # fmt: skip
    shape = list(x.shape)
    shape[dim] //= 2
    rows = x.reshape(int(np.prod(x.shape[: dim % x.ndim])), -1)
    middle = rows.shape[1] // 2
    gate, value = (rows[:, ::2], rows[:, 1::2]) if interleaved else (rows[:, :middle], rows[:, middle:])
    gate, value = np.minimum(gate, limit), np.clip(value, -limit, limit)
    return (gate * sigmoid(alpha * gate) * (value + bias)).reshape(shape)


@case("npu_geglu", floats(3, 8))
@case("npu_geglu", floats(3, 8), dim=-1, approximate=0)
@case("npu_geglu", floats(4, 3), dim=0, approximate=1, activate_left=True)
def _geglu(x: Array, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> Any:
    left, right = halves(x, dim)
    gelu = (tanh_gelu if approximate else erf_gelu)(left if activate_left else right)
    return (right if activate_left else left) * gelu, gelu


@case("npu_gelu_mul", floats(3, 8))
def _gelu_mul(x: Array) -> Array:
    first, second = halves(x)
    return erf_gelu(first) * second


# norms
def root(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    return 1 / np.sqrt((x * x).mean(axes, keepdims=True) + eps)


@case("npu_rms_norm", floats(2, 3, 8), floats(8), dtypes="- float32")
@case("npu_rms_norm", floats(2, 3, 4, 8), floats(4, 8), epsilon=0.1, dtypes="- float32")
def _rms_norm(x: Array, gamma: Array, epsilon: float = 1e-6) -> Any:
    r = root(x, tuple(range(x.ndim - gamma.ndim, x.ndim)), epsilon)
    return x * r * gamma, r


@case("npu_add_rms_norm", floats(2, 3, 8), floats(2, 3, 8), floats(8), 0.1, dtypes="- float32 -")
def _add_rms_norm(a: Array, b: Array, gamma: Array, eps: float) -> Any:
    return (*_rms_norm(a + b, gamma, eps), a + b)


@case("npu_deep_norm", floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), dtypes="float32 float32 -")
def _deep_norm(x: Array, gx: Array, beta: Array, gamma: Array) -> Any:
    mixed = 0.3 * x + gx
    mean, rstd = mixed.mean(-1, keepdims=True), 1 / np.sqrt(mixed.var(-1, keepdims=True) + 1e-6)
    return mean, rstd, (mixed - mean) * rstd * gamma + beta


@case("npu_layer_norm_eval", floats(2, 3, 8), [3, 8], floats(3, 8), floats(3, 8))
def _layer_norm(x: Array, shape: list[int], weight: Array, bias: Array) -> Array:
    mean, var = x.mean((-1, -2), keepdims=True), x.var((-1, -2), keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * weight + bias


def group_norm(x: Array, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    out, means, roots = np.empty_like(x), np.empty((len(x), groups)), np.empty((len(x), groups))
    width = x.shape[1] // groups
    for n in range(len(x)):
        for g in range(groups):
            part = x[n, g * width : (g + 1) * width]
            means[n, g], roots[n, g] = part.mean(), 1 / math.sqrt(part.var() + eps)
            out[n, g * width : (g + 1) * width] = (part - means[n, g]) * roots[n, g]
    channels = (-1, *([1] * (x.ndim - 2)))
    weight = np.ones(x.shape[1]) if weight is None else weight
    bias = np.zeros(x.shape[1]) if bias is None else bias
    return out * weight.reshape(channels) + bias.reshape(channels), means, roots


@case("npu_group_norm_silu", floats(2, 6, 3, 4), floats(6), floats(6), 2)
@case("npu_group_norm_silu", floats(2, 6), None, None, 3, eps=0.1)
def _group_norm_silu(x: Array, weight: Array, bias: Array, groups: int, eps: float = 1e-5) -> Any:
    norm, mean, rstd = group_norm(x, groups, weight, bias, eps)
    return norm * sigmoid(norm), mean, rstd


@case("npu_group_norm_swish", floats(2, 6, 5), 3, floats(6), floats(6), swish_scale=0.5)
def _group_norm_swish(x: Array, groups: int, weight: Array, bias: Array, swish_scale: float) -> Any:
    norm, mean, rstd = group_norm(x, groups, weight, bias, 1e-5)
    return norm / (1 + np.exp(-swish_scale * norm)), mean, rstd


# rotary embeddings, as rotations of single pairs
def rotated(x: Array, cos: Array, sin: Array, pairs: list[tuple[int, int]]) -> Array:
    cos, sin = np.broadcast_to(cos, x.shape), np.broadcast_to(sin, x.shape)
    out = np.empty_like(x)
    for i, j in pairs:
        out[..., i] = x[..., i] * cos[..., i] - x[..., j] * sin[..., i]
        out[..., j] = x[..., j] * cos[..., j] + x[..., i] * sin[..., j]
    return out


def half_pairs(width: int) -> list[tuple[int, int]]:
    return [(i, i + width // 2) for i in range(width // 2)]


@case("npu_rotary_mul", floats(2, 3, 5, 8), floats(1, 1, 5, 8), floats(1, 1, 5, 8))
@case("npu_rotary_mul", floats(2, 5, 3, 8), floats(1, 5, 1, 8), floats(1, 5, 1, 8), "interleave")
def _rotary_mul(x: Array, cos: Array, sin: Array, mode: str = "half") -> Array:
    pairs = half_pairs(8) if mode == "half" else [(0, 1), (2, 3), (4, 5), (6, 7)]
    return rotated(x, cos, sin, pairs)


@case("npu_rotary_mul", floats(2, 3, 5, 4), floats(1, 1, 5, 4), floats(1, 1, 5, 4), rotate=floats(4, 4))
def _rotary_by_matrix(x: Array, cos: Array, sin: Array, rotate: Array) -> Array:
    return x * cos + np.einsum("bnsd,de->bnse", x, rotate) * sin


def interleaved_rope(x: Array, cos: Array, sin: Array) -> Array:
    order = [*range(0, x.shape[-1], 2), *range(1, x.shape[-1], 2)]
    return rotated(x[..., order], cos, sin, half_pairs(x.shape[-1]))


@case("npu_interleave_rope", floats(2, 3, 5, 8), floats(2, 1, 5, 8), floats(2, 1, 5, 8))
def _interleave_rope(x: Array, cos: Array, sin: Array) -> Array:
    return interleaved_rope(x, cos, sin)


@case(
    "npu_apply_rotary_pos_emb", floats(2, 5, 3, 8), floats(2, 5, 1, 8), floats(2, 5, 1, 8), floats(2, 5, 1, 8)
)
def _apply_rotary(q: Array, k: Array, cos: Array, sin: Array) -> Any:
    return rotated(q, cos, sin, half_pairs(8)), rotated(k, cos, sin, half_pairs(8))


@case(
    "npu_kv_rmsnorm_rope_cache", floats(2, 1, 3, 12), floats(8), floats(2, 1, 3, 4), floats(2, 1, 3, 4),
    np.array([[4, 0, 2], [1, 3, 5]]), floats(2, 1, 6, 4), floats(2, 1, 6, 8),
)  # fmt: skip
def _cache(kv: Array, gamma: Array, cos: Array, sin: Array, index: Array, k: Array, c: Array) -> Any:
    value, key = _rms_norm(kv[..., :8], gamma, 1e-5)[0], interleaved_rope(kv[..., 8:], cos, sin)
    k, c = k.copy(), c.copy()
    for batch in range(2):
        for step in range(3):
            k[batch, 0, index[batch, step]] = key[batch, 0, step]
            c[batch, 0, index[batch, step]] = value[batch, 0, step]
    return k, c, key, value


# attention, row by row
def attention(q: Array, k: Array, v: Array, scale: float, hidden: Any = None, bias: Any = None) -> Any:
    """Arrays of (batch, heads, positions, features); each query head reads its share of the keys."""
    out, largest, sums = np.empty((*q.shape[:3], v.shape[3])), np.empty(q.shape[:3]), np.empty(q.shape[:3])
    share = q.shape[1] // k.shape[1]
    shape = (*q.shape[:3], k.shape[2])
    hidden = np.zeros(shape, bool) if hidden is None else np.broadcast_to(hidden, shape)
    bias = np.zeros(shape) if bias is None else np.broadcast_to(bias, shape)
    for b, n, s in np.ndindex(*q.shape[:3]):
        keys = [j for j in range(k.shape[2]) if not hidden[b, n, s, j]]
        scores = np.array([scale * (q[b, n, s] @ k[b, n // share, j] + bias[b, n, s, j]) for j in keys])
        powers = np.exp(scores - scores.max())
        largest[b, n, s], sums[b, n, s] = scores.max(), powers.sum()
        out[b, n, s] = sum(p * v[b, n // share, j] for p, j in zip(powers, keys, strict=True)) / powers.sum()
    return out, largest, sums


def split(x: Array, layout: str, heads: int) -> Array:
    if layout == "BSH":
        return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
    if layout == "SBH":
        return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2, 0, 3)
    return x.transpose(0, 2, 1, 3) if layout == "BSND" else x


def joined(x: Array, layout: str) -> Array:
    if layout == "BSH":
        return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)
    if layout == "SBH":
        return x.transpose(2, 0, 1, 3).reshape(x.shape[2], x.shape[0], -1)
    return x.transpose(0, 2, 1, 3) if layout in ("BSND", "BNSD_BSND") else x


def causal(queries: int, keys: int, shift: int) -> Array:
    return np.array([[j > i + shift for j in range(keys)] for i in range(queries)])


_TRIANGLE = np.triu(np.ones((2048, 2048), bool), 1)


@case("npu_fusion_attention", floats(2, 4, 3, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 8), 4, "BNSD", scale=0.3,
      dtypes="- float32 float32 -")  # fmt: skip
@case("npu_fusion_attention", floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8), 2, "BSH",
      dtypes="- float32 float32 -")  # fmt: skip
@case("npu_fusion_attention", floats(3, 2, 8), floats(5, 2, 8), floats(5, 2, 8), 2, "SBH", scale=0.5,
      atten_mask=causal(3, 5, 1), dtypes="- float32 float32 -")  # fmt: skip
@case("npu_fusion_attention", floats(2, 3, 2, 4), floats(2, 5, 2, 4), floats(2, 5, 2, 4), 2, "BSND", scale=0.5,
      atten_mask=_TRIANGLE, sparse_mode=2, dtypes="- float32 float32 -")  # fmt: skip
@case("npu_fusion_attention", floats(2, 2, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 4), 2, "BNSD", scale=0.5,
      atten_mask=_TRIANGLE, sparse_mode=3, dtypes="- float32 float32 -")  # fmt: skip
@case("npu_fusion_attention", floats(1, 2, 6, 4), floats(1, 2, 6, 4), floats(1, 2, 6, 4), 2, "BNSD", scale=0.5,
      atten_mask=_TRIANGLE, sparse_mode=4, pre_tockens=2, next_tockens=1,
      dtypes="- float32 float32 -")  # fmt: skip
@case("npu_fusion_attention", floats(2, 2, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 4), 2, "BNSD", scale=0.5,
      pse=floats(1, 2, 3, 5), dtypes="- float32 float32 -")  # fmt: skip
def _fusion(
    q: Array, k: Array, v: Array, heads: int, layout: str, scale: float = 1.0, atten_mask: Any = None,
    sparse_mode: int = 0, pre_tockens: int = 0, next_tockens: int = 0, pse: Any = None,
) -> Any:  # fmt: skip
    q = split(q, layout, heads)
    kv_heads = k.shape[-1] // q.shape[-1]
    k, v = split(k, layout, kv_heads), split(v, layout, kv_heads)
    queries, keys = q.shape[2], k.shape[2]
    if sparse_mode in (2, 3):
        atten_mask = causal(queries, keys, 0 if sparse_mode == 2 else keys - queries)
    if sparse_mode == 4:
        rows, columns = np.indices((queries, keys))
        atten_mask = (columns > rows + next_tockens) | (columns < rows - pre_tockens)
    out, largest, sums = attention(q, k, v, scale, atten_mask, pse)
    repeated = (np.repeat(item[..., None], 8, -1) for item in (largest, sums))
    return joined(out, layout), *repeated, np.empty(0), 0, 0, 0


@case("npu_prompt_flash_attention", floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8), num_heads=2)
@case("npu_prompt_flash_attention", floats(2, 4, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 4), num_heads=4,
      num_key_value_heads=2, input_layout="BNSD_BSND", atten_mask=causal(3, 5, 2)[None],
      scale_value=0.5)  # fmt: skip
def _prompt(
    q: Array, k: Array, v: Array, num_heads: int, num_key_value_heads: int = 0, input_layout: str = "BSH",
    atten_mask: Any = None, scale_value: float = 1.0,
) -> Array:  # fmt: skip
    k, v = (split(x, input_layout, num_key_value_heads or num_heads) for x in (k, v))
    out = attention(split(q, input_layout, num_heads), k, v, scale_value, atten_mask)[0]
    return joined(out, input_layout)


@case("npu_incre_flash_attention", floats(2, 1, 8), floats(2, 5, 8), floats(2, 5, 8), num_heads=2,
      scale_value=0.5, atten_mask=np.array([[0, 1, 0, 0, 1], [0, 0, 0, 1, 1]], bool))  # fmt: skip
def _incre(q: Array, k: Array, v: Array, num_heads: int, scale_value: float, atten_mask: Array) -> Array:
    q, k, v = (split(x, "BSH", num_heads) for x in (q, k, v))
    return joined(attention(q, k, v, scale_value, atten_mask[:, None, None])[0], "BSH")


@case("npu_fused_infer_attention_score", floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8), num_heads=2,
      scale=0.5, dtypes="- float32")  # fmt: skip
@case("npu_fused_infer_attention_score", floats(2, 2, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 4), num_heads=2,
      scale=0.5, input_layout="BNSD", softmax_lse_flag=True, atten_mask=_TRIANGLE, sparse_mode=3,
      dtypes="- float32")  # fmt: skip
def _infer(
    q: Array, k: Array, v: Array, num_heads: int, scale: float, input_layout: str = "BSH",
    softmax_lse_flag: bool = False, atten_mask: Any = None, sparse_mode: int = 0,
) -> Any:  # fmt: skip
    q, k, v = (split(x, input_layout, num_heads) for x in (q, k, v))
    hidden = causal(3, 5, 2) if sparse_mode else None
    out, largest, sums = attention(q, k, v, scale, hidden)
    lse = (largest + np.log(sums))[..., None] if softmax_lse_flag else np.zeros(1)
    return joined(out, input_layout), lse


@case("npu_scaled_masked_softmax", floats(2, 2, 3, 5), causal(3, 5, 0), 0.5)
def _masked_softmax(x: Array, mask: Array, scale: float) -> Array:
    return softmax(np.where(mask, -10000.0, x * scale))


# experts
@case("npu_moe_gating_top_k_softmax", floats(5, 8), k=3, dtypes="- int32 int32")
@case("npu_moe_gating_top_k_softmax", floats(3, 8), np.array([True, False, True]), 2, dtypes="- int32 int32")
def _gating_softmax(x: Array, finished: Any = None, k: int = 1) -> Any:
    norm = softmax(x)
    experts = np.argsort(-norm, -1, kind="stable")[:, :k]
    rows = np.array([[column * len(x) + row for column in range(k)] for row in range(len(x))])
    chosen = experts if finished is None else np.where(finished[:, None], x.shape[1], experts)
    return np.take_along_axis(norm, experts, -1), chosen, rows


@case("npu_moe_gating_top_k", floats(5, 8), 3, dtypes="- int32 float32")
@case("npu_moe_gating_top_k", floats(5, 12), 3, bias=floats(12), k_group=2, group_count=4, group_select_mode=1,
      norm_type=1, routed_scaling_factor=2.5, dtypes="- int32 float32")  # fmt: skip
@case("npu_moe_gating_top_k", floats(5, 12), 3, bias=floats(12), k_group=2, group_count=4, norm_type=1,
      dtypes="- int32 float32")  # fmt: skip
def _gating(
    x: Array, k: int, bias: Any = 0.0, k_group: int = 1, group_count: int = 1, group_select_mode: int = 0,
    norm_type: int = 0, routed_scaling_factor: float = 1.0,
) -> Any:  # fmt: skip
    norm = sigmoid(x) if norm_type else softmax(x)
    experts = np.empty((len(x), k), int)
    for row, scores in enumerate(norm + bias):
        groups = np.split(scores, group_count)
        worth = [np.sort(group)[-2:].sum() if group_select_mode else group.max() for group in groups]
        best = sorted(range(group_count), key=lambda g: -worth[g])[:k_group]
        width = len(scores) // group_count
        within = [expert for expert in range(len(scores)) if expert // width in best]
        experts[row] = sorted(within, key=lambda expert: -scores[expert])[:k]
    weights = np.take_along_axis(norm, experts, -1)
    if norm_type:
        weights = weights / weights.sum(-1, keepdims=True)
    return weights * routed_scaling_factor, experts, norm


@case("npu_moe_compute_expert_tokens", np.array([0, 0, 1, 1, 1, 3], np.int32), 5)
def _expert_tokens(experts: Array, count: int) -> Array:
    return np.array([sum(expert <= i for expert in experts) for i in range(count)])


_EXPERTS = np.array([[2, 0], [1, 2], [0, 1], [2, 1]], np.int32)
_ROWS = np.arange(8, dtype=np.int32).reshape(2, 4).T


@case("npu_moe_init_routing", floats(4, 6), _ROWS, _EXPERTS, 4, dtypes="- int32 int32")
@case("npu_moe_init_routing", floats(4, 6), _ROWS, _EXPERTS, 3, dtypes="- int32 int32")
def _init_routing(x: Array, rows: Array, experts: Array, active: int) -> Any:
    ordered = sorted(zip(experts.ravel(), rows.ravel(), strict=True), key=lambda pair: pair[0])
    went = np.empty(8, int)
    for place, (_, source) in enumerate(ordered):
        went[source] = place
    taken = [x[source % 4] for _, source in ordered[: min(active, 4) * 2]]
    return np.array(taken), went, np.array([expert for expert, _ in ordered])


_PLACES = np.array([3, 1, 0, 7, 2, 6, 5, 4], np.int32)


@case("npu_moe_finalize_routing", floats(8, 6), floats(4, 6), floats(4, 6), floats(3, 6), floats(4, 2), _PLACES,
      _EXPERTS)  # fmt: skip
@case("npu_moe_finalize_routing", floats(8, 6), floats(4, 6), None, floats(3, 6), floats(4, 2), _PLACES,
      _EXPERTS, 2)  # fmt: skip
@case("npu_moe_finalize_routing", floats(2, 3, 6), None, None, None, floats(4, 2),
      np.array([3, 1, -1, 5, 2, -1, 5, 4], np.int32), _EXPERTS, 1)  # fmt: skip
def _finalize(
    rows: Array, skip1: Any, skip2: Any, bias: Any, scales: Any, places: Array, experts: Any, mode: int = 0
) -> Array:
    flat, out = rows.reshape(-1, 6), np.zeros((4, 6))
    for token in range(4):
        for k in range(2):
            place = places[token * 2 + k if mode == 2 else k * 4 + token]
            given = np.zeros(6) if place == -1 else flat[place]
            given = given if bias is None else given + bias[experts[token, k]]
            out[token] += given * scales[token, k]
    return out + (0 if skip1 is None else skip1) + (0 if skip2 is None else skip2)


# quantisation
def int8(x: Array) -> Array:
    return np.clip(np.rint(x), -128, 127)


def by_group(x: Array, scales: Array, ends: Array) -> Array:
    out, start = x.copy(), 0
    for scale, end in zip(scales, ends, strict=True):
        out[start:end] *= scale
        start = end
    return out


@case("npu_dynamic_quant", floats(3, 8), dtypes="int8 float32")
@case("npu_dynamic_quant", floats(2, 3, 8), smooth_scales=floats(8), dtypes="int8 float32")
@case(
    "npu_dynamic_quant",
    floats(7, 8),
    smooth_scales=floats(3, 8),
    group_index=np.array([2, 2, 7], np.int32),
    dtypes="int8 float32",
)
def _dynamic_quant(x: Array, smooth_scales: Any = 1.0, group_index: Any = None) -> Any:
    scaled = x * smooth_scales if group_index is None else by_group(x, smooth_scales, group_index)
    scale = np.abs(scaled).max(-1) / 127
    return int8(scaled / scale[..., None]), scale


@case("npu_quantize", floats(3, 8), np.full(8, 0.1), np.arange(8.0), torch.qint8, 1, dtypes="int8")
@case("npu_quantize", floats(3, 8), np.full(3, 0.3), None, torch.quint8, 0, dtypes="uint8")
@case("npu_quantize", floats(3, 8), np.full(8, 3.0), None, torch.int32, -1, False, dtypes="int32")
def _quantize(x: Array, scales: Array, zero: Any, dtype: Any, axis: int, div_mode: bool = True) -> Array:
    scales = scales[:, None] if axis == 0 else scales
    out = np.rint((x / scales if div_mode else x * scales) + (0 if zero is None else zero))
    return np.clip(out, *{"torch.qint8": (-128, 127), "torch.quint8": (0, 255)}.get(str(dtype), (-1e9, 1e9)))


@case("npu_anti_quant", bytes_(3, 8), floats(8), offset=floats(8), dtypes="float16")
@case("npu_anti_quant", bytes_(3, 8), floats(1), dst_dtype=torch.bfloat16, dtypes="bfloat16")
def _anti_quant(x: Array, scale: Array, offset: Any = 0.0, dst_dtype: Any = None) -> Array:
    return (x.astype(float) + offset) * scale


@case("npu_quant_matmul", bytes_(3, 8), bytes_(8, 5), np.full(5, 0.001), bias=np.arange(5, dtype=np.int32) * 999,
      offset=floats(5), dtypes="int8")  # fmt: skip
@case("npu_quant_matmul", bytes_(2, 3, 8), bytes_(8, 5), np.full(1, 0.001), pertoken_scale=floats(3),
      bias=floats(5), output_dtype=torch.float16, dtypes="float16")  # fmt: skip
@case("npu_quant_matmul", bytes_(3, 8), bytes_(8, 5), np.ones(1), output_dtype=torch.int32, dtypes="int32")
def _quant_matmul(
    a: Array, b: Array, scale: Array, offset: Any = 0.0, pertoken_scale: Any = None, bias: Any = None,
    output_dtype: Any = None,
) -> Array:  # fmt: skip
    out = np.matmul(a.astype(float), b.astype(float))
    whole = bias is not None and bias.dtype == np.int32
    out = (out + bias if whole else out) * scale
    out = out if pertoken_scale is None else out * pertoken_scale[:, None]
    out = out + (0 if bias is None or whole else bias) + offset
    return int8(out) if output_dtype is None else out


@case(
    "npu_weight_quant_batchmatmul",
    floats(3, 8),
    bytes_(8, 5),
    floats(5) / 50,
    floats(5),
    None,
    None,
    floats(5),
)
@case("npu_weight_quant_batchmatmul", floats(3, 8), bytes_(8, 5), floats(2, 5) / 50, antiquant_group_size=4)
def _weight_quant(
    x: Array, weight: Array, scale: Array, offset: Any = 0.0, quant: Any = None, shift: Any = None,
    bias: Any = 0.0, antiquant_group_size: int = 0,
) -> Array:  # fmt: skip
    scale = (
        np.array([scale[row // antiquant_group_size] for row in range(8)]) if antiquant_group_size else scale
    )
    return x @ ((weight.astype(float) + offset) * scale) + bias


@case("npu_swiglu_quant", floats(3, 8), quant_mode=1, smooth_scales=floats(1, 4), dtypes="int8 float32")
@case("npu_swiglu_quant", floats(3, 8), quant_mode=1, activate_left=True, dtypes="int8 float32")
@case("npu_swiglu_quant", floats(6, 8), quant_mode=1, smooth_scales=floats(3, 4),
      group_index=np.array([2, 3, 6], np.int32), dtypes="int8 float32")  # fmt: skip
@case("npu_swiglu_quant", floats(6, 8), quant_mode=1, smooth_scales=floats(3, 1), group_list_type=1,
      group_index=np.array([2, 3, 1], np.int32), dtypes="int8 float32")  # fmt: skip
def _swiglu_quant(
    x: Array, quant_mode: int, smooth_scales: Any = 1.0, activate_left: bool = False, group_index: Any = None,
    group_list_type: int = 0,
) -> Any:  # fmt: skip
    left, right = halves(x)
    gate, value = (left, right) if activate_left else (right, left)
    ends = np.cumsum(group_index) if group_list_type else group_index
    return _dynamic_quant(gate * sigmoid(gate) * value, smooth_scales, ends)


# products
@case("npu_linear", floats(3, 8), floats(5, 8), floats(5))
def _linear(x: Array, weight: Array, bias: Array) -> Array:
    return np.einsum("ik,jk->ij", x, weight) + bias


@case("npu_bmmV2", floats(2, 3, 4), floats(2, 4, 5), [])
@case("npu_bmmV2", floats(2, 3, 4), floats(2, 4, 5), [6, 5])
def _bmm(a: Array, b: Array, sizes: list[int]) -> Array:
    out = np.einsum("bik,bkj->bij", a, b)
    return out.reshape(sizes) if sizes else out


@case("npu_grouped_matmul", [floats(3, 4), floats(2, 5)], [floats(4, 6), floats(5, 7)],
      bias=[floats(6), floats(7)])  # fmt: skip
@case("npu_grouped_matmul", [floats(6, 4)], [floats(4, 6), floats(4, 6)], group_list=[2, 6], split_item=3)
def _grouped(x: Any, weight: Any, bias: Any = None, group_list: Any = None, split_item: int = 0) -> Any:
    if group_list is None:
        return [a @ b + c for a, b, c in zip(x, weight, bias, strict=True)]
    return [np.concatenate([x[0][:2] @ weight[0], x[0][2:] @ weight[1]])]


@case("npu_ffn", floats(3, 4), floats(4, 8), floats(4, 5), "swiglu", bias1=floats(8), bias2=floats(5))
@case("npu_ffn", floats(3, 4), floats(4, 8), floats(8, 5), "fastgelu")
@case("npu_ffn", floats(3, 4), floats(4, 8), floats(8, 5), "relu")
def _ffn(x: Array, first: Array, second: Array, activation: str, bias1: Any = 0.0, bias2: Any = 0.0) -> Array:
    inner = x @ first + bias1
    found = {"swiglu": _swiglu, "fastgelu": _fast_gelu, "relu": lambda v: np.maximum(v, 0)}[activation]
    return found(inner) @ second + bias2


@case("npu_conv2d", floats(2, 4, 6, 7), floats(6, 2, 3, 2), floats(6), [2, 1], [1, 0], [1, 2], 2)
def _conv2d(x: Array, w: Array, b: Array, stride: Any, padding: Any, dilation: Any, groups: int) -> Array:
    x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    spans = [1 + (w.shape[2 + i] - 1) * dilation[i] for i in range(2)]
    out = np.zeros((2, 6, *((x.shape[2 + i] - spans[i]) // stride[i] + 1 for i in range(2))))
    for n, o, i, j in np.ndindex(*out.shape):
        group = o // (6 // groups) * w.shape[1]
        top, left = i * stride[0], j * stride[1]
        rows, columns = slice(top, top + spans[0], dilation[0]), slice(left, left + spans[1], dilation[1])
        out[n, o, i, j] = (x[n, group : group + w.shape[1], rows, columns] * w[o]).sum() + b[o]
    return out


@case("npu_conv3d", floats(1, 2, 3, 4, 5), floats(3, 2, 2, 2, 2), None, [1, 1, 1], [0, 0, 0], [1, 1, 1], 1)
def _conv3d(x: Array, w: Array, *_: Any) -> Array:
    out = np.zeros((1, 3, 2, 3, 4))
    for _, o, i, j, k in np.ndindex(*out.shape):
        out[0, o, i, j, k] = (x[0, :, i : i + 2, j : j + 2, k : k + 2] * w[o]).sum()
    return out


@case(
    "npu_conv_transpose2d",
    floats(1, 2, 3, 4),
    floats(2, 3, 2, 2),
    floats(3),
    [0, 0],
    [1, 0],
    [2, 2],
    [1, 1],
    1,
)
def _conv_transpose(x: Array, w: Array, b: Array, *_: Any) -> Array:
    out = np.zeros((1, 3, 7, 8))
    for c, i, j in np.ndindex(2, 3, 4):
        out[0, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2] += x[0, c, i, j] * w[c]
    return out + b[:, None, None]


# shapes, indices and classes
@case("npu_dtype_cast", floats(3, 4), torch.float16, dtypes="float16")
@case("npu_format_cast", floats(3, 4), 29)
@case("npu_format_cast_", floats(3, 4), 2)
def _same(x: Array, *_: Any) -> Array:
    return x


@case("get_npu_format", floats(3))
def _format(x: Array) -> int:
    return 2


@case("npu_transpose", floats(2, 3, 4), [2, 0, 1])
def _transpose(x: Array, perm: list[int]) -> Array:
    return np.array([[[x[i, j, k] for j in range(3)] for i in range(2)] for k in range(4)])


@case("npu_confusion_transpose", floats(2, 3, 4, 6), (0, 2, 1, 3), (2, 4, 18), True)
@case("npu_confusion_transpose", floats(2, 3, 4, 6), (0, 2, 1), (2, 12, 6), False)
def _confusion(x: Array, perm: Any, shape: Any, first: bool) -> Array:
    return np.transpose(x, perm).reshape(shape) if first else np.transpose(x.reshape(shape), perm)


@case("npu_broadcast", floats(3, 1), [2, 3, 4])
def _broadcast(x: Array, size: list[int]) -> Array:
    return np.broadcast_to(x, size)


@case("npu_reshape", floats(3, 4), [2, 6])
def _reshape(x: Array, shape: list[int]) -> Array:
    return x.ravel().reshape(shape)


@case("npu_slice", floats(4, 5), [1, 2], [2, 3])
def _slice(x: Array, offsets: list[int], size: list[int]) -> Array:
    return x[1:3, 2:5]


@case("npu_pad", floats(2, 3), [1, 0, 2, 1])
def _pad(x: Array, paddings: list[int]) -> Array:
    return np.pad(x, ((1, 0), (2, 1)))


@case("npu_max", floats(3, 4), 1, dtypes="- int32")
def _max(x: Array, dim: int) -> Any:
    return x.max(dim), x.argmax(dim)


@case("npu_min", floats(3, 4), 0, True, dtypes="- int32")
def _min(x: Array, dim: int, keep: bool) -> Any:
    return x.min(dim, keepdims=True), x.argmin(dim)[None]


@case("npu_sort_v2", floats(3, 6), descending=True)
def _sort(x: Array, descending: bool) -> Array:
    return -np.sort(-x, -1)


@case("npu_scatter_nd_update", floats(4, 3), np.array([[2], [0]]), floats(2, 3))
@case("npu_scatter_nd_update_", floats(4, 3), np.array([[2], [0]]), floats(2, 3))
def _scatter_nd(x: Array, indices: Array, updates: Array) -> Array:
    out = x.copy()
    for place, row in zip(indices, updates, strict=True):
        out[tuple(place)] = row
    return out


@case("npu_top_k_top_p", floats(3, 9), np.array([0.5, 0.9, 1.0]), np.array([4, 9, 2], np.int32))
def _top_k_top_p(logits: Array, p: Array, k: Array) -> Array:
    out = np.full_like(logits, -np.inf)
    for row, scores in enumerate(logits):
        best = sorted(range(9), key=lambda i: scores[i])[9 - k[row] :]
        share = softmax(scores[best])
        for place, index in enumerate(best):
            if share[: place + 1].sum() > 1 - p[row] or place == len(best) - 1:
                out[row, index] = scores[index]
    return out


@case("npu_softmax_cross_entropy_with_logits", floats(3, 5), softmax(floats(3, 5)))
def _soft_cross_entropy(x: Array, labels: Array) -> Array:
    return -(labels * np.log(softmax(x))).sum(-1)


_TARGET = np.array([1, 4, 0])


@case("npu_cross_entropy_loss", floats(3, 5), _TARGET)
@case("npu_cross_entropy_loss", floats(3, 5), _TARGET, np.arange(1.0, 6.0), "mean", 4)
@case("npu_cross_entropy_loss", floats(3, 5), _TARGET, reduction="none")
def _cross_entropy(
    x: Array, target: Array, weight: Any = None, reduction: str = "mean", ignored: int = -100
) -> Any:
    weight, logs = np.ones(5) if weight is None else weight, np.log(softmax(x))
    weights = np.array([0.0 if label == ignored else weight[label] for label in target])
    losses = np.array([-logs[i, label] for i, label in enumerate(target)]) * weights
    loss = losses if reduction == "none" else losses.sum(keepdims=True) / weights.sum()
    return loss, logs, np.empty(0), np.empty(0)


def tensors(values: Any, dtype: torch.dtype = torch.float64) -> Any:
    """Arrays as tensors, those of floats of one type."""

    def tensor(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        return torch.tensor(value, dtype=dtype if value.dtype == np.float64 else None)

    return pytree.tree_map(tensor, values)


def _checked(found: Any, expected: Any, tolerance: float) -> None:
    found, expected = pytree.tree_leaves(found), pytree.tree_leaves(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if not isinstance(one, torch.Tensor):
            assert one == other
            continue
        assert tuple(one.shape) == other.shape
        slack = 1.0 if one.dtype in (torch.int8, torch.uint8) and tolerance > 1e-6 else tolerance
        np.testing.assert_allclose(one.double().numpy(), other, rtol=tolerance, atol=slack)


@pytest.mark.parametrize(("name", "args", "kwargs", "expected", "dtypes"), CASES)
def test_a_function_computes_what_its_documentation_says(
    name: str, args: Any, kwargs: Any, expected: Callable[..., Any], dtypes: list[str]
) -> None:
    found = function(name)(*tensors(args), **tensors(kwargs))
    # results that are documented in float32 or narrower are no better
    wide = all(item.dtype == torch.float64 for item in pytree.tree_leaves(found) if _is_float(item))
    narrow = any(
        item.dtype in (torch.float16, torch.bfloat16) for item in pytree.tree_leaves(found) if _is_float(item)
    )
    _checked(found, expected(*args, **kwargs), 1e-2 if narrow else 1e-9 if wide else 1e-5)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


@pytest.mark.parametrize(("name", "args", "kwargs", "expected", "dtypes"), CASES)
def test_results_have_the_documented_types_and_trace_on_fake_tensors(
    name: str, args: Any, kwargs: Any, expected: Callable[..., Any], dtypes: list[str]
) -> None:
    args, kwargs = tensors(args, torch.float16), tensors(kwargs, torch.float16)
    flat, spec = pytree.tree_flatten((args, kwargs))
    places = [i for i, value in enumerate(flat) if isinstance(value, torch.Tensor)]
    found: list[Any] = []

    def run(*given: torch.Tensor) -> Any:
        values = list(flat)
        for place, value in zip(places, given, strict=True):
            values[place] = value
        again, named = pytree.tree_unflatten(values, spec)
        found[:] = pytree.tree_leaves(function(name)(*again, **named))
        return [item for item in found if isinstance(item, torch.Tensor)]

    with FakeTensorMode() as mode:
        graph = make_fx(run)(*(mode.from_tensor(flat[place]) for place in places)).graph
    operations = {str(node.target) for node in graph.nodes if hasattr(node.target, "_schema")}
    assert all(name.startswith(("aten.", "prims.")) for name in operations)
    first = next(value for value in flat if isinstance(value, torch.Tensor)).dtype
    for item, wanted in zip(found, dtypes or ["-"] * len(found), strict=False):
        if isinstance(item, torch.Tensor):
            assert item.dtype == (first if wanted == "-" else getattr(torch, wanted))


def test_every_function_has_a_case_and_names_its_source() -> None:
    assert set(TABLE) == {case.values[0] for case in CASES}
    for name, composed in TABLE.items():
        assert name.strip("_") in (composed.__doc__ or ""), name
    assert {getattr(file, name).__module__ for file in FILES for name in vars(file) if name in TABLE} == {
        file.__name__ for file in FILES
    }


_OUTSIDE = [
    (
        "npu_fusion_attention",
        (floats(1, 2, 3, 4),) * 3,
        {"head_num": 2, "input_layout": "BNSD", "keep_prob": 0.9},
    ),
    ("npu_fusion_attention", (floats(3, 2, 4),) * 3, {"head_num": 2, "input_layout": "TND"}),
    ("npu_dynamic_quant", (floats(3, 8),), {"dst_type": torch.quint4x2}),
    ("npu_grouped_matmul", ([floats(6, 4)], [floats(4, 5)]), {"group_list": np.array([6]), "split_item": 3}),
    ("npu_rotary_mul", (floats(1, 2, 3, 4),) * 3, {"rotary_mode": "quarter"}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), _OUTSIDE)
def test_arguments_outside_the_table_make_an_operation_without_a_meaning(
    name: str, args: Any, kwargs: Any
) -> None:
    args, kwargs = tensors(args), tensors(kwargs)
    with pytest.raises(OutsideTable):
        TABLE[name](*args, **kwargs)
    found = pytree.tree_leaves(function(name)(*args, **kwargs))
    assert isinstance(found[0], torch.Tensor)
    with pytest.raises(Unsupported, match=f"calls torch_npu.{name}, whose meaning"):
        make_fx(lambda x: pytree.tree_leaves(function(name)(*args, **kwargs))[0] + x)(torch.ones(()))


def test_the_first_argument_may_be_called_self_as_in_torch_ops() -> None:
    x = torch.rand(3, 8)
    assert torch.equal(function("npu_swiglu")(self=x), function("npu_swiglu")(input=x))


def _has_npu() -> bool:
    try:
        import torch_npu  # noqa: F401
    except ImportError:
        return False
    return torch.npu.is_available()


@pytest.mark.skipif(not _has_npu(), reason="needs torch_npu and an NPU, which this machine has not")
def test_the_table_agrees_with_torch_npu() -> None:
    import torch_npu

    for name, args, kwargs, *_ in (case.values for case in CASES):
        given = tensors((args, kwargs), torch.float16)
        moved = pytree.tree_map(lambda item: item.npu() if isinstance(item, torch.Tensor) else item, given)
        theirs = pytree.tree_leaves(getattr(torch_npu, name)(*moved[0], **moved[1]))
        ours = pytree.tree_leaves(function(name)(*given[0], **given[1]))
        for one, other in zip(ours, theirs, strict=True):
            if isinstance(one, torch.Tensor) and one.numel():
                torch.testing.assert_close(one, other.cpu(), rtol=1e-2, atol=1e-2, msg=name)


_PROTOTYPES = """
npu_rms_norm(input, gamma, epsilon=1e-06)
npu_add_rms_norm(x1, x2, gamma, epsilon=1e-06)
npu_swiglu(input, dim=-1)
npu_geglu(input, dim=-1, approximate=1, activate_left=False)
npu_rotary_mul(input, r1, r2, rotary_mode='half', rotate=None)
npu_group_norm_silu(input, weight, bias, group, eps=1e-05)
npu_deep_norm(x, gx, beta, gamma, alpha=0.3, epsilon=1e-06)
npu_scaled_masked_softmax(x, mask, scale=1.0, fixed_triu_mask=False)
npu_dynamic_quant(input, *, smooth_scales=None, group_index=None, dst_type=None)
npu_anti_quant(x, scale, *, offset=None, dst_dtype=None, src_dtype=None)
npu_quantize(input, scales, zero_points, dtype, axis=1, div_mode=True)
npu_moe_gating_top_k_softmax(x, finished=None, k=1)
npu_moe_init_routing(x, row_idx, expert_idx, active_num)
npu_moe_compute_expert_tokens(sorted_expert_for_source_row, num_expert)
npu_confusion_transpose(input, perm, shape, transpose_first)
npu_top_k_top_p(logits, p, k)
"""


@pytest.mark.parametrize("prototype", _PROTOTYPES.split("\n")[1:-1])
def test_signatures_are_the_documented_ones(prototype: str) -> None:
    name = prototype.split("(", maxsplit=1)[0]
    signature = inspect.signature(TABLE[name])
    plain = [item.replace(annotation=inspect.Parameter.empty) for item in signature.parameters.values()]
    assert (
        name + str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
        == prototype
    )
