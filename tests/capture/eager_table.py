"""Small functions on which a captured graph may part from its code: views that are written into, indices,
NaN, infinities, signs of zero, integers, dtypes and empty sizes.

Each is ``name: (shapes, body)``; a body returns tensors.
"""

from __future__ import annotations

from collections.abc import Mapping

TABLE: dict[str, tuple[str, str]] = {
    # writes through views
    "expand_write": ("x=f32[64,1]", "a = x.expand(64, 16)\na[:, -1] = 3.0\nreturn a * 2"),
    "expand_add": ("x=f32[8,1]", "a = x.expand(8, 4)\na[:, 0] += 1.0\nreturn a.exp()"),
    "diagonal_write": ("x=f32[8,8]", "y = x * 1.0\ny.diagonal().fill_(2.0)\nreturn y + 1"),
    "as_strided_write": ("x=f32[8,8]", "y = x * 1.0\ny.as_strided((8,), (9,)).mul_(0.5)\nreturn y + 1"),
    "narrow_write": ("x=f32[8,8]", "y = x.clone()\ny.narrow(1, 2, 3).zero_()\nreturn y * 2"),
    "chunk_write": ("x=f32[8,8]", "y = x * 2\na, b = y.chunk(2, 1)\na.copy_(b)\nreturn y + 1"),
    "transpose_write": ("x=f32[8,8]", "y = x * 2\ny.t()[0] = 1.0\nreturn y + 1"),
    "unfold_write": ("x=f32[32]", "y = x * 2\ny.unfold(0, 4, 4)[:, 0] = 5.0\nreturn y + 1"),
    "select_add": ("x=f32[8,8]", "y = x + 1\ny[3] += y[2]\nreturn y * 2"),
    "overlap_copy": ("x=f32[32]", "y = x + 1\ny[1:] = y[:-1].clone()\nreturn y * 2"),
    "masked_write": ("x=f32[8,8]", "y = x * 2\ny[y > 1] = 0.0\nreturn y + 1"),
    "slice_assign_scale": ("x=f32[8,16]", "y = x.clone()\ny[:, ::2] = y[:, ::2] * 3\nreturn y.tanh()"),
    # writes into what is given
    "in_place_input": ("x=f32[8,8]", "x.mul_(2)\nreturn x + 1"),
    "in_place_view_of_input": ("x=f32[8,8]", "x[:, 0] = 0.0\nreturn x * 3"),
    "copy_into_input": ("x=f32[8,8], y=f32[8,8]", "x.copy_(y)\nreturn x.exp()"),
    # how results lie in memory
    "transposed_result": ("x=f32[8,16]", "y = (x * 2).t()\nreturn y, y.exp(), y.contiguous() + 1"),
    "expanded_result": ("x=f32[8,16]", "return (x.amax(1, keepdim=True) * 2).expand(-1, 4), x * 2"),
    # indices
    "index_add": ("x=f32[64,8], i=i64[12], s=f32[12,8]", "return torch.index_add(x, 0, i, s).clamp_max(1.0)"),
    "index_add_alpha": ("x=f32[16,8], i=i64[12], s=f32[12,8]", "return x.index_add(0, i, s, alpha=2).relu()"),
    "index_copy": ("x=f32[64,8], i=i64[12], s=f32[12,8]", "return x.index_copy(0, i, s) * 2"),
    "index_fill": ("x=f32[64,8], i=i64[12]", "return x.index_fill(0, i, 1.0) * 2"),
    "index_put": ("x=f32[64,8], i=i64[12], s=f32[12,8]", "return torch.index_put(x, [i], s, True) * 2"),
    "index_reduce": ("x=f32[64,8], i=i64[12], s=f32[12,8]", "return x.index_reduce(0, i, s, 'amax') * 2"),
    "index_read": ("x=f32[64,8], i=i64[12]", "return x[i] * 2"),
    "index_select": ("x=f32[64,8], i=i64[12]", "return x.index_select(0, i).exp()"),
    "gather": ("x=f32[8,16], i=i64[8,4]", "return x.gather(1, i) + 1"),
    "scatter": ("x=f32[8,16], i=i64[8,4], s=f32[8,4]", "return x.scatter(1, i, s) + 1"),
    "scatter_add": ("x=f32[8,16], i=i64[8,4], s=f32[8,4]", "return x.scatter_add(1, i, s) + 1"),
    "scatter_reduce": (
        "x=f32[8,16], i=i64[8,4], s=f32[8,4]", "return x.scatter_reduce(1, i, s, 'amax') + 1",
    ),
    "take": ("x=f32[8,16], i=i64[12]", "return x.take(i) + 1"),
    "put": ("x=f32[8,16], i=i64[12], s=f32[12]", "return x.put(i, s) + 1"),
    "take_along_dim": ("x=f32[8,16], i=i64[8,4]", "return x.take_along_dim(i, 1) + 1"),
    "embedding": ("w=f32[64,16], i=i64[8,4]", "return F.embedding(i, w) * 2"),
    "embedding_bag": ("w=f32[64,16], i=i64[8,4]", "return F.embedding_bag(i, w) * 2"),
    "one_hot": ("i=i64[8]", "return F.one_hot(i, 5).float() * 2"),
    "cross_entropy": ("x=f32[8,16], i=i64[8]", "return F.cross_entropy(x, i)"),
    "nll_loss": ("x=f32[8,16], i=i64[8]", "return F.nll_loss(x.log_softmax(-1), i, reduction='none')"),
    # NaN and ties
    "masked_fill_nan": ("x=f32[8,16], m=bool[8,16]", "return x.masked_fill(m, float('nan')).abs()"),
    "masked_scatter": ("x=f32[8,16], m=bool[8,16], s=f32[8,16]", "return x.masked_scatter(m, s) + 1"),
    "where_nan": ("x=f32[8,16]", "return torch.where(x > 0, x.log(), x * 2)"),
    "where_cancelled": ("x=f32[8,16]", "m = (x > 0).float()\nreturn x * m + (1 - m) * 2"),
    "clamp": ("x=f32[8,16]", "return x.clamp(-1.0, 1.0) * 2"),
    "clamp_tensor": ("x=f32[8,16], a=f32[16], b=f32[16]", "return torch.clamp(x, a, b) * 2"),
    "maximum": ("x=f32[8,16], y=f32[8,16]", "return torch.maximum(x, y) - 1"),
    "fmax": ("x=f32[8,16], y=f32[8,16]", "return torch.fmax(x, y) - 1"),
    "amax": ("x=f32[8,16]", "return x.amax(-1) * 2"),
    "max_dim": ("x=f32[8,16]", "v, i = x.max(-1)\nreturn v * 2, i + 1"),
    "argmax": ("x=f32[8,16]", "return (x * 2).argmax(-1)"),
    "argmin": ("x=f32[8,16]", "return (x * 2).argmin(-1)"),
    "sort": ("x=f32[8,16]", "v, i = (x * 2).sort(-1)\nreturn v, i"),
    "topk": ("x=f32[8,16]", "v, i = (x * 2).topk(3)\nreturn v, i"),
    "cummax": ("x=f32[8,16]", "return (x * 2).cummax(-1).values"),
    "logcumsumexp": ("x=f32[8,16]", "return (x * 2).logcumsumexp(-1)"),
    "softmax_masked": ("x=f32[8,16], m=bool[8,16]", "return x.masked_fill(m, float('-inf')).softmax(-1)"),
    "log_softmax": ("x=f32[8,16]", "return x.log_softmax(-1) * 2"),
    "logsumexp": ("x=f32[8,16]", "return x.logsumexp(-1) * 2"),
    "attention": (
        "q=f32[2,2,8,16], k=f32[2,2,8,16], v=f32[2,2,8,16], m=bool[8,8]",
        "return F.scaled_dot_product_attention(q, k, v, m) * 2",
    ),
    "nan_to_num": ("x=f32[8,16]", "return x.nan_to_num(0.5) * 2"),
    "nansum": ("x=f32[8,16]", "return x.nansum(-1) * 2"),
    "nanmean": ("x=f32[8,16]", "return x.nanmean(-1) * 2"),
    "isclose": ("x=f32[8,16], y=f32[8,16]", "return torch.isclose(x, y, equal_nan=True).float() * 2"),
    "searchsorted": ("x=f32[16], y=f32[8]", "return torch.searchsorted(x, y) + 1"),
    # signs of zero
    "copysign": ("x=f32[8,16]", "return torch.copysign(torch.ones_like(x), x) * 2"),
    "add_zero": ("x=f32[8,16]", "return 1.0 / (x + 0.0)"),
    "relu_zero": ("x=f32[8,16]", "return 1.0 / x.relu()"),
    "neg_zero": ("x=f32[8,16]", "return 1.0 / (0.0 - x)"),
    "rsub_zero": ("x=f32[8,16]", "return 1.0 / -x"),
    "signbit": ("x=f32[8,16]", "return x.signbit().float() * 2"),
    "hardtanh_zero": ("x=f32[8,16]", "return 1.0 / F.hardtanh(x, 0.0, 6.0)"),
    "leaky_zero": ("x=f32[8,16]", "return 1.0 / F.leaky_relu(x, 0.1)"),
    "round_zero": ("x=f32[8,16]", "return 1.0 / x.round()"),
    "sign": ("x=f32[8,16]", "return x.sign() * 2"),
    "atan2": ("x=f32[8,16], y=f32[8,16]", "return torch.atan2(x, y) * 2"),
    "xlogy": ("x=f32[8,16], y=f32[8,16]", "return torch.xlogy(x, y) * 2"),
    "hypot": ("x=f32[8,16], y=f32[8,16]", "return torch.hypot(x, y) * 2"),
    "logaddexp": ("x=f32[8,16], y=f32[8,16]", "return torch.logaddexp(x, y) * 2"),
    # integers and dtypes
    "floor_divide": ("a=i32[8,16], b=i32[8,16]", "return a // b + 1"),
    "trunc_divide": ("a=i32[8,16], b=i32[8,16]", "return torch.div(a, b, rounding_mode='trunc') + 1"),
    "float_floor_divide": ("a=f32[8,16], b=f32[8,16]", "return a // b + 1"),
    "remainder": ("a=i32[8,16], b=i32[8,16]", "return a % b + 1"),
    "fmod": ("a=f32[8,16], b=f32[8,16]", "return torch.fmod(a, b) + 1"),
    "shift": ("a=i32[8,16]", "return (a << 2) + (a >> 1)"),
    "shift_tensor": ("a=i32[8,16], b=i32[8,16]", "return (a << b) + 1"),
    "to_int": ("x=f32[8,16]", "return x.to(torch.int32) + 1"),
    "to_uint8": ("x=f32[8,16]", "return (x * 2).to(torch.uint8)"),
    "to_int64": ("x=f32[8,16]", "return x.long() + 1"),
    "int_mean": ("a=i32[8,16]", "return a.float().mean(-1)"),
    "int_pow": ("a=i32[8,16]", "return a ** 3 + 1"),
    "int_abs": ("a=i32[8,16]", "return a.abs() + 1"),
    "promote_scalar": ("a=i32[8,16]", "return a * 1.5 + 1"),
    "promote_zero_dim": ("a=f16[8,16], b=f32[]", "return a * b + 1"),
    "promote_dims": ("a=f16[8,16], b=f32[16]", "return a * b + 1"),
    "bool_add": ("m=bool[8,16], n=bool[8,16]", "return (m + n) * 2"),
    "bool_sum": ("m=bool[8,16]", "return m.sum(-1) + 1"),
    "cumsum_int": ("a=i32[8,16]", "return a.cumsum(-1) + 1"),
    "cumsum_half": ("a=f16[8,16]", "return a.cumsum(-1) + 1"),
    "sum_half": ("a=f16[8,16]", "return a.sum(-1) + 1"),
    "var_one": ("x=f32[8,1]", "return x.var(-1) + 1"),
    "std_correction": ("x=f32[8,16]", "return x.std(-1, correction=2) + 1"),
    "var_mean": ("x=f32[8,16]", "v, m = torch.var_mean(x, -1)\nreturn v + 1, m * 2"),
    "empty_sum": ("x=f32[8,16]", "return x[:, :0].sum(-1) + x[:, 0]"),
    "layer_norm": ("x=f32[8,16], w=f32[16]", "return F.layer_norm(x, (16,), w) * 2"),
    "rms_norm": ("x=f32[8,16], w=f32[16]", "return F.rms_norm(x, (16,), w) * 2"),
    "group_norm": ("x=f32[4,8,6], w=f32[8]", "return F.group_norm(x, 4, w) * 2"),
    "normalize": ("x=f32[8,16]", "return F.normalize(x, dim=-1) * 2"),
    "cosine": ("x=f32[8,16], y=f32[8,16]", "return F.cosine_similarity(x, y) * 2"),
    "gelu": ("x=f32[8,16]", "return F.gelu(x) * 2"),
    "gelu_half": ("x=f16[8,16]", "return F.gelu(x, approximate='tanh') * 2"),
    "mish": ("x=f32[8,16]", "return F.mish(x) * 2"),
    "softplus": ("x=f32[8,16]", "return F.softplus(x) * 2"),
    "elu": ("x=f32[8,16]", "return F.elu(x) * 2"),
    "bce_logits": ("x=f32[8,16], y=f32[8,16]", "return F.binary_cross_entropy_with_logits(x, y)"),
    "smooth_l1": ("x=f32[8,16], y=f32[8,16]", "return F.smooth_l1_loss(x, y)"),
    "kl_div": ("x=f32[8,16], y=f32[8,16]", "return F.kl_div(x, y, reduction='sum')"),
    "cdist": ("x=f32[8,16], y=f32[6,16]", "return torch.cdist(x, y) * 2"),
    "addcdiv": ("x=f32[8,16], y=f32[8,16]", "return torch.addcdiv(x, y, x, value=0.5)"),
    "lerp": ("x=f32[8,16], y=f32[8,16]", "return torch.lerp(x, y, 0.3) * 2"),
    "pow_tensor": ("x=f32[8,16], y=f32[8,16]", "return x ** y + 1"),
    "exponent_half": ("x=f16[8,16]", "return x.exp().log1p()"),
    "mask_any": ("m=bool[8,16]", "return m.any(-1).float() * 2"),
    "tril": ("x=f32[8,8]", "return x.tril() * 2"),
    "max_pool": ("x=f32[2,3,8,8]", "return F.max_pool2d(x, 2) * 2"),
    "avg_pool": ("x=f32[2,3,8,8]", "return F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) * 2"),
    "matmul": ("x=f32[8,16], y=f32[16,8]", "return (x @ y).relu()"),
    "linear_half": ("x=f16[8,16], w=f16[8,16]", "return F.linear(x, w).relu()"),
    "prod": ("x=f32[8,6]", "return x.prod(-1) + 1"),
    "cumprod": ("x=f32[8,6]", "return x.cumprod(-1) + 1"),
    "norm": ("x=f32[8,16]", "return x.norm(dim=-1) + 1"),
    "norm_inf": ("x=f32[8,16]", "return torch.linalg.vector_norm(x, float('inf'), -1) + 1"),
    "flip_cat": ("x=f32[8,16]", "return torch.cat([x.flip(-1), x * 2], 0)"),
    "interpolate": ("x=f32[1,2,4,4]", "return F.interpolate(x, scale_factor=2, mode='bilinear') * 2"),
    "rescaled": ("x=f32[8,16]", "return (x - x.amin(-1, keepdim=True)) / (x.amax(-1, keepdim=True) + 1e-6)"),
}  # fmt: skip
"""Bodies have ``torch`` and ``F``."""


def text(table: Mapping[str, tuple[str, str]]) -> str:
    """A file with the functions of the table, or of a part of it."""
    head = "import torch\nimport torch.nn.functional as F\n"
    return head + "".join(_function(name, *item) for name, item in table.items())


def _function(name: str, shapes: str, body: str) -> str:
    arguments = ", ".join(part.split("=")[0].strip() for part in shapes.split("], ") if "=" in part)
    lines = body.replace("\n", "\n    ")
    return f"\n\n# evokernel: {shapes}\ndef {name}({arguments}):\n    {lines}\n"
