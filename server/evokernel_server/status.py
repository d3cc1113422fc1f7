"""One line about how the server is: for the status item, and for a person who asks."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from attrs import asdict, define, frozen

METHOD = "evokernel/status"


class Mode(StrEnum):
    READY = "ready"
    BUSY = "busy"
    QUEUED = "queued"
    OFFLINE = "offline"
    ERROR = "error"


@frozen
class StatusParams:
    """What ``evokernel/status`` carries. ``offers`` counts faster kernels that wait for a decision."""

    mode: str
    text: str
    verifier: str
    interpreter: str
    offers: int = 0


@define(eq=False)
class Status:
    """Sends the status when it changed."""

    send: Callable[[str, object], None]
    current: StatusParams = StatusParams(Mode.READY.value, "EvoKernel is ready.", "", "")

    def set(self, mode: Mode, text: str) -> None:
        self._update(
            StatusParams(
                mode.value, text, self.current.verifier, self.current.interpreter, self.current.offers
            )
        )

    def learn(self, *, verifier: str = "", interpreter: str = "", offers: int | None = None) -> None:
        """Takes over who verifies, which Python is used, how many offers wait."""
        now = self.current
        self._update(
            StatusParams(
                now.mode,
                now.text,
                verifier or now.verifier,
                interpreter or now.interpreter,
                now.offers if offers is None else offers,
            )
        )

    def resend(self) -> None:
        """Tells a client that has just become ready."""
        self.send(METHOD, asdict(self.current))

    def _update(self, params: StatusParams) -> None:
        if params != self.current:
            self.current = params
            self.send(METHOD, asdict(params))
