"""What others wrote, as the characters that it is made of: a reader obeys or overlooks what cannot be seen.

A terminal obeys control characters, marks of direction turn words around, and a language model reads tags,
variation selectors and characters of no width that no person sees.
"""

from __future__ import annotations

import re

_LINES = str.maketrans("", "", "\n\t")
_BLANK = re.compile(
    # Default_Ignorable_Code_Point of Unicode, and what is drawn as a blank: to str.isprintable many of these
    # are letters and marks
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """The text with each character that cannot be seen spelt out, such as ``\\x1b``; lines stay lines."""
    if is_visible(text.translate(_LINES)):
        return text
    return "".join(char if char in "\n\t" or is_visible(char) else ascii(char)[1:-1] for char in text)


def is_visible(text: str) -> bool:
    """Whether a text of one line is as it looks."""
    return text.isprintable() and not _BLANK.search(text)
