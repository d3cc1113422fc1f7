"""The memory of one candidate: one block for all its tensors, full of a known byte wherever they are not.

Each run has its tensors at other places, inputs fresh, outputs and scratch full of the byte. What a kernel
writes outside its tensors is seen afterwards, and what an earlier run left is nowhere in the block.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

ALIGNED = 512
"""Bytes; as PyTorch's allocator has it, so that a kernel compiled for multiples of 16 finds them."""
GUARD = 4096
"""Bytes that nobody may write between two tensors, at least."""
SPREAD = 1 << 20
"""Bytes over which places are drawn."""
POISONS = (0xFF, 0x7B, 0xA5)
"""NaN, a large number of either sign; each run has another."""
_CHUNK = 1 << 22
"""Words of 8 bytes that are looked at at a time."""
_WIDTH, _ROWS = 4096, 1 << 17
"""Words of a row, and rows, of a table that is summed at a time."""


def rounded(nbytes: int) -> int:
    """Up to a multiple of the alignment."""
    return -(-nbytes // ALIGNED) * ALIGNED


def needed(sizes: Mapping[str, int]) -> int:
    """Bytes of a block for tensors of these sizes."""
    return sum(rounded(size) + GUARD for size in sizes.values()) + GUARD + rounded(SPREAD)


def places(sizes: Mapping[str, int], numbers: random.Random) -> dict[str, int]:
    """Where tensors lie in a block of ``needed`` bytes: in any order, each with a guard zone before and
    behind it."""
    names = list(sizes)
    numbers.shuffle(names)
    cuts = sorted(numbers.randrange(SPREAD // ALIGNED + 1) for _ in names)
    placed, behind = {}, GUARD
    for name, cut in zip(names, cuts, strict=True):
        placed[name] = behind + cut * ALIGNED
        behind += rounded(sizes[name]) + GUARD
    return placed


class Arena:
    """A block on the device for tensors by name."""

    def __init__(self, torch: Any, device: str, sizes: Mapping[str, int], numbers: random.Random) -> None:
        """Raises torch's OutOfMemoryError."""
        self._torch, self.sizes, self._numbers = torch, dict(sizes), numbers
        self._block = torch.empty(needed(sizes), dtype=torch.uint8, device=device)
        self._poison = POISONS[0]
        self._placed: dict[str, int] = {}
        self._weights = _weights(torch, device, numbers)

    def restart(self, run: int, inputs: Mapping[str, Any]) -> None:
        """Other places; inputs hold these bytes, and everything else the byte of that run."""
        self._poison = POISONS[run % len(POISONS)]
        self._placed = places(self.sizes, self._numbers)
        behind = 0
        for name in sorted(inputs, key=self._placed.__getitem__):
            self._block[behind : self._placed[name]].fill_(self._poison)
            self.tensor(name).copy_(inputs[name])
            behind = self._placed[name] + self.sizes[name]
        self._block[behind:].fill_(self._poison)

    def tensor(self, name: str) -> Any:
        """The bytes of a tensor."""
        return self._block[self._placed[name] : self._placed[name] + self.sizes[name]]

    def address(self, name: str) -> int:
        return int(self._block.data_ptr()) + self._placed[name]

    def addresses(self) -> dict[str, int]:
        return {name: self.address(name) for name in self.sizes}

    def poisoned(self, name: str) -> Any:
        """Which bytes of a tensor still are the run's byte."""
        return self.tensor(name) == self._poison

    def strays(self) -> str | None:
        """The tensor behind or before which something wrote, None where nothing did; the block's tensors are
        overwritten."""
        for name in self.sizes:
            self.tensor(name).fill_(self._poison)
        words, word = self._block.view(self._torch.int64), self._word()
        for first in range(0, words.numel(), _CHUNK):
            wrong = words[first : first + _CHUNK] != word
            if bool(wrong.any()):
                return self._nearest(8 * (first + int(wrong.to(self._torch.uint8).argmax())))
        return None

    def _word(self) -> int:
        return int.from_bytes(bytes([self._poison]) * 8, "little", signed=True)

    def _nearest(self, place: int) -> str:
        def away(name: str) -> int:
            first = self._placed[name]
            return max(first - place, place - first - self.sizes[name])

        return min(self._placed, key=away)

    def digest(self, data: Any) -> Any:
        """A number of 64 bits on the device that tells two contents of a tensor's bytes apart: sums of its
        rows and of its columns, as a table of words, by drawn weights, which no candidate knows. Nothing is
        waited for."""
        torch, weights = self._torch, self._weights
        whole = data.numel() // (8 * _WIDTH) * (8 * _WIDTH)
        rest = data[whole:]
        total = (rest.to(torch.int64) * weights[: rest.numel()]).sum()
        table = data[:whole].view(torch.int64).view(-1, _WIDTH)
        for first in range(0, len(table), _ROWS):
            part = table[first : first + _ROWS]
            by_column = (part.sum(0) * weights[:_WIDTH]).sum()
            by_row = (part.sum(1) * weights[-len(part) :]).sum()
            total = total * 3 + by_column * 5 + by_row
        return total


def _weights(torch: Any, device: str, numbers: random.Random) -> Any:
    drawn = torch.Generator(device=device)
    drawn.manual_seed(numbers.getrandbits(63))
    shape, half = (8 * _WIDTH + _ROWS,), 1 << 62
    return torch.randint(-half, half, shape, generator=drawn, device=device, dtype=torch.int64) * 2 + 1
