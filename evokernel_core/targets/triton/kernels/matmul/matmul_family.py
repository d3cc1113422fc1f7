"""Family matmul: products of matrices, one or a batch of them, wherever their operands lie, with what is done
to each element of the result."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.problems.products import (
    PRODUCTS,
    TRIANGLES,
    Product,
    product_node,
    read_chain,
)
from evokernel_core.compiler.problems.strided import FRONTS
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.epilogue import Epilogue, read_epilogue
from evokernel_core.targets.triton.kernels.library.library_cost import require_gain
from evokernel_core.targets.triton.kernels.matmul import matmul_schedule as schedules
from evokernel_core.targets.triton.kernels.matmul.matmul_kernel import ProductOutput, matmul
from evokernel_core.targets.triton.kernels.matmul.matmul_schedule import MatmulSchedule
from evokernel_core.targets.triton.kernels.names import free_name, output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily
from evokernel_core.targets.triton.kernels.text import TritonKernel


@frozen
class Matmul:
    """A product, and what is done to its results before they are stored."""

    product: Product
    epilogue: Epilogue | None


def read_matmul(task: KernelTask, gpu: Gpu) -> Matmul:
    """The product of a task and what follows it. Raises PlanError where one kernel does not do both."""
    return Matmul(*read_chain(task, lambda ref, rows, columns: read_epilogue(task, ref, rows, columns, gpu)))


def _cost_us(problem: Matmul, schedule: MatmulSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    product, epilogue = problem.product, problem.epilogue
    if epilogue is None:
        return schedules.estimate_us(product, schedule, sizes, gpu)
    batch, m, n, _ = product.evaluate(sizes)
    more = batch * m * n * (epilogue.read_bytes() + epilogue.written_bytes())
    return schedules.estimate_us(product, schedule, sizes, gpu, more, epilogue.instructions())


def _live_bytes(problem: Matmul, schedule: MatmulSchedule, sizes: Mapping[str, int]) -> int:
    behind = problem.epilogue.live_tiles() if problem.epilogue else 0
    return schedules.tile(problem.product, schedule).live_bytes(behind + 3 * bool(problem.product.triangle))


def _compare(task: KernelTask, problem: Matmul, us: float, gpu: Gpu) -> None:
    product = problem.product
    if problem.epilogue is not None or product.triangle is not None or product.relu:
        require_gain(task, product_node(task), us, gpu)


def _text(problem: Matmul, schedule: MatmulSchedule, task: KernelTask, name: str) -> TritonKernel:
    results = ProductOutput(output_names(task), free_name(task, "parts"), problem.epilogue)
    return matmul(problem.product, schedule, results, name)


FAMILY = GpuFamily(
    name="matmul",
    ops=dict.fromkeys(sorted(PRODUCTS | TRIANGLES), "kernel")
    | dict.fromkeys(sorted(PERMUTATIONS | FRONTS), "view"),
    read=read_matmul,
    schedule_of=MatmulSchedule.of,
    starts=lambda problem, sizes, gpu: schedules.starts(problem.product, sizes, gpu),
    refusal=lambda problem, schedule, sizes, gpu: schedules.refusal(problem.product, schedule, sizes, gpu),
    cost_us=_cost_us,
    live_bytes=_live_bytes,
    notes=lambda problem, schedule: schedules.notes(problem.product, schedule),
    cell=lambda problem, schedule: schedules.cell(problem.product, schedule),
    text_of=_text,
    compare=_compare,
)
