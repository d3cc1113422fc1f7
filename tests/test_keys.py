"""Secrets in the system's keyring: kept, found behind the environment, and never waited for."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import keyring
import pytest
from attrs import evolve
from click.testing import CliRunner, Result
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import KeyringLocked, PasswordDeleteError

from evokernel_core import keys
from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import KeyringUnavailable
from evokernel_core.domain.settings import ModelEndpoint, Settings
from evokernel_core.keys import SERVICE, VARIABLES, Key, find_key, forget_key, keep_key, read_key, with_keys


class InMemoryKeyring(KeyringBackend):
    """A keyring of the test's own, behind keyring's interface for backends; the machine's stays untouched."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.held.pop((service, username), None) is None:
            raise PasswordDeleteError("not there")


class LockedKeyring(InMemoryKeyring):
    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringLocked("nobody unlocked it")


class BrokenKeyring(InMemoryKeyring):
    def get_password(self, service: str, username: str) -> str | None:
        raise ValueError("the bus is gone")


class SilentKeyring(InMemoryKeyring):
    """Asks somebody who is not there, until the test is over."""

    over = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.over.wait()
        return None


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryKeyring]:
    for name in VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    SilentKeyring.over.clear()
    before, mine = keyring.get_keyring(), InMemoryKeyring()
    keyring.set_keyring(mine)
    yield mine
    SilentKeyring.over.set()
    keyring.set_keyring(before)


@pytest.mark.parametrize("key", Key)
def test_there_and_gone(key: Key) -> None:
    assert read_key(key) == "" and not forget_key(key)
    keep_key(key, "one")
    keep_key(key, "two")
    assert find_key(key, {}) == read_key(key) == "two"
    assert forget_key(key)
    assert read_key(key) == ""


def test_the_environment_goes_first() -> None:
    keep_key(Key.MODEL, "kept")
    assert find_key(Key.MODEL, {"EVOKERNEL_API_KEY": " given "}) == "given"
    assert find_key(Key.MODEL, {}) == "kept"


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_variable_says_that_there_is_no_key(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keyring's key for one endpoint need not go to another."""
    keep_key(Key.MODEL, "kept")
    monkeypatch.setenv("EVOKERNEL_API_KEY", empty)
    asking = Settings(endpoint=ModelEndpoint(base_url="https://m"))
    assert find_key(Key.MODEL) == with_keys(asking).endpoint.api_key == ""
    assert run("show-where").stdout.startswith("model: EVOKERNEL_API_KEY, which is set to none\n")


def test_what_a_keyring_adds_is_no_part_of_a_key(own: InMemoryKeyring) -> None:
    own.held[SERVICE, "model"] = " sk-abc\n"
    assert read_key(Key.MODEL) == find_key(Key.MODEL, {}) == "sk-abc"


def test_settings_get_what_they_need_and_lack() -> None:
    for key in Key:
        keep_key(key, key.value)
    assert with_keys(Settings()) == Settings(), "nobody is asked for a secret that nothing uses"
    asking = Settings(verifier_url="https://v", endpoint=ModelEndpoint(base_url="https://m"))
    found = with_keys(asking)
    assert (found.endpoint.api_key, found.verifier_token) == ("model", "verifier")
    own = evolve(asking, verifier_token="own", endpoint=evolve(asking.endpoint, api_key="own"))
    assert with_keys(own) == own


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        (NoKeyring, "is missing on this machine"),
        (LockedKeyring, "is locked"),
        (BrokenKeyring, "failed (ValueError)"),
        (SilentKeyring, "does not answer"),
    ],
)
def test_a_keyring_that_cannot_be_asked(
    backend: Callable[[], KeyringBackend], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wants nobody to wait, nor a command that needs no secret to fail."""
    monkeypatch.setattr(keys, "READ_S", 0.2)
    keyring.set_keyring(backend())
    with pytest.raises(KeyringUnavailable) as refused:
        read_key(Key.VERIFIER)
    assert str(refused.value) == (
        f"The system's keyring {says}; set EVOKERNEL_VERIFIER_TOKEN in the environment instead."
    )
    assert find_key(Key.VERIFIER, {}) == ""
    found = run("show-where")
    assert (found.exit_code, found.stdout) == (0, "model: nowhere\nverifier: nowhere\n")
    assert says in found.stderr


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, ["key", *arguments], input=given)


def test_the_command(own: InMemoryKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = run("set", "model", given="sk-secret\n")
    assert (kept.exit_code, own.held) == (0, {(SERVICE, "model"): "sk-secret"})
    monkeypatch.setenv("EVOKERNEL_VERIFIER_TOKEN", "a-token")
    shown = run("show-where")
    assert shown.stdout.startswith("model: the keyring (test keys InMemoryKeyring)")
    assert "verifier: EVOKERNEL_VERIFIER_TOKEN" in shown.stdout
    assert run("unset", "model").exit_code == 0 and not own.held
    assert "holds none" in run("unset", "model").stdout
    assert "sk-secret" not in kept.output + shown.output


@pytest.mark.parametrize("given", ["", "\n", "kéy\n", "a\x07b\n"])
def test_no_secret(given: str, own: InMemoryKeyring) -> None:
    assert run("set", "model", given=given).exception is not None
    assert not own.held


def test_nothing_imports_a_keyring_that_nobody_asks() -> None:
    code = "import sys, evokernel_core.synthesis.session; sys.exit('keyring' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
