"""The numbers of a schedule, as the families read them from a Strategy."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from attrs import frozen

from evokernel_core.compiler import schedule as described
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS


class Form(StrEnum):
    """What one tile is."""

    FLAT = "flat"
    """A run of elements; rows do not matter."""
    PACKED = "packed"
    """Several whole rows; values of a row are vectors."""
    RESIDENT = "resident"
    """One whole row, kept in the unified buffer from load to store."""
    REGION = "region"
    """Some columns of some rows of a matrix, as another kernel's tile of a result."""
    SEGMENTS = "segments"
    """Part of one row, element-wise work only."""
    LANES = "lanes"
    """Part of one step of a reduction over rows: its lanes lie side by side and are kept."""
    PIECES = "pieces"
    """Part of one of the pieces of a row; a reduction reads all pieces once for each pass."""
    STEPS = "steps"
    """Some lanes of several steps of a reduction over rows, one step below another."""
    SHARED = "shared"
    """As pieces, but several cores share a row and put their results together."""
    CHANNELS = "channels"
    """All steps of some lanes, as another kernel's tile of a result with all its channels."""
    STREAM = "stream"
    """Part of one row; a reduction reads the row once more for each pass."""


METHODS = frozenset({"fold", "tile", "block", "standing"})
"""How the rows of a packed tile may be reduced, by the name that a schedule gives it."""
IN_PIECES = frozenset({Form.PIECES, Form.SHARED})
"""The forms whose tiles are parts of the pieces of a row."""
IN_LANES = frozenset({Form.LANES, Form.STEPS, Form.CHANNELS})
"""The forms of reductions whose lanes lie side by side and are kept."""


@frozen
class Schedule(described.Schedule):
    """``tile``: float32 elements of one tile register. ``buffers``: of each queue, 1 or 2.
    ``rows``: most rows of a packed tile. ``reduction``: how a packed tile's rows are reduced: row by
    row (``block``), all rows at once where they are whole repeats (``tile``), by folding columns
    (``fold``), or row by row into lanes that stay where they are (``standing``). ``keep_columns``:
    repeat column inputs over a tile's rows once and for all.
    ``spread``: whether row values are spread over ``rows`` or over ``columns`` of a packed tile.
    ``online``: reductions in pairs, one pass a pair. ``cores``: most vector cores, 0 for all.
    ``stagger``: keep tensors that are read together in different bank groups.
    ``bypass_l2``: do not keep in L2 what is read once. ``columns``: capacity of column tensors, or
    most lanes of a tile of several steps.
    ``eager_rounding``: round intermediate results to 16 bits where PyTorch does, op by op.
    ``at_once``: bytes of the rows that cores share at a time, which L2 should keep.
    ``whole``: a tile has all the steps of its lanes, which are read once.
    ``dense``: the steps of a tile lie as in memory, whose lanes are all of a step: one run, no padding.
    ``half``: element-wise work on halves is computed in half (``halves.py``)."""

    form: Form
    tile: int
    buffers: Annotated[int, BUFFERS] = 2
    rows: int = 64
    columns: int = 0
    reduction: str = "block"
    spread: str = "rows"
    online: bool = False
    cores: int = 0
    stagger: bool = True
    bypass_l2: bool = False
    eager_rounding: bool = False
    keep_columns: bool = False
    at_once: int = 0
    whole: bool = False
    dense: bool = False
    half: bool = False

    @property
    def dtype(self) -> str:
        """The type that numbers of a tile are computed in."""
        return "float16" if self.half else "float32"

    @property
    def packed(self) -> bool:
        return self.form in (Form.PACKED, Form.REGION)

    @property
    def ahead(self) -> bool:
        """Whether a tile is fetched before the one in front of it is computed, which needs two
        buffers: the scalar unit, which starts copies, may wait for vector instructions."""
        return self.buffers > 1
