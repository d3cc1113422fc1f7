"""What differs between the versions of torch that the agent runs with: each difference is said once, here."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sympy
import torch
import torch._meta_registrations
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.symbolic_shapes import DimConstraints
from torch.fx.passes.shape_prop import _extract_tensor_metadata
from torch.utils import _pytree as pytree

_OPEN_END = 2**63 - 1
"""The end of a slice that has none."""
_OF_RANK = {4: torch.channels_last, 5: torch.channels_last_3d}
TRUNCATED = "_no_grad_trunc_normal_"
"""What ``torch.nn.init.trunc_normal_`` calls, under whatever name a file imported it."""


def default_decompositions() -> dict[Any, Any]:
    """PyTorch's own table to core ATen, composite operations included. torch 2.5 has no public name for it,
    and leaves those and the choice of nearest pixels out."""
    if hasattr(torch.export, "default_decompositions"):
        return dict(torch.export.default_decompositions())
    from torch._decomp import core_aten_decompositions, decomposition_table

    table = dict(core_aten_decompositions())
    table |= {operation: decomposition_table[operation] for operation in _nearest()}
    return {**{operation: operation.decompose for operation in _composites()}, **table}


_KEPT = ("aten.upsample_bilinear2d.vec", "aten.upsample_nearest2d.vec")
"""Composite operations that PyTorch's table does not take apart."""


def _nearest() -> list[Any]:
    names = [
        f"{name}{rank}d" for name in ("upsample_nearest", "_upsample_nearest_exact") for rank in (1, 2, 3)
    ]
    return [getattr(torch.ops.aten, name).default for name in names]


def _composites() -> Iterator[Any]:
    """The composite operations that neither write into tensors nor give views."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    for name in names:
        packet, _, overload = name.removeprefix("aten::").partition(".")
        operation = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        if not name.startswith("aten::") or operation is None or str(operation) in _KEPT:
            continue
        schema = operation._schema
        if not schema.is_mutable and not any(argument.alias_info for argument in schema.arguments):
            yield operation


def export_program(module: torch.nn.Module, inputs: tuple[Any, ...], shapes: Any) -> Any:
    """The module as a program of composite operations, traced without Dynamo. In torch 2.5 ``export`` takes
    them apart at once, with decompositions of its own choice; and afterwards it looks for what dimensions
    with names must satisfy, which ends in a KeyError where they have none."""
    if hasattr(torch.export, "default_decompositions"):
        return torch.export.export(module, inputs, dynamic_shapes=(shapes,), strict=False)
    solve = DimConstraints.solve
    try:
        DimConstraints.solve = lambda self: None
        return torch.export.export_for_training(module, inputs, dynamic_shapes=(shapes,), strict=False)
    finally:
        DimConstraints.solve = solve


def captured_sizes(environment: Any) -> dict[Any, int]:
    """The size that each symbol stood for while it was traced, whose name changed after torch 2.9."""
    values = getattr(environment, "backed_var_to_val", None)
    values = environment.var_to_val if values is None else values
    return {symbol: int(value) for symbol, value in values.items()}


def assumptions(environment: Any) -> list[Any]:
    """Everything about sizes that a trace took for granted. Up to torch 2.8, some of what torch.export
    compares is left to be checked when the program runs, and is no guard; and slices ask whether a size is
    the number that stands for an open end, which none is."""
    deferred = (item for items in environment.deferred_runtime_asserts.values() for item in items)
    assumed = [part.expr for part in (*environment.guards, *deferred)]
    return [
        condition
        for condition in assumed
        if not (isinstance(condition, sympy.Ne) and _OPEN_END in condition.args)
    ]


@contextmanager
def plain_operations() -> Iterator[None]:
    """Without conditions on sizes that operations make for their own sake. A host's libraries for
    convolutions are chosen by sizes: by large batches on a CPU, and in builds with cuDNN by what 32 bits can
    index. Up to torch 2.9, pooling asks for the sign of the remainder of a size, and a result is described by
    the first memory format that it has, in the order of a set, which differs from process to process."""
    onednn, nnpack = torch._C._get_mkldnn_enabled(), torch._C._get_nnpack_enabled()
    select, quotient = torch._C._select_conv_backend, torch._meta_registrations.div_rtn
    describe = proxy_tensor._extract_tensor_metadata
    torch._C._set_mkldnn_enabled(False)
    torch._C._set_nnpack_enabled(False)
    torch._C._select_conv_backend = _plain_backend
    torch._meta_registrations.div_rtn = operator.floordiv
    proxy_tensor._extract_tensor_metadata = _in_all_formats
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(onednn)
        torch._C._set_nnpack_enabled(nnpack)
        torch._C._select_conv_backend = select
        torch._meta_registrations.div_rtn = quotient
        proxy_tensor._extract_tensor_metadata = describe


def _in_all_formats(result: torch.Tensor) -> Any:
    """What torch notes of a result, once every memory format of its rank was asked for."""
    layout = _OF_RANK.get(result.dim())
    if layout is not None and result.layout is torch.strided:
        result.is_contiguous(memory_format=layout)
    return _extract_tensor_metadata(result)


def _plain_backend(input: Any, weight: Any, *options: Any, **named: Any) -> Any:
    """PyTorch's own convolution, whose results are laid out as its input is."""
    backends = torch._C._ConvBackend
    return backends.Slow2d if weight.dim() == 4 else backends.Slow3d


def tensors_among(values: Any) -> list[torch.Tensor]:
    """The tensors in values, however deep in containers, in their order."""
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def output_node(graph: torch.fx.Graph) -> Any:
    """The node of what a graph returns. torch 2.5 has no method for it."""
    return next(node for node in reversed(graph.nodes) if node.op == "output")


def draws_again() -> bool:
    """Whether truncated normal values are drawn until all lie in their range: some versions draw once."""
    return hasattr(torch.nn.init, TRUNCATED)
