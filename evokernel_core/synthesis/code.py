"""What of a kernel's text the compiler sees."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.twin.lexer import tokenize


def code_id(source: KernelSource) -> str:
    """sha256 (hex) of the tokens of both files: comments, spaces and line ends are not part of it."""
    return _digest(source.tiling_h, source.op_kernel_cpp)


@lru_cache(maxsize=256)
def _digest(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        tokens = (" ".join(token.text.split()) for token in tokenize(text))
        digest.update("\n".join(tokens).encode() + b"\0")
    return digest.hexdigest()
