"""What cube nodes become in C++: methods that fill in the parameters of an instruction, one for each kind."""

from __future__ import annotations

from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.ir.cube import (
    MOST_PITCH,
    ClearBlocks,
    CopyBlocks,
    Fixpipe,
    InitConst,
    LoadData,
    LoadFractals,
    Mmad,
    Nd2Nz,
    Nd2NzMatrices,
)
from evokernel_core.targets.ascendc.ir.expr import Constant, Expr, Int
from evokernel_core.targets.ascendc.ir.nodes import Kernel, Slice
from evokernel_core.targets.ascendc.kernels.rendering import render

_WHOLE = """\
__aicore__ inline uint32_t Whole(uint32_t value, uint32_t unit)
{
    return (value + unit - 1) / unit * unit;
}
"""
SPAN = """\
// Some rows or columns, of all that there are.
struct Span {
    uint32_t start;
    uint32_t count;
    uint32_t of;
};
"""


def constants(kernel: Kernel) -> list[str]:
    """What the methods take: figures of the hardware."""
    ctype = _operand_type(kernel)
    known = {expression.name for expression in kernel.expressions() if isinstance(expression, Constant)}
    lines = []
    if "C0" not in known:
        lines += [
            f"constexpr uint32_t BLOCK_BYTES = {BLOCK_BYTES};",
            f"constexpr uint32_t C0 = BLOCK_BYTES / sizeof({ctype}); // columns of a fractal",
        ]
    lines.append(
        "constexpr uint32_t FEW_FRACTALS = 10; // products this small must be told apart on the same result"
    )
    if MOST_PITCH.name not in known and any(isinstance(node, Nd2Nz) for node in kernel.nodes):
        lines.append(f"constexpr uint32_t {MOST_PITCH.name} = {MOST_PITCH.value}; // {MOST_PITCH.note}")
    if "FRACTAL" not in known:
        lines.append(f"constexpr uint32_t FRACTAL = {FRACTAL};")
    if any(isinstance(node, LoadData) and node.is_run for node in kernel.nodes):
        lines.append(f"constexpr uint32_t MOST_REPEATS = {most_of('LoadData2D', 'repeatTimes')};")
    return lines


def methods(kernel: Kernel) -> list[str]:
    """One method for each kind of node that the kernel has."""
    operand, nodes = _operand_type(kernel), (node for node in kernel.nodes if isinstance(node, Instruction))
    made = (render("cube_methods", name=_name(node), node=node, operand=operand) for node in nodes)
    return [*dict.fromkeys(made), _WHOLE]


Copy = Nd2Nz | Nd2NzMatrices | CopyBlocks
Instruction = Copy | ClearBlocks | LoadData | LoadFractals | InitConst | Mmad | Fixpipe
_NAMES: dict[type, str] = {
    Nd2Nz: "CopyRows",
    Nd2NzMatrices: "CopyMatrices",
    CopyBlocks: "CopyBlocks",
    ClearBlocks: "ClearBlocks",
    LoadFractals: "LoadFractals",
    Mmad: "Multiply",
}


def _name(node: Instruction) -> str:
    """The method of a node."""
    match node:
        case LoadData(is_run=True):
            return "LoadRun"
        case LoadData():
            return "LoadLeft" if node.is_left else "LoadRight"
        case InitConst():
            return "FillWith" if node.value else "Clear"
        case Fixpipe(in_fractals=True):
            return "StoreFractals"
        case Fixpipe():
            return "Store" if node.matrices == Int(1) else "StoreMatrices"
    return _NAMES[type(node)]


def call(node: Instruction, place: dict[Slice, str], target: str) -> str:
    """The call of a node's method. ``place``: how its slices are written; ``target``: what is between cores,
    the place in device memory, or for a product whether its sum begins."""
    places, figures = [place[slice_] for _, slice_ in node.slices], _figures(node)
    given = [*places, *figures]
    if isinstance(node, Copy):
        given = [*places, target, *figures]
    elif isinstance(node, Fixpipe):
        given = [target, *given]
    elif isinstance(node, Mmad):
        given = [*given, target]
    return f"{_name(node)}({', '.join(given)});"


def _figures(node: Instruction) -> list[str]:
    """The numbers that a node's method is given."""
    match node:
        case LoadData(is_run=True):
            return _texts(node.rows.of, node.columns.start, node.columns.count)
        case LoadData():
            spans = (_texts(span.start, span.count, span.of) for span in (node.rows, node.columns))
            return [f"Span{{{', '.join(span)}}}" for span in spans]
        case InitConst():
            return [node.fractals.cpp(), *([str(node.value)] if node.value else [])]
    return _texts(*node.figures)


def _texts(*items: Expr) -> list[str]:
    return [item.cpp() for item in items]


def _operand_type(kernel: Kernel) -> str:
    return next(node.target.ctype for node in kernel.nodes if isinstance(node, Copy))
