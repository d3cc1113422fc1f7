"""Progress that a person sees and can cancel, with or without the client's support for it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import define, field
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer


@define(eq=False)
class WorkProgress:
    """One cancellable piece of work. ``cancel`` is our own flag: commands are not ended by the client."""

    server: LanguageServer
    token: str
    label: str
    shown: bool = False
    cancel: asyncio.Event = field(factory=asyncio.Event)

    def report(self, message: str, done: float | None = None) -> None:
        """A line of progress; ``done`` is the share that is over, 0 to 1."""
        percentage = None if done is None else round(100 * min(max(done, 0.0), 1.0))
        self._send(types.WorkDoneProgressReport(message=message, percentage=percentage, cancellable=True))

    def _send(self, value: object) -> None:
        if self.shown:
            self.server.progress(types.ProgressParams(self.token, value))


@define(eq=False)
class Operations:
    """The work in progress, by token."""

    server: LanguageServer
    active: dict[str, WorkProgress] = field(factory=dict)

    @asynccontextmanager
    async def begin(self, title: str, label: str) -> AsyncIterator[WorkProgress]:
        """Shows ``title`` until the block ends; its last word is ``operation.label``."""
        operation = WorkProgress(self.server, f"evokernel/{uuid.uuid4().hex}", label)
        self.active[operation.token] = operation
        try:
            operation.shown = await self._create(operation.token)
            operation._send(types.WorkDoneProgressBegin(title=title, cancellable=True, percentage=0))
            yield operation
        finally:
            operation._send(types.WorkDoneProgressEnd(message=operation.label))
            self.active.pop(operation.token, None)

    async def _create(self, token: str) -> bool:
        window = self.server.client_capabilities.window
        if window is None or not window.work_done_progress:
            return False
        try:
            await self.server.window_work_done_progress_create_async(
                types.WorkDoneProgressCreateParams(token)
            )
        except JsonRpcException:
            return False
        return True

    def cancel(self, token: str | int | None = None) -> bool:
        """Cancels one operation, or all where no token is given. Returns whether there was any."""
        chosen = [
            operation for operation in self.active.values() if token is None or operation.token == token
        ]
        for choice in chosen:
            choice.cancel.set()
        return bool(chosen)
