"""What was done, in the client's own log: which Python ran, captures with their seconds, verdicts."""

from __future__ import annotations

import logging
from collections.abc import Callable

from attrs import define
from lsprotocol import types

from evokernel_server.texts.plain import message

log = logging.getLogger(__name__)


@define(eq=False)
class Journal:
    """Names files by their last part alone and quotes no code: a log may be sent on."""

    send: Callable[[types.LogMessageParams], None]

    def say(self, sentence: str) -> None:
        log.info("%s", sentence)
        self.send(types.LogMessageParams(types.MessageType.Info, message(sentence)))
