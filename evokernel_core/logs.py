"""Logs go to stderr, as stdout belongs to results and protocols.

structlog prints to stdout unless it is told otherwise, and so do the libraries that log through it.
Importing this module tells it, unless the program has configured structlog itself.
"""

from __future__ import annotations

import sys
from typing import Any

import structlog

if not structlog.is_configured():
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
            # plain, as the values of local variables are long, and some are secret
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # the stderr of the moment
    )


def get_logger(name: str) -> Any:
    """A structlog logger that says which module speaks."""
    return structlog.get_logger(name, module=name)
