"""The memories of an Ascend core from which data are read again, as archive cells name them."""

from __future__ import annotations

from typing import Final

UB: Final = "UB"
L0: Final = "L0"
L1: Final = "L1"
L2: Final = "L2"
