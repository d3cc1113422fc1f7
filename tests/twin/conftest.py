"""A home that the twin's tests share, so that each kernel is compiled once a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.homes import own_home


@pytest.fixture(scope="session")
def kernel_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with own_home(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest.fixture
def data() -> Path:
    """The AscendC sources of these tests."""
    return Path(__file__).parent / "data"
