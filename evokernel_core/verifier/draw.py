"""What nobody but the verifier knows before a verification ends: the secret that its cases are drawn from.

The secret comes from the system for each verification and is kept in the verdict, so that the same cases can
be run again; a verdict over a secret that somebody chose says so, for a kernel may know such cases by heart.
"""

from __future__ import annotations

import hashlib
import os
import random
import re

from attrs import frozen

from evokernel_core.domain.errors import UsageError

_BYTES = 16
_TEXT = re.compile(r"[0-9a-f]{32}")


@frozen
class Draw:
    """``secret`` is in hex, as verdicts have it; ``replayed`` says that it was given and not drawn."""

    secret: str
    replayed: bool = False

    def numbers(self, purpose: str) -> random.Random:
        """Numbers that the secret decides, others for each purpose."""
        return random.Random(hashlib.sha256(f"{self.secret}\n{purpose}".encode()).digest())


def fresh() -> Draw:
    """A draw that nobody can foresee."""
    return Draw(os.urandom(_BYTES).hex())


def replay(secret: str) -> Draw:
    """The draw of an earlier verdict. Raises UsageError for text that is none."""
    if not _TEXT.fullmatch(secret):
        raise UsageError(
            "{text} is no draw; give the 32 digits that a verdict has as `draw`.", text=repr(secret[:40])
        )
    return Draw(secret, replayed=True)
