"""Family arg: where the largest or smallest element of a dimension is, and what it is.

Of equal elements the first one counts, and a NaN is better than any number, as in PyTorch. Indices are
counted in float32 while a kernel searches and are widened to int64 when they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.ascendc.kernels.argmax import lanes as arg_lanes
from evokernel_core.ascendc.kernels.argmax import rows as arg_rows
from evokernel_core.ascendc.kernels.argmax.lanes import LanesSchedule
from evokernel_core.ascendc.kernels.argmax.problem import ARG_REDUCTIONS, ArgReduction, read_arg_reduction
from evokernel_core.ascendc.kernels.argmax.rows import LongSchedule, ShortSchedule
from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.rendering import kernel_text, parameter, parameters_of, sized
from evokernel_core.ascendc.kernels.settings import chosen
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip

Schedule = LanesSchedule | ShortSchedule | LongSchedule

_FORMS: Mapping[str, type[Schedule]] = {"lanes": LanesSchedule, "short": ShortSchedule, "long": LongSchedule}
_NOTES = {
    "lanes": "Lanes side by side, each with its best value so far.",
    "short": "Several whole rows a tile; 64 lanes a row, compared with each other in the end.",
    "long": "Rows in tiles; each lane of the tiles keeps its best value so far.",
}


def _form(item: Schedule) -> str:
    return next(name for name, kind in _FORMS.items() if isinstance(item, kind))


def _schedule(strategy: Strategy) -> Schedule:
    kind: type[Schedule] = chosen(strategy, "form", _FORMS)
    return kind.of(strategy)


def _strategy(found: ArgReduction, item: Schedule, move: str) -> Strategy:
    form = _form(item)
    notes = (_NOTES[form], f"{item.buffers} buffer(s) of the input.")
    parallelism = 3 if form == "lanes" else 1
    descriptor = Descriptor(3 if item.buffers > 1 else 2, 1, parallelism)
    return Strategy("arg", {"form": form, **item.settings()}, notes, descriptor, move)


def _has_lanes(found: ArgReduction) -> bool:
    return not found.lanes.is_one


def _starts(found: ArgReduction, sizes: Sizes, chip: Chip) -> Iterator[Schedule]:
    if _has_lanes(found):
        yield from arg_lanes.starts()
        return
    yield from arg_rows.short_starts()
    yield from arg_rows.long_starts()


def _steps(found: ArgReduction, here: Schedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, Schedule]]:
    match here:
        case LanesSchedule():
            yield from arg_lanes.steps_from(here)
        case ShortSchedule():
            yield from arg_rows.short_steps(here)
            yield "rows in tiles", next(arg_rows.long_starts())
        case LongSchedule():
            yield from arg_rows.long_steps(here)
            yield "several rows a tile", next(arg_rows.short_starts())


def _ub_bytes(found: ArgReduction, item: Schedule) -> int:
    match item:
        case LanesSchedule():
            return arg_lanes.ub_bytes(found, item)
        case ShortSchedule():
            return arg_rows.short_bytes(found, item)
    return arg_rows.long_bytes(found, item)


def _refusal(found: ArgReduction, item: Schedule, sizes: Sizes, chip: Chip) -> str | None:
    if isinstance(item, LanesSchedule) != _has_lanes(found):
        return "The searched elements lie otherwise than the schedule is for."
    match item:
        case LanesSchedule():
            return arg_lanes.refusal(found, item, chip)
        case ShortSchedule():
            return arg_rows.short_refusal(found, item, sizes, chip)
    return arg_rows.long_refusal(found, item, chip)


def _cost_us(found: ArgReduction, item: Schedule, sizes: Sizes, chip: Chip) -> float:
    match item:
        case LanesSchedule():
            return arg_lanes.estimate_us(found, item, sizes, chip)
        case ShortSchedule():
            return arg_rows.short_us(found, item, sizes, chip)
    return arg_rows.long_us(found, item, sizes, chip)


def _text(found: ArgReduction, item: Schedule, task: KernelTask, name: str) -> StageText:
    sizes = sized(task, {key: getattr(found, key) for key in ("outer", "steps", "lanes")})
    return kernel_text(
        f"argmax/{_form(item)}",
        name,
        VECTORS_ALONE,
        s=item,
        type=CPP_TYPE[found.dtype],
        narrow=found.dtype != "float32",
        values=found.values,
        worst="-INFINITE" if found.largest else "INFINITE",
        keeps="GE" if found.largest else "LE",
        reduce="Max" if found.largest else "Min",
        ub_bytes=_ub_bytes(found, item),
        parameters=parameters_of(task, found.results),
        source=parameter(found.source, found.results),
        **sizes,
    )


FAMILY = SearchingFamily(
    name="arg",
    ops=dict.fromkeys(sorted(ARG_REDUCTIONS), "kernel"),
    read=on_any_chip(read_arg_reduction),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=_schedule,
    strategy_of=_strategy,
    text_of=_text,
    too_large="No tile of the search for an index fits the unified buffer.",
)
