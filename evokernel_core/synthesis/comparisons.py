"""Whether a region's graph means what the user's code means: both are run before a kernel of it counts.

This is done where the file is, by whoever asks for a verdict. A verifier has the graph alone, often on
another machine, and could not tell that it is a wrong one: its reference would be wrong alike.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from attrs import evolve

from evokernel_core.capture.client import CaptureWay
from evokernel_core.capture.text import read_python, text_at
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.eager import EagerComparison, Uncompared
from evokernel_core.domain.errors import CaptureError, UnsupportedRegion
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import Sentence

_CACHED = 256
_WHOLE = "if {holds}:"
"""What takes the place of statements; an expression has another template."""


class Comparer(Protocol):
    """A torch agent."""

    def compare(self, region: Region, text: str, captures: Sequence[CaptureWay]) -> EagerComparison:
        """As AgentClient.compare."""
        ...


class Comparisons:
    """Runs each region's code once for a text of its file, and knows what came of it."""

    def __init__(self, agent: Comparer, author: KernelAuthor) -> None:
        self._agent, self._author = agent, author
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}
        self._known: OrderedDict[tuple[str, str, str], EagerComparison] = OrderedDict()

    def seen(self, path: Path, text: str | None) -> None:
        """Notes the text that a file has in an editor, None where it is that of the disk."""
        if text is None:
            self._texts.pop(str(path.absolute()), None)
        else:
            self._texts[str(path.absolute())] = text

    def of(self, region: Region) -> EagerComparison:
        """What came of the region's code. Never raises for what the code does: that is told as not
        compared."""
        if region.task is None:
            return EagerComparison(source_hash=region.source_hash)
        text = self._text(region)
        if text is None:
            return _uncompared(region, Sentence("its file has changed since it was captured"))
        key = (region.file + "\0" + text, region.id, region.task.spelled_id)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._compare(region, text)
                while len(self._known) > _CACHED:
                    self._known.popitem(last=False)
            return self._known[key]

    def same(self, region: Region) -> EagerComparison:
        """As ``of``. Raises UnsupportedRegion where the code and the graph differ."""
        result = self.of(region)
        if result.difference:
            raise UnsupportedRegion(refusal(region, result))
        return result

    def _text(self, region: Region) -> str | None:
        """The file's text that the region was captured from."""
        known = self._texts.get(str(Path(region.file).absolute()))
        if known is not None and text_at(known, region.span) == region.source:
            return known
        try:
            text = read_python(Path(region.file))
        except CaptureError:
            return None
        return text if text_at(text, region.span) == region.source else None

    def _compare(self, region: Region, text: str) -> EagerComparison:
        try:
            result = self._agent.compare(region, text, _ways(region, self._author))
        except CaptureError as error:
            return _uncompared(region, error.sentence)
        return evolve(result, source_hash=region.source_hash)


def _uncompared(region: Region, reason: Sentence) -> EagerComparison:
    return EagerComparison(uncompared=(Uncompared("", reason),), source_hash=region.source_hash)


def _ways(region: Region, author: KernelAuthor) -> tuple[CaptureWay, ...]:
    """The captures that may have given the region, the likeliest first."""
    single, program = CaptureWay(author.single_ops()), CaptureWay(author.covered_ops(), True)
    fixed = CaptureWay(author.covered_ops(), True, {region.symbol: "fixed"})
    parts = CaptureWay(author.covered_ops(), True, {region.symbol: "parts"})
    is_whole = region.site is not None and region.site.template.startswith(_WHOLE)
    return (program, fixed, single, parts) if is_whole else (single, parts)


def refusal(region: Region, eager_comparison: EagerComparison) -> Sentence:
    """Why no kernel of the region counts."""
    return Sentence(
        "Line {line} ({symbol}) is skipped, because its captured graph does not mean what its code "
        "does: {difference}.",
        line=region.span.line,
        symbol=region.symbol,
        difference=eager_comparison.difference,
    )
