"""Words for a terminal: what others wrote is shown as the characters that it is made of.

Errors, verdicts and memories repeat names and texts of packages, packs and kernels. A terminal obeys control
characters in them: they set its title, its clipboard and lines that were printed before.
"""

from __future__ import annotations

import click


def say(text: str, *, err: bool = False) -> None:
    """Prints a text of one or more lines, on standard error where ``err`` says so."""
    click.echo(shown(text), err=err)


def shown(text: str) -> str:
    """The text with each character that cannot be seen spelt out, such as ``\\x1b``; lines stay lines."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)
