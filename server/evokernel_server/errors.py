"""What a command answers where it does nothing."""

from __future__ import annotations

from evokernel_core.domain.errors import EvoKernelError


class Refused(EvoKernelError):
    """What was asked for cannot be done; the message says why."""
