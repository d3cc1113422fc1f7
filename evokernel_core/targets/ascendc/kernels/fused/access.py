"""Where the inputs and outputs of a tile lie in device memory."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.fused.settings import IN_LANES, IN_PIECES, Form
from evokernel_core.targets.ascendc.lowering.program import camel

_NESTED = IN_PIECES | IN_LANES
_COLUMNS = "tiling_.columns"


def _at(form: Form) -> tuple[str, str]:
    """What a tile calls its first row and column: a region has them itself."""
    return ("part.row", "part.column") if form is Form.REGION else ("row", "column")


def varies(item: PlanInput) -> bool:
    """Whether the input has more than one row."""
    return any(item.outer) or item.mid


def row_index(plan: Plan, item: PlanInput, form: Form) -> str:
    """The index, among the rows that the input has, of the tile's row of the iteration space."""
    row, _ = _at(form)
    if all(item.outer) and item.mid:
        return row
    if not varies(item):
        return "0"
    if not any(item.outer):
        return f"{row} % tiling_.mid"
    terms: list[str] = []
    for axis, present in enumerate(item.outer):
        if present:
            terms.append(_times(_outer_index(plan, axis, (row, "tiling_.mid")), _stride(item, axis)))
    if item.mid:
        terms.append(f"{row} % tiling_.mid")
    return " + ".join(terms)


def _outer_index(plan: Plan, axis: int, row: Sequence[str]) -> str:
    """The index of one outer loop, from what counts all of them (``row`` over the inner rows)."""
    below = [f"tiling_.outer{i}" for i in range(axis + 1, len(plan.outer))]
    quotient = " / ".join([*row, *reversed(below)])
    return quotient if axis == 0 else f"{quotient} % tiling_.outer{axis}"


def _stride(item: PlanInput, axis: int) -> list[str]:
    factors = [f"tiling_.outer{i}" for i in range(axis + 1, len(item.outer)) if item.outer[i]]
    return [*factors, "tiling_.mid"] if item.mid else factors


def _times(index: str, factors: list[str]) -> str:
    return " * ".join([f"({index})", *factors]) if factors else index


def offset(plan: Plan, item: PlanInput, form: Form, columns: str = _COLUMNS) -> str:
    """Where the tile begins in the input's memory; ``columns``: the expression for a row's length."""
    if form is Form.FLAT:
        return "offset" if item.inner else "0"
    if form in _NESTED:
        return _nested_offset(plan, item.outer, item.mid, item.inner, form)
    index, (row, column) = row_index(plan, item, form), _at(form)
    if not item.inner:
        return index
    start = column if form in (Form.SEGMENTS, Form.STREAM, Form.REGION) else ""
    if index == "0":
        return start or "0"
    base = f"{index if index == row else f'({index})'} * {columns}"
    return f"{base} + {start}" if start else base


def _nested_offset(plan: Plan, outer: Sequence[bool], mid: bool, inner: bool, form: Form) -> str:
    """The offset of a tensor that has some of the outer loops, and steps or pieces, and columns."""
    loops = [(present, f"tiling_.outer{axis}", _outer_index(plan, axis, (_COUNTER[form],)))
             for axis, present in enumerate(outer)]  # fmt: skip
    if form in IN_LANES:
        loops.append((mid, "tiling_.steps", "step"))
    else:
        before, behind = not plan.leading.is_one, not plan.mid.is_one
        loops.insert(0, (mid and before, "", "piece / tiling_.mid" if behind else "piece"))
        loops.append((mid and behind, "tiling_.mid", "piece % tiling_.mid" if before else "piece"))
    loops.append((inner, "tiling_.columns", "column"))
    text = ""
    for present, size, index in loops:
        if present:
            text = f"{_grouped(text)} * {size} + {index}" if text else index
    return text or "0"


_COUNTER = {
    **dict.fromkeys(IN_LANES, "outer"),
    **dict.fromkeys(IN_PIECES, "row"),
}
"""What counts the outer iterations."""


def _grouped(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def output_offset(plan: Plan, output: PlanOutput, form: Form, columns: str = _COLUMNS) -> str:
    """The same in an output's memory."""
    if form in IN_LANES:
        full = output.domain is Domain.FULL
        return f"{'(outer * tiling_.steps + step)' if full else 'outer'} * tiling_.columns + column"
    if form in IN_PIECES and output.domain is Domain.FULL:
        return _nested_offset(plan, [True] * len(plan.outer), True, True, form)
    if form is Form.FLAT:
        return "offset"
    row, column = _at(form)
    if output.domain is Domain.ROW:
        return row
    parts_of_rows = (Form.SEGMENTS, Form.STREAM, Form.REGION)
    return f"{row} * {columns}{f' + {column}' if form in parts_of_rows else ''}"


def invariant_columns(plan: Plan, form: Form) -> tuple[PlanInput, ...]:
    """Column inputs that one load per core serves: whole rows, the same for every row."""
    if form not in (Form.PACKED, Form.RESIDENT):
        return ()
    return tuple(item for item in plan.inputs if item.domain is Domain.COLUMN and not any(item.outer))


def as_numbers(plan: Plan, form: Form) -> tuple[PlanInput, ...]:
    """Inputs that are read as single numbers through the scalar unit."""
    if form is Form.CHANNELS:
        return tuple(item for item in plan.inputs if not item.inner and not item.mid)
    if form in _NESTED:
        return tuple(item for item in plan.inputs if not item.inner)
    single = form not in (Form.PACKED, Form.REGION)
    return tuple(
        item for item in plan.inputs if item.domain is Domain.SCALAR or (single and item.domain is Domain.ROW)
    )


def read_number(plan: Plan, item: PlanInput, form: Form) -> str:
    """The C++ expression that reads the number of the tile's row, or of its step."""
    index = offset(plan, item, form) if form in _COUNTER else row_index(plan, item, form)
    value = f"{camel(item.name)}Global.GetValue({index})"
    return {
        "float32": value,
        "bfloat16": f"ToFloat({value})",
    }.get(item.dtype, f"static_cast<float>({value})")
