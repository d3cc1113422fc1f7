"""Compression as steps of the schema's history wrote it: with its own constants, so that what the memory
writes today may change."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LONGEST = 2**26
_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 9,
    zstd.CompressionParameter.window_log: 24,
    zstd.CompressionParameter.dict_id_flag: 0,
}


def compress(text: str, dictionary: str) -> bytes:
    """A zstd frame of a text, as what differs from the dictionary."""
    return zstd.compress(text.encode(), options=_OPTIONS, zstd_dict=_dictionary(dictionary))


def decompress(data: object, dictionary: str) -> str:
    """The text of a frame of ``compress``, of at most 64 MiB. Raises ValueError or TypeError."""
    if not isinstance(data, bytes):
        raise TypeError("compressed")
    frame = zstd.ZstdDecompressor(zstd_dict=_dictionary(dictionary))
    try:
        text = frame.decompress(data, _LONGEST)
    except (zstd.ZstdError, EOFError) as error:
        raise ValueError("compressed") from error
    if not frame.eof:
        raise ValueError("compressed")
    return text.decode()


@lru_cache(maxsize=8)
def _dictionary(text: str) -> zstd.ZstdDict:
    return zstd.ZstdDict(text.encode(), is_raw=True)
