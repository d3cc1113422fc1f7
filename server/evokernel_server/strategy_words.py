"""What a strategy is, and what changed from one to another, in words.

Everything is read from what a Strategy declares: its family, its archive cell, its settings and its moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import fields

from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.kernel import Setting, Strategy
from evokernel_core.memory.candidates import Stored
from evokernel_server.plain import plain

_AXES: Mapping[str, str] = {
    "dataflow": "data flow",
    "reuse": "data are read again from",
    "split": "cores share out",
    "algorithm": "algorithm",
    "overlap": "loads and stores beside the computation",
    "stages": "kernels follow each other as",
    "kernels": "number of kernels",
}
_SETTINGS: Mapping[str, str] = {
    "tile": "tile",
    "buffers": "buffers of a queue",
    "rows": "rows of a tile",
    "columns": "columns of a tile",
    "form": "tile layout",
    "cores": "cores (0: all)",
    "one_launch": "one launch for all kernels",
    "chunks": "chunks of images",
    "cut": "kernels that take images in chunks",
    "eager_rounding": "rounds between operations as PyTorch does",
    "bypass_l2": "stores bypass L2",
    "keep_columns": "columns are repeated once",
    "online": "online sums in one pass",
    "whole": "whole rows in the unified buffer",
    "stagger": "cores start at different places",
}
_GROUPS = "groups"
"""Which operations each kernel of a program computes, as numbers that say nothing to a reader."""
_MOST_CHANGES = 12


def strategy_words(strategy: Strategy) -> tuple[str, ...]:
    """The schedule in sentences: its own notes, then its archive cell."""
    cell = "; ".join(f"{_AXES[name]}: {word}" for name, word in _cell(strategy.descriptor).items())
    written = "Written by a language model" if strategy.family == "model" else f"Family: {strategy.family}"
    return (
        f"{plain(written)}.",
        *map(plain, strategy.notes),
        *([f"{cell[0].upper()}{cell[1:]}."] if cell else []),
    )


def strategy_changes(old: Strategy, new: Strategy) -> tuple[str, ...]:
    """What the new strategy has in place of the old one's, a sentence each; empty where they declare the
    same."""
    found = [
        *_family(old, new),
        *_axes(_cell(old.descriptor), _cell(new.descriptor)),
        *_settings(old, new),
    ]
    left = len(found) - _MOST_CHANGES
    return (*found[:_MOST_CHANGES], *([f"And {left} further settings."] if left > 0 else []))


def steps_between(candidates: tuple[Stored, ...], old: str, new: str) -> tuple[str, ...]:
    """The moves that led from one kernel to another, in order; empty where they did not come from each
    other."""
    known = {item.source.source_id: item for item in candidates}
    moves: list[str] = []
    at = known.get(new)
    while at is not None and at.source.source_id != old and len(moves) < len(known):
        moves.append(plain(at.source.strategy.move or "a step without a name"))
        at = known.get(at.parent)
    return tuple(reversed(moves)) if at is not None and at.source.source_id == old else ()


def _cell(descriptor: Descriptor) -> dict[str, str]:
    """The axes whose word is known."""
    words = {item.name: str(getattr(descriptor, item.name)) for item in fields(Descriptor)}
    if words["dataflow"] == "unknown":
        return {}
    return {name: word for name, word in words.items() if word != "unknown"}


def _family(old: Strategy, new: Strategy) -> Iterator[str]:
    if old.family != new.family:
        yield f"Family: {plain(new.family)} instead of {plain(old.family)}."


def _axes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name, word in new.items():
        if name in old and old[name] != word:
            yield f"{_AXES[name].capitalize()}: {word} instead of {old[name]}."


def _settings(old: Strategy, new: Strategy) -> Iterator[str]:
    """Settings mean the same in strategies of one family and version only."""
    if (old.family, old.version) != (new.family, new.version):
        return
    before, after = dict(old.settings), dict(new.settings)
    if before.get(_GROUPS) != after.get(_GROUPS):
        yield "Operations are grouped into kernels in another way."
        return  # the kernels' numbers are others
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"{_setting(name)}: {_value(after.get(name))} instead of {_value(before.get(name))}."


def _setting(name: str) -> str:
    """``0.tile``: a setting of the first kernel of a program."""
    number, _, own = name.rpartition(".")
    words = _SETTINGS.get(own, own.replace("_", " "))
    kernel = f"kernel {int(number) + 1}, " if number.isdigit() else ""
    text = plain(f"{kernel}{words}")
    return text[:1].upper() + text[1:]


def _value(value: Setting | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(f"{value:,}" if isinstance(value, int) else str(value))
