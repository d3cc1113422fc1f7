"""Family matmul: products of matrices on the cube cores, one matrix or a batch of them.

Either operand may be transposed, or lie in rows of any pitch and matrices at any distance: it is read as
it lies in memory and turned on the way into L0. Tiles of the result go round-robin over the cube cores;
panels along k pass through L1 and L0 in two slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from attrs import frozen

from evokernel_core.compiler.problems.products import (
    PRODUCTS,
    TRIANGLES,
    Product,
    read_chain,
)
from evokernel_core.compiler.problems.strided import FRONTS
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.ir.nodes import Ring
from evokernel_core.targets.ascendc.kernels.built import Sizes, told
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily
from evokernel_core.targets.ascendc.kernels.epilogue.epilogue_cost import Cost, cost_of
from evokernel_core.targets.ascendc.kernels.epilogue.regions import Regions, Walk
from evokernel_core.targets.ascendc.kernels.epilogue.tiles import Epilogue, read_epilogue
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.matmul import matmul_schedule as schedules
from evokernel_core.targets.ascendc.kernels.matmul.matmul_design import MatmulDesign
from evokernel_core.targets.ascendc.kernels.matmul.matmul_kernel import build
from evokernel_core.targets.ascendc.kernels.matmul.matmul_schedule import MOST_HANDED, MatmulSchedule
from evokernel_core.targets.ascendc.kernels.stage import KernelStage


@frozen
class Matmul:
    """A product, and what vector cores do to its results before they are stored."""

    product: Product
    epilogue: Epilogue | None
    cost: Cost | None

    def best(self, sizes: Mapping[str, int], chip: Chip) -> MatmulSchedule:
        return schedules.best(self.product, sizes, chip, self.cost)

    def refusal(self, schedule: MatmulSchedule, chip: Chip) -> str | None:
        return schedules.refusal(self.product, schedule, chip, self.cost)

    def estimate_us(self, schedule: MatmulSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
        return schedules.estimate_us(self.product, schedule, sizes, chip, self.cost)


def read_matmul(task: KernelTask, chip: Chip) -> Matmul:
    """The product of a task and what follows it. Raises PlanError where one kernel does not do both."""
    product, epilogue = read_chain(
        task, lambda ref, rows, columns: read_epilogue(task, ref, rows, columns, chip), _begins_with_bias
    )
    if epilogue is None:
        return Matmul(product, None, None)
    kernel = epilogue.kernel(MOST_HANDED, MOST_HANDED, chip)
    if kernel is None:
        raise PlanError("What follows the product takes more than the unified buffer of a vector core.")
    return Matmul(product, epilogue, cost_of(kernel, epilogue.source, chip))


def _begins_with_bias(product: Product) -> bool:
    """Whether sums may begin with a product of depth 1: a turned operand of float32 lies in L0A in squares,
    which take two blocks of the other one."""
    return product.dtype != "float32" or not product.a.transposed


def _broken(problem: Matmul, schedule: MatmulSchedule, sizes: Sizes, chip: Chip) -> str | None:
    return told(next(broken_rules(build(problem.product, schedule).kernel, chip, sizes), None))


def _text(problem: Matmul, schedule: MatmulSchedule, task: KernelTask, chip: Chip, name: str) -> KernelStage:
    if schedule.why_out_of_range() or problem.refusal(schedule, chip):
        raise PlanError("The strategy does not fit the memories of a cube core; draft it anew.")
    if problem.epilogue is None:
        return build(problem.product, schedule)
    kernel = problem.epilogue.kernel(schedule.base_m, schedule.base_n, chip)
    if kernel is None:
        raise PlanError("What follows the product takes more than the unified buffer of a vector core.")
    return build(problem.product, schedule, partial(_taken, kernel, problem.epilogue.source))


def _taken(kernel: Kernel, source: str, design: MatmulDesign, walk: Walk) -> IRKernel:
    assert isinstance(design.target, Ring)
    return Regions(kernel, source, design.target, design.tiling.n).kernel_of(walk)


FAMILY = SearchingFamily(
    name="matmul",
    ops=dict.fromkeys(sorted(PRODUCTS | TRIANGLES), "kernel")
    | dict.fromkeys(sorted(PERMUTATIONS | FRONTS), "view"),
    read=read_matmul,
    first=lambda problem, sizes, chip: problem.best(sizes, chip),
    steps=lambda problem, here, sizes, chip: schedules.steps(here),
    refusal=lambda problem, schedule, sizes, chip: problem.refusal(schedule, chip),
    broken=_broken,
    cost_us=lambda problem, schedule, sizes, chip: problem.estimate_us(schedule, sizes, chip),
    schedule_of=MatmulSchedule.of,
    notes=lambda problem, schedule: schedules.notes(schedule),
    cell=lambda problem, schedule: schedules.descriptor_of(schedule),
    text_of=_text,
    ranks=True,
)
