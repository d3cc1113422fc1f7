"""What a Chinese editor would show of something that was said, and what of that is English."""

from __future__ import annotations

import re

from evokernel_server.texts.translations import speak, spoken, told

CODE = re.compile(
    r"`[^`]*`|\w+Error: [^：]*|```.*?```|\[[^\]]*\]\([^)]*\)|https?://\S+|(?:\w+ x )*\w+ -> \w+"
    r"|\S*(?:[_/()=\[\]'\"-]|\.(?=\S))\S*",
    re.DOTALL,
)
"""Code spans, links, types that an instruction takes and makes, and words with signs of code in them."""
ENGLISH = re.compile(r"\b[A-Za-z]?[a-z]+(?:[ ,]+[a-z]+){2,}")
"""Three words in a row: names of operations and files are one or two."""


def english(text: str) -> str:
    """The first words of an English sentence in a text, "" where there is none."""
    found = ENGLISH.search(CODE.sub(" | ", text))
    return found[0] if found else ""


def in_chinese(said: str) -> str:
    """What ``told`` makes of it for a Chinese editor."""
    before = spoken()
    speak("zh-cn")
    try:
        return told(said)
    finally:
        speak(before)


def left_in_english(said: str) -> str:
    """The English words that a Chinese editor would show of it, "" where it is all Chinese."""
    return english(in_chinese(said))
