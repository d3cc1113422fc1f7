"""Predictions from the chip's constants alone, for rows whose kernel is not run here.

Whole operators of a vendor's library are named by operation and shape only. What they must move and
compute gives a figure: bytes over the achieved rates, vector instructions with their start-up, cube
products at the published rate. How their kernels tile is unknown, so this says less than a run.
Nothing here is fitted: counts of instructions are those of a plain kernel of the operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from benchmarks.latency.rows import Row
from evokernel_core.hardware.ascend.chip import Chip

BYTES = {"float16": 2, "bfloat16": 2, "int8": 1, "int32": 4, "int64": 8, "float32": 4, "complex64": 8}
MACS = {1: 8192, 2: 4096, 4: 1024}
"""Products a cube core finishes in a cycle, by bytes of an element; public table of cube instructions."""
CUBE_SHARE = 0.85
"""Of the cube's peak, what the best published product reaches (mm_hp case 8: 3023 of 3559 us)."""


@frozen
class Work:
    """What a kernel must do. ``rows``: dependent rows, each with ``row_instructions`` vector
    instructions one after another; ``simple`` and ``slow``: instructions for each of ``elements``;
    ``cores``: vector cores that can share it; ``chained``: a row's result decides its next step, so
    that copies and arithmetic do not overlap."""

    read: float
    written: float
    elements: float = 0.0
    simple: float = 0.0
    slow: float = 0.0
    rows: float = 0.0
    row_instructions: float = 0.0
    macs: float = 0.0
    item: int = 2
    through_l2: float = 0.0
    cores: float = math.inf
    chained: bool = False


def analytic_us(row: Row) -> float | None:
    """Modelled microseconds of the operation of a row; None where the operation is not known here."""
    build = _WORK.get(str(row.data["op"]))
    if build is None:
        return None
    work = build(Case(row.data))
    return None if work is None else _time(work, row.chip, row.kernel_side)


def _time(work: Work, chip: Chip, kernel_side: bool) -> float:
    cores = min(chip.aiv, work.cores)
    moved = work.read + work.written
    spilled = max(0.0, moved - chip.l2_bytes) * work.written / max(moved, 1.0)
    copies = max(
        (work.read + spilled * chip.gm.write_back_cost) / chip.gm.memory_bytes_us,
        moved / (cores * chip.mte.load_bytes_per_cycle * chip.mhz),
        work.through_l2 / (chip.aic * chip.mte.cube_load_hit_bytes_per_cycle * chip.mhz),
    )
    start = chip.vector.startup_cycles + chip.vector.tail_cycles
    lanes = work.simple / chip.vector.elements_per_cycle.simple_b32
    lanes += work.slow / chip.vector.elements_per_cycle.transcendental
    vector = work.elements * lanes + work.rows * work.row_instructions * start
    vector_us = vector / (cores * chip.mhz)
    cube_us = work.macs / (CUBE_SHARE * chip.aic * MACS[work.item] * chip.mhz)
    busy = copies + vector_us if work.chained else max(copies, vector_us)
    launch = chip.launch.start_us
    if not kernel_side:
        blocks = chip.aic if work.macs else cores
        launch += chip.launch.launch_us + blocks * chip.launch.per_block_us
    return launch + max(busy, cube_us)


class Case:
    """A row's shapes, element sizes and attributes."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.shapes: list[Sequence[Any] | None] = list(data["shapes"])
        dtype = data["dtype"]
        names = dtype if isinstance(dtype, list) else [str(dtype).split()[0]] * len(self.shapes)
        self.sizes = [BYTES.get(name or "", 0) for name in names]
        self.attributes: Mapping[str, Any] = (data.get("counters") or {}).get("attrs") or {}

    def count(self, index: int) -> float:
        """Elements of an operand, 0 where it is absent."""
        shape = self.shapes[index] if index < len(self.shapes) else None
        return math.prod(int(size) for size in shape) if shape else 0

    def nbytes(self) -> float:
        """Bytes of all operands."""
        return sum(self.count(index) * self.sizes[index] for index in range(len(self.shapes)))

    def shape(self, index: int) -> list[int]:
        return [int(size) for size in self.shapes[index] or ()]


def _swiglu(case: Case) -> Work:
    out = case.count(0) / 2
    return Work(case.nbytes(), out * case.sizes[0], out, simple=6, slow=2)


def _group_norm(case: Case) -> Work:
    n, groups = case.count(0), int(case.attributes.get("num_groups", 1))
    return Work(2 * case.nbytes(), n * case.sizes[0], n, 17, 2, cores=case.shape(0)[0] * groups)


def _add_rms_norm_quant(case: Case) -> Work:
    n, rows = case.count(0), case.count(0) / case.shape(0)[-1]
    return Work(case.nbytes(), n * (case.sizes[0] + 1), n, 28, 0, rows, 16, cores=rows, chained=True)


def _dequant_swiglu_quant(case: Case) -> Work:
    out, rows = case.count(0) / 2, case.count(0) / case.shape(0)[-1]
    return Work(case.nbytes(), out, out, 23, 2, rows, 18, cores=rows, chained=True)


def _re_routing(case: Case) -> Work:
    rows = case.shape(0)[0]
    return Work(case.nbytes(), case.nbytes(), cores=rows)


def _finalize_routing(case: Case) -> Work:
    tokens = case.count(6) / max(1, case.shape(6)[-1]) if len(case.shapes) > 6 and case.shapes[6] else 0
    tokens = tokens or case.count(2) / case.shape(2)[-1]
    width, chosen = case.shape(0)[-1], case.count(1) / max(1.0, tokens)
    read = tokens * chosen * width * case.sizes[0] + 2 * tokens * width * case.sizes[0]
    each = tokens * width
    return Work(
        read,
        each * case.sizes[0],
        each,
        4 * chosen + 2,
        0,
        tokens,
        4 * chosen + 3,
        cores=tokens,
        chained=True,
    )


def _quant_matmul(case: Case) -> Work:
    a, b = case.shape(0), case.shape(1)
    m, k, n, batch = a[-2], a[-1], b[-1], math.prod(a[:-2])
    through = batch * m * n * k * (1 / min(n, 256) + 1 / min(m, 128))
    read = case.nbytes()
    return Work(read, batch * m * n * 2, batch * m * n, 4, macs=batch * m * n * k, item=1, through_l2=through)


def _attention(case: Case) -> Work:
    layout = str(case.attributes.get("inputLayout", "BSND"))
    order = (0, 1, 2, 3) if layout == "BSND" else (0, 2, 1, 3)
    query, key = case.shape(0), case.shape(1)
    latent = len(case.shapes) > 3
    if latent:
        key = case.shape(2)
    batch, length, heads, depth = (query[axis] for axis in order)
    keys = key[order[1]]
    extra = case.shape(1)[-1] if latent else 0
    scores = (
        batch * heads * length * keys * (0.5 if case.attributes.get("is_causal") and length == keys else 1.0)
    )
    macs = scores * (2 * depth + extra)
    out = batch * length * heads * depth * 2
    return Work(case.nbytes(), out, scores, 10, 1, macs=macs)


def _mla_prolog(case: Case) -> Work:
    tokens = math.prod(case.shape(0)[:-1])
    weights = sum(case.count(index) for index in range(1, 5))
    return Work(case.nbytes(), tokens * 128 * (512 + 64) * 2, macs=max(16, tokens) * weights)


def _polar(case: Case) -> Work | None:
    shapes = [[size for size in shape or () if size != "out"] for shape in case.shapes]
    out = math.prod(max(pair) for pair in zip(*_padded(shapes), strict=True))
    moved = [math.prod(shape) for shape in shapes]
    # In the broadcast rows the angle is a short vector: its sine and cosine are computed once.
    angles = moved[1] if "bcast" in str(case.shapes) or moved[1] < out else out
    return Work(4 * (max(moved[0], out if moved[0] != out else 0) + moved[1]), 8 * out, angles, 100, 0)


def _padded(shapes: Sequence[Sequence[int]]) -> list[list[int]]:
    width = max(len(shape) for shape in shapes)
    return [[1] * (width - len(shape)) + [int(size) for size in shape] for shape in shapes]


def _matmul(case: Case) -> Work:
    (m, k), n = case.shape(0), case.shape(1)[-1]
    item = case.sizes[0] or 2
    through = m * n * k * item * (1 / min(n, 256) + 1 / min(m, 128))
    return Work(case.nbytes(), m * n * item, macs=max(m, 16) * max(n, 16) * k, item=item, through_l2=through)


def _gelu(case: Case) -> Work:
    n = case.count(0)
    return Work(4 * n, 4 * n, n, 10, 2)


_WORK: Mapping[str, Callable[[Case], Work | None]] = {
    "SwiGlu": _swiglu,
    "GroupNormSilu": _group_norm,
    "AddRmsNormDynamicQuant": _add_rms_norm_quant,
    "DequantSwigluQuant": _dequant_swiglu_quant,
    "MoeReRouting": _re_routing,
    "MoeFinalizeRoutingV2": _finalize_routing,
    "QuantBatchMatmulV3": _quant_matmul,
    "FusedInferAttentionScore": _attention,
    "MlaProlog": _mla_prolog,
    "Polar": _polar,
    "Polar inner broadcast": _polar,
    "Matmul (high-level API)": _matmul,
    "Matmul (basic API)": _matmul,
    "Matmul (catlass)": _matmul,
    "Matmul+GELU (1 AIC:2 AIV via GM)": _matmul,
    "GELU (MemBase)": _gelu,
}
