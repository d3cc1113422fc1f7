"""What the templates of windowed kernels ask: names, constants, and statements that depend on the window."""

from __future__ import annotations

from typing import Any

from evokernel_core.ascendc.kernels.pooling import planes_schedule as planes
from evokernel_core.ascendc.kernels.pooling.planes_schedule import PlaneSchedule
from evokernel_core.ascendc.kernels.pooling.problem import Combine, Window
from evokernel_core.ascendc.kernels.rendering import parameter, parameters_of, symbols_of
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.lowering.program import literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE


def planes_context(task: KernelTask, window: Window, item: PlaneSchedule) -> dict[str, Any]:
    """For kernels whose lanes are planes."""
    common = _common(task, window)
    return {
        **common,
        "s": item,
        "unit": planes.unit(window),
        "ahead": item.buffers > 1,
        "separates": planes.separates(window),
        "finds": window.finds,
        "gives_values": 0 in window.results,
        "finishes": bool(window.bias if common["weighted"] else common["scale"]),
        "in_positions": planes.in_positions(window, item, task.sizes),
        "out_positions": item.positions,
        "middle_positions": planes.middle_positions(window, item),
        "in_line": planes.in_line(window, item, task.sizes),
        "out_line": planes.out_line(item),
        "buffers": planes.buffers(window, item, task.sizes, CPP_TYPE[window.dtype]),
    }


def _common(task: KernelTask, window: Window) -> dict[str, Any]:
    outputs = ["output" if index == 0 else "indices" for index in window.results]
    read = [parameter(name, outputs) for name in (window.source, window.weight, window.bias) if name]
    extents = [window.planes, window.channels, window.inner]
    extents += [size for axis in window.axes for size in (axis.size, axis.result)]
    averages = window.combine is Combine.SUM and window.divisor.fixed is None
    counts = window.divisor.counts_padding
    return {
        "w": window,
        "type": CPP_TYPE[window.dtype],
        "size": ITEM_SIZE[window.dtype],
        "cast": window.dtype != "float32",
        "weighted": window.combine is Combine.WEIGHTED,
        "depth": not window.depth.is_plain,
        "scales_rows": averages and not (window.depth.counts_all(counts) and window.rows.counts_all(counts)),
        "scales_columns": averages and not window.columns.counts_all(counts),
        "scale": _scale(window),
        "parameters": parameters_of(task, outputs),
        "arguments": ", ".join((*read, *sorted(outputs, reverse=True))),
        "symbols": symbols_of(task, extents),
    }


def _scale(window: Window) -> str:
    """What the sum of a window is multiplied by, empty for 1."""
    if window.combine is not Combine.SUM:
        return ""
    taps = window.depth.taps * window.rows.taps * window.columns.taps
    divisor = window.divisor.fixed or taps
    return "" if divisor == 1 else literal(1 / divisor)
