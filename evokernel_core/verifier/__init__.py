"""Judges kernels: four gates, here or on another machine. ``open_verifier`` is the way in."""

from evokernel_core.verifier.base import Verifier
from evokernel_core.verifier.factory import open_verifier

__all__ = ["Verifier", "open_verifier"]
