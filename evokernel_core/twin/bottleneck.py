"""What kept a launch from being faster, in one sentence made of the figures that the twin counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evokernel_core.domain.sentence import Sentence

_SCALAR = "S"


def bottleneck_words(counted: Mapping[str, Any]) -> Sentence:
    """``counted`` is what ``time/bottleneck.cpp`` writes; "" where it is empty.

    As in "MTE2-bound: 81 % busy; V idle 64 % waiting for copies of 2.0 KB, below the efficient 16 KB."
    """
    if not counted:
        return Sentence()
    first, *others = _facts(counted)
    for other in others:
        first = Sentence("{facts}; {fact}", facts=first, fact=other)
    return Sentence("{facts}.", facts=first)


def _facts(counted: Mapping[str, Any]) -> Iterator[Sentence]:
    told = {"pipe": str(counted["pipe"]), "busy": int(counted["busy"])}
    if "for" in counted:
        waiting = {"idle": int(counted["idle"]), "cause": _cause(counted)}
        yield Sentence("{pipe}-bound: {busy} % busy, idle {idle} % waiting for {cause}", **told, **waiting)
    else:
        yield Sentence("{pipe}-bound: {busy} % busy", **told)
    size, worker = counted.get("copies_kb"), counted.get("worker")
    blamed = size is not None and worker is not None and worker["for"] == counted["pipe"]
    if worker is not None:
        cause = _small(size) if size is not None and blamed else _cause(worker)
        idle = int(worker["idle"])
        yield Sentence(
            "{pipe} idle {idle} % waiting for {cause}", pipe=worker["pipe"], idle=idle, cause=cause
        )
    if size is not None and not blamed:
        yield Sentence("its copies of {size} KB, below the efficient 16 KB", size=f"{float(size):.1f}")


def _small(size: float) -> Sentence:
    return Sentence("copies of {size} KB, below the efficient 16 KB", size=f"{size:.1f}")


def _cause(waiting: Mapping[str, Any]) -> Sentence:
    if waiting["for"] == _SCALAR:
        return Sentence("the scalar unit to issue")
    return Sentence(str(waiting["for"]))
