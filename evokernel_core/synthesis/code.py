"""What of a kernel's text the compiler sees."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.twin.lexer import tokenize


def code_id(source: KernelSource) -> str:
    """sha256 (hex) of the tokens of the files: comments, spaces and line ends are not part of it."""
    return _digest(source.target, source.files)


@lru_cache(maxsize=256)
def _digest(target: str, files: Mapping[str, str]) -> str:
    digest = hashlib.sha256(f"{target}\0".encode())
    for name, text in sorted(files.items()):
        digest.update(f"{name}\0".encode())
        tokens = (" ".join(token.text.split()) for token in tokenize(text))
        digest.update("\n".join(tokens).encode() + b"\0")
    return digest.hexdigest()
