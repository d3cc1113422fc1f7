"""The model's key and the verifier's token: in the environment, else in the system's keyring.

An editor that keeps secrets itself hands them over by environment. Elsewhere ``evokernel key set`` puts them
into the keyring (Keychain, Credential Locker, Secret Service, KWallet); no file of ours ever holds one.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from attrs import evolve

from evokernel_core.domain.errors import KeyringUnavailable
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import Settings
from evokernel_core.extras import KEYRING

log = logging.getLogger(__name__)

T = TypeVar("T")

SERVICE = "evokernel"
"""The name under which the keyring lists them."""
READ_S, CHANGE_S = 5.0, 60.0
"""How long a keyring may take: a locked one asks its owner, whom only a change expects to be there."""


class Key(StrEnum):
    MODEL = "model"
    VERIFIER = "verifier"


VARIABLES: Mapping[Key, str] = {
    Key.MODEL: "EVOKERNEL_API_KEY",
    Key.VERIFIER: "EVOKERNEL_VERIFIER_TOKEN",
}


def with_keys(settings: Settings) -> Settings:
    """Settings with the secrets that they need and lack, as far as there are any."""
    endpoint = settings.endpoint
    if endpoint.base_url and not endpoint.api_key:
        settings = evolve(settings, endpoint=evolve(endpoint, api_key=find_key(Key.MODEL)))
    if settings.verifier_url and not settings.verifier_token:
        settings = evolve(settings, verifier_token=find_key(Key.VERIFIER))
    return settings


def find_key(key: Key, environment: Mapping[str, str] = os.environ) -> str:
    """The secret; empty where neither has it. A variable that is set goes first, also an empty one, which
    says that there is to be none. A keyring that cannot be asked is one without it, and the log says so."""
    given = environment.get(VARIABLES[key])
    if given is not None:
        return given.strip()
    try:
        return read_key(key)
    except KeyringUnavailable as error:
        log.info("%s", error)
        return ""


def read_key(key: Key) -> str:
    """What the keyring holds, empty for nothing. Raises KeyringUnavailable."""

    def read() -> str:
        import keyring

        return (keyring.get_password(SERVICE, key.value) or "").strip()

    return _asked(read, key, READ_S)


def keep_key(key: Key, secret: str) -> None:
    """Puts a secret into the keyring, in the place of an earlier one. Raises KeyringUnavailable."""

    def write() -> None:
        import keyring

        keyring.set_password(SERVICE, key.value, secret)

    _asked(write, key, CHANGE_S)


def forget_key(key: Key) -> bool:
    """Removes a secret from the keyring. Returns whether there was one. Raises KeyringUnavailable."""

    def remove() -> bool:
        import keyring

        if keyring.get_password(SERVICE, key.value) is None:
            return False
        keyring.delete_password(SERVICE, key.value)
        return True

    return _asked(remove, key, CHANGE_S)


def keyring_name() -> str:
    """The keyring that is asked, in its own words. Raises KeyringUnavailable."""

    def name() -> str:
        import keyring

        return str(keyring.get_keyring().name)

    return _asked(name, Key.MODEL, READ_S)


def _asked(work: Callable[[], T], key: Key, wait_s: float) -> T:
    """What ``work`` gives. On a thread of its own, since a keyring may wait for somebody who is not there."""
    if not KEYRING.is_installed:
        raise KeyringUnavailable(
            "{problem}, or set {variable} in the environment.",
            problem=KEYRING.missing(),
            variable=VARIABLES[key],
        )
    result: list[T] = []
    failed: list[Exception] = []

    def ask() -> None:
        try:
            result.append(work())
        except Exception as error:  # backends are plugins of the system: anything may come out of them
            failed.append(error)

    thread = threading.Thread(target=ask, name="keyring", daemon=True)
    thread.start()
    thread.join(wait_s)
    if result:
        return result[0]
    raise KeyringUnavailable(
        "The system's keyring {why}; set {variable} in the environment instead.",
        why=_why(failed),
        variable=VARIABLES[key],
    )


def _why(failed: list[Exception]) -> Sentence:
    from keyring.errors import KeyringLocked, NoKeyringError

    match failed:
        case []:
            return Sentence("does not answer")
        case [NoKeyringError()]:
            return Sentence("is missing on this machine")
        case [KeyringLocked()]:
            return Sentence("is locked")
        case _:
            return Sentence("failed ({name})", name=type(failed[0]).__name__)
