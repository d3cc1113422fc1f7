"""Element-wise work on halves that is computed in half: nothing is converted, repeats have twice the lanes.

Each operation rounds to 11 bits, as PyTorch's own does, and so do the steps that one of PyTorch's takes in
float32: the verifier holds the results to the same tolerance, and a review shows their error.
"""

from __future__ import annotations

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.selection import PLAIN
from evokernel_core.targets.ascendc.kernels.fused.settings import Form

_FORMS = frozenset({Form.FLAT, Form.PACKED, Form.SEGMENTS})
_OPERATIONS = PLAIN | {"expand_columns"}
"""Comparisons, whose masks are made for float32, and what takes a number of each row are not among them."""


def applies(planned: Plan) -> bool:
    """Whether all that a plan reads and writes is half, and no reduction would add up in it."""
    dtypes = [*(part.dtype for part in planned.inputs), *(part.dtype for part in planned.outputs)]
    return not planned.reductions and all(dtype == "float16" for dtype in dtypes)


def refusal(kernel: Kernel) -> Sentence | None:
    """Why a kernel is not computed in half; None where it may be."""
    if not applies(kernel.plan) or kernel.form not in _FORMS:
        return Sentence("Only element-wise work on float16 is computed in it.")
    items = (item for program in kernel.programs for item in program.instructions)
    other = next((item.op for item in items if item.op not in _OPERATIONS), None)
    return Sentence("{op} is not computed in float16.", op=other) if other else None
