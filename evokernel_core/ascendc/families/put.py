"""Family put: a copy of a tensor into which runs or elements are written where indices say so.

No two cores write the same elements, and a core writes in the order of the indices: of several values for
one place the last one stays, and sums are added in the same order each time. PyTorch raises for an index
outside of its dimension; runs then go to the nearest place, single elements nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import asdict, evolve, field, frozen

from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.ascendc.lowering_sizes import Extent, extent
from evokernel_core.ascendc.lowering_views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind, Node, ValueRef
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

PUT = "evokernel.put.default"
"""``put(source, index, values, adds, wraps)``: source [outer, size, run], index [outer or 1, count], values
[outer, count, run]; ``adds`` sums instead of replacing, ``wraps``: negative indices count from the end."""
_RAW = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
_SUMS = {"float32": "float", "int32": "int32_t"}
_INDICES = frozenset({"int32", "int64"})
_USABLE = 256
"""Bytes of the unified buffer that no kernel may use."""
_ACCESS = 11.3
"""Scalar cycles to read or write an element of the unified buffer."""
_WRITE = 110.0
"""Cycles of one write that the next one waits for."""


@frozen
class Put:
    """See PUT. ``source``, ``index`` and ``values`` are inputs of the task."""

    source: str
    index: str
    values: str
    dtype: str
    index_dtype: str
    outer: Extent
    size: Extent
    count: Extent
    run: Extent
    shared: bool
    adds: bool
    wraps: bool

    @property
    def elements(self) -> bool:
        """Whether single elements are put, which the scalar unit does in the unified buffer."""
        return self.run.is_one


@frozen
class PutSchedule:
    """Tiles of ``bytes`` bytes and at most ``runs`` runs or indices."""

    runs: int
    bytes: int


@frozen
class PutFamily:
    """Two forms: runs are written by copies, elements by the scalar unit."""

    name: str = field(default="put", init=False)
    strategies: frozenset[str] = field(default=frozenset({"put"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return {PUT: "kernel"}

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_put(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_put(task)
        starts = (PutSchedule(runs, size) for runs in (256, 1024) for size in (16384, 32768, 65536))
        legal = [item for item in starts if refusal(found, item, chip) is None]
        return _strategy(min(legal, key=lambda item: _us(found, item, task, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_put(task), _schedule(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in _steps(here)
            if refusal(found, item, chip) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        item = _schedule(strategy)
        return _strategy(item, "") if refusal(read_put(task), item, chip) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _us(read_put(task), _schedule(strategy), task, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        found, item = read_put(task), _schedule(strategy)
        tensors = [_parameter(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
        sizes = {key: getattr(found, key).cpp() for key in ("outer", "size", "count", "run")}
        words = " ".join(sizes.values()).replace("(", " ").replace(")", " ").split()
        width = ITEM_SIZE[found.dtype]
        context = {
            "s": item,
            "type": _SUMS[found.dtype] if found.adds else _RAW[width],
            "width": width,
            "index_type": CPP_TYPE[found.index_dtype],
            "shared": found.shared,
            "adds": found.adds,
            "wraps": found.wraps,
            "ub_bytes": _ub_bytes(found, item),
            "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
            "name": name,
            "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
            "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*tensors, "output")),
            "arguments": ", ".join(map(_parameter, (found.source, found.index, found.values))),
            **sizes,
        }
        form = "put_elements" if found.elements else "put_rows"
        return StageText(
            render(f"{form}_tiling", **context), render(f"{form}_kernel", **context), f"{name}_kernel"
        )


def _parameter(name: str) -> str:
    return f"{camel(name)}Input" if camel(name) == "output" else camel(name)


def read_put(task: KernelTask) -> Put:
    """The one put of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    nodes = {node.name: node for node in graph.nodes}
    found = [node for node in graph.nodes if node.op == PUT]
    others = [node for node in graph.nodes if node.op != PUT]
    if len(found) != 1 or len(graph.outputs) != 1 or any(node.op not in SAME_ORDER for node in others):
        raise PlanError("The kernel does more than write where indices say so.")
    source, index, values, adds, wraps = found[0].args
    assert isinstance(source, ValueRef) and isinstance(index, ValueRef) and isinstance(values, ValueRef)
    spec, places = graph.spec(source), graph.spec(index)
    if places.dtype not in _INDICES:
        raise PlanError(f"Indices of dtype {places.dtype} are not covered; int32 and int64 are.")
    if adds and spec.dtype not in _SUMS:
        raise PlanError(f"Sums of {spec.dtype} at indices are not covered; float32 and int32 are.")
    outer, size, run = map(extent, spec.shape)
    return Put(
        source=_input_below(nodes, source),
        index=_input_below(nodes, index),
        values=_input_below(nodes, values),
        dtype=spec.dtype,
        index_dtype=places.dtype,
        outer=outer,
        size=size,
        count=extent(places.shape[1]),
        run=run,
        shared=extent(places.shape[0]).is_one and not outer.is_one,
        adds=bool(adds),
        wraps=bool(wraps),
    )


def _input_below(nodes: Mapping[str, Node], ref: ValueRef) -> str:
    while ref.name in nodes:
        ref = next(iter(nodes[ref.name].operands()))
    return ref.name


def refusal(found: Put, item: PutSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    if not 16 <= item.runs <= 4095 or item.runs % 16:
        return "A tile has 16 to 4095 indices, whole blocks of them."
    if item.bytes < 4096 or item.bytes % 512:
        return "A tile has at least 4 KB."
    if _ub_bytes(found, item) > chip.ub_bytes - _USABLE:
        return "The buffers do not fit the unified buffer."
    return None


def _ub_bytes(found: Put, item: PutSchedule) -> int:
    indices = item.runs * ITEM_SIZE[found.index_dtype]
    if found.elements:
        return item.bytes + 32 + indices + item.runs * ITEM_SIZE[found.dtype]
    return 2 * item.bytes + indices


def _us(found: Put, item: PutSchedule, task: KernelTask, chip: Chip) -> float:
    """Modelled microseconds: the copy of the source, and the writes of the busiest core one by one."""
    outer, size, count, run = (
        getattr(found, key).evaluate(task.sizes) for key in ("outer", "size", "count", "run")
    )
    width = ITEM_SIZE[found.dtype]
    copied = 2 * outer * size * run * width + outer * count * run * width
    rate = chip.constants.get("gm.hbm_achieved_gbps", chip.hbm_gbps) * 1e3
    if found.elements:
        tiles = math.ceil(size * width / item.bytes)
        cores = min(outer * tiles, chip.aiv)
        accesses = 4 if found.adds else 3
        work = math.ceil(outer * tiles / cores) * (count * (accesses * _ACCESS + 8) + 800.0)
    else:
        segments = math.ceil(run * width / item.bytes)
        cores = min(outer * segments * math.ceil(chip.aiv / min(outer, chip.aiv)), chip.aiv)
        work = math.ceil(outer * segments / cores) * count * (_ACCESS + _WRITE)
    moved = max(copied / rate, copied / cores / 32.0 / chip.mhz)
    return float(moved + work / chip.mhz + launch_us(chip, cores))


def _steps(here: PutSchedule) -> Iterator[tuple[str, PutSchedule]]:
    yield "more indices a tile", evolve(here, runs=here.runs * 2)
    yield "fewer indices a tile", evolve(here, runs=here.runs // 2)
    yield "larger tile", evolve(here, bytes=here.bytes * 2)
    yield "smaller tile", evolve(here, bytes=here.bytes // 2)


def _schedule(strategy: Strategy) -> PutSchedule:
    return PutSchedule(**dict(strategy.settings))  # type: ignore[arg-type]


def _strategy(item: PutSchedule, move: str) -> Strategy:
    notes = (
        f"Tiles of {item.bytes} bytes, {item.runs} indices at a time.",
        "Writes in the order of indices.",
    )
    return Strategy("put", asdict(item), notes, Descriptor(2, 1, 2), move)
