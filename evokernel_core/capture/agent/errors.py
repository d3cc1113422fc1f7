"""What the agent reports: a stable reason code and one sentence."""

from __future__ import annotations


class AgentError(Exception):
    """``reason`` is one of domain.errors' reason codes; the message is for the person."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def describe(error: BaseException) -> str:
    """The exception's type and the first line of its text, at most 300 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
