"""What the templates of windowed kernels ask: names, constants, and statements that depend on the window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evokernel_core.ascendc.kernels.pooling import planes_schedule as planes
from evokernel_core.ascendc.kernels.pooling import rows_schedule as schedules
from evokernel_core.ascendc.kernels.pooling.planes_schedule import PlaneSchedule
from evokernel_core.ascendc.kernels.pooling.problem import Combine, Window
from evokernel_core.ascendc.kernels.pooling.rows_schedule import WindowSchedule
from evokernel_core.ascendc.kernels.rendering import parameter, parameters_of, symbols_of
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.lowering.program import literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE


def rows_context(task: KernelTask, window: Window, item: WindowSchedule) -> dict[str, Any]:
    """For kernels whose lanes are rows."""
    weighted = window.combine is Combine.WEIGHTED
    buffers = schedules.buffers(window, item, CPP_TYPE[window.dtype])
    sizes = {buffer.name: buffer.count for buffer in buffers}
    across = window.is_across
    return {
        **_common(task, window),
        "s": item,
        "unit": schedules.unit(window, item),
        "ahead": item.buffers > 1,
        "across": across,
        "folds": schedules.folds_rows(window) or not across,
        "turns_slab": schedules.turns_slab(window),
        "outside_rows": not (window.rows.stays_inside and window.depth.stays_inside),
        "outside_columns": not window.columns.stays_inside,
        "steps": _column_steps(window),
        "merges_columns": across
        and window.columns.stride > 1
        and (window.columns.taps > 1 or weighted)
        and not schedules.turns_slab(window),
        "copies_columns": across and window.columns.taps == 1 and not weighted,
        "most_repeated": schedules.MOST_REPEATED,
        "turned_half": schedules.result_pitch(window, item) * 8,
        "lanes_result": _lanes_result(window),
        "lanes_half": _lanes_half(window),
        "start": schedules.start(window),
        "line": schedules.line(window, item),
        "slab_elements": sizes["inQueue"],
        "result_elements": sizes["outQueue"],
        "folded_elements": sizes.get("folded") if across else None,
        "turned_elements": sizes.get("turned"),
        "near_elements": sizes.get("near"),
        "column_unit": schedules.column_unit(window, item),
        "buffers": buffers,
        "source_plane": _source_plane(window),
        "weight_at": _number(window, "weightGlobal", _weight_index(window)),
        "bias_at": _number(
            window, "biasGlobal", f"ChannelOf({'tile.row + row' if window.weighs_rows else 'tile.plane'})"
        ),
    }


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


def _source_plane(window: Window) -> str:
    """The plane of the input that belongs to a plane of the result."""
    if window.spread == 1:
        return "tile.plane"
    channel = f"tile.plane / (tiling_.inner * {window.spread})"
    return f"({channel} * tiling_.inner + tile.plane % tiling_.inner)"


def _weight_index(window: Window) -> str:
    if window.weighs_rows:
        return "ChannelOf(tile.row + row) * TAPS_W + column"
    if schedules.turns_slab(window):
        return "(channel * TAPS_H + down) * TAPS_W + column"
    columns = " * TAPS_W + column" if window.is_across else ""
    rows = "(first * TAPS_H + tap)" if columns else "first * TAPS_H + tap"
    return f"{rows}{columns}"


def _number(window: Window, tensor: str, index: str) -> str:
    value = f"{tensor}.GetValue({index})"
    if window.dtype == "float32":
        return value
    return f"ToFloat({value})" if window.dtype == "bfloat16" else f"static_cast<float>({value})"


def _lanes_half(window: Window) -> str:
    """Elements from the lanes of eight rows to those of the next, in the buffer that holds the results."""
    if schedules.turns_slab(window):
        return "tile.line * BLOCK"
    return "HALF" if _lanes_result(window) != "turned" else "TURNED_HALF"


def _lanes_result(window: Window) -> str:
    """The buffer that holds the windows' results in the lanes."""
    if not schedules.doubles(window):
        return "turned"
    spans = len(list(_spans(window.columns.taps)))
    return "far" if spans % 2 else "near"


def _spans(taps: int) -> Iterator[tuple[int, int]]:
    """Widths of the windows that doubling reaches, and by how much the second of two is shifted."""
    span = 1
    while span < taps:
        width = min(span * 2, taps)
        yield width, width - span
        span = width


def _column_steps(window: Window) -> list[str]:
    """The statements that combine the columns of each window, in one half of the lanes."""
    if not window.is_across or window.combine is Combine.WEIGHTED:
        return []
    if schedules.doubles(window):
        return list(_doubling_steps(window))
    op = "Max" if window.combine is Combine.MAX else "Add"
    first = "near[half * HALF + tile.lead * BLOCK]"
    if window.columns.taps == 1:
        return [f"CopyColumns(turned[half * TURNED_HALF], {first}, tile.columns);"]
    second = "near[half * HALF + (tile.lead + DILATION_W) * BLOCK]"
    each = "near[half * HALF + (tile.lead + tap * DILATION_W) * BLOCK]"
    target = "turned[half * TURNED_HALF]"
    if window.columns.stride == 1:
        found = [f"{op}({target}, {first}, {second}, tile.columns * BLOCK);"]
        merge = f"    {op}({target}, {target}, {each}, tile.columns * BLOCK);"
    else:
        found = [f"MergeColumns({target}, {first}, STRIDE_W,", f"    {second}, tile.columns);"]
        merge = f"    MergeColumns({target}, {target}, 1,\n                    {each}, tile.columns);"
    if window.columns.taps > 2:
        found += ["for (uint32_t tap = 2; tap < TAPS_W; ++tap) {", merge, "}"]
    return found


def _doubling_steps(window: Window) -> Iterator[str]:
    """Windows of 2, 4, 8 ... columns, each from two of half the width."""
    op = "Max" if window.combine is Combine.MAX else "Add"
    taps, dilation = window.columns.taps, window.columns.dilation
    source, target = "near", "far"
    source_leads = True
    for width, distance in _spans(taps):
        beyond = (taps - width) * dilation
        count = f"(tile.columns + {beyond})" if beyond else "tile.columns"
        base = f"{source}[half * HALF{' + tile.lead * BLOCK' if source_leads else ''}]"
        moved = f"(tile.lead + {distance * dilation})" if source_leads else str(distance * dilation)
        other = f"{source}[half * HALF + {moved} * BLOCK]"
        yield f"{op}({target}[half * HALF], {base}, {other}, {count} * BLOCK); // {width} columns"
        source, target, source_leads = target, source, False
