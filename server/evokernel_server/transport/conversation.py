"""What a server and its client say to each other, over whatever connects them."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any

from pygls.io_ import run_async
from pygls.lsp.server import LanguageServer

from evokernel_server.transport.framing import Framed

if TYPE_CHECKING:
    from pygls.io_ import AsyncReader

log = logging.getLogger(__name__)


async def converse(server: LanguageServer, reader: AsyncReader, writer: Any) -> None:
    """Handles what comes until the client ends the connection."""
    server._stop_event = threading.Event()
    server.protocol.set_writer(writer)
    try:
        await run_async(
            stop_event=server._stop_event,
            reader=Framed(reader),
            protocol=server.protocol,
            logger=logging.getLogger("pygls"),  # it logs whole messages, and is silent here
            error_handler=server.report_server_error,
        )
    except (OSError, asyncio.IncompleteReadError):
        log.info("The client is gone.")
