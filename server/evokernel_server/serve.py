"""Runs the server for one client: over standard input and output, or over TCP."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from pygls.io_ import StdinAsyncReader

from evokernel_core.domain.errors import EvoKernelError
from evokernel_server import stdio, tcp
from evokernel_server.app import EvoKernelServer
from evokernel_server.conversation import converse

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
    try:
        reader = StdinAsyncReader(stdin, server.thread_pool)
        asyncio.run(converse(server, reader, stdio.QueuedStream(stdout)))
    except (KeyboardInterrupt, SystemExit):
        log.info("The server was told to end.")
    finally:
        server.shutdown()  # type: ignore[no-untyped-call]
        server.close()


def serve_tcp(host: str, port: int) -> None:
    """Serves one client over TCP. Raises EvoKernelError where the address cannot be had."""
    configure_logging()
    server = EvoKernelServer()
    try:
        asyncio.run(tcp.serve_one(server, host, port))
    except OSError as error:
        raise EvoKernelError(
            f"Cannot listen on {host}:{port}: {error.strerror}; choose another port."
        ) from error
    finally:
        server.close()
