"""The store of tokens: what it gives out, what it keeps, and that several processes see the same."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evokernel_core.domain.errors import StoreError
from evokernel_core.verifier.serving.tokens import TokenStore
from evokernel_core.verifier.serving.users import Priority, Quota, Scope, User


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TokenStore]:
    store = TokenStore(tmp_path)
    yield store
    store.close()


def test_a_token_is_its_user(store: TokenStore) -> None:
    quota = Quota(10, 2, 60)
    token = store.add(
        "alice", frozenset({Scope.READ}), days=1, priorities=frozenset({Priority.BACKGROUND}), quota=quota
    )
    user = store.user(token)
    identity = token.split("_")[1]
    assert user == User("alice", frozenset({Scope.READ}), frozenset({Priority.BACKGROUND}), quota, identity)
    assert user.may(Scope.READ) and not user.may(Scope.SUBMIT)
    assert [(row.id, row.state(time.time())) for row in store.rows()] == [(identity, "valid")]


def test_two_tokens_are_different(store: TokenStore) -> None:
    tokens = {store.add("alice", frozenset(Scope), days=1) for _ in range(20)}
    assert len(tokens) == len({token.split("_", 2)[2] for token in tokens}) == 20
    assert all(len(token.split("_", 2)[2]) == 43 for token in tokens), "256 bits"


def test_a_revoked_token_is_refused_by_whoever_has_the_store_open(store: TokenStore, tmp_path: Path) -> None:
    kept, gone, other = (store.add(name, frozenset(Scope), days=1) for name in ("bob", "alice", "alice"))
    service = TokenStore(tmp_path)
    assert service.user(gone)
    assert store.revoke(gone.split("_")[1]) == 1
    assert service.user(gone) is None and service.user(other)
    assert store.revoke("alice") == 1
    assert service.user(other) is None and service.user(kept)
    assert store.revoke("alice") == 0
    service.close()


def test_a_token_ends_on_its_day(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    token = store.add("alice", frozenset(Scope), days=2)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 2 * 86_400 - 5)
    assert store.user(token)
    monkeypatch.setattr(time, "time", lambda: now + 2 * 86_400 + 5)
    assert store.user(token) is None
    assert [row.state(time.time()) for row in store.rows()] == ["expired"]


def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokens.db").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        TokenStore(tmp_path)


def test_a_link_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "tokens.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        TokenStore(tmp_path)
