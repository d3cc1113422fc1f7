"""KernelTask: what must be computed, content-addressed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cached_property
from operator import attrgetter

from attrs import define, evolve, field, frozen

from evokernel_core.domain.canonical import (
    Prefixes,
    inputs_in_order_of_use,
    node_order,
    numbered,
    symbols_in_order_of_use,
)
from evokernel_core.domain.graph import Graph
from evokernel_core.domain.serial import canonical_json


@frozen
class Tolerance:
    """|candidate - reference| <= atol + rtol * |reference|, element by element."""

    rtol: float
    atol: float


TOLERANCES: Mapping[str, Tolerance] = {
    "float32": Tolerance(1e-4, 1e-4),
    "float16": Tolerance(1e-2, 1e-2),
    "bfloat16": Tolerance(1e-2, 1e-2),
}
"""KernelBench's current tolerances: 1e-4 for float32 and 1e-2 for the half types."""


CATEGORIES = frozenset(
    """activation elementwise softmax normalization reduction loss matmul convolution pooling index layout
    scan attention other""".split()  # noqa: SIM905
)
"""What the main op of a task is."""


EXACT = frozenset(
    """view reshape _unsafe_view expand permute transpose t unsqueeze squeeze slice select cat stack flip
    roll repeat clone contiguous alias detach split split_with_sizes unbind flatten unflatten diagonal
    broadcast_to index_select index gather embedding neg abs relu maximum minimum amax amin max min
    clamp clamp_min clamp_max hardtanh threshold where masked_fill tril triu sort topk constant_pad_nd
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d max_pool2d_with_indices
    max_pool3d_with_indices full scalar_tensor lift_fresh_copy im2col pixel_shuffle pixel_unshuffle
    upsample_nearest1d upsample_nearest2d gt ge lt le eq ne logical_and logical_or logical_not floor
    ceil round trunc sign cummax cummin""".split()  # noqa: SIM905
)
"""Operations of floats whose results are elements of their inputs, their negatives or whole numbers."""


def tolerance_for(graph: Graph) -> Tolerance:
    """The product's own for what a graph computes: that of the coarsest dtype which PyTorch itself rounds to
    on the way to an output; exact where no operation rounds, but moves, chooses or compares."""
    live = {ref.name for ref in graph.outputs}
    dtypes: set[str] = set()
    for node in reversed(graph.nodes):
        if node.name in live:
            live.update(ref.name for ref in node.operands())
            if node.op.split(".")[1] not in EXACT:
                dtypes.update(spec.dtype for spec in node.outputs)
    known = [TOLERANCES[name] for name in dtypes if name in TOLERANCES]
    return max(known, key=lambda entry: entry.rtol, default=Tolerance(0.0, 0.0))


@frozen
class Symbol:
    """A size that the kernel is generic in: its name, its size in the user's file, its least size."""

    name: str
    size: int
    minimum: int = 1


@define(frozen=True, slots=False)
class KernelTask:
    """A graph, the sizes it was captured with, the tolerance, and the category of its main op.

    ``op_category`` is one of ``CATEGORIES``. ``name`` is a Python identifier for people; it is not part of
    the identity. ``tolerance`` is told to proposers; kernels are judged by ``tolerance_for`` the graph.
    """

    name: str
    graph: Graph
    symbols: tuple[Symbol, ...]
    tolerance: Tolerance
    op_category: str

    @cached_property
    def task_id(self) -> str:
        """sha256 (hex) of the mathematics: the canonical graph, what symbols may be, tolerance and category.
        Names, source lines and the way of the capture are not part of it; the order of inputs and of symbols
        is, since a kernel knows them by their places."""
        ordered = evolve(self, name="", graph=evolve(self.graph, nodes=node_order(self.graph)))
        return _digest(numbered_task(ordered))

    @cached_property
    def spelled_id(self) -> str:
        """sha256 (hex) of the graph as it is spelled: tasks whose values have the same names share it."""
        nodes = tuple(evolve(node, line=0, call=None) for node in self.graph.nodes)
        inputs = tuple(evolve(operand, expression="", value=None) for operand in self.graph.inputs)
        updates = tuple(evolve(update, expression="") for update in self.graph.updates)
        return _digest(
            evolve(
                self,
                name="",
                graph=evolve(self.graph, nodes=nodes, inputs=inputs, updates=updates, copies=()),
            )
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the symbols in the user's file."""
        return {symbol.name: symbol.size for symbol in self.symbols}

    @property
    def largest_input(self) -> str:
        """Its dtype and sizes, as in ``float32 [4096, 2048]``; "" where the task has none."""
        shapes = ((given.spec.sizes(self.sizes), given.spec.dtype) for given in self.graph.inputs)
        sizes, dtype = max(shapes, key=lambda shape: math.prod(shape[0]), default=((), ""))
        return f"{dtype} {list(sizes)}" if dtype else ""


def in_order_of_use(task: KernelTask) -> KernelTask:
    """The task with its inputs in the order in which they are read, and its symbols in the order in which
    inputs have them: so captures of the same mathematics have one identity."""
    inputs = inputs_in_order_of_use(task.graph)
    symbols = {symbol.name: symbol for symbol in task.symbols}
    order = symbols_in_order_of_use(inputs, tuple(symbols))
    return evolve(
        task, graph=evolve(task.graph, inputs=inputs), symbols=tuple(map(symbols.__getitem__, order))
    )


def numbered_task(task: KernelTask, prefixes: Prefixes = Prefixes()) -> KernelTask:  # noqa: B008 - frozen
    """The task with numbers for the names of its values and symbols, and nothing of its file."""
    names = tuple(symbol.name for symbol in task.symbols)
    symbols = tuple(
        evolve(symbol, name=f"{prefixes.symbols}{place}") for place, symbol in enumerate(task.symbols)
    )
    return evolve(task, graph=numbered(task.graph, names, prefixes), symbols=symbols)


def _digest(task: KernelTask) -> str:
    return hashlib.sha256(canonical_json(task).encode()).hexdigest()


@frozen
class ById:
    """A task as the key of a cache of what names its values: it is quicker to compare than its graph."""

    task: KernelTask = field(eq=attrgetter("spelled_id"))
