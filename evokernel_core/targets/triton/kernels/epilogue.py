"""What a kernel does to a tile of its result before it stores it: an element-wise ``Plan`` over the result.

The result is a matrix whose rows and columns the kernel numbers as it likes; a bias of one number a row or a
column is loaded once a tile, and the result itself never lies in memory.
"""

from __future__ import annotations

from attrs import define, field, frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, plan_matrix
from evokernel_core.compiler.lowering.values import Value, needed
from evokernel_core.compiler.problems.reading import behind
from evokernel_core.compiler.shapes.sizes import ONE, Extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, Dim
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.function import JitFunction, both, factor, masked
from evokernel_core.targets.triton.kernels.live import live_tiles
from evokernel_core.targets.triton.kernels.values import Statements, as_stored, is_plain_quotient

_SPECIAL = frozenset({"exp", "ln", "sqrt", "div"})
_OF_SPECIAL, _OF_QUOTIENT = 10.0, 60.0
"""Instructions more than one that a special function takes, and an exact quotient with its branch."""


@frozen
class Epilogue:
    """An element-wise plan over a matrix; its input ``source`` is the result."""

    plan: Plan = field(eq=False)
    source: str
    key: str
    """The task's identity: what the plan follows from."""

    def read_bytes(self) -> float:
        """Bytes of other inputs that each element of the result takes, those of rows and columns aside."""
        inputs = {one.source: one for one in self.plan.inputs if one.source != self.source and one.inner}
        return float(sum(ITEM_SIZE[one.dtype] for one in inputs.values() if one.mid))

    def instructions(self) -> float:
        """For each element of the result."""
        exact = [value for value in self.plan.values() if value.op == "div" and not is_plain_quotient(value)]
        special = sum(value.op in _SPECIAL for value in self.plan.values())
        return float(len(self.plan.values()) + _OF_SPECIAL * special + _OF_QUOTIENT * len(exact))

    def live_tiles(self) -> int:
        """Tiles that are alive at once."""
        return live_tiles(self.plan)

    def written_bytes(self) -> float:
        """Bytes of outputs for each element of the result."""
        return float(sum(ITEM_SIZE[output.dtype] for output in self.plan.outputs))


def read_epilogue(
    task: KernelTask, ref: ValueRef, rows: tuple[Dim, ...], columns: tuple[Dim, ...], gpu: Gpu
) -> Epilogue:
    """What a task does with the value ``ref``, a matrix of ``rows`` x ``columns``. Raises PlanError where
    that is not element-wise, or reads the result in another order."""
    part = behind(task, ref)
    plan = plan_matrix(part, rows, columns, gpu)
    loads = [one for one in plan.inputs if one.source == ref.name]
    if any(not (all(one.outer) and (one.mid or plan.mid.is_one) and (one.inner or plan.inner.is_one))
           for one in loads):  # fmt: skip
        raise PlanError("What follows the result reads it in another order.")
    return Epilogue(plan, ref.name, part.spelled_id)


@frozen
class RowIndex:
    """One dimension of a row's number: its ``size``, the ``index`` along it, and which of the indices are
    there."""

    size: Extent
    index: str
    mask: str = ""


@frozen
class Place:
    """Where a tile lies: ``row`` and ``column`` number the matrix; ``rows`` are the dimensions of the row's
    number, the innermost last. ``row_mask`` and ``column_mask`` say which are there; empty where all are."""

    row: str
    column: str
    rows: tuple[RowIndex, ...] = ()
    row_mask: str = ""
    column_mask: str = ""


class _TileStatements(Statements):
    """Sizes are parameters under names of their own."""

    def expression(self, value: Value) -> str:
        if value.op == "size":
            text = self.function.computed(f"size_{value.index}", value.detail.replace("/", "//"))
            return f"1.0 * {text}"
        return super().expression(value)


@define
class EpiloguePrinter:
    """Prints an epilogue into a function whose local ``result`` is the tile in float32."""

    epilogue: Epilogue
    function: JitFunction
    place: Place
    helpers: set[str] = field(factory=set)

    def store(self, result: str, outputs: tuple[str, ...]) -> None:
        """The statements, and the stores of the outputs."""
        plan, function = self.epilogue.plan, self.function
        loads = {one.value.index: one for one in plan.inputs}
        taken = {*function.words, "program", "programs", "places", "mask"}
        statements = _TileStatements(lambda value: self._load(loads[value.index]), taken, function)
        for one in plan.inputs:
            if one.source == self.epilogue.source:
                statements.names[one.value.index] = result
        known = statements.names
        roots = [output.value for output in plan.outputs]
        for value in needed(roots, lambda one: one.index in known):
            function.add(statements.line(value))
        self.helpers |= statements.helpers
        mask = masked(both(self.place.row_mask, self.place.column_mask))
        width = function.number("columns_of_rows", plan.inner)
        for name, output in zip(outputs, plan.outputs, strict=True):
            word = as_stored(statements.word(output.value), output.value, output.dtype)
            at = f"{function.tensor(name)} + {_times(self.place.row, width)} + {self.place.column}"
            function.add(f"tl.store({at}, {word}{mask})")

    def _load(self, one: PlanInput) -> str:
        plan, place = self.epilogue.plan, self.place
        pointer = self.function.tensor(one.source)
        pitch = plan.inner if one.inner else ONE
        rows, mask = self._rows(one, pitch) if one.mid or any(one.outer) else ([], "")
        terms = [*rows, place.column] if one.inner else rows
        mask = both(mask, place.column_mask if one.inner else "")
        at = " + ".join((pointer, *terms))
        text = f"tl.load({at}{masked(mask, '0.0' if 'float' in one.dtype else '0')})"
        return text if one.dtype == "float32" else f"{text}.to(tl.float32)"

    def _rows(self, one: PlanInput, pitch: Extent) -> tuple[list[str], str]:
        """Where the rows of an input lie, a term for each dimension that it has, and which are there."""
        plan, function, place = self.epilogue.plan, self.function, self.place
        has, sizes = (*one.outer, one.mid), (*plan.outer, plan.mid)
        if all(there or size.is_one for there, size in zip(has, sizes, strict=True)):
            return [_times(place.row, function.number(f"pitch_{one.value.index}", pitch))], place.row_mask
        named = self._named(sizes)
        terms, masks, within = [], [], ONE
        for number in reversed(range(len(sizes))):
            size = sizes[number]
            if not size.is_one:
                index = named.pop() if named else self._index(number, within, size)
                if has[number]:
                    text = function.number(f"pitch_{one.value.index}_{number}", pitch)
                    terms.append(_times(index.index, text))
                    masks.append(index.mask)
            within = within.times(size)
            pitch = pitch.times(size) if has[number] else pitch
        return terms[::-1], both(*masks)

    def _named(self, sizes: tuple[Extent, ...]) -> list[RowIndex]:
        """The kernel's own indices where they are those of the plan."""
        rows = [row for row in self.place.rows if not row.size.is_one]
        same = [row.size for row in rows] == [size for size in sizes if not size.is_one]
        return rows if same else []

    def _index(self, number: int, within: Extent, size: Extent) -> RowIndex:
        row = self.place.row
        if not within.is_one:
            row = f"{row} // {factor(self.function.number(f'within_{number}', within))}"
        index = f"({row} % {factor(self.function.number(f'size_of_{number}', size))})"
        return RowIndex(size, index, self.place.row_mask)


def _times(index: str, text: str) -> str:
    if text == "1":
        return index
    bare = index if index.startswith("(") or " " not in index else f"({index})"
    return f"{bare} * {text}"
