"""What every test shares: a twin that is built once, though each test has a home of its own."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import platformdirs
import pytest
from hypothesis import settings

from tests import warm

pytest_plugins = ["tests.parts"]
os.environ.setdefault("EVOKERNEL_TWIN_DIR", f"{platformdirs.user_cache_dir('evokernel')}/twin")
# What tests compile lies beside what a person's kernels are compiled to, whose cache it would crowd out.
os.environ.setdefault("EVOKERNEL_KERNELS_DIR", f"{platformdirs.user_cache_dir('evokernel-tests')}/kernels")
# Threads of NumPy and torch wait for each other in loops: on few cores they take more time than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")


# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """What the modules of all tests made stays to the end: to look through it takes the collector a third of
    a second each time, and a fifth of the tests' own processor time in all."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


@pytest.fixture
def warm_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks for the person's Python finds one that has imported torch, as the active environment."""
    monkeypatch.setenv("VIRTUAL_ENV", str(Path(warm.interpreter()).parents[1]))
