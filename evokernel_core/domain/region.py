"""Region: a span of source in a forward pass that one call can replace."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask


class RegionStatus(StrEnum):
    CANDIDATE = "candidate"
    VERIFIED = "verified"
    INFEASIBLE = "infeasible"
    UNSUPPORTED = "unsupported"
    NEEDS_SHAPES = "needs_shapes"
    APPLIED = "applied"


@frozen
class Span:
    """1-based lines, 0-based columns in UTF-8 *characters* (Python str offsets); end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def overlaps(self, other: Span) -> bool:
        """Whether a character belongs to both."""
        first, second = sorted(
            ((choice.line, choice.column), (choice.end_line, choice.end_column)) for choice in (self, other)
        )
        return second[0] < first[1]


@frozen
class Region:
    """A replaceable span.

    ``source_hash`` is the sha256 of the span's text. ``site`` says what takes its place, and under which
    guards. ``task`` and ``site`` are None unless status is
    candidate, verified or infeasible; ``reason`` is one sentence where they are None.
    ``id`` is stable while the text of the span is (qualified symbol + ordinal + source hash).
    """

    id: str
    file: str
    symbol: str
    span: Span
    source: str
    source_hash: str
    op_category: str
    status: RegionStatus
    reason: Sentence = field(default=Sentence(), converter=Sentence)
    task: KernelTask | None = None
    site: CallSite | None = None
