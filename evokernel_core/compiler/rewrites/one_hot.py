"""aten.one_hot as a comparison with the numbers of its classes, which fuses with what reads it."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.compiler.rewrites.indexing import tensor
from evokernel_core.compiler.rewrites.picking import as_arg
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.domain.graph import DTypeArg, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.device import Device

_WHOLE = "int64"


def one_hot_as_comparison(task: KernelTask, device: Device) -> KernelTask:
    """The task without one-hot encodings. They go before other patterns are looked for: positions that are
    compared with small integers are then computed in float32."""
    return rewritten(task, REWRITES, device)


def _one_hot(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...]:
    index, (spec,) = tensor(node, 0), node.outputs
    before, classes = writer.spec(index), spec.shape[-1]
    column = writer.call("aten.unsqueeze.default", index, -1, shape=(*before.shape, 1), dtype=before.dtype)
    counted = (TensorSpec((classes,), _WHOLE),)
    (numbers,) = writer.call_many(
        "aten.arange.start_step", 0, as_arg(classes), outputs=counted, dtype=DTypeArg(_WHOLE)
    )
    equal = writer.call("aten.eq.Tensor", column, numbers, shape=spec.shape, dtype="bool")
    return (writer.call("aten._to_copy.default", equal, shape=spec.shape, dtype=_WHOLE),)


REWRITES: Mapping[str, Rewrite] = {"aten.one_hot.default": _one_hot}
