"""Asks a client to ask again, where it can: at once for what changed, and once more for whatever changed in
many documents right behind it."""

from __future__ import annotations

import asyncio
import logging

from attrs import define, field
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from evokernel_server.jobs.tasks import Latest

log = logging.getLogger(__name__)

_PATIENCE_S = 30.0
"""A client that has not answered a refresh by then is asked anew at the next one."""
_REST_S = 0.1
"""Least time between two refreshes: what changes in many documents meanwhile is one."""


@define(eq=False)
class Refreshing:
    """Clients that say nothing of a refresh are left alone."""

    server: LanguageServer
    _latest: Latest = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._latest = Latest(self._ask, "refresh", _REST_S)

    def hints(self, *, lenses: bool) -> None:
        """For hints, and for lenses where they are switched on."""
        workspace = self.server.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self._latest.ask(types.WORKSPACE_INLAY_HINT_REFRESH)
        if lenses and workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            self._latest.ask(types.WORKSPACE_CODE_LENS_REFRESH)

    def diagnostics(self) -> None:
        """For diagnostics, of a client that asks for them."""
        self._latest.ask(types.WORKSPACE_DIAGNOSTIC_REFRESH)

    async def _ask(self, method: str) -> None:
        try:
            await asyncio.wait_for(self.server.protocol.send_request_async(method, None), _PATIENCE_S)
        except (JsonRpcException, TimeoutError) as error:
            log.info("The client did not refresh: %s", error)
