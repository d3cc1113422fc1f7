"""How long rows are divided among cores that share them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve, frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.compiler.shapes.sizes import ONE
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule

MOST_SHARERS = 64
"""Numbers of a row lie in the lanes of one repeat."""


@frozen
class Division:
    """How rows are divided: ``rows`` at a time, each by ``sharers`` cores that take ``tiles`` tiles of it,
    ``turns`` times."""

    rows: int
    sharers: int
    tiles: int
    turns: int


def shares(plan: Plan, schedule: Schedule, sizes: Mapping[str, int], cores: int) -> Division:
    """What ComputeTiling divides at these sizes; ``plan`` is one in pieces."""
    rows, columns = plan.rows.evaluate(sizes), plan.inner.evaluate(sizes)
    pieces = plan.leading.evaluate(sizes) * plan.mid.evaluate(sizes)
    tiles = pieces * math.ceil(columns / schedule.tile)
    kept = max(1, schedule.at_once // (pieces * columns * point_bytes(plan)))
    turns = math.ceil(rows / min(rows, cores, kept))
    at_once = math.ceil(rows / turns)
    per_share = math.ceil(tiles / min(cores // at_once, tiles, MOST_SHARERS))
    return Division(at_once, math.ceil(tiles / per_share), per_share, turns)


def point_bytes(plan: Plan) -> int:
    """Bytes that L2 holds for each element of a row: of inputs and results that have them all."""
    read = (ITEM_SIZE[operand.dtype] for operand in plan.inputs if operand.domain is Domain.FULL)
    return sum(read) + sum(ITEM_SIZE[output.dtype] for output in plan.outputs if output.domain is Domain.FULL)


def in_pieces(plan: Plan) -> Plan:
    """A plan of rows as one of rows of a single piece."""
    if plan.family == "piecewise":
        return plan
    inputs = tuple(evolve(operand, outer=(*operand.outer, operand.mid), mid=False) for operand in plan.inputs)
    return evolve(
        plan, family="piecewise", outer=(*plan.outer, plan.mid), mid=ONE, leading=ONE, inputs=inputs
    )
