"""Where one message ends and the next begins, also behind one whose length was wrong.

The protocol has no mark between messages: a length that is too small, missing or no number leaves a rest
which runs into the next header. A reader that wants headers at the start of a line would never find one
again, and be deaf for as long as its editor lives. Here a length counts wherever its line begins.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import define

if TYPE_CHECKING:
    from pygls.io_ import AsyncReader

MOST_BYTES = 2**30
"""A length beyond this is no message of an editor: nothing is waited for."""
_LENGTH = re.compile(rb"content-length:[ \t]*(\d{1,12})[ \t]*\r?\n\Z", re.IGNORECASE)
_LONGEST_HEADER = 64
_BLANK = (b"\r\n", b"\n")


@define
class Head:
    """The lines before a message. The last length counts: the one before it was broken off."""

    length: int = 0
    _begun: bytes = b""
    """The end of a piece of a line whose rest follows: a length may lie across the two."""

    def take(self, piece: bytes) -> int:
        """The bytes of the message that begins behind this line, 0 where none does yet."""
        line = self._begun + piece
        self._begun = b"" if line.endswith(b"\n") else line[-_LONGEST_HEADER:]
        if line in _BLANK:
            return self.length
        if (match := _LENGTH.search(line)) and int(match[1]) <= MOST_BYTES:
            self.length = int(match[1])
        return 0


@define
class Framed:
    """A stream whose headers are as pygls wants them: one length, then an empty line. The stream may give a
    long line in pieces."""

    stream: AsyncReader
    _next: bytes = b""

    async def readline(self) -> bytes:
        """The length of the next message, or the end of its header; nothing at the end of the stream."""
        if self._next:
            line, self._next = self._next, b""
            return line
        head = Head()
        while line := await self.stream.readline():
            if length := head.take(line):
                self._next = b"\r\n"
                return b"Content-Length: %d\r\n" % length
        return b""

    async def readexactly(self, n: int) -> bytes:
        return await self.stream.readexactly(n)
