"""Where the inputs and outputs of a piece lie in device memory, as C++."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.fused.access import varies
from evokernel_core.targets.ascendc.kernels.fused.settings import Form
from evokernel_core.targets.ascendc.lowering.program import camel

_VOLUME = "tiling_.volume"
"""The outputs of a channel, which are the length of a row."""
_ROW, _COLUMN = "part.row", "part.column"
"""Where a region begins."""


def row_index(plan: Plan, plan_input: PlanInput) -> str:
    """The index, among the rows that the input has, of the first row of a region."""
    if all(plan_input.outer) and plan_input.mid:
        return _ROW
    if not varies(plan_input):
        return "0"
    if not any(plan_input.outer):
        return f"{_ROW} % tiling_.mid"
    terms: list[str] = []
    for axis, present in enumerate(plan_input.outer):
        if present:
            terms.append(_times(_outer_index(plan, axis, (_ROW, "tiling_.mid")), _stride(plan_input, axis)))
    if plan_input.mid:
        terms.append(f"{_ROW} % tiling_.mid")
    return " + ".join(terms)


def _outer_index(plan: Plan, axis: int, row: Sequence[str]) -> str:
    """The index of one outer loop, from what counts all of them (``row`` over the inner rows)."""
    below = [f"tiling_.outer{i}" for i in range(axis + 1, len(plan.outer))]
    quotient = " / ".join([*row, *reversed(below)])
    return quotient if axis == 0 else f"{quotient} % tiling_.outer{axis}"


def _stride(plan_input: PlanInput, axis: int) -> list[str]:
    factors = [f"tiling_.outer{i}" for i in range(axis + 1, len(plan_input.outer)) if plan_input.outer[i]]
    return [*factors, "tiling_.mid"] if plan_input.mid else factors


def _times(index: str, factors: list[str]) -> str:
    return " * ".join([f"({index})", *factors]) if factors else index


def offset(plan: Plan, plan_input: PlanInput, form: Form) -> str:
    """Where the tile begins in the input's memory."""
    if form is Form.CHANNELS:
        return _nested_offset(plan, plan_input.outer, plan_input.mid, plan_input.inner)
    index = row_index(plan, plan_input)
    if not plan_input.inner:
        return index
    if index == "0":
        return _COLUMN
    return f"{index if index == _ROW else f'({index})'} * {_VOLUME} + {_COLUMN}"


def _nested_offset(plan: Plan, outer: Sequence[bool], mid: bool, inner: bool) -> str:
    """The offset of a tensor that has some of the outer loops, and steps, and columns."""
    loops = [
        (present, f"tiling_.outer{axis}", _outer_index(plan, axis, ("outer",)))
        for axis, present in enumerate(outer)
    ]
    loops += [(mid, "tiling_.steps", "step"), (inner, "tiling_.columns", "column")]
    text = ""
    for present, size, index in loops:
        if present:
            text = f"{_grouped(text)} * {size} + {index}" if text else index
    return text or "0"


def _grouped(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def output_offset(plan: Plan, output: PlanOutput, form: Form) -> str:
    """The same in an output's memory."""
    if form is Form.CHANNELS:
        full = output.domain is Domain.FULL
        return f"{'(outer * tiling_.steps + step)' if full else 'outer'} * tiling_.columns + column"
    return f"{_ROW} * {_VOLUME} + {_COLUMN}"


def read_number(plan: Plan, plan_input: PlanInput, form: Form) -> str:
    """The C++ expression that reads the number of the tile's row, or of its step."""
    index = offset(plan, plan_input, form) if form is Form.CHANNELS else row_index(plan, plan_input)
    value = f"{camel(plan_input.name)}Global.GetValue({index})"
    return {
        "float32": value,
        "bfloat16": f"ToFloat({value})",
    }.get(plan_input.dtype, f"static_cast<float>({value})")
