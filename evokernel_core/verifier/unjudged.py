"""Why a verifier service has no verdict on a kernel. What else the service says is for whoever runs it; this
is shown in the editor of whoever asked, and travels with what it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evokernel_core.domain.sentence import Sentence, sentence_of

DAMAGED = Sentence("What the queue held of this job was damaged; ask for it again.")
TOO_DEEP = Sentence("The task nests deeper than any that is captured.")


def defect(name: str) -> Sentence:
    """An exception of a class that nobody raised on purpose; its words may be about the host's files."""
    return Sentence("The verifier failed on this kernel ({name}); see the service's log.", name=name)


def too_long(seconds: float) -> Sentence:
    return Sentence(
        "Judging this kernel took longer than {seconds} s; the service gave it up.", seconds=f"{seconds:.0f}"
    )


def worker_died(times: int) -> Sentence:
    return Sentence(
        "The worker died {times} times on this kernel; report it with the service's log.", times=times
    )


def hosts_lost(times: int) -> Sentence:
    return Sentence("The host was lost {times} times on this kernel; look into the hosts' logs.", times=times)


def told_by(answer: Mapping[str, Any]) -> Sentence:
    """The sentence of an answer ``{"error": English text, "said": what it is made of}``; the text alone where
    there is nothing beside it, nothing that can be read, or something that does not say the same."""
    text = Sentence(str(answer.get("error") or ""))
    try:
        said = sentence_of(answer["said"])
    except (LookupError, ValueError, RecursionError):
        return text
    return said if said == text else text


def answered(error: Sentence) -> dict[str, Any]:
    """The answer that ``told_by`` reads: older readers take its text."""
    text = {"error": str(error)}
    return {**text, "said": error.data()} if error.values else text
