"""One module per feature of the protocol; each has ``register(server)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evokernel_server.features import (
    code_action,
    code_lens,
    diagnostic,
    execute_command,
    files,
    highlight,
    hover,
    inlay_hint,
    lifecycle,
    links,
    notebook,
    sync,
)

if TYPE_CHECKING:
    from evokernel_server.host import Host


_FEATURES = (
    lifecycle, sync, notebook, files, inlay_hint, code_action, execute_command, code_lens, hover, highlight,
    diagnostic, links,
)  # fmt: skip


def register(server: Host) -> None:
    """Registers every feature."""
    for feature in _FEATURES:
        feature.register(server)
