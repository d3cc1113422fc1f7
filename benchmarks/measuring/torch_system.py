"""PyTorch's own way to compute what a kernel computes, as a system that is timed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any


class TorchSystem:
    """A function of tensors, with fresh copies of its inputs at other addresses in each run."""

    def __init__(
        self,
        torch: Any,
        function: Callable[..., Any],
        inputs: Sequence[Any],
        seed: int,
        device: str = "cuda",
    ) -> None:
        self._torch, self._function, self._masters = torch, function, tuple(inputs)
        self._device = device
        self._numbers = random.Random(seed)
        self._held: Any = None
        self._inputs: tuple[Any, ...] = ()
        self.result: Any = None

    def stage(self) -> None:
        self.result, self._inputs, self._held = None, (), None
        room = self._numbers.randrange(1, 64) << 21
        self._held = self._torch.empty(room, dtype=self._torch.uint8, device=self._device)
        self._inputs = tuple(one.clone() if hasattr(one, "clone") else one for one in self._masters)

    def go(self) -> None:
        self.result = self._function(*self._inputs)

    def finish(self) -> None:
        """Nothing: its own results are what others are compared with."""
