"""A picture of how busy a kernel keeps the pipes of its core, in signs that every editor shows."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.domain.verdict import Latency
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _

_CELLS = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_MOST = 12
_LONGEST_NAME = 16


def picture(latency: Latency) -> Iterator[str]:
    """Lines of Markdown: a bar for each pipe, the busiest first, with its share of the latency. None where a
    verdict told of no pipes."""
    busy = sorted(
        ((_name(name), us / latency.us) for name, us in latency.pipes if 0 < us < float("inf")),
        key=lambda busy: -busy[1],
    )[:_MOST]
    if not busy:
        return
    width = max(len(name) for name, _share in busy)
    yield "```text"
    for name, share in busy:
        mark = "  ← " + _("bottleneck") if name == _name(latency.bottleneck) else ""
        yield f"{name:<{width}}  {bar(share)}  {100 * share:>3.0f} %{mark}"
    yield "```"


def bar(share: float) -> str:
    """A share of 0 to 1 as a bar of constant width; what is more is a full bar."""
    eighths = round(min(max(share, 0.0), 1.0) * _CELLS * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(_CELLS, "░")


def _name(text: str) -> str:
    """The name of a pipe, which a package may have made up: nothing in it ends the block that it is in."""
    return plain(text.replace("`", "’"), _LONGEST_NAME)
