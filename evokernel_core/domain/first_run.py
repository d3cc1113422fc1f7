"""A step of a first run on a device, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen


class StepState(StrEnum):
    """How a step ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@frozen
class RunStep:
    """A step: what was found or went wrong, what to do (empty where nothing is), and figures and files that
    help whoever reads the report."""

    name: str
    state: StepState
    found: str
    advice: str = ""
    seconds: float = 0.0
    details: Mapping[str, Any] = field(factory=dict)
