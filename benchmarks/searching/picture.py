"""A picture of searches: the best latency so far over the best known, by attempt, a panel an estimator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

WIDTH, HEIGHT, TOP, LEFT, RIGHT = 420, 300, 40, 56, 92
COLOURS = {
    "q": "#c2410c",
    "similarity": "#d97706",
    "none": "#2563eb",
    "random": "#6b7280",
    "topk": "#059669",
    "diverse": "#7c3aed",
    "evolution": "#db2777",
}
OTHER = "#9ca3af"
APART = 13
"""Pixels between two labels."""


@frozen
class Curve:
    """``over_best[n]`` is the geometric mean of best latency / best known after attempt n + 1."""

    way: str
    over_best: Sequence[float]


def draw(panels: Mapping[str, Sequence[Curve]], path: Path) -> None:
    """Writes an SVG."""
    whole = WIDTH * len(panels)
    highest = max(value for curves in panels.values() for curve in curves for value in curve.over_best)
    body = [
        line
        for place, (name, curves) in enumerate(panels.items())
        for line in _panel(name, curves, place * WIDTH, 1.0 + 1.05 * (highest - 1.0))
    ]
    size = f'width="{whole}" height="{HEIGHT}"'
    frame = f'viewBox="0 0 {whole} {HEIGHT}" {size} font-family="sans-serif" font-size="12"'
    text = "\n".join(['<rect width="100%" height="100%" fill="white"/>', *body])
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {frame}>\n{text}\n</svg>\n')


def _panel(name: str, curves: Sequence[Curve], left: float, highest: float) -> Iterator[str]:
    attempts = max(len(curve.over_best) for curve in curves)
    bottom = HEIGHT - TOP

    def x(attempt: float) -> float:
        return left + LEFT + (attempt - 1) / max(1, attempts - 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return bottom - (value - 1.0) / (highest - 1.0) * (bottom - TOP)

    yield f'<text x="{left + LEFT}" y="22" font-weight="bold">{name} estimator</text>'
    for step in range(5):
        value = 1.0 + step / 4 * (highest - 1.0)
        yield f'<path d="M{x(1):.1f} {y(value):.1f}H{x(attempts):.1f}" stroke="#e5e7eb"/>'
        share = f"+{100 * (value - 1):.0f} %"
        yield f'<text x="{x(1) - 6:.1f}" y="{y(value) + 4:.1f}" text-anchor="end">{share}</text>'
    for attempt in (1, attempts // 2, attempts):
        yield f'<text x="{x(attempt):.1f}" y="{bottom + 18}" text-anchor="middle">{attempt}</text>'
    yield f'<text x="{x((1 + attempts) / 2):.1f}" y="{HEIGHT - 6}" text-anchor="middle">attempts</text>'
    lowest_free = bottom + APART
    for curve in sorted(curves, key=lambda curve: curve.over_best[-1]):
        colour = COLOURS.get(curve.way, OTHER)
        points = " ".join(f"{x(n):.1f},{y(value):.1f}" for n, value in enumerate(curve.over_best, 1))
        width = 3 if curve.way == "q" else 1.5
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        lowest_free = min(y(curve.over_best[-1]) + 4, lowest_free - APART)
        yield f'<text x="{x(attempts) + 6:.1f}" y="{lowest_free:.1f}" fill="{colour}">{curve.way}</text>'
