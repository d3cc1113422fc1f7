"""Family matmul: products of matrices, one or a batch of them, wherever their operands lie."""

from __future__ import annotations

from evokernel_core.compiler.problems.products import PRODUCTS, TRIANGLES, Product, read_product
from evokernel_core.compiler.problems.strided import FRONTS
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.kernels.matmul import matmul_schedule as schedules
from evokernel_core.targets.triton.kernels.matmul.matmul_kernel import matmul
from evokernel_core.targets.triton.kernels.matmul.matmul_schedule import MatmulSchedule
from evokernel_core.targets.triton.kernels.names import free_name, output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily
from evokernel_core.targets.triton.kernels.text import TritonKernel


def _text(problem: Product, schedule: MatmulSchedule, task: KernelTask, name: str) -> TritonKernel:
    (output,) = output_names(task)
    return matmul(problem, schedule, output, free_name(task, "parts"), name)


FAMILY = GpuFamily(
    name="matmul",
    ops=dict.fromkeys(sorted(PRODUCTS | TRIANGLES), "kernel")
    | dict.fromkeys(sorted(PERMUTATIONS | FRONTS), "view"),
    read=read_product,
    schedule_of=MatmulSchedule.of,
    starts=schedules.starts,
    refusal=schedules.refusal,
    cost_us=schedules.estimate_us,
    notes=schedules.notes,
    cell=schedules.cell,
    text_of=_text,
)
