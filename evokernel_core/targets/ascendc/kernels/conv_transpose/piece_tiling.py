"""Fields of OpTiling that an epilogue adds to its kernel's: loops, sizes and numbers of a call."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.shapes.sizes import names_in
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.program import camel, size_field


@frozen
class ShapeFields:
    """``fields`` of OpTiling, the ``assignments`` that set them, and the ``symbols`` that these take."""

    fields: tuple[str, ...]
    assignments: tuple[str, ...]
    symbols: frozenset[str]


def shape_fields(plan: Plan, schedule: Schedule) -> ShapeFields:
    """Further fields and what sets them: loops, sizes used as numbers, run-time numbers."""
    fields: list[str] = []
    lines: list[str] = []
    used: list[frozenset[str]] = []
    if schedule.form is Form.CHANNELS:
        fields += ["uint64_t steps", "uint64_t columns"]
        lines.append("tiling.columns = tiling.volume;")
        lines.append(f"tiling.steps = static_cast<uint64_t>({plan.mid.cpp()});")
        used.append(plan.mid.symbols)
    elif plan.outer:
        fields.append("uint64_t mid")
        lines.append(f"tiling.mid = static_cast<uint64_t>({plan.mid.cpp()});")
        used.append(plan.mid.symbols)
    first = 1 if plan.leading.is_one else 0
    for axis, loop in enumerate(plan.outer[first:], first):
        fields.append(f"uint64_t outer{axis}")
        lines.append(f"tiling.outer{axis} = static_cast<uint64_t>({loop.cpp()});")
        used.append(loop.symbols)
    for expression in dict.fromkeys(value.detail for value in plan.values() if value.op == "size"):
        fields.append(f"float {size_field(expression)}")
        lines.append(f"tiling.{size_field(expression)} = static_cast<float>({expression});")
        used.append(names_in(expression))
    asked = {value.detail for value in plan.values() if value.op == "scalar"}
    for position, name in enumerate(plan.scalars):
        if name in asked:
            fields.append(f"float {camel(name)}Scalar")
            lines.append(f"tiling.{camel(name)}Scalar = scalars[{position}];")
    return ShapeFields(tuple(fields), tuple(lines), frozenset().union(*used))
