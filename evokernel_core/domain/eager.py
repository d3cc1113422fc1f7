"""EagerComparison: the user's own code of a region, run eagerly beside the graph that was captured of it."""

from __future__ import annotations

from attrs import field, frozen

from evokernel_core.domain.sentence import Sentence

DRAWS = (
    "normal", "nan", "infinity", "zero", "extreme", "equal", "negative_index", "index_out_of_range",
    "file_sizes",
)  # fmt: skip
"""What both are given. ``normal``: N(0, 1), and indices in range. ``nan``, ``infinity``: among them; a row
that is nothing but -inf, and rows of masks that are all true or all false. ``zero``: of both signs.
``extreme``: the largest, smallest and denormal numbers of the dtype. ``equal``: few distinct values and NaN.
``negative_index``, ``index_out_of_range``: what counts from the end, and what no tensor has.
``file_sizes``: ``normal`` at the sizes of the file; all others have small sizes of the same class."""


@frozen
class Uncompared:
    """A draw of which nothing is known, and why; an empty ``draw`` stands for all."""

    draw: str
    reason: Sentence = field(converter=Sentence)


@frozen
class EagerComparison:
    """``compared`` are the draws at which both gave the same: values within the rounding of their dtype; NaN,
    infinities, signs of zero, dtypes, shapes, inputs that are written into and types of errors exactly.
    ``difference`` says what differs, and at which draw; it is empty where nothing does. ``source_hash`` is
    that of the region whose code was run: a verdict may have been given for another one of the same
    mathematics."""

    compared: tuple[str, ...] = ()
    uncompared: tuple[Uncompared, ...] = ()
    difference: Sentence = field(default=Sentence(), converter=Sentence)
    source_hash: str = ""
