"""What a machine has, or lacks."""

from __future__ import annotations

from attrs import frozen


@frozen
class Check:
    """One line of a report. ``advice`` says what to do where ``ok`` is False."""

    name: str
    ok: bool
    found: str
    advice: str = ""
