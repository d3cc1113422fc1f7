"""Family phases: images with a frame of zeros, their rows cut into phases, for convolutions.

Copies place the rows of an image in the unified buffer, where zeros surround them. Where a convolution
steps by several elements along a row, GatherMask picks each phase out of all rows of the tile at once.
Elements are moved as bits, whatever their type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import asdict, evolve, field, frozen

from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.ascendc.lowering_sizes import ONE, Extent, extent, product
from evokernel_core.ascendc.lowering_views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

PHASES = "evokernel.phases.default"
"""``(x, before, phases)``: x [batch, channels, *sizes] in the middle of zeros.

``before`` zeros lie in front along each spatial dimension; the shape of the result says how many follow.
With several ``phases`` the result is [batch, channels, *sizes[:-1], phases, width]: element ``w`` of a row
lies at [w % phases, w // phases]. Its last size is a multiple of ``UNIT``.
"""
UNIT = 16
"""Elements in which the rows of the result are whole, so that each begins on a 32-byte block."""
_BITS = {4: "uint32_t", 2: "uint16_t"}
_FIXED_PATTERNS = {2: 1, 4: 3}
"""The first of GatherMask's own patterns for every second and every fourth element."""


@frozen
class Framed:
    """``sizes`` of x and ``made`` of the result, ``before``: zeros in front, all (depth, height, width).

    ``images`` counts batch and channels; ``made``'s width is that of one phase.
    """

    x: str
    images: Extent
    sizes: tuple[Extent, ...]
    made: tuple[Extent, ...]
    before: tuple[int, ...]
    phases: int
    size: int


@frozen
class PhasesSchedule:
    """Most bytes of a tile; two tiles are under way, in and (with several phases) out."""

    tile_bytes: int

    @staticmethod
    def of(strategy: Strategy) -> PhasesSchedule:
        return PhasesSchedule(**dict(strategy.settings))  # type: ignore[arg-type]


@frozen
class PhasesFamily:
    """What convolutions need of their input before the cube cores read it."""

    name: str = field(default="phases", init=False)
    strategies: frozenset[str] = field(default=frozenset({"phases"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return {PHASES: "kernel"}

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_phases(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_phases(task)
        legal = [item for item in _starts() if refusal(found, item, chip) is None]
        return _strategy(min(legal, key=lambda item: _estimate_us(found, item, task, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_phases(task), PhasesSchedule.of(strategy)
        named = (
            ("larger tiles", evolve(here, tile_bytes=here.tile_bytes * 2)),
            ("smaller tiles", evolve(here, tile_bytes=here.tile_bytes // 2)),
        )
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in named
            if refusal(found, item, chip) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        schedule = PhasesSchedule.of(strategy)
        return _strategy(schedule, "") if refusal(read_phases(task), schedule, chip) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _estimate_us(read_phases(task), PhasesSchedule.of(strategy), task, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        found = read_phases(task)
        tensors = [camel(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
        sizes = {
            "images": found.images.cpp(),
            "sizes": [each.cpp() for each in found.sizes],
            "made": [each.cpp() for each in found.made],
        }
        words = " ".join([found.images.cpp(), *sizes["sizes"], *sizes["made"]])
        known = words.replace("(", " ").replace(")", " ").split()
        context = {
            "s": PhasesSchedule.of(strategy),
            "f": found,
            "x": camel(found.x),
            "bits": _BITS[found.size],
            "unit": UNIT,
            "fixed_pattern": _FIXED_PATTERNS.get(found.phases, 0),
            "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in known],
            "name": name,
            "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
            "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*tensors, "output")),
            **sizes,
        }
        tiling, kernel = render("phases_tiling", **context), render("phases_kernel", **context)
        return StageText(tiling, kernel, f"{name}_kernel")


def read_phases(task: KernelTask) -> Framed:
    """The one framing of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    nodes = {node.name: node for node in graph.nodes}
    computing = [node for node in graph.nodes if node.op not in SAME_ORDER]
    if len(computing) != 1 or computing[0].op != PHASES or len(graph.outputs) != 1:
        raise PlanError("The kernel is not exactly one image with a frame.")
    node = computing[0]
    ref = next(iter(node.operands()))
    read, made = graph.spec(ref).shape, node.outputs[0].shape
    while ref.name in nodes:
        ref = next(iter(nodes[ref.name].operands()))
    before = node.args[1]
    phases = int(str(node.args[2]))
    assert isinstance(before, tuple)
    if phases > 1:
        made = (*made[:-2], made[-1])
    missing = 3 - len(before)
    return Framed(
        ref.name,
        product(map(extent, read[:2])),
        (ONE,) * missing + tuple(map(extent, read[2:])),
        (ONE,) * missing + tuple(map(extent, made[2:])),
        (0,) * missing + tuple(int(str(item)) for item in before),
        phases,
        ITEM_SIZE[node.outputs[0].dtype],
    )


def refusal(found: Framed, item: PhasesSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    if item.tile_bytes < found.phases * UNIT * found.size:
        return "A tile has at least one block of each phase."
    tiles = 4 if found.phases > 1 else 2
    if tiles * item.tile_bytes + found.phases * UNIT * found.phases > chip.ub_bytes - 4096:
        return "The tiles do not fit the unified buffer."
    return None


def _starts() -> Iterator[PhasesSchedule]:
    yield from (PhasesSchedule(kib * 1024) for kib in (8, 16, 32, 40, 64, 88))


def _strategy(item: PhasesSchedule, move: str) -> Strategy:
    notes = (f"Tiles of at most {item.tile_bytes} bytes, two under way.",)
    return Strategy("phases", asdict(item), notes, Descriptor(3, 0, 2), move)


def _estimate_us(found: Framed, item: PhasesSchedule, task: KernelTask, chip: Chip) -> float:
    """Modelled microseconds: memory, or the copies of the busiest core."""
    table, sizes = chip.constants, task.sizes
    images = found.images.evaluate(sizes)
    taken = [each.evaluate(sizes) for each in found.sizes]
    made = [each.evaluate(sizes) for each in found.made]
    row = made[2] * found.phases
    read = images * math.prod(taken) * found.size
    written = images * made[0] * made[1] * row * found.size
    rows = max(1, min(made[1], item.tile_bytes // (row * found.size)))
    pieces = max(1, math.ceil(row * found.size / item.tile_bytes))
    tiles = images * made[0] * math.ceil(made[1] / rows) * pieces
    mine = math.ceil(tiles / chip.aiv)
    tile = written / tiles
    loaded = table["mte.load_latency_cycles"] + tile / table["mte.load_bytes_per_cycle"]
    loaded = max(loaded, rows * table["mte.min_burst_cycles"])
    stored = table["mte.store_latency_cycles"] + tile / table["mte.store_bytes_per_cycle"]
    picked = 0.0
    if found.phases > 1:
        lanes = table[f"vector.elements_per_cycle.gather_mask_b{found.size * 8}"]
        picked = found.phases * (tile / found.size / lanes + table["vector.startup_cycles"])
    back = max(0, read + written - chip.l2_bytes) * written / (read + written)
    memory = (read + back * table["gm.write_back_cost"]) / (table["gm.hbm_achieved_gbps"] * 1e3)
    busy = mine * max(loaded + 100, stored, picked + 100) + loaded + stored
    return float(chip.launch_us + 6 + max(busy / chip.mhz, memory))
