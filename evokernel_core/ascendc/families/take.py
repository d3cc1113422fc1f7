"""Family take: runs of memory that indices choose, as gather, index_select and embeddings read them.

An index is read as a number by the scalar unit and becomes the address of a copy. No copy depends on it
otherwise, so that a kernel takes the same way for all indices. PyTorch raises for an index outside of its
dimension; a kernel takes the nearest element and so reads no other memory.
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
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

TAKE = "evokernel.take.default"
"""``take(source, [index, ...], wraps)`` with a source of [outer, size of each index, lanes, run] and
indices of [outer or 1, count, lanes] gives [outer, count, lanes, run]; ``wraps`` says that negative
indices count from the end."""
_RAW = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
_INDICES = frozenset({"int32", "int64"})
_USABLE = 256
"""Bytes of the unified buffer that no kernel may use."""
_INDEX_CYCLES = 11.3
"""Scalar cycles to read an index from the unified buffer."""
_RUN_CYCLES = 20.0
"""Scalar cycles to find an address and to start a copy."""
_LEAST_COPY = 20.6
_LEAST_BURST = 4.0


@frozen
class Take:
    """``places`` are the inputs with indices and what they count; see TAKE for the shapes."""

    source: str
    indices: tuple[tuple[str, str, Extent], ...]
    outer: Extent
    count: Extent
    lanes: Extent
    run: Extent
    shared: bool
    wraps: bool
    width: int


@frozen
class TakeSchedule:
    """Tiles of at most ``runs`` runs and ``bytes`` bytes; two of them are in the unified buffer."""

    runs: int
    bytes: int


@frozen
class TakeFamily:
    """Copies from device memory to device memory by way of the unified buffer."""

    name: str = field(default="take", init=False)
    strategies: frozenset[str] = field(default=frozenset({"take"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return {TAKE: "kernel"}

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_take(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_take(task)
        starts = [
            TakeSchedule(runs, size) for runs in (128, 512, 1024, 2048) for size in (16384, 32768, 65536)
        ]
        legal = [item for item in starts if refusal(found, item, chip) is None]
        return _strategy(min(legal, key=lambda item: _us(found, item, task, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_take(task), _schedule(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in _steps(here)
            if refusal(found, item, chip) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        item = _schedule(strategy)
        return _strategy(item, "") if refusal(read_take(task), item, chip) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _us(read_take(task), _schedule(strategy), task, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        found, item = read_take(task), _schedule(strategy)
        tensors = [_parameter(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
        sizes = {key: getattr(found, key).cpp() for key in ("outer", "count", "lanes", "run")}
        indices = [{"type": CPP_TYPE[dtype], "size": size.cpp()} for _, dtype, size in found.indices]
        text = " ".join([*sizes.values(), *(index["size"] for index in indices)])
        words = text.replace("(", " ").replace(")", " ").split()
        arguments = [_parameter(found.source), *(_parameter(source) for source, _, _ in found.indices)]
        context = {
            "s": item,
            "type": _RAW[found.width],
            "width": found.width,
            "indices": indices,
            "shared": found.shared,
            "wraps": found.wraps,
            "ub_bytes": _ub_bytes(found, item),
            "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
            "name": name,
            "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
            "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*tensors, "output")),
            "arguments": ", ".join(arguments),
            **sizes,
        }
        return StageText(render("take_tiling", **context), render("take_kernel", **context), f"{name}_kernel")


def _parameter(name: str) -> str:
    return f"{camel(name)}Input" if camel(name) == "output" else camel(name)


def read_take(task: KernelTask) -> Take:
    """The one take of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    nodes = {node.name: node for node in graph.nodes}
    found = [node for node in graph.nodes if node.op == TAKE]
    others = [node for node in graph.nodes if node.op != TAKE]
    if len(found) != 1 or len(graph.outputs) != 1 or any(node.op not in SAME_ORDER for node in others):
        raise PlanError("The kernel does more than read what indices choose.")
    node = found[0]
    source, indices = node.args[0], node.args[1]
    assert isinstance(source, ValueRef) and isinstance(indices, tuple)
    spec, first = graph.spec(source), graph.spec(indices[0])
    wrong = [graph.spec(ref).dtype for ref in indices if graph.spec(ref).dtype not in _INDICES]
    if wrong:
        raise PlanError(f"Indices of dtype {wrong[0]} are not covered; int32 and int64 are.")
    shape = tuple(map(extent, spec.shape))
    outer = shape[0]
    return Take(
        source=_input_below(nodes, source),
        indices=tuple(
            (_input_below(nodes, ref), graph.spec(ref).dtype, size)
            for ref, size in zip(indices, shape[1:-2], strict=True)
        ),
        outer=outer,
        count=extent(first.shape[1]),
        lanes=shape[-2],
        run=shape[-1],
        shared=extent(first.shape[0]).is_one and not outer.is_one,
        wraps=bool(node.args[2]),
        width=ITEM_SIZE[spec.dtype],
    )


def _input_below(nodes: Mapping[str, Node], ref: ValueRef) -> str:
    while ref.name in nodes:
        ref = next(iter(nodes[ref.name].operands()))
    return ref.name


def refusal(found: Take, item: TakeSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    if not 16 <= item.runs <= 4095 or item.runs % 16:
        return "A tile has 16 to 4095 runs, its indices whole blocks."
    if item.bytes < 4096 or item.bytes % 32:
        return "A tile has at least 4 KB."
    if _ub_bytes(found, item) > chip.ub_bytes - _USABLE:
        return "The buffers do not fit the unified buffer."
    return None


def _ub_bytes(found: Take, item: TakeSchedule) -> int:
    return 2 * item.bytes + sum(2 * item.runs * ITEM_SIZE[dtype] for _, dtype, _ in found.indices)


def _us(found: Take, item: TakeSchedule, task: KernelTask, chip: Chip) -> float:
    """Modelled microseconds: the slowest of the scalar unit and the copies of the busiest core."""
    sizes = task.sizes
    runs = product((found.outer, found.count, found.lanes)).evaluate(sizes)
    run_bytes = found.run.evaluate(sizes) * found.width
    segment = min(run_bytes, item.bytes)
    fitting = min(item.runs, item.bytes // (math.ceil(segment / 32) * 32), math.ceil(runs / chip.aiv))
    cores = min(math.ceil(runs / fitting), chip.aiv)
    mine = math.ceil(runs / cores)
    segments = math.ceil(run_bytes / segment)
    scalar = mine * segments * (_INDEX_CYCLES * len(found.indices) + _RUN_CYCLES)
    load = mine * segments * max(_LEAST_COPY, segment / 32.0)
    store = mine * segments * max(_LEAST_BURST, segment / 32.0)
    tiles = math.ceil(mine / fitting) * segments
    rate = chip.constants.get("gm.hbm_achieved_gbps", chip.hbm_gbps) * 1e3
    moved = runs * (max(run_bytes, 64) + run_bytes) / rate
    # The first tile's loads and the last one's stores have nothing to overlap with.
    alone = (min(mine, fitting) / mine) * (max(scalar, load) + store - max(scalar, load, store))
    busy = max(scalar, load, store) + alone + tiles * 100.0 + 400.0
    return max(busy / chip.mhz, moved) + launch_us(chip, cores)


def _steps(here: TakeSchedule) -> Iterator[tuple[str, TakeSchedule]]:
    yield "more runs", evolve(here, runs=here.runs * 2)
    yield "fewer runs", evolve(here, runs=here.runs // 2)
    yield "larger tile", evolve(here, bytes=here.bytes * 2)
    yield "smaller tile", evolve(here, bytes=here.bytes // 2)


def _schedule(strategy: Strategy) -> TakeSchedule:
    return TakeSchedule(**dict(strategy.settings))  # type: ignore[arg-type]


def _strategy(item: TakeSchedule, move: str) -> Strategy:
    notes = (f"Tiles of {item.runs} runs and {item.bytes} bytes.", "Two tiles and two sets of indices.")
    return Strategy("take", asdict(item), notes, Descriptor(3, 0, 2), move)
