"""Runs the server for one client: over standard input and output, or over TCP."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable

from evokernel_core.domain.errors import EvoKernelError
from evokernel_server.app import EvoKernelServer
from evokernel_server.transport import stdio, tcp
from evokernel_server.transport.conversation import converse

log = logging.getLogger(__name__)


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
    output = stdio.QueuedStream(stdout)
    try:
        asyncio.run(_serve(server, lambda: converse(server, stdio.Incoming(stdin), output)))
    except (KeyboardInterrupt, SystemExit):
        log.info("The server was told to end.")
    finally:
        server.shutdown()  # type: ignore[no-untyped-call]
        server.close()


async def _serve(server: EvoKernelServer, client: Callable[[], Awaitable[None]]) -> None:
    try:
        await client()
    finally:
        await server.worker.start_no_more()


def serve_tcp(host: str, port: int) -> None:
    """Serves one client over TCP. Raises EvoKernelError where the address cannot be had."""
    configure_logging()
    server = EvoKernelServer()
    try:
        asyncio.run(_serve(server, lambda: tcp.serve_one(server, host, port)))
    except OSError as error:
        raise EvoKernelError(
            "Cannot listen on {host}:{port}: {why}; choose another port.",
            host=host,
            port=port,
            why=error.strerror,
        ) from error
    finally:
        server.close()
