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

_COPY_ROWS = """\
// Rows of memory into fractals, the columns of fractals one after the other.
__aicore__ inline void CopyRows(LocalTensor<$T> panel, GlobalTensor<$T> matrix, uint32_t rows,
                                uint32_t columns, uint64_t pitch)
{
    Nd2NzParams params;
    params.ndNum = 1;
    params.nValue = rows;
    params.dValue = columns;
    params.srcDValue = pitch < columns ? columns : pitch;
    params.dstNzC0Stride = Whole(rows, FRACTAL);
    params.dstNzNStride = 1;
    if (pitch <= MOST_PITCH) {
        DataCopy(panel, matrix, params);
        return;
    }
    params.nValue = 1;
    params.srcDValue = columns;
    for (uint32_t row = 0; row < rows; ++row) { // too far apart for one copy
        DataCopy(panel[row * C0], matrix[row * pitch], params);
    }
}
"""
_COPY_MATRICES = """\
// Matrices of memory into fractals that are `height` high: how far rows and matrices lie behind each
// other there is counted in rows.
__aicore__ inline void CopyMatrices(LocalTensor<$T> panel, GlobalTensor<$T> source, uint32_t matrices,
                                    uint32_t rows, uint32_t columns, uint64_t apart, uint64_t pitch,
                                    uint32_t height, uint32_t rowStep, uint32_t matrixStep)
{
    Nd2NzParams params;
    params.ndNum = matrices;
    params.nValue = rows;
    params.dValue = columns;
    params.srcNdMatrixStride = apart;
    params.srcDValue = pitch;
    params.dstNzC0Stride = height;
    params.dstNzNStride = rowStep;
    params.dstNzMatrixStride = matrixStep * C0;
    DataCopy(panel, source, params);
}
"""
_COPY_BLOCKS = """\
// Runs of blocks as they lie; blocks are skipped between them in memory and in L1.
__aicore__ inline void CopyBlocks(LocalTensor<$T> panel, GlobalTensor<$T> source, uint32_t runs,
                                  uint32_t blocks, uint32_t skipped, uint32_t gap)
{
    DataCopyParams params;
    params.blockCount = runs;
    params.blockLen = blocks;
    params.srcGap = skipped;
    params.dstGap = gap;
    DataCopy(panel, source, params);
}
"""
_CLEAR_BLOCKS = """\
// Zeros in runs of blocks.
__aicore__ inline void ClearBlocks(LocalTensor<$T> panel, uint32_t runs, uint32_t blocks, uint32_t gap)
{
    InitConstValueParams<$T> params;
    params.repeatTimes = runs;
    params.blockNum = blocks;
    params.dstGap = gap;
    params.initValue = 0;
    InitConstValue(panel, params);
}
"""
_LOAD_FRACTALS = """\
// Fractals that lie `step` fractals from each other, into those that lie `gap` fractals apart.
__aicore__ inline void LoadFractals(LocalTensor<$T> target, LocalTensor<$T> source, uint32_t fractals,
                                    uint32_t step, uint32_t gap)
{
    LoadData2DParams params;
    params.repeatTimes = fractals;
    params.srcStride = step;
    params.dstGap = gap;
    LoadData(target, source, params);
}
"""
_LOAD = """\
// Rows and columns of a panel that is as high and wide as `of`, $NOTE.
__aicore__ inline void $NAME(LocalTensor<$T> target, LocalTensor<$T> panel, Span rows, Span columns)
{
    LoadData3DParamsV2<$T> params;
    params.l1H = 1;
    params.l1W = Whole(rows.of, FRACTAL);
    params.channelSize = Whole(columns.of, C0);
    params.mExtension = Whole(rows.count, FRACTAL);
    params.mStartPt = rows.start;
    params.kExtension = Whole(columns.count, C0);
    params.kStartPt = columns.start;
$TURN    LoadData(target, panel, params);
}
"""
_LOAD_RUN = """\
// All rows of columns of a panel: their fractals lie in a row.
__aicore__ inline void LoadRun(LocalTensor<$T> target, LocalTensor<$T> panel, uint32_t rows,
                               uint32_t start, uint32_t columns)
{
    uint32_t left = Whole(columns, C0) / C0 * (Whole(rows, FRACTAL) / FRACTAL);
    const uint32_t place = start * Whole(rows, FRACTAL);
    uint32_t done = 0;
    while (left > 0) {
        LoadData2DParams params;
        params.repeatTimes = left < MOST_REPEATS ? left : MOST_REPEATS;
        params.srcStride = 1;
        LoadData(target[done], panel[place + done], params);
        done += params.repeatTimes * FRACTAL * C0;
        left -= params.repeatTimes;
    }
}
"""
_ZEROS = """\
__aicore__ inline void Clear(LocalTensor<$T> target, uint16_t fractals)
{
    InitConstValue(target, InitConstValueParams<$T>{fractals, 1, 0, 0});
}
"""
_FILL = """\
__aicore__ inline void FillWith(LocalTensor<$T> target, uint16_t fractals, float value)
{
    InitConstValue(target, InitConstValueParams<$T>{1, fractals, 0, static_cast<$T>(value)});
}
"""
_MULTIPLY = """\
__aicore__ inline void Multiply(LocalTensor<float> sum, LocalTensor<$T> left, LocalTensor<$T> right,
                                uint32_t rows, uint32_t columns, uint32_t depth, bool isFirst)
{
    MmadParams params;
    params.m = Whole(rows, FRACTAL); // a single row would be taken for a vector without fractals
    params.n = columns;
    params.k = depth;
    params.cmatrixInitVal = isFirst;
$TURN    Mmad(sum, left, right, params);
    if (params.m / FRACTAL * (Whole(columns, FRACTAL) / FRACTAL) < FEW_FRACTALS) {
        PipeBarrier<PIPE_M>();
    }
}
"""
_STORE = """\
// Part of a sum that is `height` rows high, into rows of memory.
__aicore__ inline void Store(GlobalTensor<$O> target, LocalTensor<float> sum, uint32_t rows,
                             uint32_t columns, uint32_t height, uint32_t pitch)
{
    FixpipeParamsV220 params;
    params.nSize = columns;
    params.mSize = rows;
    params.srcStride = Whole(height, FRACTAL);
    params.dstStride = pitch;
    params.ndNum = 1;
$MODE    Fixpipe<$O, float, CFG_ROW_MAJOR>(target, sum, params);
}
"""
_STORE_MATRICES = """\
// Matrices that begin `gap` columns from each other in a sum that is `height` rows high, into rows of memory.
__aicore__ inline void StoreMatrices(GlobalTensor<$O> target, LocalTensor<float> sum, uint32_t rows,
                                     uint32_t columns, uint32_t height, uint32_t pitch, uint32_t matrices,
                                     uint32_t gap, uint32_t apart)
{
    FixpipeParamsV220 params;
    params.nSize = columns;
    params.mSize = rows;
    params.srcStride = Whole(height, FRACTAL);
    params.dstStride = pitch;
    params.ndNum = matrices;
    params.srcNdStride = gap / FRACTAL * (Whole(height, FRACTAL) / FRACTAL);
    params.dstNdStride = matrices > 1 ? apart : 0;
$MODE    Fixpipe<$O, float, CFG_ROW_MAJOR>(target, sum, params);
}
"""
_STORE_FRACTALS = """\
// A sum as it lies, for vector cores: rows of 16 columns one behind the other.
__aicore__ inline void StoreFractals(GlobalTensor<$O> target, LocalTensor<float> sum, uint32_t rows,
                                     uint32_t columns)
{
    FixpipeParamsV220 params;
    params.nSize = columns;
    params.mSize = rows;
    params.srcStride = rows;
    params.dstStride = rows * FRACTAL * sizeof($O) / 32; // blocks
$MODE    Fixpipe<$O, float, CFG_NZ>(target, sum, params);
}
"""
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
    made = [_method_of(node) for node in kernel.nodes]
    result = [*dict.fromkeys(text for text in made if text), _WHOLE]
    return [text.replace("$T", _operand_type(kernel)) for text in result]


def _method_of(node: object) -> str:
    match node:
        case Nd2Nz():
            result = _COPY_ROWS
        case Nd2NzMatrices():
            result = _COPY_MATRICES
        case CopyBlocks():
            result = _COPY_BLOCKS
        case ClearBlocks():
            result = _CLEAR_BLOCKS
        case LoadFractals():
            result = _LOAD_FRACTALS
        case LoadData(is_run=True):
            result = _LOAD_RUN
        case LoadData():
            name, note, turn = _load(node)
            result = _LOAD.replace("$NAME", name).replace("$NOTE", note).replace("$TURN", turn)
        case InitConst():
            result = _FILL if node.value else _ZEROS
        case Mmad():
            turn = "    params.kDirectionAlign = true;\n" if node.turned else ""
            result = _MULTIPLY.replace("$TURN", turn)
        case Fixpipe():
            quant = f"    params.quantPre = QuantMode_t::{node.quant};\n" if node.quant else ""
            store = _STORES[_store(node)]
            mode = quant + ("    params.reluEn = true;\n" if node.relu else "")
            result = store.replace("$MODE", mode).replace("$O", node.target.tensor.ctype)
        case _:
            result = ""
    return result


_STORES = {"Store": _STORE, "StoreMatrices": _STORE_MATRICES, "StoreFractals": _STORE_FRACTALS}


def _store(node: Fixpipe) -> str:
    """The method that stores."""
    if node.in_fractals:
        return "StoreFractals"
    return "Store" if node.matrices == Int(1) else "StoreMatrices"


def _load(node: LoadData) -> tuple[str, str, str]:
    """Name, note and further parameters of the method that loads."""
    if not node.is_left:
        return "LoadRight", "turned as L0B always is: rows of memory run along k", ""
    if node.turned:
        return "LoadLeft", "turned: rows of memory run along k", "    params.enTranspose = true;\n"
    return "LoadLeft", "as they lie", ""


Copy = Nd2Nz | Nd2NzMatrices | CopyBlocks
Instruction = Copy | ClearBlocks | LoadData | LoadFractals | InitConst | Mmad | Fixpipe


def call(node: Instruction, place: dict[Slice, str], target: str) -> str:
    """The call of a node's method. ``place``: how its slices are written; ``target``: what is between cores,
    the place in device memory, or for a product whether its sum begins."""
    name, given = _called(node, place, target)
    return f"{name}({', '.join(given)});"


def _called(node: Instruction, place: dict[Slice, str], target: str) -> tuple[str, list[str]]:
    match node:
        case Nd2Nz():
            name = "CopyRows"
            given = [place[node.target], target, *_texts(node.rows, node.columns, node.pitch)]
        case Nd2NzMatrices():
            name, given = "CopyMatrices", [place[node.target], target, *_texts(*node.figures)]
        case CopyBlocks():
            name, given = "CopyBlocks", [place[node.target], target, *_texts(*node.figures)]
        case ClearBlocks():
            figures = _texts(node.runs, node.blocks, node.gap)
            name, given = "ClearBlocks", [place[node.target], *figures]
        case LoadFractals():
            figures = _texts(*node.figures)
            name, given = "LoadFractals", [place[node.target], place[node.source], *figures]
        case LoadData(is_run=True):
            columns = _texts(node.rows.of, node.columns.start, node.columns.count)
            name, given = "LoadRun", [place[node.target], place[node.source], *columns]
        case LoadData():
            spans = [
                f"Span{{{', '.join(_texts(span.start, span.count, span.of))}}}"
                for span in (node.rows, node.columns)
            ]
            name, given = _load(node)[0], [place[node.target], place[node.source], *spans]
        case InitConst():
            value = [str(node.value)] if node.value else []
            name, given = "FillWith" if value else "Clear", [place[node.target], node.fractals.cpp(), *value]
        case Mmad():
            operands = [place[choice] for choice in (node.target, node.left, node.right)]
            sizes = _texts(node.rows, node.columns, node.depth)
            name, given = "Multiply", [*operands, *sizes, target]
        case Fixpipe():
            name = _store(node)
            given = [target, place[node.source], *_texts(*node.figures)]
    return name, given


def _texts(*items: Expr) -> list[str]:
    return [item.cpp() for item in items]


def _operand_type(kernel: Kernel) -> str:
    return next(node.target.ctype for node in kernel.nodes if isinstance(node, Copy))
