"""What a strategy is, and what changed from one to another, in words.

Everything is read from what a Strategy declares: its family, its archive cell, its settings and its moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve, fields, frozen

from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.kernel import THEN, Setting, Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.memory.candidates import Stored
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, marked, told

_AXES: Mapping[str, str] = {
    "dataflow": marked("data flow"),
    "reuse": marked("data are read again from"),
    "split": marked("work is split by"),
    "algorithm": marked("algorithm"),
    "overlap": marked("loads and stores beside the computation"),
    "stages": marked("kernels follow each other as"),
    "kernels": marked("number of kernels"),
}
_SETTINGS: Mapping[str, str] = {
    "tile": marked("tile"),
    "buffers": marked("buffers of a queue"),
    "rows": marked("rows of a tile"),
    "columns": marked("columns of a tile"),
    "form": marked("tile layout"),
    "cores": marked("cores (0: all)"),
    "one_launch": marked("one launch for all kernels"),
    "chunks": marked("chunks of images"),
    "cut": marked("kernels that take images in chunks"),
    "eager_rounding": marked("rounds between operations as PyTorch does"),
    "bypass_l2": marked("stores bypass L2"),
    "keep_columns": marked("columns are repeated once"),
    "online": marked("online sums in one pass"),
    "whole": marked("whole rows in the unified buffer"),
    "warps": marked("warps of a program"),
    "looped": marked("rows in several steps"),
    "stagger": marked("cores start at different places"),
}
_MOST_CHANGES = 12


@frozen
class ScheduleChange:
    """A field of a schedule in which two differ; ``words`` say how, such as "tile raised"."""

    name: str
    before: str
    after: str
    words: str


def strategy_words(strategy: Strategy) -> tuple[str, ...]:
    """The schedule in sentences: its own notes, then its archive cell."""
    axes = _cell(strategy.descriptor).items()
    cell = "; ".join(_("{name}: {value}", name=_(_AXES[name]), value=_(word)) for name, word in axes)
    written = _("Written by a language model.")
    if strategy.family != "model":
        written = _("Family: {name}.", name=_family_word(strategy.family))
    return (
        written,
        *(plain(told(note)) for note in strategy.notes),
        *([_("{what}.", what=f"{cell[0].upper()}{cell[1:]}")] if cell else []),
    )


def strategy_changes(old: Strategy, new: Strategy) -> tuple[str, ...]:
    """What the new strategy has in place of the old one's, a sentence each; empty where they declare the
    same."""
    changes = changes_between(old, new)
    result = [
        _("{name}: {new} instead of {old}.", name=change.name, new=change.after, old=change.before)
        for change in changes[:_MOST_CHANGES]
    ]
    left = len(changes) - _MOST_CHANGES
    return (*result, *([_("And {count} further settings.", count=left)] if left > 0 else []))


def changes_between(old: Strategy, new: Strategy) -> tuple[ScheduleChange, ...]:
    """The fields of a schedule that differ: the family first, then the archive cell, then settings."""
    return (
        *_family(old, new),
        *_axes(_cell(old.descriptor), _cell(new.descriptor)),
        *_settings(old, new),
    )


def steps_between(candidates: tuple[Stored, ...], old: str, new: str) -> tuple[str, ...]:
    """The moves that led from one kernel to another, in order; empty where they did not come from each
    other."""
    known = {candidate.source.source_id: candidate for candidate in candidates}
    moves: list[str] = []
    at = known.get(new)
    while at is not None and at.source.source_id != old and len(moves) < len(known):
        moves.append(move_words(at.source.strategy.move) or _("a step without a name"))
        at = known.get(at.parent)
    return tuple(reversed(moves)) if at is not None and at.source.source_id == old else ()


def move_words(move: Sentence) -> str:
    """The name of a step of refinement. Memories of earlier versions have text alone: steps that were made at
    once are then told apart."""
    steps = [move] if move.values else [Sentence(step) for step in move.split(THEN)]
    return plain(_(", then ").join(map(told, steps)))


def _family_word(name: str) -> str:
    return plain(told(Sentence(name)))


def _cell(descriptor: Descriptor) -> dict[str, str]:
    """The axes whose word is known."""
    words = {field.name: str(getattr(descriptor, field.name)) for field in fields(Descriptor)}
    if words["dataflow"] == "unknown":
        return {}
    return {name: word for name, word in words.items() if word != "unknown"}


def _family(old: Strategy, new: Strategy) -> Iterator[ScheduleChange]:
    if old.family != new.family:
        yield _other(_("family"), _family_word(old.family), _family_word(new.family))


def _axes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[ScheduleChange]:
    for name, word in new.items():
        if name in old and old[name] != word:
            yield _other(_(_AXES[name]), _(old[name]), _(word))


def _settings(old: Strategy, new: Strategy) -> Iterator[ScheduleChange]:
    """Settings mean the same in strategies of one family and version only."""
    if (old.family, old.version) != (new.family, new.version):
        return
    before, after = (
        {(number, name): value for number, name, value in strategy.each_setting()} for strategy in (old, new)
    )
    if old.groups != new.groups:
        yield _other(_("grouping of operations"), _grouping(old), _grouping(new))
        return  # the kernels' numbers are others
    for key in sorted(before.keys() | after.keys(), key=_place):
        if before.get(key) != after.get(key):
            yield _setting_change(_setting(*key), before.get(key), after.get(key))


def _place(key: tuple[int | None, str]) -> tuple[float, str]:
    """Settings of kernels come first, then those of the program."""
    number, name = key
    return math.inf if number is None else number, name


def _setting_change(name: str, old: Setting | None, new: Setting | None) -> ScheduleChange:
    change = _other(name, _value(old), _value(new))
    if isinstance(new, bool):
        return evolve(change, words=_("{what} on", what=name) if new else _("{what} off", what=name))
    if isinstance(old, int) and isinstance(new, int):
        return evolve(
            change, words=_("{what} raised", what=name) if new > old else _("{what} lowered", what=name)
        )
    return change


def _other(name: str, old: str, new: str) -> ScheduleChange:
    return ScheduleChange(f"{name[:1].upper()}{name[1:]}", old, new, _("other {what}", what=name))


def _grouping(strategy: Strategy) -> str:
    """The numbers of the operations that each kernel call computes."""
    return plain(" | ".join(" ".join(map(str, group)) for group in strategy.groups))


def _setting(number: int | None, name: str) -> str:
    """A setting of a kernel of a program, or of the strategy itself."""
    words = _(_SETTINGS[name]) if name in _SETTINGS else name.replace("_", " ")
    kernel = "" if number is None else _("kernel {number}, ", number=number + 1)
    return plain(f"{kernel}{words}")


def _value(value: Setting | None) -> str:
    if value is None:
        return _("none")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return plain(f"{value:,}" if isinstance(value, int) else str(value))
