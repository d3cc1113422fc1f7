"""Family convolution: implicit matrix products on the cube cores, without a copy of the unfolded input.

Rows of the product are output channels, columns are output pixels, and the depth runs over channels and
taps. A row of the right operand is a piece of the input shifted by a tap, so that it is read where it lies,
and the result lands where it belongs: nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import asdict, field, frozen

from evokernel_core.ascendc.families.conv_estimate import estimate_us
from evokernel_core.ascendc.families.conv_geometry import CONVOLUTION, Convolution, read_convolution
from evokernel_core.ascendc.families.conv_schedule import (
    ConvolutionSchedule,
    depth_of,
    refusal,
    starts,
    steps,
    whole,
)
from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip

_QUANT = {"float32": "", "float16": "F322F16", "bfloat16": "F322BF16"}


@frozen
class ConvolutionFamily:
    """Convolutions of one to three dimensions with any kernel, step, distance of taps and groups."""

    name: str = field(default="convolution", init=False)
    strategies: frozenset[str] = field(default=frozenset({"convolution"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return {CONVOLUTION: "kernel"}

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_convolution(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_convolution(task)
        legal = [item for item in starts(found) if refusal(found, item) is None]
        return _strategy(min(legal, key=lambda item: estimate_us(found, item, task.sizes, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_convolution(task), ConvolutionSchedule.of(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in steps(found, here)
            if item != here and refusal(found, item) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        schedule = ConvolutionSchedule.of(strategy)
        return _strategy(schedule, "") if refusal(read_convolution(task), schedule) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return estimate_us(read_convolution(task), ConvolutionSchedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        context = _context(task, read_convolution(task), ConvolutionSchedule.of(strategy), name)
        tiling, kernel = render("convolution_tiling", **context), render("convolution_kernel", **context)
        return StageText(tiling, kernel, f"{name}_kernel")


def _context(
    task: KernelTask, found: Convolution, schedule: ConvolutionSchedule, name: str
) -> Mapping[str, object]:
    tensors = [camel(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
    sizes = {
        "batch": found.batch.cpp(),
        "channels": found.channels.cpp(),
        "outputs": found.outputs.cpp(),
        "read": [each.cpp() for each in found.read],
        "made": [each.cpp() for each in found.made],
        "dilation": [each.cpp() for each in found.dilation],
    }
    flat = [each for value in sizes.values() for each in ([value] if isinstance(value, str) else value)]
    words = " ".join(flat).replace("(", " ").replace(")", " ").split()
    return {
        "s": schedule,
        "c": found,
        "weight_depth": whole(depth_of(found)),
        "x": camel(found.x),
        "weight": camel(found.weight),
        "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
        "type": CPP_TYPE[found.dtype],
        "quant": _QUANT[found.dtype],
        "name": name,
        "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
        "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*tensors, "output")),
        **sizes,
    }


def _strategy(item: ConvolutionSchedule, move: str) -> Strategy:
    weights = "stay in L1" if item.stay else "come in panels"
    notes = (
        f"Tiles of {item.base_m} output channels x {item.parts} * {item.part_n} pixels, {item.base_k} deep "
        f"in L0 and {item.slots} * {item.panel_k} in L1; weights {weights}.",
        "Copies, loads, products and stores overlap.",
    )
    return Strategy("convolution", asdict(item), notes, Descriptor(3, 1, 2), move)
