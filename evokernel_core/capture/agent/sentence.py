"""Sentences for a person, as ``evokernel_core.domain.sentence`` has them, which the user's interpreter cannot
import: English text that still knows its template and its values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Sentence(str):
    """``Sentence("{op} has no kernel.", op=op)``; the other side reads what ``data`` gives."""

    def __new__(cls, template: str = "", /, **values: Any) -> Sentence:
        if isinstance(template, Sentence) and not values:
            return template
        held = {name: _value(value) for name, value in values.items()}
        made = super().__new__(cls, template.format(**held) if held else template)
        made.template, made.values = str(template), held
        return made

    template: str
    values: dict[str, Any]

    def data(self) -> Any:
        """For JSON: text alone, or the template with its values."""
        return self._whole() if self.values else str(self)

    def _whole(self) -> dict[str, Any]:
        """Within another one a sentence without values says, too, that it is one, and no mere text."""
        held = {name: v._whole() if isinstance(v, Sentence) else v for name, v in self.values.items()}
        return {"say": self.template, "with": held}


def joined(parts: Iterable[Sentence]) -> Sentence:
    """Sentences one behind the other."""
    told = {f"part{number}": part for number, part in enumerate(dict.fromkeys(parts))}
    return Sentence(" ".join(f"{{{name}}}" for name in told), **told)


def _value(value: Any) -> Any:
    known = isinstance(value, (Sentence, int, float)) and not isinstance(value, bool)
    return value if known else str(value)


class Told(Exception):
    """An exception whose text is one sentence for a person."""

    def __init__(self, template: str = "", /, **values: Any) -> None:
        super().__init__(Sentence(template, **values))

    @property
    def sentence(self) -> Sentence:
        return Sentence(self.args[0])
