"""What is said to a person, in the language of the editor.

English is the key: ``_("{name} stays as it is.", name=name)``. The translations are gettext catalogues below
``locales``; docs/contributing.md says how they are made anew. What programs, verifiers and files say is
passed on as it is.
"""

from __future__ import annotations

import gettext
from pathlib import Path

DOMAIN = "evokernel"
LOCALES = Path(__file__).parent / "locales"
_SIMPLIFIED = ("zh", "zh_cn", "zh_sg", "zh_hans")
"""Locales, or the beginnings of longer ones, that read simplified Chinese."""

_spoken: list[gettext.NullTranslations] = [gettext.NullTranslations()]
"""One language for the process, since it serves one client."""


def speak(locale: str) -> None:
    """Takes the client's language (``zh-cn``, ``en-GB``, ``de``) from now on; English where there is none."""
    languages = [name] if (name := catalogue_of(locale)) else []
    _spoken[0] = gettext.translation(DOMAIN, LOCALES, languages, fallback=not languages)


def catalogue_of(locale: str) -> str:
    """The folder of a locale's catalogue; "" for English and for languages that there is none of."""
    name = locale.strip().lower().replace("-", "_")
    if name == "zh" or any(name == known or name.startswith(f"{known}_") for known in _SIMPLIFIED[1:]):
        return "zh_CN"
    return ""


def _(message: str, /, **values: object) -> str:
    """The message in the person's language, with ``{name}`` filled in from ``values``."""
    found = _spoken[0].gettext(message)
    return found.format(**values) if values else found


def many(one: str, more: str, count: int, /, **values: object) -> str:
    """The same for a message that depends on a number, which fills ``{count}``."""
    return _spoken[0].ngettext(one, more, count).format(count=count, **values)


def marked(message: str) -> str:
    """The message as it is: for a constant, which is said with ``_`` where it is shown."""
    return message


def source_word(source: str) -> str:
    """How a latency is known: different words in every language."""
    return {"modelled": _("modelled"), "measured": _("measured")}.get(source, source)


def sourced(figure: str, source: str) -> str:
    """A latency with the word for how it is known."""
    return _("{figure} {source}", figure=figure, source=source_word(source))
