"""One module per feature of the protocol; each has ``register(server)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evokernel_server.features import (
    code_action,
    code_lens,
    commands,
    highlight,
    hover,
    inlay_hint,
    lifecycle,
    sync,
)

if TYPE_CHECKING:
    from evokernel_server.app import EvoKernelServer


def register(server: EvoKernelServer) -> None:
    """Registers every feature."""
    for feature in (lifecycle, sync, inlay_hint, code_action, commands, code_lens, hover, highlight):
        feature.register(server)
