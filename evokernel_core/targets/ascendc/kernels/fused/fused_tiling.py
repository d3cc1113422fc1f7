"""The text of tiling.h: what the host computes from sizes before a launch."""

from __future__ import annotations

from textwrap import indent

from attrs import frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.shapes.sizes import names_in, product
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.settings import IN_LANES, IN_PIECES, Form, Schedule
from evokernel_core.targets.ascendc.kernels.fused.shared import MOST_SHARERS, point_bytes
from evokernel_core.targets.ascendc.lowering.program import camel, size_field

_FIELDS = {
    Form.PACKED: (
        "uint64_t rows",
        "uint64_t rowsPerCore",
        "uint32_t rowsPerTile",
        "uint32_t columns",
        "uint32_t pitch",
    ),
    Form.PIECES: (
        "uint64_t rows",
        "uint64_t rowsPerCore",
        "uint64_t columns",
        "uint64_t pieces",
        "uint64_t tiles",
        "uint32_t tileElements",
    ),
    Form.SHARED: (
        "uint64_t rows",
        "uint64_t columns",
        "uint64_t pieces",
        "uint64_t tiles",
        "uint32_t tileElements",
        "uint64_t rowsAtOnce",
        "uint64_t turns",
        "uint64_t tilesPerShare",
        "uint32_t sharers",
    ),
}

_ROWS = """\
tiling.rows = static_cast<uint64_t>(rowCount);
tiling.rowsPerCore = CeilDiv(tiling.rows, cores);
tiling.blockDim = static_cast<uint32_t>(CeilDiv(tiling.rows, tiling.rowsPerCore));
"""

_PACKED = """\
const uint64_t widestPitch = RoundUp(static_cast<uint64_t>(columnCount), WIDEST_STEP);
if (widestPitch > TILE_ELEMENTS || columnCount > COLUMN_CAPACITY) {
    return false;
}
tiling.columns = static_cast<uint32_t>(columnCount);
tiling.pitch = static_cast<uint32_t>(RoundUp(tiling.columns, FLOATS_PER_BLOCK));
uint64_t most = TILE_ELEMENTS / widestPitch;
most = most < ROW_CAPACITY ? most : ROW_CAPACITY;
const uint64_t tiles = CeilDiv(tiling.rowsPerCore, most);
tiling.rowsPerTile = static_cast<uint32_t>(CeilDiv(tiling.rowsPerCore, tiles));
"""

_PIECES = """\
// Every piece of a row is cut into the same tiles.
tiling.columns = static_cast<uint64_t>(columnCount);
const uint64_t tilesPerPiece = CeilDiv(tiling.columns, TILE_ELEMENTS);
tiling.tileElements = static_cast<uint32_t>(RoundUp(CeilDiv(tiling.columns, tilesPerPiece), STEP));
tiling.tiles = tiling.pieces * CeilDiv(tiling.columns, tiling.tileElements);
"""

_SHARED = """\
// As many rows at a time as L2 keeps; cores without a row of their own share in others.
tiling.rows = static_cast<uint64_t>(rowCount);
const uint64_t rowBytes = tiling.pieces * tiling.columns * BYTES_PER_POINT;
const uint64_t kept = rowBytes < BYTES_AT_ONCE ? BYTES_AT_ONCE / rowBytes : 1;
tiling.turns = CeilDiv(tiling.rows, Least(Least(tiling.rows, kept), cores));
tiling.rowsAtOnce = CeilDiv(tiling.rows, tiling.turns);
const uint64_t most = Least(Least(cores / tiling.rowsAtOnce, tiling.tiles), MOST_SHARERS);
tiling.tilesPerShare = CeilDiv(tiling.tiles, most);
tiling.sharers = static_cast<uint32_t>(CeilDiv(tiling.tiles, tiling.tilesPerShare));
tiling.blockDim = static_cast<uint32_t>(tiling.rowsAtOnce * tiling.sharers);
"""

_BODY = {
    Form.PIECES: _ROWS + _PIECES,
    Form.SHARED: _PIECES + _SHARED,
    Form.PACKED: _ROWS + _PACKED,
}

_CEIL_DIV = """\
inline uint64_t CeilDiv(uint64_t value, uint64_t divisor)
{
    return (value + divisor - 1) / divisor;
}
"""

_ROUND_UP = """\
inline uint64_t RoundUp(uint64_t value, uint64_t step)
{
    return CeilDiv(value, step) * step;
}
"""

_LEAST = """\
inline uint64_t Least(uint64_t value, uint64_t other)
{
    return value < other ? value : other;
}
"""
_WORKSPACE = "2 * tiling.rowsAtOnce * MOST_EXCHANGED * MOST_SHARERS * sizeof(float)"


def tiling_texts(kernel: Kernel) -> tuple[str, str]:
    """What a kernel needs in tiling.h: its constants with the struct, and the host function."""
    plan, schedule = kernel.plan, kernel.schedule
    shape = shape_fields(plan, schedule)
    own = _FIELDS[schedule.form]
    fields = ["uint32_t blockDim", "uint64_t workspaceBytes", *own, *shape.fields]
    text = _BODY[schedule.form]
    body = "\n".join([*_sizes(plan, shape), *_checks(schedule), *shape.assignments, text.rstrip()])
    body += f"\ntiling.workspaceBytes = {_WORKSPACE if kernel.exchanged else 0};\nreturn true;"
    helpers = _CEIL_DIV + ("\n" + _ROUND_UP if "RoundUp(" in body else "")
    helpers += "\n" + _LEAST if "Least(" in body else ""
    settings = f"""\
{_constants(kernel, body)}
struct OpTiling {{
{indent("".join(f"{field};{chr(10)}" for field in fields), "    ")}}};

{helpers}"""
    compute = f"""\
inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes,
                          OpTiling &tiling)
{{
{indent(body, "    ")}
}}
"""
    return settings, compute


def _constants(kernel: Kernel, body: str) -> str:
    schedule = kernel.schedule
    narrowest = min((ITEM_SIZE[tensor.dtype] for tensor in kernel.tensors), default=4)
    lines = [
        f"constexpr uint64_t UB_BYTES_NEEDED = {kernel.layout.total};",
        f"constexpr uint32_t TILE_ELEMENTS = {schedule.tile};",
    ]
    if schedule.packed or kernel.row_names or kernel.row_masks or _has_row_outputs(kernel.plan):
        lines.append(f"constexpr uint32_t ROW_CAPACITY = {kernel.row_capacity};")
    if schedule.packed:
        lines += [
            f"constexpr uint32_t COLUMN_CAPACITY = {schedule.columns};",
            f"constexpr uint64_t WIDEST_STEP = {32 // narrowest}; // of the narrowest type in 32 bytes",
        ]
    if kernel.exchanged:
        lines += [
            f"constexpr uint64_t BYTES_AT_ONCE = {schedule.at_once}; // of rows that L2 keeps",
            f"constexpr uint64_t BYTES_PER_POINT = {point_bytes(kernel.plan)}; // read and written",
            f"constexpr uint32_t MOST_EXCHANGED = {kernel.exchanged}; // numbers of a row after a pass",
            f"constexpr uint64_t MOST_SHARERS = {MOST_SHARERS}; // cores of a row",
        ]
    if ", STEP)" in body:
        lines.append("constexpr uint64_t STEP = 128;")
    if schedule.cores:
        lines.append(f"constexpr uint32_t MOST_CORES = {schedule.cores};")
    if schedule.packed:
        lines.append("constexpr uint32_t FLOATS_PER_BLOCK = 8;")
    return "\n".join(lines) + "\n"


def _has_row_outputs(plan: Plan) -> bool:
    return any(output.domain == 1 for output in plan.outputs)


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
    if schedule.form in IN_PIECES:
        pieces = product((plan.leading, plan.mid))
        fields.append("uint64_t mid")
        lines.append(f"tiling.mid = static_cast<uint64_t>({plan.mid.cpp()});")
        lines.append(f"tiling.pieces = static_cast<uint64_t>({pieces.cpp()});")
        used += [plan.mid.symbols, pieces.symbols]
    elif schedule.form in IN_LANES:
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


def _sizes(plan: Plan, shape: ShapeFields) -> list[str]:
    used = plan.rows.symbols | plan.inner.symbols | shape.symbols
    lines = [f"const int64_t {name} = sizes[{i}];" for i, name in enumerate(plan.symbols) if name in used]
    rows, columns = plan.rows.cpp(), plan.inner.cpp()
    return [*lines, f"const int64_t rowCount = {rows};", f"const int64_t columnCount = {columns};"]


def _checks(schedule: Schedule) -> list[str]:
    cores = "coreNum < MOST_CORES ? coreNum : MOST_CORES" if schedule.cores else "coreNum"
    return [
        "if (rowCount < 1 || columnCount < 1 || ubBytes < UB_BYTES_NEEDED) {",
        "    return false;",
        "}",
        f"const uint64_t cores = {cores};",
    ]
