"""The page about each diagnostic's code, in the person's language. Pages are files of this package, so that a
link works wherever the server is installed and needs no network."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lsprotocol import types

from evokernel_server.texts.translations import spoken

FOLDER = Path(__file__).parents[1] / "help"
"""English pages; those of another language are in a folder of its name."""
_OTHER = "failed"


def page_of(code: str) -> types.CodeDescription | None:
    """The page of a code, that of failures for one without its own; None where pages are no files, as in an
    archive."""
    return _page(code, spoken())


@cache
def _page(code: str, language: str) -> types.CodeDescription | None:
    for name in (code, _OTHER):
        path = FOLDER / language / f"{name}.md"
        if name.isidentifier() and path.is_file():
            return types.CodeDescription(path.as_uri())
    return None
