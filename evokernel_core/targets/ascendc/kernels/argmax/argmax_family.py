"""Family arg: where the largest or smallest element of a dimension is, and what it is.

Of equal elements the first one counts, and a NaN is better than any number, as in PyTorch. Indices are
counted in float32 while a kernel searches and are widened to int64 when they are stored.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.argmax import ARG_REDUCTIONS, read_arg_reduction
from evokernel_core.targets.ascendc.kernels.argmax.argmax_kernel import build
from evokernel_core.targets.ascendc.kernels.argmax.argmax_schedule import (
    ArgSchedule,
    cell,
    notes,
    schedules,
    steps,
    why_illegal,
)
from evokernel_core.targets.ascendc.kernels.built import among, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip

FAMILY = SearchingFamily(
    variant=variant_of(build, why_illegal),
    name="arg",
    ops=dict.fromkeys(sorted(ARG_REDUCTIONS), "kernel"),
    read=on_any_chip(read_arg_reduction),
    schedule_of=ArgSchedule.of,
    starts=among(schedules()),
    notes=notes,
    cell=cell,
    steps=steps,
)
