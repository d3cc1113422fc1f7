"""A buffer of a windowed kernel."""

from __future__ import annotations

from attrs import frozen


@frozen
class Buffer:
    """One InitBuffer: ``number`` buffers of ``count`` elements, ``elements`` in C++."""

    name: str
    type: str
    elements: str
    count: int
    width: int
    number: int = 1
    queue: bool = False

    @property
    def total(self) -> int:
        return self.number * -(-self.count * self.width // 32) * 32
