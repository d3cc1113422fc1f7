"""Rows of integers on the scalar unit: running reductions, each element of which depends on the one before,
and few short rows. It goes from element to element while the next tile travels.
"""

from __future__ import annotations

from evokernel_core.compiler.problems.integers import IntegerRows
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.ir.builder import Builder, at
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    CoreCount,
    Function,
    Int,
    Size,
    State,
    Var,
    binary,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.kernels.integers.integers_settings import IntegerRowsSchedule
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_RUNNING = """\
The running {} of each row: every element depends on the one before, so that the scalar unit goes through
them. A core has rows that lie one behind the other."""
_SHORT = """\
The {} of each row, which is too short for vectors: the scalar unit goes through the elements. A core has
rows that lie one behind the other."""
_COMBINED = {"sum": "+", "prod": "*", "max": "max", "min": "min"}


def build(problem: IntegerRows, schedule: IntegerRowsSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    k = Builder((_RUNNING if problem.running else _SHORT).format(problem.what))
    ctype, size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
    tile = Constant("TILE", schedule.tile, "elements")
    x = k.input("x", parameter(problem.source), ctype, size)
    y = k.output("y", "output", ctype, size)
    taken, made = (Buffer(name, ctype, size, tile, schedule.buffers) for name in ("taken", "made"))
    rows, columns = k.param("rows", Size(problem.rows)), k.param("columns", Size(problem.columns))
    for extent in (rows, columns):
        k.require(extent, ">=", 1)
    share = k.param("rowsPerCore", ceil_div(rows, CoreCount()))
    column = State("column", 0, "of the next element")
    result = State("result", 0, "of the elements of its row before", ctype)
    combined = _combination(problem)
    with k.cores("core", k.param("coresUsed", ceil_div(rows, share)), even=True) as core:
        first = k.let("first", core * share, U64)
        end = k.let("end", least(first + share, rows) * columns, U64)
        with k.pieces("start", (first * columns, end), tile) as (start, count):
            k.load(taken, x, start, count)
            row = k.let("row", start // columns, U64)
            with k.loop("i", count) as i:
                value = k.get("value", at(taken, i), 0, ctype)
                k.assign(result, Choice(column, "==", Int(0), value, combined(result, value)))
                k.assign(column, Choice(column + 1, "==", columns, Int(0), column + 1))
                if problem.running:
                    k.put(at(made, i), result)
                else:
                    with k.when(column, "==", 0, share=columns, even=True):
                        k.put(at(made, (start + i) // columns - row), result)
            if problem.running:
                k.store(y, start, made, count)
            else:
                ended = k.let("ended", (start + count) // columns - row)
                with k.when(ended, ">", 0):
                    k.store(y, row, made, ended)
    return k.kernel()


def _combination(problem: IntegerRows) -> Function:
    """Two integers as one; sums and products wrap around, as C++ has it of integers without a sign."""
    ctype = CPP_TYPE[problem.dtype]
    given = ctype if problem.kind in ("max", "min") else f"u{ctype}"
    a, b = Var("a", given), Var("b", given)
    return Function("Combined", (a, b), binary(_COMBINED[problem.kind], a, b), ctype=ctype)
