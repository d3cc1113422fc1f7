"""Texts that nobody searches, compressed; a kernel as what differs from one like it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from evokernel_core.memory.migrations.dictionaries import COMMON

LEVEL = 9
"""A kernel of 14 kB takes 1 ms and 192 bytes beside one like it, a network's of 215 kB 13 ms and 967 bytes; a
level of 19 makes them 0 and 15 % shorter, and takes ten times as long."""
WINDOW_LOG = 24
"""Differences reach across 16 MiB. (Deflate's reach 32 KiB, so that a network's kernel stays at 24 kB.)"""
LONGEST = 2**26
"""Bytes of one text. The longest kernels of networks have some millions; a few bytes may claim to be more
than memory holds."""
_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: LEVEL,
    zstd.CompressionParameter.window_log: WINDOW_LOG,
    zstd.CompressionParameter.dict_id_flag: 0,
}


def packed(text: str, like: str = COMMON) -> bytes:
    """A text, as what differs from another."""
    return zstd.compress(text.encode(), options=_OPTIONS, zstd_dict=_dictionary(like))


def unpacked(data: object, like: str = COMMON) -> str:
    """Raises ValueError or TypeError for what is no such text, or longer than any."""
    if not isinstance(data, bytes):
        raise TypeError("packed")
    reading = zstd.ZstdDecompressor(zstd_dict=_dictionary(like))
    try:
        result = reading.decompress(data, LONGEST)
    except (zstd.ZstdError, EOFError) as error:
        raise ValueError("packed") from error
    if not reading.eof:
        raise ValueError("packed")
    return result.decode()


@lru_cache(maxsize=8)
def _dictionary(like: str) -> zstd.ZstdDict:
    return zstd.ZstdDict(like.encode(), is_raw=True)
