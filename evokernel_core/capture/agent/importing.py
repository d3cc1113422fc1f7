"""Imports of thousands of modules, without a look for garbage among what they make."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing(module: str) -> Iterator[None]:
    """The collector is off in a block that imports a module for the first time: nothing of what is imported
    becomes garbage. What is there at the end stays, and later collections do not look through it again."""
    if module in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
