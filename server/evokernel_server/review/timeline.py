"""The page of a timeline in the language of the editor, beside the English one that the worker made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evokernel_core.private import private_opener
from evokernel_core.twin.page_words import with_words
from evokernel_server.texts.translations import _, spoken


def said_page(page: Path, templates: Iterable[str]) -> Path:
    """The page whose words are translated, or the page itself where English is spoken. ``templates`` are
    those of what it says. Raises OSError."""
    language = spoken()
    words = {template: _(template) for template in templates if template}
    if not language or not words:
        return page
    made = page.with_suffix(f".{language}.html")
    text = with_words(page.read_text("utf-8"), language.replace("_", "-"), words)
    staged = made.with_suffix(".part")
    with open(staged, "w", encoding="utf-8", opener=private_opener) as file:
        file.write(text)
    return staged.replace(made)
