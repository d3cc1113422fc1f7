"""The command line's log: a file, so that a terminal shows sentences and no traceback."""

from __future__ import annotations

import logging
import os

from evokernel_core.paths import log_path

_MOST_BYTES = 1_000_000
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_file() -> None:
    """Sends what EvoKernel logs to ``paths.log_path``, from EVOKERNEL_LOG's level on."""
    logger = logging.getLogger("evokernel_core")
    if logger.handlers:
        return
    from logging.handlers import RotatingFileHandler  # no part of a server's start, whose log is its stderr

    handler = RotatingFileHandler(log_path(), maxBytes=_MOST_BYTES, backupCount=1, delay=True)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(os.environ.get("EVOKERNEL_LOG", "WARNING").upper())
    logger.propagate = False
