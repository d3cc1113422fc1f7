"""Where the inputs and outputs of a tile lie in device memory."""

from __future__ import annotations

from evokernel_core.ascendc.lowering import Domain
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.ascendc.plan import Plan, PlanInput, PlanOutput
from evokernel_core.ascendc.schedule_settings import Form


def row_index(plan: Plan, item: PlanInput) -> str:
    """The index, among the rows that the input has, of the row ``row`` of the iteration space."""
    if all(item.outer) and item.mid:
        return "row"
    if not any(item.outer) and not item.mid:
        return "0"
    if not any(item.outer):
        return "row % tiling_.mid"
    terms: list[str] = []
    for axis, present in enumerate(item.outer):
        if present:
            terms.append(_times(_outer_index(plan, axis), _stride(item, axis)))
    if item.mid:
        terms.append("row % tiling_.mid")
    return " + ".join(terms)


def _outer_index(plan: Plan, axis: int) -> str:
    """The index of one outer loop, from the row."""
    below = [f"tiling_.outer{i}" for i in range(axis + 1, len(plan.outer))]
    quotient = " / ".join(["row", "tiling_.mid", *reversed(below)])
    return quotient if axis == 0 else f"{quotient} % tiling_.outer{axis}"


def _stride(item: PlanInput, axis: int) -> list[str]:
    factors = [f"tiling_.outer{i}" for i in range(axis + 1, len(item.outer)) if item.outer[i]]
    return [*factors, "tiling_.mid"] if item.mid else factors


def _times(index: str, factors: list[str]) -> str:
    return " * ".join([f"({index})", *factors]) if factors else index


def offset(plan: Plan, item: PlanInput, form: Form) -> str:
    """The element offset of the tile at ``row``, ``column`` in the input's memory."""
    if form is Form.FLAT:
        return "offset" if item.inner else "0"
    index = row_index(plan, item)
    if not item.inner:
        return index
    start = "column" if form in (Form.SEGMENTS, Form.STREAM) else ""
    if index == "0":
        return start or "0"
    base = f"{index if index == 'row' else f'({index})'} * tiling_.columns"
    return f"{base} + {start}" if start else base


def output_offset(output: PlanOutput, form: Form) -> str:
    if form is Form.FLAT:
        return "offset"
    if output.domain is Domain.ROW:
        return "row"
    return (
        "row * tiling_.columns + column" if form in (Form.SEGMENTS, Form.STREAM) else "row * tiling_.columns"
    )


def needs_mid(plan: Plan) -> bool:
    """Whether some input makes the inner row loop visible, so that tiles must not cross its end."""
    return bool(plan.outer)


def invariant_columns(plan: Plan, form: Form) -> tuple[PlanInput, ...]:
    """Column inputs that one load per core serves: whole rows, the same for every row."""
    if form not in (Form.PACKED, Form.RESIDENT):
        return ()
    return tuple(item for item in plan.inputs if item.domain is Domain.COLUMN and not any(item.outer))


def as_numbers(plan: Plan, form: Form) -> tuple[PlanInput, ...]:
    """Inputs that are read as single numbers through the scalar unit."""
    single = form is not Form.PACKED
    return tuple(
        item for item in plan.inputs if item.domain is Domain.SCALAR or (single and item.domain is Domain.ROW)
    )


def read_number(plan: Plan, item: PlanInput) -> str:
    """The C++ expression that reads the number of the row ``row``."""
    value = f"{camel(item.name)}Global.GetValue({row_index(plan, item)})"
    return {
        "float32": value,
        "bfloat16": f"ToFloat({value})",
    }.get(item.dtype, f"static_cast<float>({value})")
