"""Schedules of recurrences: tiles of hidden units and sequences, what fits the memories, and estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import asdict, evolve, frozen

from evokernel_core.ascendc.families.recurrent_problem import Recurrence
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

_L1_BYTES, _L0_BYTES, _L0C_BYTES = 512 * 1024, 64 * 1024, 128 * 1024
_FLOAT = 4
_LANES = 64
"""Floats of one vector instruction's repeat: the widest row of a tile."""
_MACS_A_CYCLE = 1024.0
"""16 x 16 results, 4 deep ("Cube instruction theoretical performance", float)."""
_L0B_BYTES, _L2_BYTES, _STORE_BYTES = 128.0, 110.0, 64.0
"""Bytes a cycle from L1 into L0B, from L2 into L1, and out of L0C."""
_LATENCY = 500.0
"""Cycles of a product that do not depend on its size: load, fill of the matrix unit, store."""
_VECTOR_START = 60.0
"""Cycles of a vector instruction that waits for the one before."""
_INSTRUCTIONS: Mapping[str, int] = {"lstm": 24, "gru": 19, "rnn_tanh": 8, "rnn_relu": 3}
_TRANSCENDENTAL: Mapping[str, int] = {"lstm": 10, "gru": 6, "rnn_tanh": 2, "rnn_relu": 0}
"""Exponentials and quotients of a hidden unit, of 32 a cycle."""
_COPIES = 400.0
"""Cycles to load sums into the unified buffer and to store states."""


@frozen
class RecurrentSchedule:
    """Units of ``batch`` sequences and ``hidden`` hidden units; steps of ``base_k`` in L0 and ``panel_k`` in
    L1, which holds ``panels`` panels of weights."""

    batch: int
    hidden: int
    base_k: int
    panel_k: int
    panels: int

    @staticmethod
    def of(strategy: Strategy) -> RecurrentSchedule:
        return RecurrentSchedule(**dict(strategy.settings))  # type: ignore[arg-type]


def best(found: Recurrence, sizes: Mapping[str, int], chip: Chip) -> RecurrentSchedule:
    """The legal schedule of the lowest estimate."""
    legal = [item for item in _starts(found, sizes) if refusal(found, item, chip) is None]
    if not legal:
        raise PlanError("The tiles of this recurrence do not fit the memories of a core.")
    return min(legal, key=lambda item: estimate_us(found, item, sizes, chip))


def refusal(found: Recurrence, item: RecurrentSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    if min(item.batch, item.hidden, item.base_k) < 16 or any(
        length % 16 for length in (item.batch, item.hidden, item.base_k)
    ):
        return "Tiles are whole fractals."
    if item.panel_k % item.base_k or item.panels < 2 or item.hidden > _LANES:
        return "Panels are whole steps, two are in flight, and a row of gates is one repeat."
    if _buffer_bytes(found, item) > chip.ub_bytes:
        return "The gates of a unit do not fit the unified buffer."
    return _cube_refusal(item, found.gates * item.hidden)


def _cube_refusal(item: RecurrentSchedule, sums: int) -> str | None:
    """``sums``: columns of one product."""
    if 2 * max(item.batch, sums) * item.base_k * _FLOAT > _L0_BYTES:
        return "Two steps of an operand do not fit L0."
    if item.batch * sums * _FLOAT > _L0C_BYTES:
        return "The results do not fit L0C."
    if (2 * item.batch + item.panels * sums) * item.panel_k * _FLOAT > _L1_BYTES:
        return "The panels do not fit L1."
    return None


def _buffer_bytes(found: Recurrence, item: RecurrentSchedule) -> int:
    """Bytes of the unified buffer: sums of both products, old and new states, biases."""
    tiles = 2 * found.gates + 1 + (1 if found.carries else 0) + (1 if found.kind == "lstm" else 0)
    return (tiles * item.batch // 2 + 2 * found.gates) * item.hidden * _FLOAT


def _starts(found: Recurrence, sizes: Mapping[str, int]) -> Iterator[RecurrentSchedule]:
    hidden = found.hidden.evaluate(sizes)
    for batch in (16, 32, 64, 128):
        for wide in (16, 32, 48, 64):
            for base_k in (128, 64, 32, 16):
                for factor in (4, 2, 1):
                    yield _with_panels(
                        found, RecurrentSchedule(batch, wide, base_k, base_k * factor, 2), hidden
                    )


def _with_panels(found: Recurrence, item: RecurrentSchedule, hidden: int) -> RecurrentSchedule:
    """As many panels of weights as L1 holds and the states are deep."""
    left = _L1_BYTES - 2 * item.batch * item.panel_k * _FLOAT
    fit = left // (found.gates * item.hidden * item.panel_k * _FLOAT)
    return evolve(item, panels=max(2, min(fit, math.ceil(hidden / item.panel_k))))


def steps(
    found: Recurrence, here: RecurrentSchedule, sizes: Mapping[str, int]
) -> Iterator[tuple[str, RecurrentSchedule]]:
    """Named schedules one step away, legal or not."""
    changes = {
        "more hidden units a core": {"hidden": here.hidden + 16},
        "fewer hidden units a core": {"hidden": here.hidden - 16},
        "more sequences a core": {"batch": here.batch * 2},
        "fewer sequences a core": {"batch": here.batch // 2},
        "deeper step in L0": {"base_k": here.base_k * 2, "panel_k": max(here.panel_k, here.base_k * 2)},
        "shallower step in L0": {"base_k": here.base_k // 2},
        "deeper panel in L1": {"panel_k": here.panel_k * 2},
        "shallower panel in L1": {"panel_k": here.panel_k // 2},
    }
    hidden = found.hidden.evaluate(sizes)
    for name, change in changes.items():
        item = evolve(here, **change)
        if min(item.batch, item.hidden, item.base_k, item.panel_k) > 0:
            yield name, _with_panels(found, item, hidden)


def estimate_us(found: Recurrence, item: RecurrentSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: steps follow each other, so that every latency counts in each of them."""
    length, batch, hidden = (size.evaluate(sizes) for size in (found.steps, found.batch, found.hidden))
    units = found.directions * math.ceil(batch / item.batch) * math.ceil(hidden / item.hidden)
    cores = min(units, chip.aic)
    rounds = math.ceil(units / cores)
    hand_over = chip.constants["sync.cross_core_cycles"]
    waits = hand_over * (3 if cores > 1 else 2)
    cycles = waits + rounds * (_cube_cycles(found, item, (batch, hidden), rounds, cores, chip)
                               + _vector_cycles(found, item, batch))  # fmt: skip
    return length * cycles / chip.mhz + launch_us(chip, cores)


def _cube_cycles(
    found: Recurrence, item: RecurrentSchedule, shape: tuple[int, int], rounds: int, cores: int, chip: Chip
) -> float:
    """``shape``: sequences and hidden units of the layer."""
    rows = -(-min(shape[0], item.batch) // 16) * 16
    sums = found.gates * min(item.hidden, -(-shape[1] // 16) * 16)
    weights = sums * shape[1] * _FLOAT
    moved = rows * shape[1] * _FLOAT
    if rounds > 1 or math.ceil(shape[1] / item.panel_k) > item.panels:
        moved += weights
    share = min(_L2_BYTES, chip.constants["gm.l2_gbps"] * 1e3 / chip.mhz / cores)
    macs = rows * sums * shape[1] / _MACS_A_CYCLE
    starts = math.ceil(shape[1] / item.base_k) * 10.0
    stored = rows * sums * _FLOAT / _STORE_BYTES
    return _LATENCY + max(macs + starts, weights / _L0B_BYTES, moved / share) + stored


def _vector_cycles(found: Recurrence, item: RecurrentSchedule, batch: int) -> float:
    elements = math.ceil(min(batch, item.batch) / 2) * item.hidden
    work = elements * (_TRANSCENDENTAL[found.kind] / 32 + 3 * found.gates / _LANES)
    return _INSTRUCTIONS[found.kind] * _VECTOR_START + work + _COPIES


def strategy_of(item: RecurrentSchedule, move: str) -> Strategy:
    notes = (
        f"Units of {item.hidden} hidden units and {item.batch} sequences; all cores meet once a step.",
        f"Steps of {item.base_k} in L0; L1 holds {item.panels} panel(s) of weights, {item.panel_k} deep.",
    )
    return Strategy("recurrent", asdict(item), notes, Descriptor(3, 3, 3), move)
