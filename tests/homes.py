"""Homes of tests that share what is compiled: a library is named by all that goes into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evokernel_core.paths import cache_path

_KERNELS = cache_path().absolute() / "kernels"
"""Those of the home in which the tests were started."""


@contextmanager
def home_with_kernels(home: Path) -> Iterator[Path]:
    """An empty home, but for the kernels that earlier tests compiled. Not for tests of the cache itself."""
    _KERNELS.mkdir(parents=True, exist_ok=True)
    (home / "cache").mkdir()
    (home / "cache" / "kernels").symlink_to(_KERNELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOKERNEL_HOME", str(home))
        yield home
