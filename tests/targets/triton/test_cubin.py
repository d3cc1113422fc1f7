"""What is read of cubins: files put together here, and damaged ones."""

from __future__ import annotations

import struct

import pytest

from evokernel_core.targets.triton.backends.child.cubin import Cubin

REGISTERS, FRAME, OTHER = 0x2F, 0x11, 0x12


def attribute(kind: int, function: int, count: int) -> bytes:
    return struct.pack("<BBHII", 4, kind, 8, function, count)


def elf(sections: dict[str, bytes]) -> bytes:
    """An ELF file of 64 bits with these sections, and one with their names."""
    names, places = b"\0", {}
    for name in [*sections, ".shstrtab"]:
        places[name] = len(names)
        names += name.encode() + b"\0"
    data, headers = bytearray(64), [bytes(64)]
    for name, content in [*sections.items(), (".shstrtab", names)]:
        headers.append(struct.pack("<IIQQQQIIQQ", places[name], 1, 0, 0, len(data), len(content), 0, 0, 0, 0))
        data += content
    table = len(data)
    head = struct.pack("<5s11xHHIQQQIHHHHHH", b"\x7fELF\x02", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64,
                       len(headers), len(headers) - 1)  # fmt: skip
    data[:64] = head
    return bytes(data) + b"".join(headers)


def cubin(info: bytes, names: tuple[str, ...] = ("", "softmax", "total")) -> bytes:
    text = b"".join(name.encode() + b"\0" for name in names)
    places = [len(b"".join(one.encode() + b"\0" for one in names[:i])) for i in range(len(names))]
    table = b"".join(struct.pack("<IBBHQQ", place, 0, 0, 0, 0, 0) for place in places)
    return elf({".strtab": text, ".symtab": table, ".nv.info": info})


def test_registers_and_local_memory_by_function() -> None:
    info = attribute(REGISTERS, 1, 40) + attribute(OTHER, 1, 7) + attribute(FRAME, 2, 16)
    info += struct.pack("<BBH", 3, 0x50, 1)  # a value in the attribute itself
    info += attribute(REGISTERS, 2, 255)
    assert Cubin(cubin(info)).functions() == {"softmax": (40, 0), "total": (255, 16)}


def test_a_file_without_the_section_says_nothing() -> None:
    assert Cubin(elf({".strtab": b"\0"})).section(".nv.info") == b""
    assert Cubin(elf({".strtab": b"\0"})).functions() == {}


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02", b"\x7fELF\x01" + bytes(80), b"text" * 40])
def test_what_is_no_cubin_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no ELF file"):
        Cubin(data)
