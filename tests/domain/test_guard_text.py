"""What a guard asks, as text."""

from __future__ import annotations

import pytest

from evokernel_core.domain.call_site import Guard


@pytest.mark.parametrize("expected", ["{}", "'{}-{}'", "[{}]"])
def test_only_the_owner_takes_the_place_of_braces(expected: str) -> None:
    guard = Guard("self.layer", f"guards.equal({{}}.sizes, {expected})")
    assert guard.condition == f"guards.equal(self.layer.sizes, {expected})"
