"""Text that others wrote, made fit to be shown: names of files, what programs printed, what packages claim.

Editors read links in messages and markup in hovers, and some of those links run commands when they are
clicked. So a name or an error that holds such signs is shown as the characters that it is made of.
"""

from __future__ import annotations

import re

LONGEST = 400
"""Characters of a foreign text that are shown."""
_ADDRESS = re.compile(r"(?i)(?<=[a-z]):(?=//)|(?<=\bwww)\.|@")
"""The sign in the middle of what editors take for an address, also where no markup says so."""
_MARKUP = re.compile(r"([\\`\[\]<>])")


def plain(text: str, longest: int = LONGEST) -> str:
    """One line without control characters, also those that turn the direction of writing."""
    shown = text
    if not text.isprintable():
        shown = "".join(char if char.isprintable() else " " for char in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def message(text: str) -> str:
    """For messages, in which VS Code reads ``[words](command:name)`` as a link that runs a command."""
    return "\n".join(plain(line, 10 * LONGEST) for line in text.splitlines()).replace("](", "] (")


def markdown(text: str) -> str:
    """For markup: every sign that could begin a link, an image, HTML or code is escaped."""
    return _ADDRESS.sub(r"\\\g<0>", _MARKUP.sub(r"\\\1", plain(text, 4 * LONGEST)))


def code(text: str) -> str:
    """For a code span, which backticks would end."""
    return f"`{plain(text).replace('`', chr(0x2019))}`"
