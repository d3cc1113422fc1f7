"""``evokernel key``: secrets in the system's keyring."""

from __future__ import annotations

import os
import sys

import click

from evokernel_core.cli.terminal import say
from evokernel_core.domain.errors import KeyringUnavailable, UsageError
from evokernel_core.keys import VARIABLES, Key, forget_key, keep_key, keyring_name, read_key

_NAME = click.argument("name", type=click.Choice([key.value for key in Key]))


@click.group()
def command() -> None:
    """Keep the model's key and the verifier's token in the system's keyring.

    EVOKERNEL_API_KEY and EVOKERNEL_VERIFIER_TOKEN go before what is kept there.
    """


@command.command("set")
@_NAME
def set_(name: str) -> None:
    """Ask for a secret, or read it from a pipe, and keep it."""
    typed = (
        click.prompt(f"The {name}'s secret", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    )
    secret = typed.strip()
    if not secret:
        raise UsageError(f"No secret was given; type it, or pipe it into `evokernel key set {name}`.")
    if not (secret.isascii() and secret.isprintable()):
        raise UsageError("A secret has printable ASCII characters only; copy it once more.")
    keep_key(Key(name), secret)
    say(f"The {name}'s secret is in the keyring.")


@command.command("unset")
@_NAME
def unset(name: str) -> None:
    """Remove a secret from the keyring."""
    say(
        f"The {name}'s secret is gone."
        if forget_key(Key(name))
        else f"The keyring holds none for the {name}."
    )


@command.command("show-where")
def show_where() -> None:
    """Say where each secret comes from; never what it is."""
    try:
        place = f"the keyring ({keyring_name()})"
        kept = {key: bool(read_key(key)) for key in Key}
    except KeyringUnavailable as error:
        say(str(error), err=True)
        kept = dict.fromkeys(Key, False)
    for key in Key:
        given = os.environ.get(VARIABLES[key])
        empty = "" if given is None or given.strip() else ", which is set to none"
        result = place if kept[key] else "nowhere"
        say(f"{key.value}: {result if given is None else VARIABLES[key] + empty}")
