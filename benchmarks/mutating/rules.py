"""All rules: mutations of a kernel's text by its form alone. None knows what a judge draws or looks for."""

from __future__ import annotations

from benchmarks.mutating.changes import Rule
from benchmarks.mutating.left_out import dropped_tail, integer_width, undefined
from benchmarks.mutating.mutant import Kind
from benchmarks.mutating.schedules import launch_kind, missing_sync, scalar_rewrite
from benchmarks.mutating.values import clip, offset, rounded_constant, scale, size_class

RULES: tuple[tuple[Kind, Rule], ...] = (
    (Kind.SCALE, scale), (Kind.CLIP, clip), (Kind.OFFSET, offset), (Kind.SIZE, size_class),
    (Kind.WIDTH, integer_width), (Kind.FORMULA, rounded_constant), (Kind.LAUNCH, launch_kind),
    (Kind.SYNC, missing_sync), (Kind.SCALAR, scalar_rewrite), (Kind.UNDEFINED, undefined),
    (Kind.TAIL, dropped_tail),
)  # fmt: skip
