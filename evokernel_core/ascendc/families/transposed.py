"""Family transposed: transposed convolution in one launch of cube and vector cores.

The vector cores lay the input out in blocks of channels, with zeros where the padding is and between the
columns of a stride; the cube core multiplies the weights of each tap by that slab, shifted. Strides along
depth and height are phases (``transposed_geometry``): no product with a zero, and rows of the result are
stored at the stride's distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import asdict, evolve, field, frozen

from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.families.transposed_estimate import Schedule, estimate_us, plan
from evokernel_core.ascendc.families.transposed_geometry import CONVOLUTION, Transposed, read_transposed
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

_QUANT = {"float32": "", "float16": "F322F16", "bfloat16": "F322BF16"}
_MOST_TURNED = 16
"""Outputs along W that alternate in one turn of results: more do not fit the unified buffer."""
_L1_BYTES = 512 * 1024 - 256
_CONSTANT_BYTES = 8 * 1024
"""L1 for a block of biases and one of ones."""


@frozen
class TransposedFamily:
    """Implicit products of matrices; the vector cores feed the cube cores."""

    name: str = field(default="transposed", init=False)
    strategies: frozenset[str] = field(default=frozenset({"transposed"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return {CONVOLUTION: "kernel"}

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_transposed(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_transposed(task)
        legal = [item for item in _starts() if self._is_legal(found, item, task)]
        if not legal:
            raise PlanError("The taps of the convolution lie too far apart for L1 and the unified buffer.")
        return _strategy(min(legal, key=lambda item: estimate_us(found, item, task.sizes, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_transposed(task), Schedule.of(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in _steps(here)
            if item != here and self._is_legal(found, item, task)
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        schedule = Schedule.of(strategy)
        return _strategy(schedule, "") if self._is_legal(read_transposed(task), schedule, task) else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return estimate_us(read_transposed(task), Schedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        context = _context(task, read_transposed(task), Schedule.of(strategy), name)
        return StageText(
            render("transposed_tiling", **context), render("transposed_kernel", **context), f"{name}_kernel"
        )

    def _is_legal(self, found: Transposed, item: Schedule, task: KernelTask) -> bool:
        if refusal(item) is not None or (item.turned and found.axes[2].stride > _MOST_TURNED):
            return False
        return plan(found, item, task.sizes) is not None


def _context(task: KernelTask, found: Transposed, schedule: Schedule, name: str) -> dict[str, object]:
    tensors = [item.name for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
    given = {found.x: "xAddress", found.weight: "weightAddress", found.bias: "biasAddress"}
    addresses = {name: given.get(name, f"unused{index}") for index, name in enumerate(tensors)}
    single = {key: getattr(found, key).cpp() for key in ("batch", "channels", "results")}
    several = {key: [item.cpp() for item in getattr(found, key)] for key in ("inputs", "kernel")}
    text = " ".join([*single.values(), *several["inputs"], *several["kernel"]])
    words = text.replace("(", " ").replace(")", " ").split()
    is_wide = found.dtype == "float32"
    element = CPP_TYPE[found.dtype]
    return {
        "s": schedule,
        "groups": found.groups,
        "axes": list(zip(found.axes, "DHW", strict=True)),
        "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
        "element": element,
        "width": ITEM_SIZE[found.dtype],
        "moved": "float" if is_wide else "half",
        "wide": not is_wide,
        "lanes": "0x0101010101010101" if is_wide else "0x0001000100010001",
        "quant": _QUANT[found.dtype],
        "constant": found.needs_constant,
        "turns": found.axes[2].stride // math.gcd(16, found.axes[2].stride),
        "name": name,
        "parameters": ", ".join(f"GM_ADDR {name}" for name in (*addresses.values(), "outputAddress")),
        "x": addresses[found.x],
        "weight": addresses[found.weight],
        "bias": addresses[found.bias] if found.bias is not None else "",
        **single,
        **several,
    }


# -- schedules ------------------------------------------------------------------------------------


def _starts() -> Iterator[Schedule]:
    for most_m in (128, 64):
        for most_n in (128, 256, 512, 1024):
            for c_slots in (1, 2):
                for slab_kb, panel_kb in ((160, 80), (120, 120), (200, 40)):
                    yield Schedule(most_m, most_n, c_slots, slab_kb, panel_kb)
                    yield Schedule(most_m, most_n, c_slots, slab_kb, panel_kb, 3, True)


def refusal(item: Schedule) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    if min(item.most_m, item.most_n) < 16 or item.most_m % 16 or item.most_n % 16:
        return "Tiles are whole fractals."
    if item.most_m > 256 or item.most_n > 1024:
        return "A block of one operand does not fit L0."
    if item.c_slots * item.most_m * 16 * 4 > 128 * 1024 or item.c_slots not in (1, 2):
        return "The results do not fit L0C."
    if 2 * (item.slab_kb + item.panel_kb) * 1024 + _CONSTANT_BYTES > _L1_BYTES:
        return "Two slabs and two panels do not fit L1."
    if min(item.slab_kb, item.panel_kb) < 16 or not 2 + item.turned <= item.ring <= 4:
        return "Slabs and panels hold several fractals, and at least one slab lies ahead."
    return None


def _steps(here: Schedule) -> Iterator[tuple[str, Schedule]]:
    yield "taller tile", evolve(here, most_m=here.most_m * 2)
    yield "lower tile", evolve(here, most_m=here.most_m // 2)
    yield "wider tile", evolve(here, most_n=here.most_n * 2)
    yield "somewhat wider tile", evolve(here, most_n=here.most_n * 5 // 64 * 16)
    yield "somewhat narrower tile", evolve(here, most_n=here.most_n * 3 // 64 * 16)
    yield "narrower tile", evolve(here, most_n=here.most_n // 2)
    yield "two results in L0C", evolve(here, c_slots=2)
    yield "one result in L0C", evolve(here, c_slots=1)
    yield "more of L1 for pixels", evolve(here, slab_kb=here.slab_kb + 40, panel_kb=here.panel_kb - 40)
    yield "more of L1 for weights", evolve(here, slab_kb=here.slab_kb - 40, panel_kb=here.panel_kb + 40)
    yield "results turned", evolve(here, turned=True, ring=3)
    yield "results stored as they are", evolve(here, turned=False, ring=2)
    yield "another slab ahead", evolve(here, ring=here.ring + 1)
    yield "one slab ahead less", evolve(here, ring=here.ring - 1)


def _strategy(item: Schedule, move: str) -> Strategy:
    notes = (
        f"Tiles of at most {item.most_m} channels by {item.most_n} pixels.",
        "Vector cores lay the input of the next tile out while the cube core multiplies.",
    )
    return Strategy("transposed", asdict(item), notes, Descriptor(3, 1, 2), move)
