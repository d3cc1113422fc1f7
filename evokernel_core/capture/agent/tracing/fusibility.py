"""Which dispatched ops a kernel can compute, directly or after decomposition to core ATen."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from ..decompositions import compositions, gradients, index_put, windows
from ..errors import OF_COMPLEX, uncovered
from ..graph.complex_names import name_for
from ..graph.mutations import counts, updates
from ..loading.record import Evaluation, OpCall
from ..sentence import Sentence
from ..torch_compat import default_decompositions

NO_OPS = frozenset({
    "aten.alias.default", "aten.clone.default", "aten.contiguous.default", "aten.detach.default",
    "aten.lift_fresh.default", "aten.lift_fresh_copy.default", "aten._assert_tensor_metadata.default",
})  # fmt: skip
"""Ops that change no value: they vanish from the graph."""

UNFILLED = frozenset({
    "aten.empty.memory_format", "aten.empty_like.default", "aten.empty_permuted.default",
    "aten.empty_strided.default", "aten.new_empty.default", "aten.new_empty_strided.default",
})  # fmt: skip
"""Ops that give memory of any content: zeros are as good, and vanish where everything is written over."""

CASTS = frozenset({"aten._to_copy.default"})
"""Ops that alone are not worth a kernel, unless they are all that a forward does."""


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Any]:
    return {**default_decompositions(), **compositions.TABLE, **gradients.TABLE, **windows.TABLE}


def _fits(name: str, covered: Container[str]) -> bool:
    plain = name.removesuffix(OF_COMPLEX)
    return name in covered or plain in NO_OPS or plain in UNFILLED


@lru_cache(maxsize=4)  # every request of a session names the same ops, or one of few sets of them
def _table(covered: frozenset[str]) -> Mapping[Any, Any]:
    """The decompositions of what does not fit as it is."""
    return {func: rule for func, rule in decompositions().items() if not _fits(str(func), covered)}


@dataclass(frozen=True)
class ReductionRows:
    """The shape of a reduction: ``kept`` results of ``extent`` elements each. One kernel works on one
    such grid of rows; ``trailing`` says that the reduced dimensions are the innermost ones."""

    kept: int
    extent: int
    trailing: bool


@dataclass(frozen=True)
class CoreOp:
    """A core-ATen op of a dispatched call. ``rows`` is None unless it reduces; ``reads`` says that it
    takes a tensor, unlike the ops that make one."""

    name: str
    rows: ReductionRows | None = None
    reads: bool = True


class Fusibility:
    """Answers for one request; ``categories`` maps op names to pointwise, reduction, kernel or view, and to
    ``program`` where the request is for single kernels and only programs of several can compute them.

    ``whole`` lets a region have reductions over several grids, which takes several kernels.
    """

    def __init__(self, categories: Mapping[str, str], whole: bool = False) -> None:
        self.categories = {name: kind for name, kind in categories.items() if kind != "program"}
        self.whole = whole
        self._in_programs = categories if len(self.categories) < len(categories) else {}
        self.table = {**_table(frozenset(self.categories)), **index_put.TABLE}
        self._known: dict[str, tuple[CoreOp, ...]] = {}

    def fits(self, name: str) -> bool:
        """Whether an op can be in a kernel as it is."""
        return _fits(name, self.categories)

    @cached_property
    def _programs(self) -> Fusibility:
        """What programs of several kernels can compute, or nothing where the request is for these."""
        return Fusibility(dict.fromkeys(self._in_programs, "kernel"), whole=True)

    def unfit(self, name: str, line: int) -> Sentence:
        """Why an op of a graph is in no kernel of the request."""
        return uncovered(name, line, in_programs=name in self._in_programs)

    def unfit_call(self, call: OpCall, line: int) -> Sentence:
        """The same of a call, which programs may compute as what it decomposes into."""
        name = name_for(call.name, call.args, call.kwargs)
        programs = self._programs
        fits = bool(self._in_programs) and all(programs.fits(op.name) for op in programs.core_ops(call))
        return uncovered(name, line, in_programs=fits)

    def computes(self, name: str) -> bool:
        """Whether the op is work for a kernel, rather than a view, a cast or nothing at all."""
        return self.categories.get(name) in ("pointwise", "reduction", "kernel") and name not in CASTS

    def core_ops(self, call: OpCall) -> tuple[CoreOp, ...]:
        """The core-ATen ops that a call decomposes into; itself where nothing is known."""
        key = _key(call)
        if key not in self._known:
            name = name_for(call.name, call.args, call.kwargs)
            direct = self.fits(name) or call.func not in self.table
            self._known[key] = (
                (self._core_op(call.name, call.args, call.kwargs),) if direct else (self._decomposed(call))
            )
        return self._known[key]

    def _decomposed(self, call: OpCall) -> tuple[CoreOp, ...]:
        nodes = _trace(call, self.table)
        if nodes is None:
            return (CoreOp(call.name),)
        result = []
        for node in nodes:
            name = str(node.target)
            if name.startswith(("aten.", "prims.")) and not updates(node):
                args, kwargs = pytree.tree_map(_meta, (node.args, node.kwargs))
                result.append(self._core_op(name, args, kwargs))
        return tuple(result)

    def _core_op(self, name: str, args: Any, kwargs: Any) -> CoreOp:
        name = name_for(name, args, kwargs)
        reduces = self.categories.get(name) == "reduction"
        reads = any(isinstance(value, torch.Tensor) for value in pytree.tree_leaves((args, kwargs)))
        return CoreOp(name, _rows(name, args, kwargs) if reduces else None, reads)

    def obstacles(self, evaluation: Evaluation) -> list[OpCall]:
        """The calls of an evaluation that no kernel computes."""
        return [
            call
            for call in evaluation.ops
            if not counts(call)
            and (call.mutates or any(not self.fits(op.name) for op in self.core_ops(call)))
        ]

    def work(self, evaluation: Evaluation) -> int:
        """How many of the evaluation's core ops compute something from a tensor."""
        ops = (op for call in evaluation.ops if not counts(call) for op in self.core_ops(call))
        return sum(op.reads and self.computes(op.name) for op in ops)

    def rows(self, evaluation: Evaluation) -> frozenset[ReductionRows]:
        """The grids of rows that the evaluation's reductions work on and that must not mix."""
        if self.whole:
            return frozenset()
        ops = (op for call in evaluation.ops for op in self.core_ops(call))
        return frozenset(op.rows for op in ops if op.rows is not None)


def _rows(name: str, args: Any, kwargs: Any) -> ReductionRows:
    shape = tuple(args[0].shape)
    dims = _reduced_dims(name, len(shape), args, kwargs)
    extent = math.prod(shape[dim] for dim in dims)
    kept = math.prod(size for dim, size in enumerate(shape) if dim not in dims)
    return ReductionRows(kept, extent, dims == set(range(len(shape) - len(dims), len(shape))))


def _reduced_dims(name: str, rank: int, args: Any, kwargs: Any) -> set[int]:
    if "layer_norm" in name:
        return set(range(rank - len(args[1]), rank))
    position = 2 if "vector_norm" in name else 1
    given = kwargs.get("dim", args[position] if len(args) > position else None)
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return set(range(rank))
    dims = [given] if isinstance(given, int) else given
    return {dim % max(rank, 1) for dim in dims}


def _meta(value: Any) -> Any:
    return value.meta["val"] if isinstance(value, torch.fx.Node) else value


def _key(call: OpCall) -> str:
    def describe(value: Any) -> str:
        return f"{value.dtype}{tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)

    return f"{call.name}{pytree.tree_map(describe, (call.args, call.kwargs))}"


def _trace(call: OpCall, table: dict[Any, Any]) -> list[Any] | None:
    """The call's decomposition as graph nodes; None if it does not trace on its own."""
    flat, spec = pytree.tree_flatten((call.args, call.kwargs))
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]

    def run(*given: torch.Tensor) -> Any:
        remaining = iter(given)
        values = [next(remaining) if isinstance(value, torch.Tensor) else value for value in flat]
        args, kwargs = pytree.tree_unflatten(values, spec)
        return call.func(*args, **kwargs)

    fake = (tensor for tensor in tensors if isinstance(tensor, FakeTensor))
    mode = next((tensor.fake_mode for tensor in fake), FakeTensorMode(allow_non_fake_inputs=True))
    try:
        with mode, torch.no_grad():
            graph = make_fx(run, decomposition_table=table)(*tensors).graph
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None
    return [node for node in graph.nodes if node.op == "call_function"]
