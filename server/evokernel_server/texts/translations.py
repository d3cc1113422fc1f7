"""What is said to a person, in the language of the editor.

English is the key: ``_("{name} stays as it is.", name=name)``. What the core says comes as a Sentence, whose
template is the key, and is said with ``told``. The translations are gettext catalogues below ``locales``;
docs/contributing.md says how they are made anew. What compilers, programs and files say is left as it is.
"""

from __future__ import annotations

import gettext
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.sentence import Sentence

DOMAIN = "evokernel"
LOCALES = Path(__file__).parents[1] / "locales"
_SIMPLIFIED = ("zh", "zh_cn", "zh_sg", "zh_hans")
"""Locales, or the beginnings of longer ones, that read simplified Chinese."""

_spoken: list[gettext.NullTranslations] = [gettext.NullTranslations()]
_language = [""]
"""One language for the process, since it serves one client."""


def speak(locale: str) -> None:
    """Takes the client's language (``zh-cn``, ``en-GB``, ``de``) from now on; English where there is none."""
    _language[0] = name = catalogue_of(locale)
    languages = [name] if name else []
    _spoken[0] = gettext.translation(DOMAIN, LOCALES, languages, fallback=not languages)


def spoken() -> str:
    """The folder of the language that is spoken, "" for English."""
    return _language[0]


def catalogue_of(locale: str) -> str:
    """The folder of a locale's catalogue; "" for English and for languages that there is none of."""
    name = locale.strip().lower().replace("-", "_")
    if name == "zh" or any(name == known or name.startswith(f"{known}_") for known in _SIMPLIFIED[1:]):
        return "zh_CN"
    return ""


def _(message: str, /, **values: object) -> str:
    """The message in the person's language, with ``{name}`` filled in from ``values``."""
    result = _spoken[0].gettext(message)
    return result.format(**_all_told(values)) if values else result


def many(one: str, more: str, count: int, /, **values: object) -> str:
    """The same for a message that depends on a number, which fills ``{count}``."""
    return _spoken[0].ngettext(one, more, count).format(count=count, **_all_told(values))


def told(said: str | EvoKernelError) -> str:
    """What the core says, in the person's language, with all that it is made of; any other text, such as what
    a compiler printed, as it is."""
    sentence = said.sentence if isinstance(said, EvoKernelError) else said
    if not isinstance(sentence, Sentence):
        return sentence
    if not sentence.template:
        return ""
    return _(sentence.template, **sentence.values)


def _all_told(values: Mapping[str, object]) -> dict[str, object]:
    return {name: told(value) if isinstance(value, Sentence) else value for name, value in values.items()}


@cache
def is_ours(template: str) -> bool:
    """Whether a sentence's template is one of our own: the catalogue has them all. Others may have put their
    words into a sentence's place."""
    return bool(template) and _chinese().gettext(template) != template


@cache
def _chinese() -> gettext.NullTranslations:
    return gettext.translation(DOMAIN, LOCALES, ["zh_CN"], fallback=True)


def marked(message: str) -> str:
    """The message as it is: for a constant, which is said with ``_`` where it is shown."""
    return message


def source_word(source: str) -> str:
    """How a latency is known: different words in every language. Text of another origin is no such word."""
    return {"modelled": _("estimated"), "measured": _("measured")}.get(source) or _("of unknown source")


def sourced(figure: str, source: str) -> str:
    """A latency with the word for how it is known."""
    return _("{figure} {source}", figure=figure, source=source_word(source))
