"""Homes of tests; what is compiled is shared, since ``conftest.py`` names one folder for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def own_home(home: Path) -> Iterator[Path]:
    """A folder as the home of the product, as long as this lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOKERNEL_HOME", str(home))
        yield home
