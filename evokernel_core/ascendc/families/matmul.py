"""Family matmul: products of matrices on the cube cores, one matrix or a batch of them.

Either operand may be transposed: it is read as it lies in memory and turned on the way into L0. Tiles
of the result go round-robin over the cube cores; panels along k pass through L1 and L0 in two slots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import asdict, evolve, field, frozen

from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.ascendc.lowering_sizes import Extent, extent, product
from evokernel_core.ascendc.lowering_views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind, Node, ValueRef
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, Dim
from evokernel_core.twin.chip import Chip

PRODUCTS = frozenset({"aten.mm.default", "aten.bmm.default"})
_SWAPS = frozenset({"aten.t.default", "aten.transpose.int", "aten.permute.default"})
_EXPAND = "aten.expand.default"
_QUANT = {"float32": "", "float16": "F322F16", "bfloat16": "F322BF16"}
_FRACTAL_K = {"float32": 4, "float16": 16, "bfloat16": 16}
"""Depth of one cycle of the matrix unit (hardware.md: fp32 K = 4, half K = 16)."""
_TILES = (
    (128, 256),
    (256, 128),
    (128, 128),
    (64, 128),
    (128, 64),
    (64, 64),
    (32, 64),
    (64, 32),
    (16, 64),
    (64, 16),
)
_L1_BYTES, _L0_BYTES, _L0C_BYTES = 512 * 1024, 64 * 1024, 128 * 1024


@frozen
class Side:
    """One operand: the input's name, whether memory holds its transpose, and whether each matrix of a
    batch has its own."""

    name: str
    transposed: bool
    batched: bool


@frozen
class Product:
    """``batch`` products of m x k by k x n."""

    a: Side
    b: Side
    batch: Extent
    m: Extent
    n: Extent
    k: Extent
    dtype: str


@frozen
class MatmulSchedule:
    """Tile of the result ``base_m`` x ``base_n``, depth of a step in L0 and in L1, ``c_slots`` results
    in L0C at a time, and whether neighbouring tiles lie below each other."""

    base_m: int
    base_n: int
    base_k: int
    panel_k: int
    c_slots: int = 1
    rows_first: bool = False

    @staticmethod
    def of(strategy: Strategy) -> MatmulSchedule:
        return MatmulSchedule(**dict(strategy.settings))  # type: ignore[arg-type]


@frozen
class MatmulFamily:
    """Basic cube instructions, without the Matmul object."""

    name: str = field(default="matmul", init=False)
    strategies: frozenset[str] = field(default=frozenset({"matmul"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(PRODUCTS), "kernel") | dict.fromkeys(sorted(_SWAPS), "view")

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_product(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_product(task)
        legal = [item for item in _starts(found.dtype) if refusal(found, item) is None]
        best = min(legal, key=lambda item: _estimate_us(found, item, task, chip))
        return _strategy(best, "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_product(task), MatmulSchedule.of(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in _steps(here)
            if item != here and refusal(found, item) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        schedule = MatmulSchedule.of(strategy)
        return _strategy(schedule, "") if refusal(read_product(task), schedule) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _estimate_us(read_product(task), MatmulSchedule.of(strategy), task, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        found = read_product(task)
        tensors = [camel(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
        sizes = {key: getattr(found, key).cpp() for key in ("batch", "m", "n", "k")}
        words = " ".join(sizes.values()).replace("(", " ").replace(")", " ").split()
        context = {
            "s": MatmulSchedule.of(strategy),
            "a": evolve(found.a, name=camel(found.a.name)),
            "b": evolve(found.b, name=camel(found.b.name)),
            "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
            "type": CPP_TYPE[found.dtype],
            "quant": _QUANT[found.dtype],
            "name": name,
            "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
            "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*tensors, "output")),
            **sizes,
        }
        return StageText(
            render("matmul_tiling", **context), render("matmul_kernel", **context), f"{name}_kernel"
        )


# -- what is asked --------------------------------------------------------------------------------


def read_product(task: KernelTask) -> Product:
    """The one product of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    nodes = {node.name: node for node in graph.nodes}
    products = [node for node in graph.nodes if node.op in PRODUCTS]
    if len(products) != 1 or len(graph.outputs) != 1:
        raise PlanError("The kernel has not exactly one matrix product with one result.")
    node = products[0]
    result = graph.outputs[0]
    while result.name != node.name:
        below = nodes.get(result.name)
        if below is None or below.op not in SAME_ORDER:
            raise PlanError("The result is more than a matrix product.")
        result = next(iter(below.operands()))
    left, right = node.operands()
    shape = node.outputs[0].shape
    dtype = node.outputs[0].dtype
    if dtype not in _QUANT:
        raise PlanError(f"A matrix product in {dtype} is not covered.")
    a, b = _side(task, nodes, left), _side(task, nodes, right)
    depth = graph.spec(left).shape[-1]
    return Product(
        a, b, product(map(extent, shape[:-2])), extent(shape[-2]), extent(shape[-1]), extent(depth), dtype
    )


def _side(task: KernelTask, nodes: Mapping[str, Node], ref: ValueRef) -> Side:
    """Follow the views below an operand down to an input."""
    batched = task.graph.spec(ref).rank == 3
    transposed = reshaped = False
    while ref.name in nodes:
        node = nodes[ref.name]
        operand = next(iter(node.operands()))
        below, shape = task.graph.spec(operand).shape, node.outputs[0].shape
        if node.op in _SWAPS:
            _check_swap(node, len(below), reshaped)
            transposed = not transposed
        elif node.op == _EXPAND:
            batched = _expanded(below, shape, batched)
        elif node.op in SAME_ORDER:
            reshaped = reshaped or [extent(dim) for dim in below[-2:]] != [extent(dim) for dim in shape[-2:]]
        else:
            raise PlanError(f"{node.op} in front of a matrix product is not covered.")
        ref = operand
    return Side(ref.name, transposed, batched)


def _check_swap(node: Node, rank: int, reshaped: bool) -> None:
    """Only the last two dimensions may change places, and stay as they are from there on."""
    if reshaped:
        raise PlanError("An operand of a matrix product is transposed and then reshaped.")
    dims = list(range(rank))
    if node.op == "aten.permute.default":
        order = [int(dim) % rank for dim in node.args[1]]  # type: ignore[union-attr]
    elif node.op == "aten.transpose.int":
        first, second = (int(str(dim)) % rank for dim in node.args[1:3])
        order = list(dims)
        order[first], order[second] = second, first
    else:
        order = [1, 0] if rank == 2 else dims
    if order != [*dims[:-2], *reversed(dims[-2:])]:
        raise PlanError(f"{node.op} in front of a matrix product changes other dimensions than the last two.")


def _expanded(below: tuple[Dim, ...], shape: tuple[Dim, ...], batched: bool) -> bool:
    """Whether each matrix of the batch still has its own after an expand."""
    if below == shape:
        return batched
    lost = [i for i, dim in enumerate(shape[len(shape) - len(below) :]) if extent(below[i]) != extent(dim)]
    kept = [dim for dim in below[:-2] if not extent(dim).is_one]
    if kept or any(i >= len(below) - 2 for i in lost):
        raise PlanError("An operand of a batched product is broadcast in part of its dimensions.")
    return False


# -- schedules ------------------------------------------------------------------------------------


def _starts(dtype: str) -> Iterator[MatmulSchedule]:
    depth = 256 // ITEM_SIZE[dtype] * 2 // 4
    for base_m, base_n in (
        (128, 256),
        (256, 128),
        (128, 128),
        (64, 128),
        (128, 64),
        (64, 64),
        (32, 64),
        (16, 64),
    ):
        for rows_first in (False, True):
            slots = 2 if base_m * base_n * 8 <= _L0C_BYTES else 1
            base_k = min(depth, _L0_BYTES // 2 // ITEM_SIZE[dtype] // max(base_m, base_n) // 16 * 16)
            yield MatmulSchedule(base_m, base_n, base_k, 4 * base_k, slots, rows_first)


def refusal(found: Product, item: MatmulSchedule) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    size = ITEM_SIZE[found.dtype]
    if min(item.base_m, item.base_n, item.base_k, item.panel_k) < 16:
        return "A tile has at least one fractal in each direction."
    if any(length % 16 for length in (item.base_m, item.base_n, item.base_k)) or item.panel_k % item.base_k:
        return "Tiles are whole fractals, and panels whole steps."
    if 2 * max(item.base_m, item.base_n) * item.base_k * size > _L0_BYTES:
        return "Two steps of an operand do not fit L0."
    if 2 * (item.base_m + item.base_n) * item.panel_k * size > _L1_BYTES:
        return "Two panels of each operand do not fit L1."
    if item.c_slots * item.base_m * item.base_n * 4 > _L0C_BYTES:
        return "The results do not fit L0C."
    return None


def _steps(here: MatmulSchedule) -> Iterator[tuple[str, MatmulSchedule]]:
    yield "taller tile", evolve(here, base_m=here.base_m * 2)
    yield "lower tile", evolve(here, base_m=here.base_m // 2)
    yield "wider tile", evolve(here, base_n=here.base_n * 2)
    yield "narrower tile", evolve(here, base_n=here.base_n // 2)
    yield "tile turned", evolve(here, base_m=here.base_n, base_n=here.base_m)
    yield "deeper panel in L1", evolve(here, panel_k=here.panel_k * 2)
    yield "shallower panel in L1", evolve(here, panel_k=here.panel_k // 2)
    yield (
        "deeper step in L0",
        evolve(here, base_k=here.base_k * 2, panel_k=max(here.panel_k, here.base_k * 2)),
    )
    yield "shallower step in L0", evolve(here, base_k=here.base_k // 2)
    yield "two results in L0C", evolve(here, c_slots=2)
    yield "one result in L0C", evolve(here, c_slots=1)
    yield "tiles in the other order", evolve(here, rows_first=not here.rows_first)


def _estimate_us(found: Product, item: MatmulSchedule, task: KernelTask, chip: Chip) -> float:
    """Modelled microseconds: the slower of the matrix unit and the loads of the busiest core."""
    m, n, k, batch = (getattr(found, key).evaluate(task.sizes) for key in ("m", "n", "k", "batch"))
    tile_m, tile_n = (
        min(base, -(-length // 16) * 16) for base, length in ((item.base_m, m), (item.base_n, n))
    )
    tiles = batch * math.ceil(m / tile_m) * math.ceil(n / tile_n)
    cores = min(tiles, chip.aic)
    mine = math.ceil(tiles / cores)
    size = ITEM_SIZE[found.dtype]
    steps = math.ceil(k / item.base_k)
    macs = tile_m * tile_n / 256 * math.ceil(k / _FRACTAL_K[found.dtype]) + 10 * steps
    loaded = (tile_m + tile_n) * k * size
    touched = (m * k * batch + k * n * (batch if found.b.batched else 1) + m * n * batch) * size
    rate = chip.constants["gm.hbm_achieved_gbps"] if touched > chip.l2_bytes else chip.constants["gm.l2_gbps"]
    share = min(rate * 1e3 / chip.mhz / cores, 110.0)
    first = touched / (chip.constants["gm.hbm_achieved_gbps"] * 1e3)
    busy = mine * max(macs, loaded / share) + tile_m * tile_n * size / 64
    return float(max(busy / chip.mhz, first) + chip.launch_us)


def _strategy(item: MatmulSchedule, move: str) -> Strategy:
    notes = (
        f"Tiles of {item.base_m} x {item.base_n}, {item.base_k} deep in L0 and {item.panel_k} in L1.",
        "Two slots everywhere: copies, loads and products overlap.",
    )
    return Strategy("matmul", asdict(item), notes, Descriptor(3, 1, 2), move)
