"""What of a kernel's text the compiler sees."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.language import TokenKind
from evokernel_core.targets import TARGETS
from evokernel_core.targets.sources import language_of


def code_id(source: KernelSource) -> str:
    """sha256 (hex) of the tokens of the files: comments are not part of it, and spaces and line ends only
    where the language gives them a meaning. Of a target that is not known, of the texts as they are."""
    return _digest(source.target, source.files)


@lru_cache(maxsize=256)
def _digest(target: str, files: Mapping[str, str]) -> str:
    digest = hashlib.sha256(f"{target}\0".encode())
    for name, text in sorted(files.items()):
        digest.update(f"{name}\0".encode())
        digest.update("\n".join(_words(target, name, text)).encode() + b"\0")
    return digest.hexdigest()


def _words(target: str, name: str, text: str) -> Iterator[str]:
    if target not in TARGETS:  # memories may come from later versions
        yield text
        return
    for token in language_of(target).tokens(name, text):
        is_layout = token.kind is TokenKind.LAYOUT
        yield token.text if is_layout else " ".join(token.text.split())
