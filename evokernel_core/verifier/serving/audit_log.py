"""The service's audit log: one JSON line for what was asked, refused, judged, and by whom; no secret.

Lines hold names, ids and numbers only: no token, no header, no line of a kernel. JSON keeps what a
client wrote inside its quotes, so nobody can forge a line.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import structlog

from evokernel_core.domain.errors import StoreError
from evokernel_core.verifier.serving.private import make_private

BYTES_A_FILE = 10 * 2**20
FILES_KEPT = 5
REFUSALS_A_MINUTE = 20
"""Lines that the refusals of one address may take in a minute; the next line says how many were left out."""


class _PrivateFile(RotatingFileHandler):
    def _open(self) -> TextIOWrapper[Any]:
        make_private(Path(self.baseFilename))
        return super()._open()


class AuditLog:
    """``audit.jsonl`` in a folder, rotating. Raises StoreError."""

    def __init__(self, folder: Path) -> None:
        try:
            self._file = _PrivateFile(
                folder / "audit.jsonl", maxBytes=BYTES_A_FILE, backupCount=FILES_KEPT - 1, encoding="utf-8"
            )
        except OSError as error:
            raise StoreError(
                f"The audit log in {folder} cannot be written ({error}); choose another folder."
            ) from error
        logger = logging.Logger("evokernel.audit", logging.INFO)
        logger.addHandler(self._file)
        self._log = structlog.wrap_logger(
            logger,
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
                structlog.processors.EventRenamer("what"),
                structlog.processors.JSONRenderer(ensure_ascii=True, sort_keys=True),
            ],
            wrapper_class=structlog.BoundLogger,
        )
        self._refusals: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def note(self, what: str, **facts: object) -> None:
        """One line."""
        self._log.info(what, **facts)

    def refusal(self, address: str, **facts: object) -> None:
        """One line for a refused request, unless its address has filled its share of this minute."""
        since, count = self._refusals.pop(address, (time.monotonic(), 0))
        left_out = max(0, count - REFUSALS_A_MINUTE)
        if time.monotonic() - since > 60:
            since, count = time.monotonic(), 0
            if left_out:
                self.note("refusals left out", address=address, count=left_out)
        self._refusals[address] = since, count + 1
        if len(self._refusals) > 10_000:
            self._refusals.popitem(last=False)
        if count < REFUSALS_A_MINUTE:
            self.note("refused", address=address, **facts)

    def close(self) -> None:
        self._file.close()
