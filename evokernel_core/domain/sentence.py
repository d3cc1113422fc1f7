"""A sentence for a person: English text that still knows what it was made of.

Who knows of a failure says it as a template with named values, ``Sentence("{op} of {dtype} is not covered.",
op=op, dtype=dtype)``. It is that text in English wherever text is wanted, as in logs and on the command line;
whoever speaks another language translates the template and fills the values in. A template is an identity:
the catalogues of translations are keyed by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Value = str | int | float
"""What fills a template. A Sentence is translated in its turn, all other text is passed on as it is."""
_TEMPLATE, _VALUES = "say", "with"


class Sentence(str):
    """English text with its ``template`` and ``values``; text without values stands for itself, braces and
    all. What is cut out of a sentence or added to it is mere text."""

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, Value]

    def __new__(cls, template: str = "", /, **values: object) -> Sentence:
        """``values`` may be anything that can be shown, and errors that carry a sentence of their own. Raises
        KeyError where a template has a name that no value has."""
        if isinstance(template, Sentence):
            if not values:
                return template
            template = template.template
        held = {name: _value(value) for name, value in values.items()}
        made = super().__new__(cls, template.format(**held) if held else template)
        made.template, made.values = str(template), held
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.template, dict(self.values))

    def data(self) -> Any:
        """For JSON: text alone, or the template with its values."""
        return self._whole() if self.values else str(self)

    def _whole(self) -> dict[str, Any]:
        """Within another one a sentence without values says, too, that it is one, and no mere text."""
        held = {name: v._whole() if isinstance(v, Sentence) else v for name, v in self.values.items()}
        return {_TEMPLATE: self.template, _VALUES: held}

    def written(self) -> str:
        """For a column of text: the text alone, or the JSON of ``data``."""
        return json.dumps(self.data()) if self.values else str(self)


def _again(template: str, values: Mapping[str, Value]) -> Sentence:
    return Sentence(template, **values)


def _value(value: object) -> Value:
    if isinstance(value, BaseException):
        value = getattr(value, "sentence", value)
    if isinstance(value, Sentence) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return str(value)


def joined(parts: Iterable[str], by: str = " ") -> Sentence:
    """Sentences one behind the other, each still to be translated; empty ones are left out."""
    told = [part for part in parts if part]
    if len(told) == 1:
        return Sentence(told[0])
    names = [f"part{number}" for number in range(len(told))]
    return Sentence(by.join(f"{{{name}}}" for name in names), **dict(zip(names, told, strict=True)))


def sentence_of(data: object) -> Sentence:
    """The sentence that ``data`` gave. Raises ValueError for what is none."""
    if isinstance(data, str):
        return Sentence(data)
    if isinstance(data, Mapping) and data.keys() == {_TEMPLATE, _VALUES} and _fits(data):
        held = data[_VALUES]
        filled = {name: sentence_of(v) if isinstance(v, Mapping) else v for name, v in held.items()}
        try:
            return Sentence(data[_TEMPLATE], **filled)
        except (LookupError, AttributeError, TypeError) as error:
            raise ValueError(f"A sentence cannot be filled in: {error}.") from error
    raise ValueError("A sentence is a text, or a template with its values.")


def _fits(data: Mapping[str, Any]) -> bool:
    template, values = data[_TEMPLATE], data[_VALUES]
    return (
        isinstance(template, str)
        and isinstance(values, Mapping)
        and all(
            isinstance(name, str) and isinstance(value, str | int | float | Mapping)
            for name, value in values.items()
        )
    )


def read(text: str) -> Sentence:
    """The sentence that ``written`` gave; any other text stands for itself."""
    if text.startswith("{"):
        try:
            return sentence_of(json.loads(text))
        except ValueError:
            pass
    return Sentence(text)
