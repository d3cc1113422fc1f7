"""Who goes when there is no room, and what counts as one address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evokernel_core.verifier.serving.door import Limits, Visitor, Visitors, affordable, neighbourhood


class Crowd:
    """Visitors by name, and the names of those who had to leave."""

    def __init__(self, total: int, an_address: int) -> None:
        self.visitors = Visitors(total, an_address)
        self.left: list[str] = []
        self._clock = 0.0

    def come(self, name: str, address: str = "1.1.1.1", *, known: bool = False, busy: bool = False) -> bool:
        self._clock += 1
        return self.visitors.admit(Visitor(address, self._leaver(name), self._clock, known, busy))

    def _leaver(self, name: str) -> Callable[[], None]:
        return lambda: self.left.append(name)


def test_the_oldest_that_showed_no_token_makes_room() -> None:
    crowd = Crowd(10, 3)
    crowd.come("served", known=True)
    crowd.come("old")
    crowd.come("young")
    assert crowd.come("new")
    assert crowd.left == ["old"]


def test_those_who_are_answered_stay_and_then_there_is_no_room() -> None:
    crowd = Crowd(10, 2)
    crowd.come("a", known=True, busy=True)
    crowd.come("b", known=True, busy=True)
    assert not crowd.come("c")
    assert crowd.come("d", "2.2.2.2")
    assert crowd.left == []


def test_idle_but_known_goes_after_all_others() -> None:
    crowd = Crowd(10, 2)
    crowd.come("known", known=True)
    crowd.come("a")
    for name in "bcd":
        assert crowd.come(name)
    assert crowd.left == ["a", "b", "c"]


def test_where_all_are_full_the_most_crowded_address_makes_room() -> None:
    crowd = Crowd(4, 3)
    for name in "abc":
        crowd.come(name, "1.1.1.1")
    crowd.come("lone", "2.2.2.2")
    assert crowd.come("new", "3.3.3.3")
    assert crowd.left == ["a"] and len(crowd.visitors) == 4


@pytest.mark.parametrize(
    ("address", "same"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:2", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_network_of_one_host_is_one_address(address: str, same: str) -> None:
    assert neighbourhood(address) == same


@pytest.mark.parametrize(("files", "expected"), [(20_000, 1024), (1024, 824), (256, 56), (64, 16)])
def test_connections_leave_files_for_the_queue(
    files: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evokernel_core.verifier.serving.door.resource.getrlimit", lambda _: (files, files))
    assert affordable(Limits()) == expected
