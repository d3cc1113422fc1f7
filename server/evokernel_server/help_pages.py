"""The page about each diagnostic's code. Pages are files of this package, so that a link works wherever the
server is installed and needs no network."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lsprotocol import types

FOLDER = Path(__file__).parent / "help"
_OTHER = "failed"


@cache
def page_of(code: str) -> types.CodeDescription | None:
    """The page of a code, that of failures for one without its own; None where pages are no files, as in an
    archive."""
    for name in (code, _OTHER):
        path = FOLDER / f"{name}.md"
        if name.isidentifier() and path.is_file():
            return types.CodeDescription(path.as_uri())
    return None
