"""Results in wider types, and by how much the rounding of long sums moves what is computed from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from ..graph.names import refs_in

HALF = ("float16", "bfloat16")
_PRODUCTS = frozenset(("aten.mm.default", "aten.bmm.default"))
CONVOLUTION = "aten.convolution.default"
ATTENTION = "aten.scaled_dot_product_attention.default"
SUMS = _PRODUCTS | {CONVOLUTION, ATTENTION}
"""Sums so long that float32 rounds their terms by more than differences behind them keep."""
RESIZED = frozenset(
    f"aten.{name}.default"
    for name in (
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
        "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    )
)  # fmt: skip
"""Weighted sums whose weights are rounded far more than their terms: they are differences of places, which
float32 rounds by as much as these are large. Where terms cancel, that is what is left."""
_ADDING = {"aten.sum.default": 1, "aten.sum.dim_IntList": 1, "aten.mean.default": 0, "aten.mean.dim": 0}
"""Sums over dimensions: 1, and means: 0."""
_NORMS = ("aten.native_layer_norm.default", "aten.native_group_norm.default")
_VAR_MEAN = "aten.var_mean.correction"
_MEAN_TERMS = 16
"""Of a mean whose terms are added in blocks: the sums that each of them is part of."""
_CUMSUM = "aten.cumsum.default"
_PIECES = 8
"""Terms of a product are added in so many pieces to see how large a sum is on the way."""
_EXACT = frozenset(
    """view reshape _unsafe_view expand permute transpose t unsqueeze squeeze slice select cat stack flip roll
    repeat clone contiguous alias detach split split_with_sizes unbind flatten unflatten diagonal broadcast_to
    index_select index gather neg abs relu maximum minimum amax amin max min clamp clamp_min clamp_max where
    masked_fill tril triu sort topk kthvalue constant_pad_nd max_pool2d_with_indices max_pool3d_with_indices
    full scalar_tensor arange eye zeros ones lift_fresh_copy view_as_real view_as_complex""".split()  # noqa: SIM905
)
"""Operations that round nothing."""
_COMPARING = frozenset(("gt", "ge", "lt", "le", "eq", "ne", "searchsorted", "bucketize", "any", "all"))
_ROUNDING = 2.0**-24
_LARGEST_SINGLE = torch.finfo(torch.float32).max
_SIGMAS = 2.0


SINGLE = {"float32": "float64", "complex64": "complex128"}
"""What the precise result of a graph without half types is computed in."""


ALL = {**dict.fromkeys(HALF, "float64"), **SINGLE}
"""What a graph with half types is computed in to see what rounding moves."""
_UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def of_half(graph: dict[str, Any]) -> float:
    """By how much the narrowest half type of a graph's inputs rounds a number at most; 0 without one."""
    return max((_UNITS.get(operand["spec"]["dtype"], 0.0) for operand in graph["inputs"]), default=0.0)


def has_half_scores(graph: dict[str, Any]) -> bool:
    """Whether a graph of a half type has attention, whose scores PyTorch's kernels for one device hold in
    float32 and those for another round."""
    return of_half(graph) > 0.0 and any(node["op"] == ATTENTION for node in graph["nodes"])


_LOSING = frozenset(("sin", "cos", "tan", "fmod", "remainder", "floor_divide"))


def keeps_digits(graph: dict[str, Any]) -> bool:
    """Whether operations of a graph have a result of some digits at every magnitude."""
    return not any(node["op"].split(".")[1] in _LOSING for node in graph["nodes"])


def is_exact(graph: dict[str, Any]) -> bool:
    """Whether nothing in a graph rounds, so that values may be anything that its types hold."""
    return all(node["op"].split(".")[1] in _EXACT | _COMPARING for node in graph["nodes"])


def wider(graph: dict[str, Any]) -> dict[str, str]:
    """The dtype that each dtype of the graph is computed in for the precise result."""
    specs = [operand["spec"] for operand in graph["inputs"]]
    specs += [spec for node in graph["nodes"] for spec in node["outputs"]]
    if any(spec["dtype"] in HALF for spec in specs):
        return dict.fromkeys(HALF, "float32")
    return SINGLE if any(node["op"] in SUMS for node in graph["nodes"]) else {}


def magnitude(values: Any) -> float:
    """The root mean square of the finite elements of a tensor of floats, 0 where there are none."""
    if not isinstance(values, torch.Tensor):
        return 0.0
    values = values.abs() if values.is_complex() else values
    if not values.is_floating_point():
        return 0.0
    finite = values[values.isfinite()].double()
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0


_CHOOSING = frozenset(
    f"aten.{name}"
    for name in (
        "max_pool2d_with_indices.default", "max_pool3d_with_indices.default", "adaptive_max_pool2d.default",
        "adaptive_max_pool3d.default", "max.dim", "min.dim", "topk.default", "sort.default", "sort.stable",
        "cummax.default", "cummin.default",
    )
)  # fmt: skip
"""Operations whose second result says which elements the first one is."""
_JUMPING = frozenset(
    f"aten.{name}"
    for name in (
        "argmax.default", "argmin.default", "floor.default", "ceil.default", "round.default", "trunc.default",
        "sign.default", "fmod.Scalar", "fmod.Tensor", "remainder.Scalar", "remainder.Tensor",
    )
)  # fmt: skip


def jumps(graph: dict[str, Any]) -> bool:
    """Whether the last bit of a value may decide where another one goes: which of two equals is the larger,
    or on which side of a step a number is."""
    choosing = {node["name"] for node in graph["nodes"] if node["op"] in _CHOOSING}
    return any(node["op"] in _JUMPING or _second_of(node["args"], choosing) for node in graph["nodes"])


def may_round_each(graph: dict[str, Any]) -> bool:
    """Whether rounding each operation shows how far results move: not where the last bit of a computed value
    decides between two ways."""
    if jumps(graph):
        return False
    exact = {operand["name"] for operand in graph["inputs"]}
    for node in graph["nodes"]:
        packet, read = node["op"].split(".")[1], set(refs_in(node["args"]))
        if packet in _COMPARING and not read <= exact:
            return False
        if packet in _EXACT and read <= exact:
            exact.add(node["name"])
    return True


def _second_of(data: Any, names: set[str]) -> bool:
    """Whether arguments hold the second result of one of the nodes."""
    if isinstance(data, list):
        return any(_second_of(element, names) for element in data)
    return isinstance(data, dict) and data.get("ref") in names and data["index"] == 1


def widened(data: Any, types: Mapping[str, str], *, exact: bool = False) -> Any:
    """A graph's JSON with wider dtype arguments. Fractions stay what they are in float32: a value that equals
    one of them is on the same side of it in either type; ``exact`` ones stay as the code has them."""
    if isinstance(data, float) and abs(data) <= _LARGEST_SINGLE and not exact:
        return float(torch.tensor(data, dtype=torch.float32))
    if isinstance(data, list):
        return [widened(element, types, exact=exact) for element in data]
    if not isinstance(data, dict):
        return data
    if set(data) == {"dtype"} and data["dtype"] in types:
        return {"dtype": types[data["dtype"]]}
    return {key: widened(value, types, exact=exact) for key, value in data.items()}


def convolution(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *rest: Any) -> torch.Tensor:
    """``aten.convolution.default``, in groups of float64 as one product of matrices for each group: what
    PyTorch computes them with takes some ten times as long on a CPU."""
    stride, padding, dilation, transposed, _, groups = rest
    if x.dtype != torch.float64 or groups == 1 or transposed or x.dim() != 4:
        return torch.ops.aten.convolution.default(x, weight, bias, *rest)
    kernel = weight.shape[2:]
    made = [
        (size + 2 * pad - gap * (taps - 1) - 1) // step + 1
        for size, pad, gap, taps, step in zip(x.shape[2:], padding, dilation, kernel, stride, strict=True)
    ]
    columns = torch.nn.functional.unfold(x, kernel, dilation, padding, stride)
    terms = weight[0].numel()
    product = weight.reshape(groups, -1, terms) @ columns.reshape(x.shape[0], groups, terms, -1)
    result = product.reshape(x.shape[0], weight.shape[0], *made)
    return result if bias is None else result + bias[:, None, None]


def size_of_sums(op: str, args: list[Any], result: Any) -> float:
    """How large the results of the long sums in an operation are; those of attention are its scores."""
    if op != ATTENTION:
        return magnitude(result)
    query, key = args[:2]
    return magnitude(query) * magnitude(key) * math.sqrt(query.shape[-1])


def attention(  # noqa: PLR0913 - as its op
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    generator: torch.Generator,
    unit: float = 0.0,
) -> torch.Tensor:
    """``aten.scaled_dot_product_attention.default`` with both products as float32 may round them, and scores
    as a half type that rounds by ``unit``."""
    if query.dim() > 2 and key.dim() == query.dim() and key.shape[-3] != query.shape[-3]:
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    turned = key.transpose(-1, -2)
    scores = _product_rounded(query, turned, query @ turned, generator)
    scores = scores + unit * scores.abs() * _signs(scores.shape, generator)
    scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(-1)
    return _product_rounded(weights, value, weights @ value, generator)


def _product_rounded(
    left: torch.Tensor, right: torch.Tensor, result: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    squares = left.abs().square() @ right.abs().square()
    return _moved(squares.sqrt() + _peak(left, right), left.shape[-1], result, generator)


def _peak(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """How large the sums of a product are on the way at most: terms in order may cancel at the end alone."""
    step = max(-(-left.shape[-1] // _PIECES), 1)
    sums = torch.zeros((), dtype=left.dtype)
    peak = torch.zeros((), dtype=torch.float64)
    for first in range(0, left.shape[-1], step):
        sums = sums + left[..., first : first + step] @ right[..., first : first + step, :]
        peak = torch.maximum(peak, sums.abs())
    return peak


def rounded(
    op: str,
    args: list[Any],
    kwargs: Mapping[str, Any],
    result: Any,
    generator: torch.Generator,
    *,
    each: bool,
    unit: float = 0.0,
) -> Any:
    """The result of a long sum as float32 may round it; with ``each`` also those of other operations.
    ``unit``: by how much a half type rounds the scores of attention."""
    if op == ATTENTION:
        return attention(*args, **kwargs, generator=generator, unit=unit)
    if op in SUMS:
        return _product(op, args, result, generator)
    if not each or op.split(".")[1] in _EXACT:
        return result
    return _one_operation(op, args, result, generator)


def _one_operation(op: str, args: list[Any], result: Any, generator: torch.Generator) -> Any:
    """The result of any other operation, rounded."""
    if op == _CUMSUM or op in _ADDING:
        return _added(op, args, result, generator)
    if op == _VAR_MEAN:
        return _once(result[0], generator), _moved(result[1].abs(), _MEAN_TERMS, result[1], generator)
    if op in _NORMS:
        return (_normalised(result, generator), *result[1:])
    if isinstance(result, (list, tuple)):
        return type(result)(_once(element, generator) for element in result)
    return _once(result, generator)


def _product(op: str, args: list[Any], result: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """That of a matrix product or a convolution."""
    left, right = args[0], args[1]
    if op in _PRODUCTS:
        return _product_rounded(left, right, result, generator)
    squares = convolution(left.square(), right.square(), None, *args[3:])
    return _moved(result.abs() + squares.sqrt(), right.numel() // right.shape[0], result, generator)


def _once(result: Any, generator: torch.Generator) -> Any:
    """A result that is rounded once."""
    if not isinstance(result, torch.Tensor) or result.dtype not in (torch.float64, torch.complex128):
        return result
    return _moved(result.abs(), 1, result, generator)


def _normalised(result: Any, generator: torch.Generator) -> torch.Tensor:
    """A normalised tensor whose mean is rounded: by how much that moves it grows with the mean over the
    spread."""
    values, mean, inverse = result
    size = (mean.abs() * inverse).amax() if mean.numel() else mean.sum()
    return _moved(values.abs() + size, _MEAN_TERMS, values, generator)


def _added(op: str, args: list[Any], result: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The same of running and other sums over dimensions, whose terms may cancel at the end alone."""
    x = args[0]
    if not x.is_floating_point() or not x.dim():
        return _once(result, generator)
    if op == _CUMSUM:
        terms = x.shape[args[1]]
        return _moved(result.abs().cummax(args[1]).values, terms, result, generator)
    dims = (args[1] if len(args) > 1 else None) or list(range(x.dim()))
    dims = [dim % x.dim() for dim in dims]
    flat = x.permute(*(dim for dim in range(x.dim()) if dim not in dims), *dims).flatten(x.dim() - len(dims))
    terms = max(flat.shape[-1], 1)
    peak = flat.cumsum(-1).abs().amax(-1) if flat.numel() else result.abs()
    return _moved((peak if _ADDING[op] else peak / terms).reshape(result.shape), terms, result, generator)


def _moved(size: torch.Tensor, terms: int, result: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each of n terms moves the sum so far, which is about as large as the largest one on the way or as the
    terms' root sum of squares, by half a unit in the last place."""
    moved = _SIGMAS * _ROUNDING * math.sqrt(terms) * size
    if result.is_complex():
        moved = torch.complex(*(moved * _signs(result.shape, generator) for _ in range(2)))
        return result + moved
    return result + moved * _signs(result.shape, generator)


def _signs(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, 2, shape, generator=generator, dtype=torch.int8) * 2 - 1
