"""Which messages are taken, by the order that the protocol prescribes: ``initialize``, then anything, then
``shutdown`` and ``exit``. A request that is not taken is answered with the reason; what asks for no answer is
dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, frozen
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcServerNotInitialized

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
