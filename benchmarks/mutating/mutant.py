"""What a mutant is, and inputs that show it."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from evokernel_core.domain.kernel import KernelSource


class Kind(StrEnum):
    """What was changed."""

    SCALE = "scale"
    CLIP = "clip"
    OFFSET = "offset"
    SIZE = "size class"
    WIDTH = "integer width"
    LAUNCH = "launch kind"
    FORMULA = "formula"
    SYNC = "missing sync"
    SCALAR = "scalar rewrite"
    UNDEFINED = "uninitialised value"
    TAIL = "dropped tail"


TIME_ONLY = frozenset({Kind.LAUNCH, Kind.SCALAR, Kind.SYNC})
"""Kinds that change no result on the twin, which runs instructions in the order of the text: what they change
is time, and on a chip, for a missing wait, luck."""


@frozen
class Aim:
    """Inputs on which a mutation shows. Floats are N(0, 1) * ``scale`` + ``offset``, integers lie within
    ``whole``; ``sizes`` are set for symbols by their place, others have the file's."""

    scale: float = 1.0
    offset: float = 0.0
    whole: int = 8
    sizes: tuple[tuple[int, int], ...] = ()


PLAIN = Aim()
_FEW = ((0, 8),)
"""Values show in few rows."""
VALUES = tuple(
    Aim(scale, offset, sizes=_FEW)
    for scale, offset in ((1e-6, 0.0), (1e4, 0.0), (1.0, 1e4), (1e8, 0.0), (100.0, 0.0),
                          (1.0, 300.0), (1e6, 0.0), (1e-10, 0.0), (1e-3, 0.0), (1.0, 0.0), (1.0, -20.0),
                          (1.0, 20.0))
)  # fmt: skip
WHOLE = tuple(Aim(whole=most) for most in (8, 300, 50_000, 2**27, 2**31 - 1, 2**62))


@frozen
class Mutant:
    """A kernel's files after one change. ``shown`` is the same kernel with the undefined value set to one
    that it may have, where the mutation leaves one undefined."""

    kind: Kind
    subject: str
    change: str
    source: KernelSource = field(eq=False)
    aims: tuple[Aim, ...] = field(eq=False, default=VALUES)
    shown: KernelSource | None = field(eq=False, default=None)

    @property
    def key(self) -> str:
        """Names the mutant whatever else the table holds."""
        return f"{self.kind.replace(' ', '-')}-{self.source.source_id[:24]}"
