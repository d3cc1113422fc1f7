"""Knowledge as items of a memory, under the ids that a memory would give them."""

from __future__ import annotations

import hashlib
import json

from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.sentence import Sentence


def item(
    kind: ExperienceKind, title: str | Sentence, body: str, *, bottleneck: str = "", payload: str = ""
) -> Experience:
    """An experience whose id is that of its content: the same knowledge has one value for all tasks."""
    text = json.dumps([kind.value, title, body], ensure_ascii=False)
    id = hashlib.sha256(text.encode()).hexdigest()
    return Experience(id, kind, Sentence(title), body, bottleneck=bottleneck, payload=payload)
