"""Regions without a worker: what a capture of a text would find, as a function of the text alone."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from attrs import evolve
from evokernel_server.documents.line_index import Extent, Text
from evokernel_server.documents.workspace import Captured, Document

from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.synthesis.offers import Estimate

URI = "file:///work/model.py"
_CALL = re.compile(r"torch\.(softmax|fft|needy)\([^()\n]*\)|\b(?:F|nn\.functional)\.(\w+)\([^()\n]*\)")
_RETURN = re.compile(r"return [^\n]*(?:torch\.softmax|F\.\w+)[^\n]*")
_STATUS = {"fft": RegionStatus.UNSUPPORTED, "needy": RegionStatus.NEEDS_SHAPES}


def estimate(now_us: float = 62.2, after_us: float = 23.8, bound_us: float = 20.0) -> Estimate:
    return Estimate(now_us, after_us, bound_us, "ascend910b1")


def document(content: str, encoding: str = "utf-16", version: int = 1) -> Document:
    return Document(URI, Path("/work/model.py"), version, Text(content, encoding))


def found(text: Text) -> tuple[Captured, ...]:
    """A region for each call, and one around those whose line returns one."""
    inner = [
        _region(text, match, match[1] or match[2], number)
        for number, match in enumerate(_CALL.finditer(text.content))
    ]
    outer = [
        _region(text, match, "program", number) for number, match in enumerate(_RETURN.finditer(text.content))
    ]
    return tuple(
        Captured(item, estimate() if item.status is RegionStatus.CANDIDATE else None)
        for item in (*inner, *(evolve(item, id=f"whole/{item.id}") for item in outer))
    )


def _region(text: Text, match: re.Match[str], category: str, number: int) -> Region:
    digest = hashlib.sha256(match[0].encode()).hexdigest()
    return Region(
        id=f"{number}/{digest[:8]}", file="/work/model.py", symbol="forward",
        span=text.span(Extent(*match.span())), source=match[0], source_hash=digest, op_category=category,
        status=_STATUS.get(category, RegionStatus.CANDIDATE), reason="No kernel covers this.",
    )  # fmt: skip


def captured(content: str, encoding: str = "utf-16", version: int = 1) -> Document:
    """A document with the regions of its text."""
    made = document(content, encoding, version)
    made.accept(found(made.text), made.text, made.mark())
    return made
