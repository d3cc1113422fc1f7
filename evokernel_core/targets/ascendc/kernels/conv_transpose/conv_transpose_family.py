"""Family transposed: transposed convolution in one launch of cube and vector cores.

The vector cores lay the input out in blocks of channels, with zeros where the padding is and between the
columns of a stride; the cube core multiplies the weights of each tap by that slab, shifted. Strides along
depth and height are phases (``geometry.py``): no product with a zero, and rows of the result are
stored at the stride's distance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from attrs import evolve

from evokernel_core.compiler.aten import CONVOLUTION
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL, RESERVED_BYTES
from evokernel_core.targets.ascendc.kernels.built import Sizes, always
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily
from evokernel_core.targets.ascendc.kernels.conv_transpose import cube, piece
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_estimate import estimate_us
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import (
    Transposed,
    read_transposed,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import (
    STEP_SLOTS,
    ConvTransposeSchedule,
    fractals_of_piece,
    memory_of,
    plan,
    turned_outputs,
)
from evokernel_core.targets.ascendc.kernels.family import (
    Cores,
    KernelFacts,
)
from evokernel_core.targets.ascendc.kernels.rendering import addresses, class_name, render, tensors_of
from evokernel_core.targets.ascendc.kernels.stage import Added, Around, KernelStage, Printed, Texts
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.lowering.program import camel

_MOST_TURNED = 16
"""Outputs along W that alternate in one turn of results."""
_LEAST_TURNED = 16
"""Outputs of each phase along W in a turn of results."""
_CONSTANT_BYTES = 16 * 1024
"""L1 for a block of biases, of at most 256 results, and one of ones."""


def _text(
    problem: Transposed, schedule: ConvTransposeSchedule, task: KernelTask, chip: Chip, name: str
) -> KernelStage:
    given = {problem.x: "xAddress", problem.weight: "weightAddress", problem.bias: "biasAddress"}
    names = {item: given.get(item, camel(item)) for item in tensors_of(task)}
    behind = None
    if problem.behind is not None:
        names = {name: camel(name) for name in names}  # the class behind takes tensors by these
        behind = piece.write(problem.behind, class_name(name, "Steps"))
    outputs = behind.outputs if behind is not None else ("outputAddress",)
    is_wide = problem.dtype == "float32"
    facts = KernelFacts(
        Cores.BOTH,
        waits_for_all=not schedule.own_weights,  # each packs a part of the weights that all read
        uses_workspace=True,
        reads_numbers=problem.behind is not None and problem.behind.epilogue.reads_numbers,
    )
    made, multiplier = cube.build(problem, schedule, outputs[0]), class_name(name, "Multiplier")
    context = {
        "s": schedule,
        "cube_class": multiplier,
        "element": CPP_TYPE[problem.dtype],
        "moved": "float" if is_wide else "half",
        "wide": not is_wide,
        "lanes": "0x0101010101010101" if is_wide else "0x0001000100010001",
        "constant": problem.needs_constant,
        "sweeps_depth": problem.sweeps_depth,
        "turns": problem.alternating[2] // math.gcd(16, problem.alternating[2]),
        "parameters": addresses(*names.values(), *outputs),
        "output": outputs[0],
        "epilogue": behind,
        "ahead": problem.behind is not None and problem.behind.buffers > 1,
        "fractals": fractals_of_piece(problem),
        "pooled": problem.is_pooled,
        "x": names[problem.x],
        "weight": names[problem.weight],
        "bias": names[problem.bias] if problem.bias is not None else "",
        "name": name,
    }

    def text(printed: Printed) -> Texts:
        return Texts(render("conv_transpose/kernel", cube=printed, **context))

    added = _added(problem, schedule, behind)
    return KernelStage(made, around=Around(multiplier, text, facts, added))


def _added(problem: Transposed, schedule: ConvTransposeSchedule, behind: piece.EpilogueText | None) -> Added:
    """What the text of the vector cores adds to the tiling."""
    end = "resultsEnd" if schedule.turned else "slabsEnd"
    blocks = ("tiling.blockDim = static_cast<uint32_t>(cubeCores);", f"tiling.workspaceBytes = {end};")
    constants = (*_constants(problem, schedule), *(_turned(problem, schedule) if schedule.turned else ()))
    if behind is None:
        return Added(constants, (), (), "", blocks, frozenset())
    volume = "tiling.volume = tiling.madeD * tiling.madeH * tiling.madeW;"
    return Added(
        (*constants, behind.constants.rstrip()),
        ("uint64_t volume", *behind.shape.fields),
        (volume, *behind.shape.assignments),
        "ubBytes < UB_BYTES_NEEDED",
        blocks,
        behind.shape.symbols,
    )


def _constants(problem: Transposed, schedule: ConvTransposeSchedule) -> tuple[str, ...]:
    spread = 1 if schedule.turned else problem.axes[2].stride
    steps = [axis.tap_step for axis in problem.axes]
    if not schedule.turned:
        steps[2] = 1
    return (
        f"constexpr uint32_t GROUPS = {problem.groups};",
        f"constexpr int32_t SPREAD_W = {spread}; // zeros part the inputs where outputs along W lie together",
        *(
            f"constexpr int32_t TAP_STEP_{letter} = {step}; // taps of one phase are this far apart"
            for letter, step in zip("DHW", steps, strict=True)
        ),
        f"constexpr uint32_t BLOCK_BYTES = {BLOCK_BYTES};",
        f"constexpr uint32_t ELEMENT_BYTES = {ITEM_SIZE[problem.dtype]};",
    )


def _turned(problem: Transposed, schedule: ConvTransposeSchedule) -> tuple[str, ...]:
    """Of pieces that vector cores turn."""
    fractals, turn_bytes = fractals_of_piece(problem), memory_of(problem, schedule)[1]
    elements = turn_bytes // ITEM_SIZE[problem.dtype]
    phases = math.prod(problem.strides) if problem.is_pooled else 1
    return (
        f"constexpr uint32_t TURN_BYTES = {turn_bytes}; // results in the unified buffer, one of two slots",
        f"constexpr uint32_t TURN_ELEMENTS = {elements};",
        f"constexpr uint32_t CHANNELS = {FRACTAL * fractals}; // of them",
        f"constexpr uint32_t PART_ELEMENTS = {elements // fractals}; // of 16 channels",
        f"constexpr uint32_t SOURCE_ELEMENTS = {phases * elements}; // of all phases",
        *(
            f"constexpr uint32_t TURN_{letter} = {count}; // outputs that alternate in the result"
            for letter, count in zip("DHW", problem.alternating, strict=True)
        ),
    )


# -- schedules ------------------------------------------------------------------------------------


def _part_kib(chip: Chip) -> int:
    """A step of what pixels and weights share in L1: of six such parts, two slots of each."""
    return chip.memory.l1_bytes // 1024 * 5 // 64


def _shares(chip: Chip) -> Iterator[tuple[int, int]]:
    """KiB for a slab of pixels and for a panel of weights."""
    part = _part_kib(chip)
    return ((slabs * part, (6 - slabs) * part) for slabs in (4, 3, 5))


def _starts(problem: Transposed, sizes: Sizes, chip: Chip) -> Iterator[ConvTransposeSchedule]:
    for most_m in (128, 64):
        for most_n in (128, 256, 512, 1024):
            for c_slots in (1, 2):
                for slab_kb, panel_kb in _shares(chip):
                    for own, steps in itertools.product((False, True), STEP_SLOTS):
                        tile = (most_m, most_n, c_slots, slab_kb, panel_kb)
                        yield ConvTransposeSchedule(*tile, own_weights=own, step_slots=steps)
                        yield ConvTransposeSchedule(*tile, 3, True, own, steps)


def _refusal(problem: Transposed, schedule: ConvTransposeSchedule, sizes: Sizes, chip: Chip) -> str | None:
    broken = _broken_rule(problem, schedule)
    if broken is not None:
        return broken
    if (problem.behind is not None or problem.is_pooled) and not schedule.turned:
        return "What follows the convolution is done to results that are turned."
    if fractals_of_piece(problem) > schedule.most_m // FRACTAL:
        return "What reduces all channels takes tiles with all of them."
    most = min(_MOST_TURNED, turned_outputs(problem, schedule) // _LEAST_TURNED)
    if schedule.turned and problem.alternating[2] > most:
        return "Too many outputs along W alternate in one turn of results."
    return "The taps do not fit a slab." if plan(problem, schedule, sizes) is None else None


def _broken_rule(problem: Transposed, schedule: ConvTransposeSchedule) -> str | None:
    """Why no convolution can be computed with a schedule."""
    memory = problem.chip.memory
    wide = max(schedule.most_m, schedule.most_n) * BLOCK_BYTES > memory.l0_bytes // 2
    if wide or schedule.c_slots * schedule.most_m * FRACTAL * 4 > memory.l0c_bytes:
        return "A block of one operand does not fit L0, or the results L0C."
    if 2 * (schedule.slab_kb + schedule.panel_kb) * 1024 + _CONSTANT_BYTES > memory.l1_bytes - RESERVED_BYTES:
        return "Two slabs and two panels do not fit L1."
    if schedule.ring < 2 + schedule.turned:
        return "At least one slab lies ahead."
    return None


def _steps(
    problem: Transposed, here: ConvTransposeSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, ConvTransposeSchedule]]:
    yield from here.neighbours("most_m", "most_n", "c_slots")
    for words, part in ((Sentence("pixels"), _part_kib(chip)), (Sentence("weights"), -_part_kib(chip))):
        changed = evolve(here, slab_kb=here.slab_kb + part, panel_kb=here.panel_kb - part)
        yield Sentence("more of L1 for {what}", what=words), changed
    yield from here.neighbours("turned", "own_weights", "step_slots", "ring")


_NOTES = (
    Sentence("Tiles of at most {channels} channels by {pixels} pixels."),
    Sentence("Vector cores lay the input of the next tile out while the cube core multiplies."),
)


def _cell(problem: Transposed, schedule: ConvTransposeSchedule) -> Descriptor:
    """Whether pixels or outputs are the rows of the product; and whether all cores read the same laid out
    weights, which L2 then keeps."""
    way = Algorithm.TRANSPOSED_PRODUCT if schedule.turned else Algorithm.MATRIX_PRODUCT
    reuse = memories.L1 if schedule.own_weights else memories.L2
    return Descriptor(Dataflow.OUTPUT_STATIONARY, reuse, Split.TILES, way, Overlap.of(schedule.c_slots))


FAMILY = SearchingFamily(
    name="transposed",
    ops={CONVOLUTION: "kernel"},
    read=read_transposed,
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=estimate_us,
    schedule_of=ConvTransposeSchedule.of,
    notes=always(_NOTES),
    cell=_cell,
    text_of=_text,
    too_large=Sentence("The taps of the convolution lie too far apart for L1 and the unified buffer."),
)
