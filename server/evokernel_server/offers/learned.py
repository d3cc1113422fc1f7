"""What the memory learned from a person's decisions, in sentences."""

from __future__ import annotations

from evokernel_core.domain.outcome import Objection, OutcomeKind
from evokernel_core.memory.activity import Lesson
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, many, told

_LONGEST = 80
"""Characters of a name, a title or a reason."""


def sentence(lesson: Lesson) -> str:
    """What was decided, what follows from it, and the item that is worth most, or least, by it now."""
    return " ".join(filter(None, (_decided(lesson), _follows(lesson), _moved(lesson))))


def _decided(lesson: Lesson) -> str:
    name = plain(lesson.name, _LONGEST) or _("an operation that was forgotten")
    rejected = _("You rejected a kernel for {name} ({reason}).")
    said = {
        OutcomeKind.ACCEPTED: _("You accepted a kernel for {name}."),
        OutcomeKind.PARTIALLY_ACCEPTED: _("You accepted a part of a kernel for {name}."),
        OutcomeKind.REJECTED: rejected if lesson.detail else _("You rejected a kernel for {name}."),
        OutcomeKind.REVERTED: _("You took a kernel for {name} out again."),
        OutcomeKind.SURVIVED: _("A kernel for {name} stayed in your code."),
    }.get(lesson.kind, _("You looked at a kernel for {name}."))
    return said.format(name=name, reason=objection(lesson.detail))


def _follows(lesson: Lesson) -> str:
    if lesson.kind is not OutcomeKind.REJECTED:
        return ""
    match lesson.detail:
        case Objection.SLOW:
            return _("It does not come again, and the next one has to be faster.")
        case Objection.UNREADABLE:
            return _("It does not come again, and the next one is kept shorter.")
        case _:
            return _("It does not come again.")


def _moved(lesson: Lesson) -> str:
    count = len(lesson.items)
    if not count:
        return ""
    titled = [(title, q) for title, q in lesson.items if title]
    if lesson.reward > 0:
        moved = many(
            "Used sooner now: {count} memory entry behind it",
            "Used sooner now: {count} memory entries behind it",
            count,
        )
    else:
        moved = many(
            "Used later now: {count} memory entry behind it",
            "Used later now: {count} memory entries behind it",
            count,
        )
    if not titled:
        return f"{moved}."
    title, q = plain(told(titled[0][0]), _LONGEST), f"{titled[0][1]:+.2f}"
    return _("{moved}, above all “{title}” (value {value}).", moved=moved, title=title, value=q)


def objection(reason: str) -> str:
    """A reason of ours in the person's language; their own words as they are."""
    return {
        Objection.SLOW.value: _("slower than wanted"),
        Objection.UNREADABLE.value: _("hard to read"),
        Objection.PRECISION.value: _("precision"),
        Objection.OTHER.value: _("other"),
    }.get(reason, plain(reason, _LONGEST))
