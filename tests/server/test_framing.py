"""A message is found behind whatever came before it."""

from __future__ import annotations

import asyncio

import pytest
from evokernel_server.transport.framing import MOST_BYTES, Framed
from evokernel_server.transport.tcp import _Begun
from hypothesis import given
from hypothesis import strategies as st

from tests.attacks.editor.test_protocol import framed

LAST = framed(b'{"last":1}')
HEAD = b"Content-Length: %d\r\n\r\n"


async def bodies(data: bytes, limit: int = 2**16) -> list[bytes]:
    """What pygls would read of a stream that has room for so many bytes of a line: a length, an empty line, a
    body."""
    reader = asyncio.StreamReader(limit=limit)
    reader.feed_data(data)
    reader.feed_eof()
    stream, found = Framed(_Begun(b"", reader)), []
    while line := await stream.readline():
        assert line.startswith(b"Content-Length: ") and await stream.readline() == b"\r\n"
        found.append(await stream.readexactly(int(line[16:])))
    return found


STREAMS = {
    "two messages": (framed(b"{}") + LAST, [b"{}"]),
    "a small letter": (b"content-length:2\r\n\r\n{}" + LAST, [b"{}"]),
    "no carriage return": (b"Content-Length: 2\n\n{}" + LAST, [b"{}"]),
    "another header": (b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}" + LAST, [b"{}"]),
    "too short": (HEAD % 1 + b"{}" + LAST, [b"{"]),
    "too long": (HEAD % 9 + b"{}" + framed(b"{}") + LAST, [b"{}Content"]),
    "broken off": (b"Content-Length: 99\r\nConte\r\nContent-Length: 2\r\n\r\n{}" + LAST, [b"{}"]),
    "negative": (b"Content-Length: -5\r\n\r\n{}" + LAST, []),
    "words": (b"Content-Length: x\r\n\r\n{}" + LAST, []),
    "beyond all memory": (HEAD % 10**20 + b"{}" + LAST, []),
    "beyond what is taken": (HEAD % (MOST_BYTES + 1) + b"{}" + LAST, []),
    "nothing": (HEAD % 0 + LAST, []),
    "a long rest": (HEAD % 1 + b"x" * 200_000 + LAST, [b"x"]),
}  # fmt: skip


@pytest.mark.parametrize(("data", "before"), STREAMS.values(), ids=STREAMS)
async def test_the_next_message_is_found(data: bytes, before: list[bytes]) -> None:
    assert await bodies(data) == [*before, b'{"last":1}']


@given(st.integers(900, 1_100))
def test_a_length_is_found_wherever_a_line_is_cut_into_pieces(length: int) -> None:
    sent = HEAD % 1 + b"x" * length + LAST
    assert asyncio.run(bodies(sent, limit=500))[1:] == [b'{"last":1}']


@given(st.lists(st.binary(max_size=30).filter(bool), max_size=5))
def test_whole_messages_are_read_as_they_are(sent: list[bytes]) -> None:
    assert asyncio.run(bodies(b"".join(map(framed, sent)))) == sent
