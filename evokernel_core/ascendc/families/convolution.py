"""Family convolution: implicit matrix products on the cube cores, without a copy of the unfolded input.

Rows of the product are output channels, columns are output pixels, and the depth runs over channels and
taps. A row of the right operand is a piece of the input shifted by a tap, so that it is read where it lies,
and the result lands where it belongs: nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import asdict, field, frozen

from evokernel_core.ascendc.families import conv_rows, conv_schedule
from evokernel_core.ascendc.families.conv_estimate import estimate_us
from evokernel_core.ascendc.families.conv_geometry import CONVOLUTION, Convolution, read_convolution
from evokernel_core.ascendc.families.conv_rows import RowsSchedule
from evokernel_core.ascendc.families.conv_schedule import ConvolutionSchedule, depth_of, whole
from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip

_QUANT = {"float32": "", "float16": "F322F16", "bfloat16": "F322BF16"}


_PANELS, _ROWS = "convolution", "convolution_rows"
_Schedule = ConvolutionSchedule | RowsSchedule


@frozen
class ConvolutionFamily:
    """Convolutions of one to three dimensions with any kernel, step, distance of taps and groups."""

    name: str = field(default="convolution", init=False)
    strategies: frozenset[str] = field(default=frozenset({_PANELS, _ROWS}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return {CONVOLUTION: "kernel"}

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_convolution(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_convolution(task)
        kinds = [_best(found, starts, task, chip) for starts in (conv_schedule.starts, conv_rows.starts)]
        legal = [item for item in kinds if item is not None]
        return _strategy(min(legal, key=lambda item: estimate_us(found, item, task.sizes, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_convolution(task), _schedule(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in _steps(found, here, task, chip)
            if item != here and _refusal(found, item) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        schedule = _schedule(strategy)
        return _strategy(schedule, "") if _refusal(read_convolution(task), schedule) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return estimate_us(read_convolution(task), _schedule(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        schedule = _schedule(strategy)
        context = _context(task, read_convolution(task), schedule, name)
        form = "convolution_rows" if schedule.keeps_rows else "convolution"
        tiling, kernel = render(f"{form}_tiling", **context), render(f"{form}_kernel", **context)
        return StageText(tiling, kernel, f"{name}_kernel")


def _schedule(strategy: Strategy) -> _Schedule:
    return (RowsSchedule if strategy.family == _ROWS else ConvolutionSchedule).of(strategy)


def _refusal(found: Convolution, item: _Schedule) -> str | None:
    if isinstance(item, RowsSchedule):
        return conv_rows.refusal(found, item)
    return conv_schedule.refusal(found, item)


def _best(
    found: Convolution, starts: Callable[[Convolution], Iterator[_Schedule]], task: KernelTask, chip: Chip
) -> _Schedule | None:
    legal = (item for item in starts(found) if _refusal(found, item) is None)
    return min(legal, key=lambda item: estimate_us(found, item, task.sizes, chip), default=None)


def _steps(
    found: Convolution, here: _Schedule, task: KernelTask, chip: Chip
) -> Iterator[tuple[str, _Schedule]]:
    """Steps from a schedule, and the best one of the other kind."""
    if isinstance(here, RowsSchedule):
        yield from conv_rows.steps(found, here)
        name, other = "rows come anew for each tap", _best(found, conv_schedule.starts, task, chip)
    else:
        yield from conv_schedule.steps(found, here)
        name, other = "rows stay in L1", _best(found, conv_rows.starts, task, chip)
    if other is not None:
        yield name, other


def _context(task: KernelTask, found: Convolution, schedule: _Schedule, name: str) -> Mapping[str, object]:
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
        "inner": found.inner,
        "weight_depth": whole(depth_of(found)),
        "x": camel(found.x),
        "weight": camel(found.weight),
        "bias": camel(found.bias) if found.bias is not None else "",
        "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
        "type": CPP_TYPE[found.dtype],
        "quant": _QUANT[found.dtype],
        "name": name,
        "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
        "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*tensors, "output")),
        **sizes,
    }


def _strategy(item: _Schedule, move: str) -> Strategy:
    if isinstance(item, RowsSchedule):
        family, held = _ROWS, f"{item.ring_n} pixels of rows and the weights stay in L1"
    else:
        weights = "stay in L1" if item.stay else "come in panels"
        family, held = _PANELS, f"{item.slots} * {item.panel_k} in L1; weights {weights}"
    tile = f"{item.base_m} output channels x {item.parts} * {item.part_n} pixels"
    notes = (
        f"Tiles of {tile}, {item.base_k} deep in L0; {held}.",
        "Copies, loads, products and stores overlap.",
    )
    return Strategy(family, asdict(item), notes, Descriptor(3, 1, 2), move)
