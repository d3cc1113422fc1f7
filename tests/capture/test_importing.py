"""The collector rests while modules are imported for the first time, and only then."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from evokernel_core.capture.agent.service import importing


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()
    gc.freeze()  # what tests/conftest.py froze


def test_the_collector_rests_and_what_is_there_is_looked_through_no_more() -> None:
    gc.unfreeze()
    with importing("no.such.module"):
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 1000


def test_it_goes_on_after_an_import_that_failed() -> None:
    with pytest.raises(ModuleNotFoundError), importing("no.such.module"):
        import no.such.module  # noqa: F401
    assert gc.isenabled()


def test_nothing_is_kept_for_good_where_the_module_is_there() -> None:
    gc.unfreeze()
    with importing("gc"):
        assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    with importing("no.such.module"):
        assert not gc.isenabled()
    assert not gc.isenabled()
