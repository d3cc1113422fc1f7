"""Family arg: where the largest or smallest element of a dimension is, and what it is.

Of equal elements the first one counts, and a NaN is better than any number, as in PyTorch. Indices are
counted in float32 while a kernel searches and are widened to int64 when they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import asdict, field, frozen

from evokernel_core.ascendc.families import arg_lanes, arg_rows
from evokernel_core.ascendc.families.arg_lanes import LanesSchedule
from evokernel_core.ascendc.families.arg_reduction import ARG_REDUCTIONS, ArgReduction, read_arg_reduction
from evokernel_core.ascendc.families.arg_rows import LongSchedule, ShortSchedule
from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind
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


@frozen
class ArgFamily:
    """Three forms, by where the searched elements lie."""

    name: str = field(default="arg", init=False)
    strategies: frozenset[str] = field(default=frozenset({"arg"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(ARG_REDUCTIONS), "kernel")

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_arg_reduction(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_arg_reduction(task)
        legal = [item for item in _starts(found) if _refusal(found, item, task, chip) is None]
        if not legal:
            raise PlanError("No tile of the search for an index fits the unified buffer.")
        return _strategy(min(legal, key=lambda item: _estimate_us(found, item, task, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_arg_reduction(task), _schedule(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in _steps(found, here)
            if item != here and _refusal(found, item, task, chip) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        found, item = read_arg_reduction(task), _schedule(strategy)
        if _is_lanes(item) != _has_lanes(found) or _refusal(found, item, task, chip) is not None:
            return None
        return _strategy(item, "")

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _estimate_us(read_arg_reduction(task), _schedule(strategy), task, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        found, item = read_arg_reduction(task), _schedule(strategy)
        sizes = {key: getattr(found, key).cpp() for key in ("outer", "steps", "lanes")}
        words = " ".join(sizes.values()).replace("(", " ").replace(")", " ").split()
        context = {
            "s": item,
            "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
            "type": CPP_TYPE[found.dtype],
            "narrow": found.dtype != "float32",
            "values": found.values,
            "worst": "-INFINITE" if found.largest else "INFINITE",
            "keeps": "GE" if found.largest else "LE",
            "reduce": "Max" if found.largest else "Min",
            "ub_bytes": _ub_bytes(found, item),
            "name": name,
            "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
            "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in _tensors(task, found)),
            "source": _parameter(found.source),
            **sizes,
        }
        form = f"arg_{_form(item)}"
        return StageText(
            render(f"{form}_tiling", **context), render(f"{form}_kernel", **context), f"{name}_kernel"
        )


def _tensors(task: KernelTask, found: ArgReduction) -> list[str]:
    """The names of the kernel's parameters: inputs, and the results in the task's order."""
    inputs = [_parameter(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
    return [*inputs, *found.results]


def _parameter(name: str) -> str:
    """The name of an input's parameter, unlike those of the results."""
    return f"{camel(name)}Input" if camel(name) in ("values", "indices") else camel(name)


def _form(item: Schedule) -> str:
    return next(name for name, kind in _FORMS.items() if isinstance(item, kind))


def _schedule(strategy: Strategy) -> Schedule:
    settings = dict(strategy.settings)
    return _FORMS[str(settings.pop("form"))](**settings)  # type: ignore[arg-type]


def _strategy(item: Schedule, move: str) -> Strategy:
    form = _form(item)
    notes = (_NOTES[form], f"{item.buffers} buffer(s) of the input.")
    parallelism = 3 if form == "lanes" else 1
    descriptor = Descriptor(3 if item.buffers > 1 else 2, 1, parallelism)
    return Strategy("arg", {"form": form, **asdict(item)}, notes, descriptor, move)


def _has_lanes(found: ArgReduction) -> bool:
    return not found.lanes.is_one


def _is_lanes(item: Schedule) -> bool:
    return isinstance(item, LanesSchedule)


def _starts(found: ArgReduction) -> Iterator[Schedule]:
    if _has_lanes(found):
        yield from arg_lanes.starts()
        return
    yield from arg_rows.short_starts()
    yield from arg_rows.long_starts()


def _steps(found: ArgReduction, here: Schedule) -> Iterator[tuple[str, Schedule]]:
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


def _refusal(found: ArgReduction, item: Schedule, task: KernelTask, chip: Chip) -> str | None:
    match item:
        case LanesSchedule():
            return arg_lanes.refusal(found, item, chip)
        case ShortSchedule():
            return arg_rows.short_refusal(found, item, task.sizes, chip)
    return arg_rows.long_refusal(found, item, chip)


def _estimate_us(found: ArgReduction, item: Schedule, task: KernelTask, chip: Chip) -> float:
    match item:
        case LanesSchedule():
            return arg_lanes.estimate_us(found, item, task.sizes, chip)
        case ShortSchedule():
            return arg_rows.short_us(found, item, task.sizes, chip)
    return arg_rows.long_us(found, item, task.sizes, chip)
