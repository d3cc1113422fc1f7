"""Why a verifier service has no verdict: it could not judge a kernel, or takes none now. This is shown in the
editor of whoever asked, so it travels with what it is made of; all else is for whoever runs the service."""

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
        "Verifying this kernel took longer than {seconds} s; the service gave it up.",
        seconds=f"{seconds:.0f}",
    )


def worker_died(times: int) -> Sentence:
    return Sentence(
        "The worker died {times} times on this kernel; report it with the service's log.", times=times
    )


def hosts_lost(times: int) -> Sentence:
    return Sentence("The host was lost {times} times on this kernel; look into the hosts' logs.", times=times)


def queue_full(limit: int) -> Sentence:
    return Sentence("The queue already holds {limit} jobs; ask again later.", limit=limit)


def jobs_used(user: str, most: int) -> Sentence:
    return Sentence("{user} has asked for {most} jobs today, which is the limit.", user=user, most=most)


def time_used(user: str, seconds: float) -> Sentence:
    return Sentence(
        "{user} has used {seconds} CPU seconds today, which is the limit.", user=user, seconds=seconds
    )


def many_waiting(user: str, most: int) -> Sentence:
    return Sentence(
        "{user} already has {most} jobs waiting, which is the limit; ask again later.", user=user, most=most
    )


def many_clients(user: str, most: int) -> Sentence:
    return Sentence(
        "{user} already wants this job for {most} clients; withdraw it for one of them.", user=user, most=most
    )


def many_requests(user: str, most: int) -> Sentence:
    return Sentence("{user} already has {most} requests open; close some.", user=user, most=most)


def many_bytes(user: str, most: int) -> Sentence:
    return Sentence("{user} sends more than {most} bytes at a time; send them in turn.", user=user, most=most)


def too_large(most: int) -> Sentence:
    return Sentence("The request is larger than {most} bytes; send one kernel at a time.", most=most)


def too_slow(seconds: float) -> Sentence:
    return Sentence("The request did not arrive within {seconds} s.", seconds=f"{seconds:.0f}")


def lacks_scope(scope: str) -> Sentence:
    return Sentence(
        "This token has no scope {scope}; ask the service's owner for one that has.", scope=repr(scope)
    )


def lacks_priority(priority: str) -> Sentence:
    return Sentence("This token is not for {priority} jobs.", priority=priority)


def unwritable(error: object) -> Sentence:
    return Sentence("The queue cannot be used now ({error}); try again.", error=error)


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
