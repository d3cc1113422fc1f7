"""Texts by the name of their file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

MOST_FILES = 16
"""Files of one kernel; those of AscendC have two."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class Files(Mapping[str, str]):
    """Frozen, in the order in which they are read; two are equal whatever their order.

    Raises ValueError for no file, too many, or a name that may lead out of a folder; TypeError for what is no
    text.
    """

    __slots__ = ("_texts",)

    def __init__(self, texts: Mapping[str, str]) -> None:
        given = dict(texts)
        if not 0 < len(given) <= MOST_FILES:
            raise ValueError(f"A kernel has 1 to {MOST_FILES} files, not {len(given)}.")
        for name, text in given.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(
                    f"{ascii(name)[:80]} is not the name of a file; use letters, digits and .-_ only."
                )
            if not isinstance(text, str):
                raise TypeError(f"The file {name} is not a text.")
        self._texts = given

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __hash__(self) -> int:
        return hash(frozenset(self._texts.items()))

    def __repr__(self) -> str:
        return f"Files({self._texts!r})"
