"""Half types where PyTorch is strict: products of two types, and operations that a CPU lacks kernels for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ..sentence import Sentence
from .precision import SUMS

_LACKS = ("not implemented for 'Half'", "not implemented for 'BFloat16'")
_HALF = (torch.float16, torch.bfloat16)
_FACTORS = 3
"""The arguments of a product that have one type: factors and a bias; a mask of an attention may differ."""


def computed(operator: Callable[..., Any]) -> Callable[..., Any]:
    """The operator; where it is not implemented for half types, computed in float32 and rounded once, as
    kernels of devices do."""

    def compute(*args: Any, **kwargs: Any) -> Any:
        try:
            return operator(*args, **kwargs)
        except NotImplementedError as error:
            if not any(words in str(error) for words in _LACKS):
                raise
        return _in_float32(operator, args, kwargs)

    return compute


def _in_float32(operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    narrow: list[torch.dtype] = []

    def widened(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype not in _HALF:
            return tensor
        narrow.append(tensor.dtype)
        return tensor.float()

    wide_args, wide_kwargs = tree_map_only(torch.Tensor, widened, (args, kwargs))
    result = operator(*wide_args, **wide_kwargs)
    return tree_map_only(
        torch.Tensor, lambda node: node.to(narrow[0]) if node.dtype == torch.float32 else node, result
    )


def types_that_differ(graph: dict[str, Any]) -> str:
    """What is wrong with a product of tensors whose types differ, empty where there is none: tracing lets
    it pass, but it fails when it runs."""
    types = {(operand["name"], 0): operand["spec"]["dtype"] for operand in graph["inputs"]}
    for node in graph["nodes"]:
        types |= {(node["name"], index): spec["dtype"] for index, spec in enumerate(node["outputs"])}
    for node in graph["nodes"]:
        operands = [
            argument
            for argument in node["args"][:_FACTORS]
            if isinstance(argument, dict) and "ref" in argument
        ]
        result = [types[operand["ref"], operand.get("index", 0)] for operand in operands]
        factors = list(dict.fromkeys(dtype for dtype in result if "float" in dtype))
        if node["op"] in SUMS and len(factors) > 1:
            product = " by ".join(factors)
            return Sentence(
                "Line {line} multiplies {product}, which PyTorch refuses: convert one of them first.",
                line=node["line"],
                product=product,
            )
    return ""
