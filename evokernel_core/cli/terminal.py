"""Words for a terminal: what others wrote is shown as the characters that it is made of.

Errors, verdicts and memories repeat names and texts of packages, packs and kernels. A terminal obeys control
characters in them: they set its title, its clipboard and lines that were printed before.
"""

from __future__ import annotations

import click

from evokernel_core.visible import visible


def say(text: str, *, err: bool = False) -> None:
    """Prints a text of one or more lines, on standard error where ``err`` says so."""
    click.echo(shown(text), err=err)


shown = visible
