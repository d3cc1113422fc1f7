"""Keys' cubic kernel on vectors: what four elements around a place weigh."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import frozen

from evokernel_core.targets.ascendc.ir.builder import Place, as_float
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Number


@frozen
class KeysKernel:
    """The kernel of a coefficient. ``do`` writes an instruction on all lanes, ``number`` names a number."""

    do: Callable[..., None]
    number: Callable[[str, float], Number]
    coefficient: float

    def weights(self, share: Buffer, distance: Buffer, weight: Callable[[int], Place]) -> Iterator[int]:
        """Each of the taps at 1 + share, share, 1 - share and 2 - share, once it is weighed."""
        for tap, (sign, ahead) in enumerate(((1, 1), (1, 0), (-1, 1), (-1, 2))):
            self.do("Muls", distance, share, as_float(sign))
            self.do("Adds", distance, distance, as_float(ahead))
            (self.near if tap in (1, 2) else self.far)(weight(tap), distance)
            yield tap

    def near(self, to: Place, x: Place) -> None:
        """((a + 2) x - (a + 3)) x x + 1."""
        self.do("Muls", to, x, self.number("NEAR3", self.coefficient + 2))
        self.do("Adds", to, to, self.number("NEAR2", -(self.coefficient + 3)))
        for _ in range(2):
            self.do("Mul", to, to, x)
        self.do("Adds", to, to, as_float(1))

    def far(self, to: Place, x: Place) -> None:
        """((a x - 5a) x + 8a) x - 4a."""
        self.do("Muls", to, x, self.number("FAR3", self.coefficient))
        for name, factor in (("FAR2", -5), ("FAR1", 8)):
            self.do("Adds", to, to, self.number(name, factor * self.coefficient))
            self.do("Mul", to, to, x)
        self.do("Adds", to, to, self.number("FAR0", -4 * self.coefficient))
