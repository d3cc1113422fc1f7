"""What vector cores do to the results of a transposed convolution while they turn them into rows, and how
much of it lies in the unified buffer at a time.

A piece, rows of 16 channels or of all channels where the steps reduce them, lies in the unified buffer when
it has been turned: what follows the convolution runs on it there, before it is stored.
"""

from __future__ import annotations

from functools import cached_property

from attrs import frozen

from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES, RESERVED_BYTES
from evokernel_core.targets.ascendc.kernels.epilogue.epilogue_cost import Cost, cost_of
from evokernel_core.targets.ascendc.kernels.epilogue.tiles import Epilogue
from evokernel_core.targets.ascendc.kernels.fused import steps
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import layout
from evokernel_core.targets.ascendc.kernels.fused.programs import whole_program
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule

CHANNELS = 16
"""Rows of a piece."""
ROW_BYTES = 32 * 1024
"""Of the input in the unified buffer, one of two slots."""
TILE_STEP = 32
"""Rows of a tile are whole multiples of so many elements: 32-byte blocks of every type."""
_MOST_OUTPUTS = 512
"""Outputs of a channel in a piece."""
_MOST_REDUCED = 128
"""Channels, at most, of which a piece has all."""
_LEAST_REDUCED = 32
"""Outputs of a channel in a piece that has all channels: copies of fewer cost as much as those of more."""
_FEW_OUTPUTS = 128
"""Pieces this small are not worth operands that are fetched ahead."""
_MOST_EVENTS = 4
"""Buffers of queues in one direction: the other ids of events are set by hand."""


@frozen
class Behind:
    """The steps, and the most outputs of a channel in a piece: whole blocks of every type."""

    epilogue: Epilogue
    outputs: int
    buffers: int
    dtype: str
    chip: Chip
    fractals: int = 1
    """Of 16 channels in a piece: those of all channels where the steps reduce them."""
    row_bytes: int = ROW_BYTES
    phases: int = 1
    """Pieces that are loaded together, of which the largest numbers become one."""

    @property
    def reduces_channels(self) -> bool:
        return self.epilogue.plan.family == "columnwise"

    @property
    def turn_bytes(self) -> int:
        """A piece before or after it is turned."""
        return self.fractals * CHANNELS * self.outputs * ITEM_SIZE[self.dtype]

    def kernel(self) -> Kernel:
        return _channels_kernel(self) if self.reduces_channels else _kernel(self)

    @cached_property
    def cost(self) -> Cost:
        """What a piece costs the vector cores, which each schedule's estimate asks for."""
        return cost_of(self.kernel(), self.epilogue.source, self.chip)


def fitted(epilogue: Epilogue, dtype: str, phases: int, chip: Chip) -> Behind:
    """The largest pieces that fit the unified buffer, of so many ``phases`` at a time. Raises PlanError where
    none does."""
    _require_source(epilogue)
    few, row_bytes = (TILE_STEP, ROW_BYTES // 2) if phases > 1 else (_FEW_OUTPUTS, ROW_BYTES)
    for buffers, least in ((2, few), (1, TILE_STEP)):
        for outputs in range(_MOST_OUTPUTS, least - 1, -TILE_STEP):
            problem = Behind(epilogue, outputs, buffers, dtype, chip, 1, row_bytes, phases)
            if _fits(problem):
                return problem
    raise PlanError("What follows the convolution takes more than the unified buffer of a vector core.")


def fitted_channels(epilogue: Epilogue, channels: int, dtype: str, phases: int, chip: Chip) -> Behind:
    """The largest pieces with all ``channels`` that fit the unified buffer. Raises PlanError where pieces
    would be too narrow to be copied well."""
    _require_source(epilogue)
    fractals = -(-channels // CHANNELS)
    if channels > _MOST_REDUCED:
        raise PlanError(
            "Of {channels} channels, few pixels at a time fit the unified buffer.", channels=channels
        )
    for outputs in range(_MOST_OUTPUTS, _LEAST_REDUCED - 1, -TILE_STEP):
        for buffers in (2, 1):
            problem = Behind(epilogue, outputs, buffers, dtype, chip, fractals, ROW_BYTES // 2, phases)
            if _fits(problem):
                return problem
    raise PlanError("What reduces the channels of the convolution does not fit the unified buffer.")


def _require_source(epilogue: Epilogue) -> None:
    sources = [operand for operand in epilogue.plan.inputs if operand.source == epilogue.source]
    if len(sources) != 1 or sources[0].domain is not Domain.FULL:
        raise PlanError("What follows the convolution does not take its result unchanged.")
    of_steps = (operand for operand in epilogue.plan.inputs if operand.mid and not operand.inner)
    if epilogue.plan.family == "columnwise" and any(item.dtype != "float32" for item in of_steps):
        raise PlanError("Numbers of channels are taken in float32 behind a convolution.")


def _fits(problem: Behind) -> bool:
    kernel = problem.kernel()
    queues = max(len(kernel.queued), len(kernel.plan.outputs)) * problem.buffers
    return queues <= _MOST_EVENTS and needed_bytes(problem, kernel) <= problem.chip.ub_bytes - RESERVED_BYTES


def needed_bytes(problem: Behind, kernel: Kernel) -> int:
    """Of the unified buffer: two slots of the input, two of results and one of a turned piece."""
    return layout(kernel).total + 2 * problem.row_bytes + (2 * problem.phases + 1) * problem.turn_bytes


def _kernel(problem: Behind) -> Kernel:
    schedule = Schedule(
        Form.REGION,
        CHANNELS * problem.outputs,
        problem.buffers,
        rows=LANES,
        columns=problem.outputs,
        spread="columns",
    )
    plan = problem.epilogue.plan
    return Kernel(plan, schedule, (whole_program(plan, schedule),), handed=problem.epilogue.source)


def _channels_kernel(problem: Behind) -> Kernel:
    rows = problem.fractals * CHANNELS
    schedule = Schedule(
        Form.CHANNELS,
        rows * problem.outputs,
        problem.buffers,
        rows=-(-rows // LANES) * LANES,
        columns=problem.outputs,
        spread="columns",
        whole=True,
    )
    plan = problem.epilogue.plan
    program = steps.whole_program(plan, steps.ChannelLowerer(plan, True, False))
    return Kernel(plan, schedule, (program,), accumulators=1, handed=problem.epilogue.source)
