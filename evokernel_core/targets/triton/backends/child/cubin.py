"""What a cubin says of its functions: registers and bytes of local memory a thread.

A cubin is an ELF file of 64 bits; ``.nv.info`` holds attributes of all functions, each with the place of a
function in the table of symbols.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_REGISTERS, _FRAME_BYTES = 0x2F, 0x11
"""EIATTR_REGCOUNT and EIATTR_FRAME_SIZE, as ``cuobjdump -elf`` names them."""
_SIZED = 4
"""EIFMT_SVAL: the attribute's value lies behind it, with its size."""
_SECTION, _SYMBOL, _ATTRIBUTE, _VALUE = "<IIQQQQIIQQ", "<IBBHQQ", "<BBH", "<II"


class Cubin:
    """A cubin's sections by name."""

    def __init__(self, data: bytes) -> None:
        """Raises ValueError for what is no ELF file of 64 bits."""
        if data[:5] != b"\x7fELF\x02" or len(data) < 64:
            raise ValueError("no ELF file of 64 bits")
        self._data = data
        table, size, count, names = self._header()
        headers = [struct.unpack_from(_SECTION, data, table + place * size) for place in range(count)]
        self._headers = {self._text(headers[names][4] + header[0]): header for header in headers}

    def _header(self) -> tuple[int, int, int, int]:
        (table,) = struct.unpack_from("<Q", self._data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self._data, 0x3A)
        return table, size, count, names

    def section(self, name: str) -> bytes:
        """The bytes of a section; none where there is no such section."""
        if name not in self._headers:
            return b""
        offset, size = self._headers[name][4:6]
        return self._data[offset : offset + size]

    def functions(self) -> dict[str, tuple[int, int]]:
        """Registers, and bytes of local memory, of a thread, by function: what is spilled lies there."""
        symbols, counted = self._symbols(), dict[str, list[int]]()
        for attribute, value in _attributes(self.section(".nv.info")):
            if attribute in (_REGISTERS, _FRAME_BYTES):
                place, count = struct.unpack_from(_VALUE, value)
                counted.setdefault(symbols[place], [0, 0])[attribute == _FRAME_BYTES] = count
        return {name: (registers, local) for name, (registers, local) in counted.items()}

    def _symbols(self) -> list[str]:
        table = self.section(".symtab")
        names = self._headers[".strtab"][4]
        step = struct.calcsize(_SYMBOL)
        return [
            self._text(names + struct.unpack_from(_SYMBOL, table, place)[0])
            for place in range(0, len(table), step)
        ]

    def _text(self, place: int) -> str:
        return self._data[place : self._data.index(b"\0", place)].decode()


def _attributes(section: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(section):
        kind, attribute, size = struct.unpack_from(_ATTRIBUTE, section, place)
        place += struct.calcsize(_ATTRIBUTE)
        if kind == _SIZED:
            yield attribute, section[place : place + size]
            place += size
