"""A picture of modelled against measured latencies, on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from attrs import frozen

SIZE, MARGIN = 560, 72
COLOURS = {"held out": "#c2410c", "fitted": "#2563eb"}


@frozen
class Point:
    """One row in microseconds; ``group`` is of COLOURS, ``name`` is what the point tells when pointed at."""

    measured: float
    modelled: float
    group: str
    name: str


def draw(points: Iterable[Point], path: Path) -> None:
    """Writes an SVG: a dot a row, the line of equality, and those of a quarter more and less."""
    points = sorted(points, key=lambda point: point.group)
    values = [value for point in points for value in (point.measured, point.modelled)]
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))

    def at(value: float) -> float:
        return MARGIN + (math.log10(value) - low) / (high - low) * (SIZE - 2 * MARGIN)

    body = [*_axes(range(low, high + 1), at), *_diagonals(10.0**low, 10.0**high, at)]
    body += [
        f'<circle cx="{at(point.measured):.1f}" cy="{SIZE - at(point.modelled):.1f}" r="4" '
        f'fill-opacity="0.7" fill="{COLOURS[point.group]}"><title>{_told(point)}</title></circle>'
        for point in points
    ]
    body += [
        f'<text x="{MARGIN + 10}" y="{MARGIN + 14 + 18 * line}" fill="{colour}">{group}</text>'
        for line, (group, colour) in enumerate(COLOURS.items())
    ]
    text = "\n".join(body)
    frame = (
        f'viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}" font-family="sans-serif" font-size="13"'
    )
    ground = '<rect width="100%" height="100%" fill="white"/>'
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {frame}>\n{ground}\n{text}\n</svg>\n')


def _told(point: Point) -> str:
    return f"{escape(point.name)}: {point.measured:g} us measured, {point.modelled:.4g} us estimated"


def _axes(powers: range, at: Callable[[float], float]) -> Iterator[str]:
    for power in powers:
        place = at(10.0**power)
        yield (
            f'<path d="M{place:.1f} {MARGIN}V{SIZE - MARGIN}M{MARGIN} {SIZE - place:.1f}H{SIZE - MARGIN}" '
            'stroke="#e5e7eb"/>'
        )
        yield f'<text x="{place:.1f}" y="{SIZE - MARGIN + 18}" text-anchor="middle">{_label(power)}</text>'
        yield f'<text x="{MARGIN - 8}" y="{SIZE - place + 4:.1f}" text-anchor="end">{_label(power)}</text>'
    yield f'<text x="{SIZE / 2}" y="{SIZE - 12}" text-anchor="middle">measured</text>'
    yield (
        f'<text x="16" y="{SIZE / 2}" text-anchor="middle" '
        f'transform="rotate(-90 16 {SIZE / 2})">estimated</text>'
    )


def _label(power: int) -> str:
    """10 to the power of microseconds."""
    thousands, rest = divmod(power, 3)
    units = {0: "us", 1: "ms", 2: "s"}
    return f"{10**rest} {units[thousands]}" if thousands in units else f"{10.0**power:g} us"


def _diagonals(low: float, high: float, at: Callable[[float], float]) -> Iterator[str]:
    for factor, dash in ((1.0, ""), (1.25, "4 4"), (0.8, "4 4")):
        start, end = max(low, low / factor), min(high, high / factor)
        yield (
            f'<path d="M{at(start):.1f} {SIZE - at(start * factor):.1f}L{at(end):.1f} '
            f'{SIZE - at(end * factor):.1f}" stroke="#9ca3af" stroke-dasharray="{dash}"/>'
        )
