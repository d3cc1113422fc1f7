"""The protocol layer: pygls with its known traps closed.

* A reply that arrives for a request whose waiter was cancelled is dropped (openlawlibrary/pygls#621).
* Documents, cells and folders are kept once, by our own workspace, whose lines end where the protocol says.
* ``shutdown`` may meet requests in flight without failing on them.
* What was kept to follow a notification is let go with it: pygls keeps it for good, 2 KB for each edit.
* Every request is answered, also one that is malformed, early, late or said twice (``gate``).
* A client's answer or cancellation reaches only what it belongs to: ids of the two sides are kept apart.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import uuid
from collections.abc import Callable, Generator, Mapping
from typing import Any

from attrs import define, frozen
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from evokernel_server.documents.publish import can_pull

log = logging.getLogger(__name__)

Handling = Generator[Any, Any, None]


def _by_feature(protocol: LanguageServerProtocol, method: str, *args: Any) -> Handling:
    """What our feature of a method does, where we have one."""
    if (handler := protocol.fm.features.get(method)) is not None:
        yield handler, args, None


def _passed_on(method: str) -> Callable[..., Handling]:
    """A built-in handler that leaves a method to our feature of it."""

    @lsp_method(method)
    def handler(self: LanguageServerProtocol, params: Any) -> Handling:
        yield from _by_feature(self, method, params)

    return handler


class EvoKernelProtocol(LanguageServerProtocol):
    """Overrides of the built-in handlers; each still calls the feature of the same method."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gate = Gate()
        self._own: set[Any] = set()
        """Ids of our own requests that the client has not answered."""
        self._writing: set[asyncio.Future[Any]] = set()

    def structure_message(self, data: dict[str, Any]) -> Any:
        """pygls asks this for every object in a message, from the innermost on, and gives up the whole
        message where one fails; here a message is read once, as a whole, when it is handled."""
        return data

    def handle_message(self, message: Any) -> None:
        judged = self.gate.judge(message)
        if isinstance(judged, Rejected):
            self._reject(judged.id, judged.error)
        elif isinstance(judged, Passed):
            self._take(message)

    def _take(self, data: dict[str, Any]) -> None:
        is_answer = "method" not in data
        if is_answer and data.get("id") not in self._own:
            return  # nothing of ours waits for it
        try:
            message = super().structure_message(data)
        except JsonRpcException as error:
            if is_answer:
                self._handle_response(data["id"], error=error.to_response_error())
            elif "id" in data:
                self._reject(data["id"], error)
        else:
            self.gate.note(data)
            super().handle_message(message)

    def reject_unreadable(self) -> None:
        """Answers a message that is no JSON, of which nobody can tell the id."""
        self._reject(None, JsonRpcParseError("The message is no JSON."))

    def _reject(self, number: Any, error: JsonRpcException) -> None:
        data = {"code": error.code, "message": error.message}
        self._send_data({"jsonrpc": self.VERSION, "id": number, "error": data})

    def _send_data(self, data: Any) -> None:
        """A result that cannot be written is answered with an error: silence leaves the client waiting."""
        try:
            body = json.dumps(data, default=self._serialize_message).encode(self.CHARSET)
        except Exception as failure:
            log.error("A message cannot be written: %s", failure)
            if not hasattr(data, "method") and getattr(data, "id", None) is not None:
                self._reject(data.id, JsonRpcInternalError("The answer cannot be written."))
            return
        if self.writer is not None:
            written = self.writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            if inspect.isawaitable(written):
                self._writing.add(task := asyncio.ensure_future(written))
                task.add_done_callback(self._writing.discard)

    def send_request(self, method: str, params: Any = None, callback: Any = None, msg_id: Any = None) -> Any:
        msg_id = msg_id or str(uuid.uuid4())
        self._own.add(msg_id)
        future = super().send_request(method, params, callback, msg_id)
        future.add_done_callback(lambda _: self._forget(msg_id))
        return future

    def _forget(self, msg_id: Any) -> None:
        """A request of ours was answered or taken back: a reply that comes yet is dropped."""
        self._own.discard(msg_id)
        self._request_futures.pop(msg_id, None)
        self._result_types.pop(msg_id, None)

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        """An id of another kind names no request: not a list, nor ``true``, which Python takes for 1."""
        if is_id(msg_id) and msg_id not in self._own:
            super()._handle_cancel_notification(msg_id)

    def _execute_handler(
        self,
        msg_id: Any,
        handler: Callable[..., Any],
        callback: Callable[[Any], None],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.add_done_callback(lambda ended: self._let_go(msg_id, ended))

    def _let_go(self, msg_id: Any, future: Any) -> None:
        if self._request_futures.get(msg_id) is future:
            del self._request_futures[msg_id]

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Announces diagnostics on demand only to clients that can be told to ask again."""
        result = yield from super().lsp_initialize(params)
        if not can_pull(params.capabilities):
            result.capabilities.diagnostic_provider = None
        return result

    lsp_text_document__did_open = _passed_on(types.TEXT_DOCUMENT_DID_OPEN)
    lsp_text_document__did_change = _passed_on(types.TEXT_DOCUMENT_DID_CHANGE)
    lsp_text_document__did_close = _passed_on(types.TEXT_DOCUMENT_DID_CLOSE)
    lsp_notebook_document__did_open = _passed_on(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    lsp_notebook_document__did_change = _passed_on(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    lsp_notebook_document__did_close = _passed_on(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    lsp_workspace__did_change_workspace_folders = _passed_on(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    lsp_work_done_progress_cancel = _passed_on(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Handling:
        self._shutdown = True  # an exit that comes at once is no crash
        yield from _by_feature(self, types.SHUTDOWN, *args)
        for msg_id, future in list(self._request_futures.items()):
            if msg_id != self.msg_id and not future.done():
                future.cancel()


_VERSION = "2.0"


@frozen
class Passed:
    """The message may be handled."""


@frozen
class Dropped:
    """A notification or an answer out of order."""


@frozen
class Rejected:
    """A request that gets ``error``; ``id`` is None where the message has none that can be used."""

    id: int | str | None
    error: JsonRpcException


@define
class Gate:
    """How far a session is."""

    begun: bool = False
    ending: bool = False

    def judge(self, message: object) -> Passed | Dropped | Rejected:
        """What to do with a message as it was read from JSON."""
        if not isinstance(message, Mapping):
            return _invalid(None, "A message is one object; batches are not taken.")
        number = message.get("id")
        usable = is_id(number)
        if "id" in message and not usable:
            # an error without an id tells of a message of ours that the client could not read
            return Dropped() if "method" not in message else _invalid(None, "An id is a number or a string.")
        known = number if usable else None
        if message.get("jsonrpc") != _VERSION:
            return _invalid(known, 'A message says "jsonrpc": "2.0".')
        if "method" in message:
            return self._judge_method(message["method"], known)
        if known is None or not message.keys() & {"result", "error"}:
            return _invalid(known, "A message has a method, a result or an error.")
        return Passed() if self.begun else Dropped()

    def _judge_method(self, method: object, number: int | str | None) -> Passed | Dropped | Rejected:
        if not isinstance(method, str):
            return _invalid(number, "A method is a string.")
        if number is None:
            allowed = method == types.EXIT or (self.begun and not self.ending)
            return Passed() if allowed else Dropped()
        if self.ending:
            return _invalid(number, "The server was told to shut down; only exit follows.")
        if method == types.INITIALIZE:
            return _invalid(number, "The session has begun already.") if self.begun else Passed()
        if not self.begun:
            return Rejected(number, JsonRpcServerNotInitialized("initialize comes first."))
        return Passed()

    def note(self, message: Mapping[str, Any]) -> None:
        """A well-formed message is about to be handled."""
        if message.get("id") is not None:
            self.begun = self.begun or message.get("method") == types.INITIALIZE
            self.ending = self.ending or message.get("method") == types.SHUTDOWN


def is_id(number: object) -> bool:
    """Whether JSON-RPC allows an id to be this; fractions are not taken."""
    return isinstance(number, int | str) and not isinstance(number, bool)


def _invalid(number: int | str | None, why: str) -> Rejected:
    return Rejected(number, JsonRpcInvalidRequest(why))
