"""Runs the server for one client: over standard input and output, or over TCP."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from evokernel_core.domain.errors import EvoKernelError
from evokernel_server import stdio, tcp
from evokernel_server.app import EvoKernelServer


def configure_logging() -> None:
    """One handler on stderr. pygls logs whole messages, which hold a person's code: it stays silent."""
    logging.basicConfig(
        stream=sys.stderr,
        level=os.environ.get("EVOKERNEL_LOG", "WARNING").upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.ERROR)


def serve_stdio() -> None:
    """Serves one client over standard input and output until either ends."""
    stdout = stdio.guard_stdout()
    stdin = stdio.guard_stdin()
    configure_logging()
    server = EvoKernelServer()
    try:
        server.start_io(stdin, stdio.QueuedStream(stdout))  # type: ignore[arg-type]
    finally:
        server.close()


def serve_tcp(host: str, port: int) -> None:
    """Serves one client over TCP. Raises EvoKernelError where the address cannot be had."""
    configure_logging()
    server = EvoKernelServer()
    try:
        asyncio.run(tcp.serve_one(server, host, port))
    except OSError as error:
        raise EvoKernelError(
            "Cannot listen on {host}:{port}: {why}; choose another port.",
            host=host,
            port=port,
            why=error.strerror,
        ) from error
    finally:
        server.close()
