"""Where the matrices of a batch lie, as expressions of a text."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from evokernel_core.compiler.problems.products import Loop, Side
from evokernel_core.targets.triton.kernels.function import JitFunction, factor


@frozen
class PlacedOperand:
    """One operand in a jit function: its ``pointer``, elements from ``row`` to row and ``column`` to column,
    and where the matrix ``start``s of the batch's number."""

    pointer: str
    row: str
    column: str
    start: str

    def at(self, rows: str, columns: str) -> str:
        """Pointers to elements, from the operand's first matrix on."""
        return f"{scaled(rows, self.row)} + {scaled(columns, self.column)}"


def operand(function: JitFunction, side: Side, label: str, batch: str) -> PlacedOperand:
    """The operand of a side; ``label`` begins the names of its parameters, ``batch`` is the 64-bit number of
    the matrix."""
    pitch = function.number(f"{label}_pitch", side.pitch)
    row, column = ("1", pitch) if side.transposed else (pitch, "1")
    return PlacedOperand(
        function.tensor(side.name), row, column, start_of(function, side.loops, label, batch)
    )


def start_of(function: JitFunction, loops: Sequence[Loop], label: str, batch: str) -> str:
    """Elements in front of the matrix of a number; empty where there is one matrix."""
    terms = []
    for place, loop in enumerate(loops):
        number = batch
        if not loop.within.is_one:
            number = f"{number} // {factor(function.number(f'{label}_within_{place}', loop.within))}"
        if loop.wraps:
            number = f"{number} % {factor(function.number(f'{label}_size_{place}', loop.size))}"
        terms.append(scaled(f"({number})" if " " in number else number,
                             function.number(f"{label}_stride_{place}", loop.stride)))  # fmt: skip
    return " + ".join(terms)


def scaled(text: str, factor: str) -> str:
    """A text times another, which may be 1."""
    return text if factor == "1" else f"{text} * {factor}"
