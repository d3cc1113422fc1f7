"""One line about the document in front of a person, and the work on it: for the status item, and for a
person who asks."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from attrs import asdict, define, evolve, frozen

METHOD = "evokernel/status"


class Mode(StrEnum):
    """``ERROR`` is a failure of ours or of the environment, ``FAILED`` one that lies in the file."""

    ANALYSING = "analysing"
    NEEDS_INPUTS = "needs_inputs"
    READY = "ready"
    READY_TO_REVIEW = "ready_to_review"
    NOTHING_TO_GAIN = "nothing_to_gain"
    FAILED = "failed"
    ERROR = "error"
    BUSY = "busy"
    QUEUED = "queued"
    OFFLINE = "offline"


@frozen
class StatusParams:
    """What ``evokernel/status`` carries. ``offers`` counts faster kernels that wait for a decision;
    ``uri`` is the document that mode and text are about, empty where they are about the server. ``chip`` is
    the device that kernels are written for, ``kind`` what they are called. ``progress`` is what an
    analysis does and how far it is, in some words."""

    mode: str
    text: str
    verifier: str
    interpreter: str
    offers: int = 0
    uri: str = ""
    chip: str = ""
    kind: str = ""
    progress: str = ""


@define(eq=False)
class StatusLine:
    """Sends the status when it changed."""

    send: Callable[[str, object], None]
    current: StatusParams = StatusParams(Mode.READY.value, "EvoKernel is ready.", "", "")

    def set(self, mode: Mode, text: str, uri: str = "", progress: str = "") -> None:
        self._update(evolve(self.current, mode=mode.value, text=text, uri=uri, progress=progress))

    def writes_for(self, chip: str, kind: str) -> None:
        """Takes over the device that is configured; who verified for another one no longer does."""
        now = self.current
        self._update(evolve(now, chip=chip, kind=kind, verifier=now.verifier if chip == now.chip else ""))

    def learn(self, *, verifier: str = "", interpreter: str = "", offers: int | None = None) -> None:
        """Takes over who verifies, which Python is used, how many offers wait."""
        now = self.current
        self._update(
            evolve(
                now,
                verifier=verifier or now.verifier,
                interpreter=interpreter or now.interpreter,
                offers=now.offers if offers is None else offers,
            )
        )

    def resend(self) -> None:
        """Tells a client that has just become ready."""
        self.send(METHOD, asdict(self.current))

    def _update(self, params: StatusParams) -> None:
        if params != self.current:
            self.current = params
            self.send(METHOD, asdict(params))
