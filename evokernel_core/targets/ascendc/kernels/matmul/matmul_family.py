"""Family matmul: products of matrices on the cube cores, one matrix or a batch of them.

Either operand may be transposed, or lie in rows of any pitch and matrices at any distance: it is read as
it lies in memory and turned on the way into L0. Tiles of the result go round-robin over the cube cores;
panels along k pass through L1 and L0 in two slots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.compiler.problems.products import (
    PRODUCTS,
    TRIANGLES,
    WHOLE_PRODUCTS,
    Product,
    product_node,
    product_of,
    read_product,
)
from evokernel_core.compiler.problems.strided import FRONTS
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.compiler.target import Move
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
from evokernel_core.targets.ascendc.kernels.cube import Behind, CubeKernel
from evokernel_core.targets.ascendc.kernels.epilogue.epilogue_cost import Cost, cost_of
from evokernel_core.targets.ascendc.kernels.epilogue.tiles import Epilogue, EpilogueText, read_epilogue, write
from evokernel_core.targets.ascendc.kernels.matmul import matmul_schedule as schedules
from evokernel_core.targets.ascendc.kernels.matmul.matmul_kernel import build
from evokernel_core.targets.ascendc.kernels.matmul.matmul_schedule import (
    MOST_HANDED,
    MatmulSchedule,
    descriptor_of,
    strategy_of,
)


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
    node = product_node(task)
    try:
        return Matmul(read_product(task), None, None)
    except PlanError:
        more = any(fused_ops().get(other.op, "view") != "view" for other in task.graph.nodes)
        if node.op not in WHOLE_PRODUCTS or not more:
            raise
    shape = node.outputs[0].shape
    epilogue = read_epilogue(task, ValueRef(node.name), shape[:-1], shape[-1:], chip)
    kernel = epilogue.kernel(MOST_HANDED, MOST_HANDED, chip)
    if kernel is None:
        raise PlanError("What follows the product takes more than the unified buffer of a vector core.")
    return Matmul(product_of(task, node), epilogue, cost_of(kernel, epilogue.source, chip))


@frozen
class MatmulFamily:
    """Basic cube instructions, without the Matmul object."""

    name: str = field(default="matmul", init=False)
    strategies: frozenset[str] = field(default=frozenset({"matmul"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(PRODUCTS | TRIANGLES), "kernel") | dict.fromkeys(
            sorted(PERMUTATIONS | FRONTS), "view"
        )

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_matmul(task, chip)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        return strategy_of(read_matmul(task, chip).best(task.sizes, chip), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        problem, here = read_matmul(task, chip), MatmulSchedule.of(strategy)
        legal = {
            schedule: name
            for name, schedule in schedules.steps(here)
            if schedule != here and problem.refusal(schedule, chip) is None
        }
        ranked = sorted(legal, key=lambda schedule: problem.estimate_us(schedule, task.sizes, chip))
        return tuple(Move(legal[item], strategy_of(item, legal[item]), self.name) for item in ranked)

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        problem, schedule = read_matmul(task, chip), MatmulSchedule.of(strategy)
        reason = problem.refusal(schedule, chip)
        if reason is not None:
            return reason
        kernel = build(problem.product, schedule).kernel
        broken = next(broken_rules(kernel, chip, task.sizes), None)
        return None if broken is None else f"{broken.rule} of {broken.place}: {broken.reason}"

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        legal = self.why_illegal(task, strategy, chip) is None
        return strategy_of(MatmulSchedule.of(strategy), "") if legal else None

    def descriptor(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Descriptor:
        return descriptor_of(MatmulSchedule.of(strategy))

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return read_matmul(task, chip).estimate_us(MatmulSchedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> CubeKernel:
        problem, schedule = read_matmul(task, chip), MatmulSchedule.of(strategy)
        if problem.refusal(schedule, chip) is not None:
            raise PlanError("The strategy does not fit the memories of a cube core; draft it anew.")
        return build(problem.product, schedule, _behind(problem.epilogue, schedule, chip))


def _behind(epilogue: Epilogue | None, schedule: MatmulSchedule, chip: Chip) -> Behind | None:
    """What the vector cores do."""
    if epilogue is None:
        return None

    def written(class_name: str, process: Sequence[str]) -> EpilogueText:
        kernel = epilogue.kernel(schedule.base_m, schedule.base_n, chip)
        if kernel is None:
            raise PlanError("What follows the product takes more than the unified buffer of a vector core.")
        lines = [*process, *(["Finish();"] if kernel.schedule.ahead else [])]
        memory = "workspace + GetBlockIdx() / GetTaskRatio() * HANDED_BYTES"
        return write(epilogue, kernel, class_name, lines, "tiling_.n", memory)

    return Behind(written, epilogue.reads_numbers)
